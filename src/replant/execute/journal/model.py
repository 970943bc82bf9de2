"""What a journal says of a run, wherever it is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from msgspec import Struct

from replant.execute.census_model import Census
from replant.plan.model import Plan

FORMAT = 1
"""One more whenever what a journal holds means something else than before. Runs of a Replant that
did not count have none."""


class Mark(StrEnum):
    """What an entry is about."""

    ACT = "act"
    """Something is about to be done."""
    STEP = "step"
    """A step is about to begin."""
    STEP_DONE = "step-done"
    LOST = "lost"
    """Nobody serves a claim any more."""
    SERVED = "served"
    """Somebody serves it again."""
    UNDO = "undo"
    """From here on the run goes back."""
    STOP = "stop"
    """It was stopped, and can be resumed."""
    END = "end"
    """There is nothing left to do."""


class State(StrEnum):
    """Where a run is, by its journal."""

    UNFINISHED = "unfinished"
    DONE = "done"
    UNDONE = "undone"


class _Written(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True,
    rename="camel",
):  # fmt: skip
    """Something in a journal: a field that is not known is refused, not lost."""


class Entry(_Written, frozen=True, kw_only=True):
    """One line of a journal."""

    at: str
    mark: Mark
    step: str = ""
    act: str = ""
    target: str = ""
    why: str = ""
    backup: dict[str, Any] | None = None


class Header(_Written, frozen=True, kw_only=True):
    """What is known of a run before its first step."""

    id: str
    goal: str
    plugins: tuple[str, ...]
    started: str
    by: str
    """The machine and user that began it."""
    options: dict[str, Any] = {}
    """How gates are switched and pods are drained, so that it goes on in the same way."""
    cluster: str = ""
    """The uid of its namespace kube-system: a file may be taken to another cluster."""
    format: int = 0
    """The FORMAT of whoever began it."""


@dataclass(slots=True)
class Run:
    """A run as its journal has it."""

    header: Header
    plan: Plan
    before: Census
    entries: list[Entry] = field(default_factory=list)

    @property
    def undoing(self) -> bool:
        """Whether it goes back."""
        return any(it.mark is Mark.UNDO for it in self.entries)

    @property
    def turned(self) -> str:
        """When it was begun, or turned back."""
        turns = [it.at for it in self.entries if it.mark is Mark.UNDO]
        return turns[-1] if turns else self.header.started

    @property
    def last_begun(self) -> str:
        """The step of the plan to which it has come at most; nothing if none was begun.

        Not the one that was begun last: a run that is resumed begins with its first step again.
        """
        begun = {it.step for it in self.entries if it.mark is Mark.STEP}
        return next((it.id for it in reversed(self.plan.steps) if it.id in begun), "")

    def in_the_air(self, step: str) -> frozenset[str]:
        """What another step has had switched, without ever having seen that it was.

        Whoever switches may outlive us: what looks untouched may be about to change.
        """
        switched: dict[str, str] = {}
        for it in self.entries:
            if it.mark is Mark.ACT and it.act == "Switch":
                switched[it.target] = it.step
            elif it.mark is Mark.ACT and it.act == "Uncordon":
                switched.pop(it.target, None)
            elif it.mark is Mark.STEP_DONE:
                switched = {place: by for place, by in switched.items() if by != it.step}
        return frozenset(place for place, by in switched.items() if by != step)

    @property
    def was_done(self) -> bool:
        """Whether it had come to its end before it went back."""
        marks = [it.mark for it in self.entries]
        return Mark.UNDO in marks and Mark.END in marks[: marks.index(Mark.UNDO)]

    def has_done(self, step: str) -> bool:
        """Whether a step has come to its end, in the direction that the run has."""
        return any(it.mark is Mark.STEP_DONE and it.step == step for it in self.entries)

    @property
    def state(self) -> State:
        """Whether there is anything left to do."""
        marks = [it.mark for it in self.entries if it.mark in (Mark.UNDO, Mark.END)]
        if not marks or marks[-1] is not Mark.END:
            return State.UNFINISHED
        return State.UNDONE if Mark.UNDO in marks else State.DONE


class Summary(Struct, frozen=True):
    """A run, as a list of runs shows it."""

    id: str
    goal: str
    started: str
    state: State


class Journal(Protocol):
    """Where the entries of one run go."""

    where: str
    """As a person would look for it."""

    async def write(self, entries: Sequence[Entry]) -> None:
        """Write entries so that nothing can lose them; returns when they are safe."""
        ...

    async def aclose(self) -> None:
        """No more is written."""
        ...


class Journals(Protocol):
    """Where runs are kept."""

    @property
    def elsewhere(self) -> str:
        """Where that is, for people to find it; empty if it is the cluster itself."""
        ...

    async def runs(self) -> list[Summary]:
        """All runs, the oldest first."""
        ...

    async def begin(self, run: Run) -> Journal:
        """Write down a new run, before anything is done."""
        ...

    async def read(self, run_id: str) -> Run:
        """A run, to look at."""
        ...

    async def open(self, run_id: str) -> tuple[Run, Journal]:
        """A run that was begun before, and its journal, to go on writing."""
        ...
