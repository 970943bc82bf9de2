"""Migrations, and what may happen to them: faults at every write, bad weather throughout."""

from __future__ import annotations

import asyncio
import selectors
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar
from unittest import mock

import msgspec

from replant.cluster.answers import Answer, Request
from replant.errors import ReplantError
from replant.execute import run
from replant.execute.journal import State, Summary
from replant.execute.journal.configmaps import PART, RUN
from replant.execute.namespace import NAMESPACE
from replant.execute.run import Applying
from replant.plan.model import Goal, Plan
from replant.plan.undo import undo_plan
from replant.platforms.openshift import OpenShift
from replant.platforms.openshift_changes import Rules
from replant.sandbox.resources import CONFIG_MAPS
from replant.sandbox.scenario import Scenario
from replant.sandbox.server import Sandbox
from tests.faults.forking import Forks, Verdict
from tests.faults.injecting import (
    FAIR,
    KILLS,
    LATE,
    AtWrite,
    Do,
    Fault,
    Killed,
    Process,
    Weather,
    undisturbed,
)
from tests.faults.staleness import Behind
from tests.faults.state import Watchman, differences, leftovers, state

RESUMES = 4
"""So often somebody may have to say that it should go on, at most."""
IN_THE_END = 60.0
"""So many seconds later it is looked at what a run has come to."""

KILLED = "killed"

T = TypeVar("T")


@dataclass(frozen=True)
class Migration:
    """What is disturbed: a goal, or the undo of it, on a cluster that has come to its start."""

    name: str
    scenario: dict[str, Any]
    goal: Goal
    plugin: str
    first: tuple[Goal, ...] = ()
    """What was carried out before, undisturbed."""
    undo: bool = False
    """Whether it was carried out as well, and is now taken back."""
    choices: Mapping[str, Any] = field(default_factory=dict)
    """What else was asked of the plan."""
    reduced: bool = False
    """Whether a few of the faults are enough: it goes through the same code as another one."""
    openshift: Rules | None = None
    """Where its operators switch gates, and nobody else: what is known of them."""
    every: int = 1
    """At every so many-th write: all of it would take longer than CI may."""


@dataclass(frozen=True)
class Case:
    """A fault, and what somebody does about it."""

    fault: Fault
    back: bool = False
    """Whether it is taken back then, and does not go on."""
    again: int = 0
    """At which write, if at any, whoever goes on is killed as well."""
    turns: bool = False
    """Whether that one still went on, before it is taken back."""

    @property
    def title(self) -> str:
        then = "undo" if self.back else "resume"
        first = "resume" if self.turns else then
        again = f", {first}, killed again at write {self.again}" if self.again else ""
        return f"{self.fault}{again}, {then}"


