"""The loop itself: what is written down, what is counted, and what counts as waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from replant.errors import Conflict, EvictionBlocked, Halted, Retryable
from replant.execute import engine as loop
from replant.execute.acts import Act, Cordon, Decision, Evict, Progress, Wait
from replant.execute.census_model import Census
from replant.execute.engine import Engine
from replant.execute.journal import Entry, Mark
from replant.execute.postcheck.detaches import Detaches
from replant.execute.recounting import counted
from replant.execute.world import World
from tests.execute.living import Shown
from tests.execute.memory import Clock
from tests.execute.nodes import ENABLE

STEP = ENABLE.steps[-1]
EVICT = Evict(why="to drain n1", namespace="shop", pod="db-0", uid="u", node="n1")


class Rig:
    """An engine with nothing behind it: its journal is a list, its hands do as told."""

    def __init__(
        self, does: Callable[[Act], object] = lambda _: None, renewal: float = 0.0
    ) -> None:
        self.clock = Clock()
        self.entries: list[Entry] = []
        self.shown = Shown()
        self.changed = asyncio.Event()
        self.does = does
        self.renewal = renewal
        self.where = ""
        self.relisted = 0

    # As a journal
    async def write(self, entries: Sequence[Entry]) -> None:
        self.entries += entries

    async def aclose(self) -> None:
        pass

    # As a lease
    @property
    def due(self) -> float:
        return 0.0 if self.renewal else 5.0

    async def renew(self, status: Mapping[str, str]) -> None:
        del status
        self.clock.time += self.renewal

    # As a mirror
    def check(self) -> None:
        pass

    def relist(self) -> None:
        self.relisted += 1

    # As hands
    async def do(self, act: Act) -> object:
        return self.does(act)

    def run(self, stage: Any) -> Engine:
        it: Any = self
        engine = Engine(
            world=World(), mirror=it, hands=it, journal=it, lease=it, timing=self.clock,
            display=self.shown, detaches=Detaches(Census()),
        )  # fmt: skip
        asyncio.run(engine.carry_out(STEP, 1, 1, stage))
        return engine

    @property
    def acts(self) -> list[str]:
        return [it.act for it in self.entries if it.mark is Mark.ACT]


class Stage:
    """Decides the same until it is told enough."""

    def __init__(self, *acts: Act, waits: Sequence[Wait] = (), enough: int = 1) -> None:
        self.acts = acts
        self.waits = waits
        self.enough = enough
        self.learned: list[object] = []
        self.turns = 0

    def decide(self, world: World, now: float) -> Decision:
        del world, now
        self.turns += 1
        done = len(self.learned) >= self.enough
        acts = [] if done else list(self.acts)
        return Decision(acts, list(self.waits), done=done, progress=Progress(int(done), 1, "pods"))

    def learn(self, act: Act, outcome: object, now: float) -> None:
        del act, now
        self.learned.append(outcome)


def failing(error: Exception, times: int) -> Callable[[Act], object]:
    left = [error] * times

    def does(_: Act) -> None:
        if left:
            raise left.pop()

    return does


def test_an_eviction_is_written_once_however_often_a_budget_refuses_it() -> None:
    rig = Rig(failing(EvictionBlocked("budget"), 50))
    engine = rig.run(Stage(EVICT, enough=51))
    assert rig.acts == ["Evict"]
    assert counted(engine.deeds) == {"Evict": 1}


def test_what_is_under_way_is_written_before_it_is_done() -> None:
    written: list[int] = []
    rig = Rig()
    rig.does = lambda _: written.append(len(rig.acts))
    rig.run(Stage(EVICT))
    assert written == [1]


def test_a_wait_ends_with_its_timeout_and_says_for_what() -> None:
    wait = Wait("a disk", "disk", 900, "the attacher")
    rig = Rig()
    with pytest.raises(Halted, match=r"900 s for a disk.*Look at the log of the attacher"):
        rig.run(Stage(waits=[wait]))
    assert rig.relisted > 1


def test_time_without_an_api_server_counts_for_no_timeout() -> None:
    """Each lease takes ten minutes to renew: nothing could be seen to come meanwhile."""
    rig = Rig(renewal=600)
    stage = Stage(waits=[Wait("a disk", "disk", 900)])
    with pytest.raises(Halted, match="a disk"):
        rig.run(stage)
    assert stage.turns > 100
    assert rig.clock.time > 1_000_000 + 100 * 600


@pytest.mark.parametrize("error", [Conflict("another version"), Retryable("not now")])
def test_what_fails_for_ever_is_shown_as_a_wait_and_comes_to_an_end(error: Exception) -> None:
    cordon = Cordon(why="to drain", node="n1", uid="u", version="1", run="r")
    rig = Rig(failing(error, 10_000))
    with pytest.raises(Halted, match=f"node n1, where this has failed: {error}"):
        rig.run(Stage(cordon, enough=10_000))
    assert rig.clock.time >= 1_000_000 + loop.FAILING


def test_a_failure_that_no_longer_matters_is_forgotten() -> None:
    cordon = Cordon(why="to drain", node="n1", uid="u", version="1", run="r")
    rig = Rig(failing(Conflict("another version"), 1))

    class Settles(Stage):
        def decide(self, world: World, now: float) -> Decision:
            found = super().decide(world, now)
            if self.learned:  # somebody else has cordoned it
                found.acts, found.done = [], self.turns > 1_000
            return found

    rig.run(Settles(cordon, enough=10_000))


def test_the_last_progress_is_that_of_all() -> None:
    rig = Rig()
    seen: list[int] = []
    rig.shown.when("1 of 1 pods", lambda: seen.append(1))
    rig.run(Stage(EVICT))
    assert seen


def test_what_ends_while_much_is_under_way_is_looked_at_together() -> None:
    ended = iter(range(1, 1000))

    class Slow(Rig):
        async def do(self, act: Act) -> object:
            for _turn in range(10 * next(ended)):
                await asyncio.sleep(0)
            return await super().do(act)

    class Pods(Stage):
        def learn(self, act: Act, outcome: object, now: float) -> None:
            super().learn(act, outcome, now)
            self.acts = tuple(it for it in self.acts if it != act)

    stage = Pods(*(replace(EVICT, pod=f"db-{it}") for it in range(100)), enough=100)
    Slow().run(stage)
    assert len(stage.learned) == 100
    # 102 if each is looked at by itself. How many end in one of these waits depends on the machine.
    assert stage.turns < 80
