"""Outages of a run that is carried out by one process after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert

from replant.cluster.ports import PODS
from replant.execute.journal import Entry, Mark
from replant.execute.outages import TOLD_AT_MOST, Outage, Outages
from replant.execute.timing import written
from replant.execute.witnessing import WitnessedJournal, recalled
from replant.execute.world import Pod, World

NAMES = ("db-0", "db-1", "queue-0")


class Kept:
    """A journal that is a list."""

    where = "here"

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    async def write(self, entries: Sequence[Entry]) -> None:
        self.entries += entries

    async def aclose(self) -> None:
        pass


def pod(name: str, at: float, *, ready: bool) -> Pod:
    return convert(
        {
            "metadata": {"name": name, "namespace": "shop", "uid": f"{name}-{at}"},
            "spec": {
                "nodeName": "n1",
                "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": name}}],
            },
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": str(ready)}]},
        },
        Pod,
    )


class Process:
    """Somebody who looks at pods, and writes down what becomes of their claims."""

    def __init__(self, kept: Kept, pods: Iterable[Pod]) -> None:
        self.time = 0.0
        self.outages = Outages(lambda: self.time)
        self.world = World()
        self.world.listen(self.outages.saw)
        self.journal = WitnessedJournal(kept, self.outages)
        for it in pods:
            self.world.put(PODS, it)
        recalled(self.outages, kept.entries)

    def sees(self, at: float, name: str, *, ready: bool) -> None:
        self.time = at
        self.world.put(PODS, pod(name, at, ready=ready))

    def writes(self, mark: Mark = Mark.STEP) -> None:
        asyncio.run(self.journal.write([Entry(at=written(self.time), mark=mark)]))

    def tells(self, at: float) -> list[Outage]:
        self.time = at
        return self.outages.all()

    def longest(self, at: float) -> dict[str, float]:
        return {it.claim: it.longest for it in self.tells(at)}


@given(
    seen=st.lists(st.tuples(st.sampled_from(NAMES), st.booleans()), max_size=12),
    ends=st.sets(st.integers(min_value=0, max_value=12)),
)
def test_it_makes_no_difference_how_many_processes_looked(
    seen: list[tuple[str, bool]], ends: set[int]
) -> None:
    all_serve = [pod(name, 0, ready=True) for name in NAMES]
    one = Process(Kept(), all_serve)
    kept = Kept()
    now = Process(kept, all_serve)
    for at, (name, ready) in enumerate(seen):
        if at in ends:
            now.writes()
            now = Process(kept, list(now.world.pods()))
        one.sees(at, name, ready=ready)
        now.sees(at, name, ready=ready)
    assert now.tells(20) == one.tells(20)


def test_each_turn_is_written_once_and_before_what_comes_after_it() -> None:
    kept = Kept()
    process = Process(kept, [pod("db-0", 0, ready=True)])
    process.sees(10, "db-0", ready=False)
    process.writes()
    process.sees(40, "db-0", ready=True)
    process.writes()
    process.writes()
    told = [(it.mark, it.target) for it in kept.entries]
    lost, served, step = (Mark.LOST, "shop/db-0"), (Mark.SERVED, "shop/db-0"), (Mark.STEP, "")
    assert told == [lost, step, served, step, step]


def test_what_came_back_while_nobody_looked_counts_as_long_as_somebody_did() -> None:
    kept = Kept()
    first = Process(kept, [pod(name, 0, ready=True) for name in NAMES])
    for name in NAMES:
        first.sees(10, name, ready=False)
    first.time = 30
    first.writes(Mark.STOP)
    # One is back, one is not, and of the third there is no pod, as between two of them.
    pods = [pod("db-0", 500, ready=True), pod("db-1", 500, ready=False)]
    again = Process(kept, pods)
    assert again.longest(1_000) == {"shop/db-0": 20, "shop/db-1": 990, "shop/queue-0": 990}
    again.sees(1_010, "queue-0", ready=True)
    again.writes()
    # Each process after it is told the same.
    third = Process(kept, again.world.pods())
    assert third.longest(1_020) == {"shop/db-0": 20, "shop/db-1": 1_010, "shop/queue-0": 1_000}
    assert third.outages.news() == ()


def test_a_run_that_has_ended_is_not_to_blame_for_what_comes_after() -> None:
    kept = Kept()
    first = Process(kept, [pod("db-0", 0, ready=True)])
    first.sees(10, "db-0", ready=False)
    first.time = 30
    first.writes(Mark.END)
    assert Process(kept, [pod("db-0", 40, ready=True)]).longest(90_000) == {"shop/db-0": 20}
    assert Process(kept, []).longest(90_000) == {"shop/db-0": 20}


def test_a_pod_that_crashes_all_day_does_not_fill_the_journal() -> None:
    kept = Kept()
    process = Process(kept, [pod("db-0", 0, ready=True)])
    for at in range(10, 1_000, 10):
        process.sees(at, "db-0", ready=False)
        process.sees(at + 5, "db-0", ready=True)
        if at % 200 == 0:
            process.writes()
            process = Process(kept, list(process.world.pods()))
    process.writes()
    written_down = [it.mark for it in kept.entries if it.target]
    assert written_down == [Mark.LOST, Mark.SERVED] * (TOLD_AT_MOST // 2)
    # What one process sees it tells, however often that was.
    (outage,) = process.tells(1_000)
    assert outage.times == TOLD_AT_MOST // 2 + 19