class Play:
    """One cluster, and the processes of Replant that come and go."""

    def __init__(self, migration: Migration) -> None:
        self.migration = migration
        scenario = msgspec.convert(migration.scenario, Scenario)
        self.sandbox = Sandbox.of(scenario, by_hand=True)
        self.watchman = Watchman(self.sandbox)
        self._behind: Behind | None = None
        self.case: Case | None = None
        self.place = ""
        self.beginning: dict[str, Any] = {}
        self.plan: Plan | None = None
        self._before: set[str] = set()
        """The runs of what was carried out first."""
        self._requested: Counter[str] = Counter()
        """How often something was to be done to what has this name."""

    def process(self, at_write: AtWrite = undisturbed, weather: Weather = FAIR) -> Process:
        if weather.stale and self._behind is None:
            self._behind = Behind(self.sandbox)

        async def watched(process: Process, request: Request, do: Do) -> Answer:
            where, _, node = request.path.rpartition("/")
            if where == "/sandbox/nodes":
                self.watchman.kubelet_is_switched(node)
            return await at_write(process, request, do)

        process = Process(self.sandbox, self.watchman.look, watched, weather, self._behind)
        if rules := self.migration.openshift:
            it = process.ground
            it.actuator = OpenShift(it.reader, it.writer, rules, it.shown.note)
        return process

    async def come_to_the_start(self) -> None:
        ground = self.process().ground
        for goal in self.migration.first:
            await ground.applying().begin(await ground.plan(goal, self.migration.plugin), {})
        self._before = {it.id for it in await ground.journals().runs()}
        await self.let_pass(IN_THE_END)
        self.beginning = state(self.sandbox)
        migration = self.migration
        self.plan = await ground.plan(migration.goal, migration.plugin, **migration.choices)
        if self.migration.undo:
            await ground.applying().begin(self.plan, {})

    async def let_pass(self, seconds: float) -> None:
        await self.process().timing.sleep(seconds)

    async def run(self) -> Summary | None:
        """The run that this is about, if it has been written down."""
        runs = await self.process().ground.journals().runs()
        return next((it for it in runs if it.id not in self._before), None)

    async def go(self, applying: Applying, known: Summary | None, *, back: bool) -> None:
        """What somebody would have Replant do now."""
        assert self.plan is not None
        if known is None:
            await applying.begin(self.plan, {})
        elif back and known.state is not State.UNFINISHED:
            await applying.undo(known.id)
        elif self.migration.undo or not back:
            await applying.resume(known.id)
        else:
            await applying.undo(known.id)

    def unwritten(self, request: Request) -> str:
        """What is about to be done, if the journal has not been told of it, once for each time."""
        if NAMESPACE in request.path or request.path.endswith("/namespaces"):
            return ""
        logs = self.sandbox.store.list(CONFIG_MAPS, NAMESPACE)
        batches = [
            (key, batch)
            for log in logs
            if log["metadata"]["labels"].get(PART) == "log"
            and log["metadata"]["labels"][RUN] not in self._before
            for key, batch in log.get("data", {}).items()
        ]
        if self.migration.undo and not any('"mark":"undo"' in batch for _, batch in batches):
            return f"{request.method} {request.path}, and nothing says that it goes back"
        # Several things are on their way at a time, and not all were written down last.
        written = "".join(batch for _, batch in sorted(batches))
        if self.migration.undo:
            written = written.rpartition('"mark":"undo"')[2]
        name = request.path.removesuffix("/eviction").rpartition("/")[2]
        self._requested[name] += 1
        made = {
            "storageclasses": ("CreateClass", "MakeObject"),
            "persistentvolumes": ("ReplaceVolume", "MakeObject"),
            "persistentvolumeclaims": ("MakeObject",),
        }
        if "openshift.io" in request.path:
            made[name] = ("Switch",)  # of a component, or of all kubelets
        if name in made:
            is_named = any(it in written for it in made[name])
        elif self.migration.goal is Goal.CONVERT or request.path.endswith("/eviction"):
            # One entry stands for all moves of a volume, and for all tries of an eviction.
            is_named = f'{name}"' in written
        else:
            is_named = written.count(f'{name}"') >= self._requested[name]
        _, last = max(batches, default=("", ""))
        return "" if is_named else f"{request.method} {request.path}, after {last}"


async def lived(work: Awaitable[None]) -> str:
    """Why a process has ended early, or nothing."""
    try:
        await work
    except Killed:
        return KILLED
    except ReplantError as error:
        return f"{type(error).__name__}: {error}"
    return ""


async def to_the_end(
    play: Play, ended: str, expected: dict[str, Any], *, back: bool, weather: Weather = FAIR
) -> Verdict:
    """Have new processes go on until nothing is left to do, and see what it has come to."""
    verdict = Verdict(f"{play.place}: {play.case.title if play.case else weather}")
    wanted = State.UNDONE if back else State.DONE
    again = play.case.again if play.case else 0
    story = [ended]
    while True:
        found = await play.run()
        if _is_over(found, wanted) and ended == KILLED:
            # What was on its way may still come: whoever looks again will see.
            await play.let_pass(LATE + 1)
            found = await play.run()
        if _is_over(found, wanted):
            break
        if verdict.resumes == RESUMES:
            verdict.problems.append(f"it does not come to an end: {story}")
            break
        second = bool(again) and not verdict.resumes
        process = play.process(_killing(again) if second else undisturbed, weather)
        verdict.resumes += 1
        turns = second and play.case is not None and play.case.turns
        ended = await lived(play.go(process.ground.applying(), found, back=back and not turns))
        story.append(ended)
    await play.let_pass(IN_THE_END)
    found = await play.run()
    if found is not None and found.state is not wanted:
        verdict.problems.append(f"its journal says {found.state}: {story}")
    if differ := differences(expected, state(play.sandbox)):
        verdict.problems += [*differ[:5], f"{len(differ)} differences; {story}"]
    if ended != KILLED:  # else nobody is left who could give the lease back: it runs out
        verdict.problems += leftovers(play.sandbox)
    verdict.problems += play.watchman.misplaced()
    verdict.problems += sorted(play.watchman.bad)
    return verdict


def _is_over(known: Summary | None, wanted: State) -> bool:
    """Whether there is nothing left to do: what was never begun is back already."""
    return known.state is wanted if known else wanted is State.UNDONE


def _killing(number: int) -> AtWrite:
    async def at_write(process: Process, request: Request, do: Do) -> Answer:
        if process.writes == number:
            return await process.suffer(Fault.KILL_AFTER, request, do)
        return await do()

    return at_write


CasesAt = Callable[[int, Request], Iterable[Case]]
"""Which cases begin at a write, by its number and what is written."""


