"""The loop: look, decide, write down, act, look again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from replant.errors import Final, Halted, Missing, ReplantError, Retryable
from replant.execute.acts import Act, Decision, Evict, Progress, Switch, Wait
from replant.execute.emptying import FRESH
from replant.execute.hands import Hands
from replant.execute.insisting import pause
from replant.execute.journal import Entry, Journal, Mark
from replant.execute.lease import STATUS, WAITS, Lease
from replant.execute.mirror import Mirror
from replant.execute.postcheck.detaches import Detaches
from replant.execute.recounting import Deed, deeds
from replant.execute.stages import Stage
from replant.execute.steps.attachments import ForgottenAttachments
from replant.execute.timing import Timing, written
from replant.execute.world import World
from replant.plan.model import Step

ACTS_AT_ONCE = 256
"""Under way at a time: a hook may take minutes, and each of these is a node or a pod."""
MANY, GATHERED = 16, 0.03
"""While more than so many acts and waits are under way, what happens is gathered for so many
seconds of the machine: to look after each single event would be most of the work."""
RELIST = 60.0
"""So long nothing that is waited for may come before the watches are doubted."""
FAILING = 3600.0
"""So long something may fail again and again before a person has to look at it."""
ENDING = 30.0
"""So long acts that are under way are waited for when a run is stopped."""


class Display(Protocol):
    """Shows a person how it goes."""

    def step(self, step: Step, number: int, total: int) -> None:
        """A step begins."""
        ...

    def progress(self, progress: Progress, waits: Sequence[tuple[Wait, float]]) -> None:
        """How far it is, what it waits for, and for how many seconds already."""
        ...

    def step_done(self, step: Step) -> None:
        """A step is done."""
        ...

    def note(self, text: str) -> None:
        """Something that a person should know."""
        ...


@dataclass(frozen=True, slots=True)
class _Held:
    """A target that is left alone for a while after a failure."""

    until: float
    tries: int
    wait: Wait


class Engine:
    """Carries stages out, one after the other. It can be stopped between any two instructions."""

    def __init__(
        self,
        *,
        world: World,
        mirror: Mirror,
        hands: Hands,
        journal: Journal,
        lease: Lease,
        timing: Timing,
        display: Display,
        detaches: Detaches,
    ) -> None:
        self._detaches = detaches
        self._forgotten = ForgottenAttachments(timing.haste)
        self._world = world
        self._mirror = mirror
        self._hands = hands
        self._journal = journal
        self._lease = lease
        self._timing = timing
        self._display = display
        self._busy: dict[str, tuple[Act, asyncio.Task[object]]] = {}
        self._held: dict[str, _Held] = {}
        """By target: what has failed there."""
        self._evicting: set[Act] = set()
        """Evictions that are in the journal: a budget may have them tried hundreds of times."""
        self._waiting: dict[str, float] = {}
        """By wait: since when."""
        self._relisted = 0.0
        self._stopping = ""
        self._progress = Progress(0, 0, "")
        self.deeds: set[Deed] = set()
        """What was written down, and then done or tried."""

    def stop(self, why: str) -> None:
        """Have it end as soon as what is under way has ended."""
        self._stopping = why
        self._mirror.changed.set()

    async def carry_out(self, step: Step, number: int, total: int, stage: Stage) -> None:
        """One step, from wherever it is to its end; Halted says why it went no further."""
        self._display.step(step, number, total)
        await self._write(Entry(at=self._at(), mark=Mark.STEP, step=step.id))
        self._waiting.clear()
        try:
            while not await self._turn(step, stage):
                pass
        except asyncio.CancelledError:
            self._drop_acts()  # whoever cancels does not want to wait
            raise
        except BaseException:
            await self._end_acts()
            raise
        await self._write(Entry(at=self._at(), mark=Mark.STEP_DONE, step=step.id))
        self._display.step_done(step)

    async def do_now(self, step: Step, act: Act) -> object:
        """Do a last thing once the loop has ended, written down like any other."""
        if act.changes:
            await self._write(self._entry(step, act))
        return await self._hands.do(act)

    async def _turn(self, step: Step, stage: Stage) -> bool:
        """Look and decide once, and wait until it is worth looking again; tells if it is done."""
        self._mirror.check()
        if self._stopping:
            raise Halted(self._stopping)
        self._mirror.changed.clear()
        self._collect(stage)
        now = self._timing.now()
        decision = self._detaches.decide(self._world, now)
        if decision is None:
            decision = stage.decide(self._world, now)
            self._progress = decision.progress
            forgotten = self._forgotten.decide(self._world, now)
            decision.done = decision.done and not forgotten.waits
            decision.add(forgotten)
        else:
            decision.progress = self._progress
        for note in decision.notes:
            self._display.note(note)
        if decision.failed:
            raise Halted(decision.failed)
        if decision.done and not self._busy:
            self._display.progress(decision.progress, ())
            return True
        started = await self._begin(step, decision, now)
        self._let_go(decision, now)
        decision.waits += [it.wait for it in self._held.values()]
        self._be_patient(decision.waits, now)
        waits = [(it, now - self._waiting[it.key]) for it in decision.waits]
        self._display.progress(decision.progress, waits)
        await self._renew(step, decision)
        if not started:
            seconds = max(0.05, min(decision.wake, self._next_retry(now), self._lease.due))
            tasks = [task for _act, task in self._busy.values()]
            await self._timing.wait(tasks, self._mirror.changed, seconds)
            if len(tasks) + len(waits) > MANY:
                await asyncio.sleep(GATHERED)
        else:
            await asyncio.sleep(0)
        return False

    async def _begin(self, step: Step, decision: Decision, now: float) -> bool:
        """Write down what is to be done, and begin it; tells whether it began anything."""
        acts = [it for it in decision.acts if self._is_free(it, now)]
        acts = acts[: ACTS_AT_ONCE - len(self._busy)]
        if changing := [it for it in acts if it.changes]:
            unwritten = [it for it in changing if not self._is_written(it)]
            if unwritten:
                await self._write(*(self._entry(step, it) for it in unwritten))
            self._evicting |= {it for it in changing if isinstance(it, Evict)}
            if self._timing.now() > now + FRESH * self._timing.haste:
                # What was seen may no longer be so. An intent that was not acted on does no harm.
                acts = [it for it in acts if not it.changes]
        for act in acts:
            self._busy[act.target] = act, asyncio.create_task(self._hands.do(act))
        return bool(acts)

    def _is_free(self, act: Act, now: float) -> bool:
        held = self._held.get(act.target)
        return act.target not in self._busy and (held is None or now >= held.until)

    def _is_written(self, act: Act) -> bool:
        """Whether this very act, of this very pod, is in the journal already."""
        return isinstance(act, Evict) and act in self._evicting

    def _let_go(self, decision: Decision, now: float) -> None:
        """Forget the failures at targets with which nothing is to be done any more."""
        wanted = {it.target for it in decision.acts} | self._busy.keys()
        self._held = {
            it: held for it, held in self._held.items() if it in wanted or held.until > now
        }

    def _next_retry(self, now: float) -> float:
        later = (it.until - now for it in self._held.values() if it.until > now)
        return min(later, default=60.0)

    def _collect(self, stage: Stage) -> None:
        """Have the stage learn what has come of the acts that have ended."""
        for target, (act, task) in list(self._busy.items()):
            if not task.done():
                continue
            del self._busy[target]
            error = task.exception()
            now = self._timing.now()
            if error is None:
                self._detaches.learn(act, task.result(), now)
                self._forgotten.learn(act, task.result(), now)
                self._held.pop(target, None)
                stage.learn(act, task.result(), now)
                continue
            if not isinstance(error, ReplantError):
                raise error
            self._forgotten.learn(act, error, now)
            stage.learn(act, error, now)
            self._consider(act, error, now)

    def _consider(self, act: Act, error: ReplantError, now: float) -> None:
        """Leave a target alone for a while after a failure, or give up where it is of no use."""
        if isinstance(error, Final) and not (isinstance(error, Missing) or isinstance(act, Switch)):
            raise Halted(f"{act.target}: {error}")
        if isinstance(act, Evict):
            return  # whoever drains says why a pod does not go, and when it is tried again
        held = self._held.get(act.target)
        tries = held.tries if held else 0
        seconds = pause(tries)
        wait = Wait(f"{act.target}, where this has failed: {error}", f"held {act.target}", FAILING)
        self._held[act.target] = _Held(now + seconds, tries + 1, wait)
        if isinstance(error, Retryable):
            self._display.note(f"{act.target}: {error}; looking again in {seconds:g} s")

    def _be_patient(self, waits: Sequence[Wait], now: float) -> None:
        """Halted for a wait that has lasted too long; a doubt about the watches before that."""
        keys = {it.key for it in waits}
        news = keys - self._waiting.keys()
        self._waiting = {it: self._waiting.get(it, now) for it in keys}
        for wait in waits:
            if now - self._waiting[wait.key] > wait.timeout:
                look = f" Look at the log of {wait.look}." if wait.look else ""
                raise Halted(
                    f"Waited for {wait.timeout:g} s for {wait.what}, and it did not come.{look}"
                )
        if news:
            self._relisted = now
        elif keys and now - self._relisted > RELIST:
            self._relisted = now
            self._mirror.relist()

    async def _renew(self, step: Step, decision: Decision) -> None:
        if self._lease.due > 0:
            return
        waits = "\n".join(it.what for it in decision.waits[:20])
        status = {STATUS: f"{step.id}: {decision.progress.told}", WAITS: waits}
        with self._forgiving():
            await self._lease.renew(status)

    @contextmanager
    def _forgiving(self) -> Iterator[None]:
        """Count no wait while the cluster does not answer: nothing could be seen to come."""
        asked = self._timing.now()
        yield
        away = self._timing.now() - asked
        if away > FRESH * self._timing.haste:
            self._waiting = {key: since + away for key, since in self._waiting.items()}

    async def _end_acts(self) -> None:
        """Let what is under way come to its end, so that nothing is done behind our back."""
        tasks = [task for _act, task in self._busy.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=ENDING)
        self._drop_acts()

    def _drop_acts(self) -> None:
        for _act, task in self._busy.values():
            task.cancel()
        self._busy.clear()

    async def _write(self, *entries: Entry) -> None:
        with self._forgiving():
            await self._journal.write(entries)
        self.deeds.update(deeds(entries))

    def _entry(self, step: Step, act: Act) -> Entry:
        return Entry(
            at=self._at(),
            mark=Mark.ACT,
            step=step.id,
            act=type(act).__name__,
            target=act.target,
            why=act.why,
            backup=act.backup,
        )

    def _at(self) -> str:
        return written(self._timing.now())
