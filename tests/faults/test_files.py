"""A journal in a file, whose writer is killed before, within or behind a line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from replant.execute.journal import Entry, Journal, Run, State
from replant.execute.journal.files import FileJournals
from tests.faults.injecting import Killed, Process
from tests.faults.migrations import ENABLE
from tests.faults.state import differences, leftovers, state
from tests.faults.stories import IN_THE_END, KILLED, Play, in_loop, lived

LINES = (0, 1, 5, 9, 16)


class _Dying:
    """Writes so many times, and dies at the last, with a part of it written."""

    def __init__(
        self, journal: Journal, path: Path, process: Process, writes: int, part: float
    ) -> None:
        self.where = journal.where
        self._journal = journal
        self._path = path
        self._process = process
        self._left = writes
        self._part = part

    async def write(self, entries: Sequence[Entry]) -> None:
        if self._process.dead:
            raise Killed
        before = self._path.stat().st_size
        await self._journal.write(entries)
        if self._left == 0:
            whole = self._path.stat().st_size - before
            with self._path.open("r+b") as file:
                file.truncate(before + int(whole * self._part))
            self._process.dead = True
            raise Killed
        self._left -= 1

    async def aclose(self) -> None:
        await self._journal.aclose()


class _DyingJournals(FileJournals):
    def __init__(self, path: Path, process: Process, writes: int, part: float) -> None:
        super().__init__(path)
        self._how = path, process, writes, part

    async def begin(self, run: Run) -> Journal:  # type: ignore[override]
        return _Dying(await super().begin(run), *self._how)


@pytest.mark.parametrize("part", [0.0, 0.6, 1.0], ids=["before", "within", "after"])
def test_a_file_that_ends_anywhere_is_gone_on_with(tmp_path: Path, part: float) -> None:
    async def story(line: int, *, back: bool) -> None:
        play, path = Play(ENABLE), tmp_path / f"{line}-{back}"
        await play.come_to_the_start()
        assert play.plan is not None
        process = play.process()
        dying = _DyingJournals(path, process, line, part)
        assert await lived(_begun(process, dying, play)) == KILLED
        (run,) = await FileJournals(path).runs()
        applying = play.process().ground.applying(FileJournals(path))
        result = await (applying.undo(run.id) if back else applying.resume(run.id))
        assert result.state is (State.UNDONE if back else State.DONE)
        await play.let_pass(IN_THE_END)
        assert not play.watchman.bad
        assert not play.watchman.misplaced()
        assert not leftovers(play.sandbox)
        assert bool(differences(play.beginning, state(play.sandbox))) is not back

    for line in LINES:
        in_loop(story(line, back=bool(line % 2)))


async def _begun(process: Process, journals: FileJournals, play: Play) -> None:
    assert play.plan is not None
    await process.ground.applying(journals).begin(play.plan, {})