@dataclass
class Told:
    """What has come of all cases of a migration."""

    migration: str
    writes: int = 0
    verdicts: Sequence[Verdict] = field(default_factory=list)
    unwritten: list[str] = field(default_factory=list)
    """What was done without having been written down before."""

    @property
    def bad(self) -> list[Verdict]:
        return [it for it in self.verdicts if it.problems]

    @property
    def resumed(self) -> int:
        """Of the cases in which nobody was killed, those that did not go on by themselves."""
        kills = tuple(KILLS)
        return sum(
            bool(it.resumes) and not any(k in it.case for k in kills) for it in self.verdicts
        )


_UNDO_PLANS: dict[tuple[str, str], Plan] = {}


def _undo_plan(plan: Plan, last: str) -> Plan:
    """The undo of a plan. It is proved when it is made: once is enough for thousands of cases."""
    key = f"{plan.goal} {plan.fingerprint}", last
    if key not in _UNDO_PLANS:
        _UNDO_PLANS[key] = undo_plan(plan, last)
    return _UNDO_PLANS[key]


def disturb(migration: Migration, cases_at: CasesAt, workers: int = 2) -> Told:
    """Carry a migration out once, and from each of its writes on once more for every case."""
    done, begun = undisturbed_ends(migration)
    forks = Forks(workers)
    told = Told(migration.name)

    async def trunk() -> None:
        play = Play(migration)
        await play.come_to_the_start()
        assert play.plan is not None
        for step in play.plan.steps:
            _undo_plan(play.plan, step.id)

        async def at_write(process: Process, request: Request, do: Do) -> Answer:
            if play.case is not None:
                return await do()
            if what := play.unwritten(request):
                told.unwritten.append(what)
            place = f"{migration.name}, write {process.writes} ({request.method} {request.path})"
            for case in cases_at(process.writes, request):
                if forks.fork(f"{place}: {case.title}"):
                    play.case, play.place = case, place
                    return await process.suffer(case.fault, request, do)
            return await do()

        process = play.process(at_write)
        ended = await lived(
            play.go(process.ground.applying(), await play.run(), back=migration.undo)
        )
        if play.case is not None:
            back = play.case.back or migration.undo
            forks.tell(await _told(play, ended, begun if back else done))
        assert not ended, ended
        told.writes = process.writes

    with mock.patch.object(run, "undo_plan", _undo_plan):
        in_loop(trunk())
        told.verdicts = forks.wait()
    return told


def endure(migration: Migration, weathers: Iterable[Weather], workers: int = 2) -> Told:
    """Carry a migration out once in each weather."""
    done, begun = undisturbed_ends(migration)
    forks = Forks(workers)

    async def through(weather: Weather) -> Verdict:
        play = Play(migration)
        await play.come_to_the_start()
        play.place = migration.name
        work = play.process(weather=weather).ground.applying()
        ended = await lived(play.go(work, await play.run(), back=migration.undo))
        expected = begun if migration.undo else done
        return await to_the_end(play, ended, expected, back=migration.undo, weather=weather)

    for weather in weathers:
        if forks.fork(f"{migration.name}: {weather}"):
            forks.tell(in_loop(_caught(through(weather), f"{migration.name}: {weather}")))
    return Told(migration.name, verdicts=forks.wait())


async def _told(play: Play, ended: str, expected: dict[str, Any]) -> Verdict:
    assert play.case is not None
    back = play.case.back or play.migration.undo
    going_on = to_the_end(play, ended, expected, back=back)
    return await _caught(going_on, f"{play.place}: {play.case.title}")


async def _caught(work: Awaitable[Verdict], case: str) -> Verdict:
    try:
        return await work
    except BaseException:  # noqa: BLE001 - a child must tell whatever has come of it
        return Verdict(case, [traceback.format_exc()])


def undisturbed_ends(migration: Migration) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a cluster comes to when nothing happens, and what it was before; lived through once."""
    if migration.name not in _ENDS:
        _ENDS[migration.name] = in_loop(_undisturbed(migration))
    return _ENDS[migration.name]


_ENDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}


async def _undisturbed(migration: Migration) -> tuple[dict[str, Any], dict[str, Any]]:
    play = Play(migration)
    await play.come_to_the_start()
    process = play.process()
    await play.go(process.ground.applying(), await play.run(), back=migration.undo)
    await play.let_pass(IN_THE_END)
    assert not leftovers(play.sandbox)
    assert not play.watchman.misplaced()
    assert not play.watchman.bad, play.watchman.bad
    end = state(play.sandbox)
    if migration.undo:
        assert not differences(play.beginning, end), differences(play.beginning, end)
    return end, play.beginning


def in_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run in an event loop whose state is all in this process, so that a fork has its own."""

    def loop() -> asyncio.AbstractEventLoop:
        made = asyncio.SelectorEventLoop(selectors.SelectSelector())
        made.set_exception_handler(lambda _loop, _context: None)  # those who are killed say nothing
        return made

    with asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(work)
