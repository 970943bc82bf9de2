"""What a journal says of a run, and that nothing which happens to it makes it say less."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path
from typing import Any

import pytest

from replant.errors import InputError
from replant.execute.census_model import Census
from replant.execute.journal import Entry, Header, Mark, Run, State
from replant.execute.journal.files import FileJournals
from tests.execute.nodes import ENABLE

HEADER = Header(id="r", goal="enable", plugins=("p",), started="2026-01-01T00:00:00Z", by="me")


def run_of(*entries: Entry) -> Run:
    return Run(HEADER, ENABLE, Census(), list(entries))


def step(name: str) -> Entry:
    return Entry(at="now", mark=Mark.STEP, step=name)


def act(name: str, target: str, of: str = "roll-nodes") -> Entry:
    return Entry(at="now", mark=Mark.ACT, act=name, target=target, step=of)


def done(name: str) -> Entry:
    return Entry(at="now", mark=Mark.STEP_DONE, step=name)


@pytest.mark.parametrize(
    ("begun", "last"),
    [
        ([], ""),
        (["switch-control-plane"], "switch-control-plane"),
        (["switch-control-plane", "roll-nodes"], "roll-nodes"),
        # Resumed, and stopped in the first step, which it goes through again.
        (["switch-control-plane", "roll-nodes", "switch-control-plane"], "roll-nodes"),
        (["roll-nodes", "undo-roll-nodes"], "roll-nodes"),
    ],
)
def test_a_run_has_come_as_far_as_it_ever_was(begun: list[str], last: str) -> None:
    assert run_of(*map(step, begun)).last_begun == last


SWITCH = act("Switch", "node n1")


@pytest.mark.parametrize(
    ("entries", "in_the_air"),
    [
        ([SWITCH], {"node n1"}),
        ([SWITCH, act("Uncordon", "node n1")], set()),
        ([SWITCH, act("Uncordon", "node n2")], {"node n1"}),
        ([SWITCH, act("Cordon", "node n2"), done("switch-control-plane")], {"node n1"}),
        ([SWITCH, done("roll-nodes")], set()),
        ([SWITCH, act("Switch", "node n1", "undo-roll-nodes")], set()),
        ([act("Switch", "kube-scheduler", "switch-control-plane")], {"kube-scheduler"}),
    ],
)
def test_what_another_step_has_begun_to_switch_is_in_the_air(
    entries: list[Entry], in_the_air: set[str]
) -> None:
    assert run_of(*entries).in_the_air("undo-roll-nodes") == in_the_air
    assert run_of(SWITCH).in_the_air("roll-nodes") == set()


class FullDisk:
    """A file on a disk that takes a few bytes more, and then none for a while."""

    def __init__(self, file: Any, room: int) -> None:
        self._file = file
        self.room = room

    def write(self, data: memoryview) -> int:
        if not self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        written: int = self._file.write(data[: self.room])
        self.room -= written
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def test_a_full_disk_costs_no_more_than_what_it_did_not_take(tmp_path: Path) -> None:
    async def story() -> list[Entry]:
        journals = FileJournals(tmp_path / "journal")
        journal = await journals.begin(run_of())
        await journal.write([step("one")])
        disk = FullDisk(journal._file, room=20)  # noqa: SLF001
        journal._file = disk  # type: ignore[assignment]  # noqa: SLF001
        with pytest.raises(InputError, match="No space left"):
            await journal.write([step("two")])
        disk.room = 10_000
        await journal.write([Entry(at="now", mark=Mark.STOP, why="the disk is full")])
        await journal.aclose()
        assert [it.state for it in await journals.runs()] == [State.UNFINISHED]
        return (await journals.read("r")).entries

    assert [it.step or it.why for it in asyncio.run(story())] == ["one", "the disk is full"]


def test_a_disk_that_takes_it_bit_by_bit_gets_it_all(tmp_path: Path) -> None:
    class Slow(FullDisk):
        def write(self, data: memoryview) -> int:
            written: int = self._file.write(data[:7])
            return written

    async def story() -> list[Entry]:
        journals = FileJournals(tmp_path / "journal")
        journal = await journals.begin(run_of())
        journal._file = Slow(journal._file, 0)  # type: ignore[assignment]  # noqa: SLF001
        await journal.write([step("one"), step("two")])
        await journal.aclose()
        return (await journals.read("r")).entries

    assert [it.step for it in asyncio.run(story())] == ["one", "two"]
