"""Who is without a disk, and since when."""

from __future__ import annotations

from typing import Any

from msgspec import convert

from replant.cluster.ports import PODS
from replant.execute.outages import Outages
from replant.execute.world import Pod, World


def pod(
    uid: str, *, ready: bool = True, node: str = "n1", phase: str = "Running", **metadata: Any
) -> Pod:
    return convert(
        {
            "metadata": {"name": "db-0", "namespace": "shop", "uid": uid, **metadata},
            "spec": {
                "nodeName": node,
                "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
            },
            "status": {
                "phase": phase,
                "conditions": [{"type": "Ready", "status": str(ready)}],
            },
        },
        Pod,
    )


class Followed:
    def __init__(self) -> None:
        self.time = 0.0
        self.outages = Outages(lambda: self.time)
        self.world = World()
        self.world.listen(self.outages.saw)

    def put(self, at: float, seen: Pod) -> None:
        self.time = at
        self.world.put(PODS, seen)


def test_from_the_moment_it_ends_until_another_serves() -> None:
    it = Followed()
    it.put(0, pod("a"))
    it.put(10, pod("a", deletionTimestamp="now"))
    assert it.outages.from_nodes({"n1"}) == {"shop/data": "n1"}
    it.put(20, pod("b", ready=False, node="n2"))
    it.put(40, pod("b", node="n2"))
    (outage,) = it.outages.all()
    assert (outage.times, outage.longest, outage.workload) == (1, 30.0, "Pod shop/db-0")
    assert it.outages.from_nodes({"n1", "n2"}) == {}


def test_a_pod_that_took_a_name_while_nobody_looked_is_another_pod() -> None:
    """As after a list that tells of the new one, and of the old one no more."""
    it = Followed()
    it.put(0, pod("a"))
    it.put(10, pod("b", ready=False, node="n2"))
    assert it.outages.from_nodes({"n1"}) == {"shop/data": "n1"}
    it.put(15, pod("b", node="n2"))
    it.put(20, pod("b", ready=False, node="n2"))
    assert it.outages.from_nodes({"n2"}) == {"shop/data": "n2"}


def test_a_job_that_has_done_its_work_is_not_waited_for() -> None:
    it = Followed()
    it.put(0, pod("a"))
    it.put(10, pod("a", ready=False, phase="Succeeded"))
    assert it.outages.from_nodes({"n1"}) == {}
    assert it.outages.all() == []
