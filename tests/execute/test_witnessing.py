"""Outages of a run that is carried out by one process after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert
from msgspec.json import encode

from replant.cluster.ports import PODS
from replant.execute.journal import Entry, Mark
from replant.execute.outages import Outage, Outages
from replant.execute.timing import written
from replant.execute.witnessing import WitnessedJournal, ready_since, turns_of
from replant.execute.world import Pod, World

NAMES = ("db-0", "db-1", "queue-0")
STEP = Entry(at=written(0), mark=Mark.STEP, step="roll-nodes")


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
        self.back = self.outages.recall(turns_of(kept.entries), self.world.pods())

    def sees(self, at: float, name: str, *, ready: bool) -> None:
        self.time = at
        self.world.put(PODS, pod(name, at, ready=ready))

    def writes(self) -> None:
        asyncio.run(self.journal.write([STEP]))

    def tells(self, at: float) -> list[Outage]:
        self.time = at
        return self.outages.all()


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
            assert now.back == {}
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


def test_what_came_back_while_nobody_looked_is_asked_about() -> None:
    kept = Kept()
    first = Process(kept, [pod(name, 0, ready=True) for name in NAMES])
    for name in NAMES:
        first.sees(10, name, ready=False)
    first.writes()
    again = Process(kept, [pod("db-0", 30, ready=True), pod("db-1", 30, ready=False)])
    assert [(claim, it.metadata.name) for claim, it in again.back.items()] == [
        ("shop/db-0", "db-0")
    ]
    again.outages.came_back("shop/db-0", 35)
    # Nobody wants the third any more: it was taken away, and nobody is without it.
    found = {it.claim: (it.workload, it.longest) for it in again.tells(1_000)}
    assert found == {"shop/db-0": ("Pod shop/db-0", 25), "shop/db-1": ("Pod shop/db-1", 990)}
    again.writes()
    assert Process(kept, again.world.pods()).back == {}


def test_since_when_a_pod_is_ready() -> None:
    def said(**condition: str) -> float:
        return ready_since(encode({"status": {"conditions": [{"type": "Other"}, condition]}}))

    moment = {"lastTransitionTime": "1970-01-01T00:01:40Z"}
    assert said(type="Ready", status="True", **moment) == 100
    assert said(type="Ready", status="False", **moment) == 0
    assert said(type="Ready", status="True") == 0
    assert ready_since(b"{}") == ready_since(b'{"status": {"conditions": 1}}') == 0
