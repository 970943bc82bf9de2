"""The life of a run: begun, stopped, resumed, undone, verified."""

from __future__ import annotations

import asyncio
import getpass
import secrets
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from dataclasses import replace as dataclass_replace
from typing import Any

from msgspec.json import Decoder
from msgspec.structs import replace

from replant.cluster.ports import NAMESPACES, Reader, Writer
from replant.errors import Forbidden, Halted, Missing, Refused, ReplantError
from replant.execute.actuators import Actuator
from replant.execute.census import Census, baseline, take_census
from replant.execute.draining import DrainRules
from replant.execute.engine import Display, Engine
from replant.execute.entrusting import Entrusting
from replant.execute.hands import Hands
from replant.execute.insisting import insist
from replant.execute.journal import (
    FORMAT,
    Entry,
    Header,
    Journal,
    Journals,
    Mark,
    Run,
    State,
)
from replant.execute.leading import LOOK, Leader, needs_restart, restart_of
from replant.execute.lease import Lease
from replant.execute.making import Making, Removing
from replant.execute.mirror import Mirror
from replant.execute.outages import Outage, Outages
from replant.execute.patience import Patience
from replant.execute.postcheck.detaches import Detaches
from replant.execute.recounting import counted, deeds, let_go, on_this_way
from replant.execute.refusals import (
    IDENTITY,
    refuse_foreign,
    refuse_out_of_turn,
    refuse_second,
    refuse_undrainable,
    refuse_unlike,
    refuse_upgraded,
)
from replant.execute.remembering import remembered
from replant.execute.retemplating import Retemplating
from replant.execute.rewriting import Annotating, Replacing
from replant.execute.rolling import Rolling
from replant.execute.scaling import Scaling
from replant.execute.stages import Stage
from replant.execute.steps.restarts import in_the_way_of_a_restart
from replant.execute.swapping import AT_ONCE, Backups, Swapping
from replant.execute.switching import Switching
from replant.execute.targets import JoinedNodes
from replant.execute.timing import Timing, read, written
from replant.execute.verification import Checked, Outcome, verify
from replant.execute.versioning import Versioning
from replant.execute.witnessing import WitnessedJournal, recalled
from replant.execute.world import Record, World
from replant.gates.versions import Version
from replant.plan.model import (
    AnnotateVolumes,
    ChangeVersion,
    CreateObjects,
    NodeMethod,
    Plan,
    RemoveObjects,
    ReplaceClasses,
    RestoreVolumes,
    RewriteTemplates,
    RollNodes,
    ScaleWorkloads,
    Step,
    SwapVolumes,
    SwitchControlPlane,
)
from replant.plan.undo import undo_plan

VERIFY_AGAIN = 5.0
RELEASING = 15.0
"""So many seconds, of this machine's, it may take to give the lease back."""
_NAMESPACE = Decoder(Record)
DOUBT = 15.0
"""So many seconds something must be seen to be wrong: a single look may have been an old answer."""


@dataclass(frozen=True, slots=True)
class How:
    """What a person has chosen about a run."""

    rules: DrainRules = field(default_factory=DrainRules)
    patience: Patience = field(default_factory=Patience)
    at_once: int = 0
    """So many nodes at a time; by default as many as the plan allows."""


@dataclass(frozen=True, slots=True)
class Result:
    """How a run has ended."""

    run: str
    state: State
    seconds: float
    """Since it was begun, or turned back; also those in which nobody was at work."""
    resumed: bool
    """Whether other processes have gone a part of the way."""
    acts: dict[str, int]
    """How many of each there were on the way, in all processes."""
    outages: list[Outage]
    checks: Sequence[Checked]


