"""What can be told of a run from outside: by whom it is carried out, how far it is, what it awaits.

Whoever is at work says so in the Lease; what was at work says in its journal why it stopped.
"""

from __future__ import annotations

from dataclasses import dataclass

from replant.cluster.ports import Reader
from replant.execute.journal import Journals, Mark, Run, State
from replant.execute.lease import STATUS, WAITS, is_live, look


@dataclass(frozen=True, slots=True)
class Following:
    """A run that is not finished, as others see it."""

    run: Run
    at_work: str
    """Who carries it out now; nobody, where it has stopped."""
    progress: str
    waits: tuple[str, ...]

    @property
    def state(self) -> str:
        """Where it stands, in a few words."""
        way = "going back" if self.run.undoing else "going on"
        if self.at_work:
            return way
        last = self.run.entries[-1] if self.run.entries else None
        if last is not None and last.mark is Mark.STOP:
            return f"stopped ({way} when resumed): {last.why.rstrip('.')}"
        return f"broken off ({way} when resumed)"

    @property
    def step(self) -> str:
        """The step that was begun last."""
        begun = [it.step for it in self.run.entries if it.mark is Mark.STEP]
        return begun[-1] if begun else ""


async def follow(reader: Reader, journals: Journals, now: float) -> Following | None:
    """The unfinished run, if there is one."""
    unfinished = [it for it in await journals.runs() if it.state is State.UNFINISHED]
    if not unfinished:
        return None
    run = await journals.read(unfinished[-1].id)
    held = await look(reader)
    if held is None or not is_live(held, now):
        return Following(run, "", "", ())
    said = held.metadata.annotations or {}
    waits = tuple(filter(None, said.get(WAITS, "").split("\n")))
    return Following(run, held.holder, said.get(STATUS, ""), waits)
