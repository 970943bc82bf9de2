"""What can be told of a run from outside: by whom it is carried out, how far it is, what it awaits.

Whoever is at work says so in the Lease; what was at work says in its journal why it stopped. Of a
run whose journal is in a file that nobody has named, the Lease alone tells.
"""

from __future__ import annotations

from dataclasses import dataclass

from replant.cluster.ports import Reader
from replant.execute.journal import Journals, Mark, Run, State
from replant.execute.lease import STATUS, WAITS, Held, is_live, look
from replant.execute.runtime.missing_volumes import missing_volumes


@dataclass(frozen=True, slots=True)
class Following:
    """A run that is not finished, as others see it."""

    id: str
    goal: str
    state: str
    """Where it stands, in a few words."""
    step: str
    """How far whoever is at work says that it is, or else the step that was begun last."""
    started: str = ""
    """When it was begun, where that is known."""
    at_work: str = ""
    """Who carries it out now; nobody, where it has stopped."""
    waits: tuple[str, ...] = ()
    away: tuple[str, ...] = ()
    """The PersistentVolumes that the run has deleted and not created again, if nobody is at work.
    """


async def follow(reader: Reader, journals: Journals, now: float) -> Following | None:
    """The unfinished run, if there is one."""
    unfinished = [it for it in await journals.runs() if it.state is State.UNFINISHED]
    run = await journals.read(unfinished[-1].id) if unfinished else None
    held = await look(reader) or Held()
    at_work = held.holder if is_live(held, now) else ""
    said = (held.metadata.annotations or {}) if at_work else {}
    waits = tuple(filter(None, said.get(WAITS, "").split("\n")))
    progress = said.get(STATUS, "")
    if run is not None:
        return Following(
            id=run.header.id,
            goal=run.header.goal,
            state=_state(run, at_work),
            step=progress or _step(run),
            started=run.header.started,
            at_work=at_work,
            waits=waits,
            away=() if at_work else tuple(await missing_volumes(reader, run)),
        )
    if not held.elsewhere:
        return None
    run_id, _, where = held.elsewhere.partition(" ")
    return Following(
        id=run_id,
        goal=run_id.partition("-")[0],
        state=f"{'under way' if at_work else 'unfinished'} (its journal is {where})",
        step=progress,
        at_work=at_work,
        waits=waits,
    )


def _state(run: Run, at_work: str) -> str:
    way = "going back" if run.undoing else "going on"
    if at_work:
        return way
    last = run.entries[-1] if run.entries else None
    if last is not None and last.mark is Mark.STOP:
        return f"stopped ({way} when resumed): {last.why.rstrip('.')}"
    return f"broken off ({way} when resumed)"


def _step(run: Run) -> str:
    begun = [it.step for it in run.entries if it.mark is Mark.STEP]
    return begun[-1] if begun else ""