class Applying:
    """Runs of plans on one cluster."""

    def __init__(
        self,
        *,
        reader: Reader,
        writer: Writer,
        actuator: Actuator,
        journals: Journals,
        timing: Timing,
        display: Display,
        how: How,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._journals = journals
        self._timing = timing
        self._display = display
        self._how = how
        self._world = World()
        self._outages = Outages(timing.now)
        self._world.listen(self._outages.saw)
        self._mirror = Mirror(reader, self._world, timing, display.note)
        self._hands = Hands(reader, writer, self._mirror, actuator, timing.sleep)
        self._lease = Lease(reader, writer, timing, display.note)
        self._engine: Engine | None = None
        self._stopping = ""
        self._begun = False

    @property
    def begun(self) -> bool:
        """Whether there is a run, which may have done something."""
        return self._begun

    @property
    def at_work(self) -> bool:
        """Whether something may be under way that should come to its end."""
        return self._engine is not None

    def stop(self, why: str) -> None:
        """Have the run end where it can be resumed."""
        self._stopping = why
        if self._engine:
            self._engine.stop(why)

    @property
    def outages(self) -> list[Outage]:
        """What each claim has gone through, also in a run that does not come to its end."""
        return self._outages.all()

    async def begin(self, plan: Plan, options: dict[str, Any]) -> Result:
        """Carry a plan out. Refused before anything is touched, Halted once something may be."""

        async def work() -> Result:
            self._lease.refuse_beside()
            refuse_undrainable(plan, self._world, self._how.rules)
            refuse_second(await self._journals.runs())
            if needs_restart(plan):  # whoever may not see the leader is told so before it begins
                await insist(lambda: self._hands.do(LOOK), self._timing, self._display.note)
            before = await insist(
                lambda: take_census(self._reader), self._timing, self._display.note
            )
            # A large cluster takes its time, in which another may have thought us dead.
            await self._lease.renew({})
            refuse_second(await self._journals.runs())
            if self._stopping:
                raise Refused(f"{self._stopping} Nothing was done.")
            header = Header(
                id=self._new_id(plan),
                goal=plan.goal,
                plugins=plan.plugins,
                started=self._at(),
                by=f"{_user()}@{socket.gethostname()}",
                options=options,
                cluster=await self._cluster(),
                format=FORMAT,
            )
            run = Run(header, plan, baseline(before))
            self._begun = True
            journal = await self._journals.begin(run)
            return await self._carry_out(run, journal, plan, before)

        return await self._alone(work)

    async def resume(self, run_id: str) -> Result:
        """Go on with a run, in the direction that it had."""
        self._begun = True

        async def work() -> Result:
            self._lease.refuse_beside(run_id)
            run, journal = await self._open(run_id)
            return await self._go_on(run, journal)

        return await self._alone(work)

    async def undo(self, run_id: str) -> Result:
        """Go back to where a run began, from wherever it is."""
        self._begun = True

        async def work() -> Result:
            self._lease.refuse_beside(run_id)
            refuse_out_of_turn(run_id, await self._journals.runs())
            run, journal = await self._open(run_id)
            if run.state is State.DONE:
                server = await insist(self._reader.server_version, self._timing, self._display.note)
                refuse_upgraded(run, Version.parse(server), self._world)
            if not run.undoing:
                entry = Entry(at=self._at(), mark=Mark.UNDO)
                await journal.write([entry])
                run.entries.append(entry)
            return await self._go_on(run, journal)

        return await self._alone(work)

    async def _open(self, run_id: str) -> tuple[Run, Journal]:
        """A run that was begun before, if it is one that this Replant understands, and its own."""
        run, journal = await self._journals.open(run_id)
        try:
            refuse_unlike(run)
            refuse_foreign(run, await self._cluster())
        except BaseException:
            await journal.aclose()
            raise
        recalled(self._outages, run.entries)
        return run, journal

    async def _go_on(self, run: Run, journal: Journal) -> Result:
        plan = run.plan
        if run.undoing:
            last = run.last_begun
            plan = undo_plan(plan, last) if last else replace(plan, steps=())
        now = await insist(lambda: take_census(self._reader), self._timing, self._display.note)
        return await self._carry_out(run, journal, plan, now)

    async def _alone(self, work: Callable[[], Awaitable[Result]]) -> Result:
        """Do something while nobody else does, with a World that is kept true."""
        await self._lease.acquire()
        try:
            await self._mirror.start()
            return await work()
        finally:
            await self._mirror.aclose()
            # A cluster that is away is not waited for here: the lease runs out by itself.
            with suppress(ReplantError, TimeoutError):
                async with asyncio.timeout(RELEASING):
                    await self._lease.release()

    async def _carry_out(self, run: Run, journal: Journal, plan: Plan, now: Census) -> Result:
        """Carry a plan out on a cluster that has by now what the census says."""
        journal = WitnessedJournal(journal, self._outages)
        detaches = Detaches(now)
        self._world.listen_to_nodes(detaches.saw)
        self._engine = engine = Engine(
            world=self._world,
            mirror=self._mirror,
            hands=self._hands,
            journal=journal,
            lease=self._lease,
            timing=self._timing,
            display=self._display,
            detaches=detaches,
        )
        if self._stopping:
            engine.stop(self._stopping)
        elsewhere = self._journals.elsewhere
        try:
            await self._lease.mark(elsewhere and f"{run.header.id} {elsewhere}")
            for number, step in enumerate(plan.steps, 1):
                if _is_for_a_while(step) and run.has_done(step.id):
                    continue
                await self._step(number, plan, run, engine)
            checks = await self._verified(plan, run, engine)
            # Before the journal's end: who is killed in between has a run to resume, and no mark.
            await self._lease.mark("")
            state = State.UNDONE if run.undoing else State.DONE
            await journal.write([Entry(at=self._at(), mark=Mark.END, why=state)])
        except Exception as error:
            why = str(error)
            if not isinstance(error, ReplantError):
                # What we did not foresee leaves a run as resumable as what we did.
                why = f"This should not have happened: {type(error).__name__}: {error}"
            with suppress(ReplantError):
                await journal.write([Entry(at=self._at(), mark=Mark.STOP, why=why)])
            raise Halted(why) from error
        finally:
            await journal.aclose()
        before = on_this_way(run.entries)
        return Result(
            run=run.header.id,
            state=state,
            seconds=max(0.0, self._timing.now() - read(run.turned)),
            resumed=bool(before),
            acts=counted([*deeds(before), *engine.deeds]),
            outages=self.outages,
            checks=checks,
        )

    async def _step(self, number: int, plan: Plan, run: Run, engine: Engine) -> None:
        step = plan.steps[number - 1]
        stage = self._stage(step, plan, run)
        try:
            await engine.carry_out(step, number, len(plan.steps), stage)
        except Exception:
            await self._part(engine, step, stage)
            raise

    async def _switch_joined(self, plan: Plan, run: Run, engine: Engine) -> None:
        """Carry the step out once more for nodes that have joined with old gates since then."""
        numbers = [n for n, it in enumerate(plan.steps, 1) if isinstance(it, RollNodes)]
        for number in numbers[-1:]:
            step, later = plan.steps[number - 1], plan.steps[number:]
            if not isinstance(step, RollNodes) or step.method is NodeMethod.PLATFORM:
                return
            if any(isinstance(it, ChangeVersion) for it in later):
                return
            while JoinedNodes(step, plan).behind(self._world):
                await self._step(number, plan, run, engine)

    async def _part(self, engine: Engine, step: Step, stage: Stage) -> None:
        """Have the controllers forget their detaches: whoever goes on may come too late for it."""
        if not (isinstance(stage, Rolling | Entrusting | Versioning) and stage.leaves_detaches):
            return
        if wait := next(in_the_way_of_a_restart(self._world, 0), None):
            self._display.note(
                f"kube-controller-manager is not restarted: it waits for {wait.what}"
            )
            return
        with suppress(ReplantError, TimeoutError):
            async with asyncio.timeout(RELEASING):
                leader = await engine.do_now(step, LOOK)
                if isinstance(leader, Leader) and (act := restart_of(leader)):
                    await engine.do_now(step, act)

    def _stage(self, step: Step, plan: Plan, run: Run) -> Stage:
        how = self._how
        patience = dataclass_replace(how.patience, haste=self._timing.haste)
        match step:
            case RollNodes(method=NodeMethod.PLATFORM):
                return Entrusting(
                    step, plan, patience, doubted=run.in_the_air(step.id),
                    memory=remembered(run.entries),
                )  # fmt: skip
            case RollNodes():
                return Rolling(
                    step, plan, run.header.id, self._outages, rules=how.rules,
                    patience=patience, at_once=how.at_once, doubted=run.in_the_air(step.id),
                    memory=remembered(run.entries),
                )  # fmt: skip
            case ChangeVersion():
                return Versioning(step, plan, patience)
            case SwitchControlPlane():
                return Switching(step, plan, how.patience, doubted=run.in_the_air(step.id))
            case AnnotateVolumes():
                return Annotating(step)
            case ReplaceClasses():
                return Replacing(step, timeout=how.patience.pods)
            case _:
                return self._converting(step, run)

    def _converting(
        self, step: CreateObjects | RemoveObjects | SwapVolumes | RestoreVolumes
        | RewriteTemplates | ScaleWorkloads, run: Run,
    ) -> Stage:  # fmt: skip
        how = self._how
        match step:
            case CreateObjects():
                return Making(step, run.header.id, timeout=how.patience.pods)
            case RemoveObjects():
                return Removing(step, run.header.id, timeout=how.patience.pods)
            case SwapVolumes():
                return self._swapping(step, run, Backups.of(run.entries))
            case RestoreVolumes():
                settled = bool(step.saved) or run.was_done
                backups = Backups.of(run.entries, step.saved)
                return self._swapping(step, run, backups, settled=settled)
            case RewriteTemplates():
                return Retemplating(step, timeout=how.patience.pods)
            case ScaleWorkloads():
                return Scaling(step, timeout=how.patience.pods)

    def _swapping(
        self,
        step: SwapVolumes | RestoreVolumes,
        run: Run,
        backups: Backups,
        *,
        settled: bool = False,
    ) -> Stage:
        return Swapping(
            step, backups, at_once=self._how.at_once or AT_ONCE,
            timeout=self._how.patience.detach, settled=settled,
            sees_controllers=bool(run.plan.control_plane.replicas),
        )  # fmt: skip

    async def _verified(self, plan: Plan, run: Run, engine: Engine) -> Sequence[Checked]:
        """Look until all is well; Halted says what is not, and will not be by itself."""
        gone = let_go([*deeds(run.entries), *engine.deeds])
        until = self._timing.now() + self._how.patience.pods
        right_at = self._timing.now()
        while True:
            asked = self._timing.now()
            await self._switch_joined(plan, run, engine)
            now = await insist(lambda: take_census(self._reader), self._timing, self._display.note)
            # While it is away, or nodes are switched, nothing can come right.
            until += self._timing.now() - asked
            checks = verify(plan, run.before, now, gone)
            bad = [it for it in checks if it.outcome is not Outcome.PASSED]
            if not bad:
                return checks
            if not any(it.outcome is Outcome.WRONG for it in bad):
                right_at = self._timing.now()
            wrong = self._timing.now() > right_at + DOUBT
            if wrong or self._timing.now() > until or self._stopping:
                found = " ".join(it.told for it in bad)
                raise Halted(f"All steps are done, but not all is well. {found}")
            await self._lease.renew({})
            await self._timing.sleep(VERIFY_AGAIN)

    async def _cluster(self) -> str:
        """What tells a cluster from all others; nothing where we may not see it."""
        try:
            body = await insist(
                lambda: self._reader.get(NAMESPACES, IDENTITY), self._timing, self._display.note
            )
        except (Missing, Forbidden):
            return ""
        return _NAMESPACE.decode(body).metadata.uid

    def _new_id(self, plan: Plan) -> str:
        moment = self._at()[:19].translate(str.maketrans("T", "-", "-:")).lower()
        return f"{plan.goal}-{moment}-{secrets.token_hex(2)}"

    def _at(self) -> str:
        return written(self._timing.now())


def _is_for_a_while(step: Step) -> bool:
    """Whether what a step has come to is undone on purpose by one that comes after it.

    All other steps are looked at again by whoever resumes: what is so counts, not what was done.
    """
    if isinstance(step, SwapVolumes | RestoreVolumes):
        return any(it.free_of for it in step.volumes)
    return isinstance(step, ScaleWorkloads)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "somebody"
