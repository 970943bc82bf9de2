"""What others are told of a run whose journal they do not have."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from replant.execute.following import Following, follow
from replant.execute.journal.files import FileJournals
from replant.execute.lease import STATUS, WAITS, Lease
from tests.execute.memory import Api, Clock

MARK = "enable-20260101-000000-abcd /home/me/journal on there"
SAID = {STATUS: "roll-nodes: 1 of 4 nodes", WAITS: "one thing\nanother"}


@pytest.mark.parametrize("at_work", [True, False])
def test_the_lease_tells_of_a_run_that_is_written_down_elsewhere(
    tmp_path: Path, *, at_work: bool
) -> None:
    async def story() -> Following | None:
        api, clock = Api(), Clock()
        lease = Lease(api, api, clock, lambda _: None)
        nothing = FileJournals(tmp_path / "another")
        assert await follow(api, nothing, clock.now()) is None
        await lease.acquire()
        assert await follow(api, nothing, clock.now()) is None
        await lease.mark(MARK)
        await lease.renew(SAID)
        if not at_work:
            await lease.release()
        found = await follow(api, nothing, clock.now())
        assert found is not None
        assert found.at_work == (lease.holder if at_work else "")
        return found

    found = asyncio.run(story())
    assert found is not None
    assert (found.id, found.goal) == ("enable-20260101-000000-abcd", "enable")
    state = "under way" if at_work else "unfinished"
    assert found.state == f"{state} (its journal is /home/me/journal on there)"
    assert found.step == ("roll-nodes: 1 of 4 nodes" if at_work else "")
    assert found.waits == (("one thing", "another") if at_work else ())
