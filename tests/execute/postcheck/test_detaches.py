"""A disk that is detached under a pod is seen by what nodes list."""

from __future__ import annotations

from typing import Any

import pytest

from replant.cluster.ports import PODS
from replant.execute.acts import LookAtNode
from replant.execute.census_model import Census, Disk, Volume
from replant.execute.emptying import FreshNode
from replant.execute.postcheck.detaches import CONFIRMED, LOOK_AGAIN, Detaches
from tests.execute.nodes import AWS, Nodes

CLAIM = "shop/data"
IN_TREE, CSI = f"{AWS}/aws://z/vol-1", "kubernetes.io/csi/ebs.csi.aws.com^vol-1"
DISK = Disk(AWS, native=False, in_tree=IN_TREE, csi=CSI)
LATER = CONFIRMED + 2


class Watched(Nodes):
    """Two nodes, and who watches the disk of one claim."""

    def __init__(self, *, shared: bool = False) -> None:
        super().__init__("a", "b")
        volume = Volume("pv", "", claim=CLAIM, disk=DISK, shared=shared)
        self.detaches = Detaches(Census(volumes=(volume,)))
        self.world.listen_to_nodes(self.detaches.saw)

    def lists(self, node: str, *names: str) -> None:
        self.node(node, volumesAttached=[{"name": it} for it in names])

    def runs(self, node: str, **metadata: Any) -> None:
        volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        spec = {"nodeName": node, "volumes": volumes}
        self.put(PODS, "db-0", namespace="shop", spec=spec, status=ready, **metadata)

    def looks(self, now: float) -> tuple[str, ...]:
        """The nodes to be looked at before anything else is done."""
        decision = self.detaches.decide(self.world, now)
        assert decision is None or not decision.failed
        acts = decision.acts if decision else ()
        return tuple(it.node for it in acts if isinstance(it, LookAtNode))

    def found(self) -> str:
        """What is found after looks at the nodes that show the same as the watches, to the end."""
        now = 0.0
        while (decision := self.detaches.decide(self.world, now)) and now <= LATER:
            if decision.failed:
                return decision.failed
            for act in decision.acts:
                assert isinstance(act, LookAtNode)
                fresh = FreshNode(self.world.node(act.node), (), "1000")
                self.detaches.learn(act, fresh, now)
            now += LOOK_AGAIN
        return ""


def test_a_disk_that_moves_is_no_harm() -> None:
    it = Watched()
    it.runs("a")
    it.lists("a", CSI)
    assert it.found() == ""
    it.runs("a", deletionTimestamp="2026-01-01T00:00:00Z")
    it.lists("a")
    it.lists("b", IN_TREE)
    assert it.looks(0) == ()


def test_two_nodes_list_it_under_its_two_names() -> None:
    it = Watched()
    it.runs("a")
    it.lists("a", CSI)
    it.lists("b", IN_TREE)
    assert it.found().startswith(
        f"The disk of {CLAIM} was detached under its pod, or is attached twice: a as {CSI}, b as "
        f"{IN_TREE}. Delete the pods"
    )


@pytest.mark.parametrize(("shared", "names"), [(True, (CSI, IN_TREE)), (False, (CSI, CSI))])
def test_two_nodes_may_list_a_volume(shared: bool, names: tuple[str, str]) -> None:
    """One that is shared; or under one name, which the controller itself keeps from harm."""
    it = Watched(shared=shared)
    it.lists("a", names[0])
    it.lists("b", names[1])
    assert it.found() == ""


def test_its_node_lists_it_no_more_while_a_pod_runs() -> None:
    it = Watched()
    it.runs("a")
    it.lists("a", CSI)
    it.lists("a")
    assert it.found().startswith(
        f"The disk of {CLAIM} was detached from a under pod shop/db-0, which still runs there."
    )


def test_a_detach_that_failed_is_no_harm() -> None:
    it = Watched()
    it.runs("a")
    it.lists("a", CSI)
    it.lists("a")
    assert it.looks(0) == ("a",)
    it.lists("a", CSI)
    assert it.looks(LATER) == ()


def test_a_watch_that_is_late_is_no_harm() -> None:
    it = Watched()
    it.runs("a")
    it.lists("a", CSI)
    it.lists("a")
    for now in (0.0, 5.0, LATER):
        assert it.looks(now) == ("a",)  # no look has come back yet
    stale = FreshNode(it.world.node("a"), (), "0")
    it.detaches.learn(LookAtNode(why="", node="a"), stale, LATER)
    assert it.looks(LATER) == ("a",)  # its pods may have gone since then
    it.world.refresh_pods("a", (), "1000")
    assert it.looks(LATER) == ()


def test_what_was_so_when_a_run_began_is_seen() -> None:
    it = Watched()
    it.lists("a", CSI)
    it.lists("b", IN_TREE)
    later = Detaches(Census(volumes=(Volume("pv", "", claim=CLAIM, disk=DISK),)))
    it.world.listen_to_nodes(later.saw)
    assert later.decide(it.world, 0)
