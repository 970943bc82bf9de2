"""Events: each thing is said once in half an hour, also by who comes later."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

from replant.cluster.live import connect
from replant.cluster.writing import LiveWriter
from replant.operator.telling import Teller
from tests.gardener.objects import NAMESPACE, cluster
from tests.operators.seeds import Served, definitions, served, stored

ABOUT = cluster()


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def tell(seed: Served, *messages: str, at: datetime = NOON) -> list[str]:
    notes: list[str] = []

    async def main() -> None:
        async with connect(str(seed.kubeconfig), tries=1) as reader:
            teller = Teller(LiveWriter(reader), notes.append, lambda: at)
            for message in messages:
                await teller.tell(ABOUT, "Odd", message)

    asyncio.run(main())
    return notes


def test_each_thing_is_said_once(tmp_path: Path) -> None:
    with served(tmp_path, "seed", [*definitions(), stored(ABOUT)]) as seed:
        assert tell(seed, "a", "a", "a") == []
        assert len(seed.audit.writes) == 1
        # Who comes later finds out that it was said, and leaves it at that.
        assert tell(seed, "a", "b", "a", "b") == []
        assert len(seed.audit.writes) == 3
        assert seed.events() == [(NAMESPACE, "Odd", it) for it in "ab"]
        event = seed.audit.writes[0][2]
        assert (event["type"], event["metadata"]["namespace"]) == ("Warning", "default")
        # Clusters forget Events; what still holds is said again.
        assert tell(seed, "a", at=NOON + timedelta(minutes=31)) == []
        assert [it[2] for it in seed.events()].count("a") == 2


def test_what_cannot_be_said_is_noted_and_said_later(tmp_path: Path) -> None:
    with served(tmp_path, "seed", [*definitions(), stored(ABOUT)]) as seed:
        seed.audit.fail = lambda number: "before" if number == 0 else ""
        [note] = tell(seed, "a\n", "a\n")
        assert f"an Event about {NAMESPACE} could not be written" in note
        assert seed.events() == [(NAMESPACE, "Odd", "a\\n")]
