"""What has to be so on nodes before kube-controller-manager is restarted."""

from __future__ import annotations

from typing import Any

import pytest

from replant.cluster.ports import CSI_NODES
from replant.execute.acts import Decision, LookAtLeader, RestartLeader
from replant.execute.actuators import Replica
from replant.execute.leading import LOOK, Leader, Leading, Memory
from replant.execute.patience import Patience
from replant.execute.steps.restarts import in_the_way_of_a_restart
from replant.execute.switching import Switching
from replant.plan.model import SwitchControlPlane
from tests.execute.nodes import AWS, ENABLE, OFF, Nodes, only

IN_TREE, CSI = f"{AWS}/aws://a/vol-1", "kubernetes.io/csi/ebs.csi.aws.com^vol-1"
OTHERS = "kubernetes.io/csi/nfs.csi.k8s.io^share"
SWITCHED = {"cordoned": True, "run": "run"}
CASES: dict[str, tuple[dict[str, Any], str, bool, str]] = {
    # what is attached, what its CSINode lists, whether it has the driver, and what is waited for
    "nothing attached": ({}, AWS, False, ""),
    "its driver is there": ({"volumesAttached": [{"name": CSI}]}, AWS, True, ""),
    "its driver is missing": ({"volumesAttached": [{"name": CSI}]}, AWS, False, "the driver ebs"),
    "in use alone": ({"volumesInUse": [CSI]}, AWS, False, "the driver ebs"),
    "a volume of nobody's plugin": ({"volumesAttached": [{"name": OTHERS}]}, AWS, False, ""),
    "a node that does not redirect": ({"volumesAttached": [{"name": CSI}]}, "", False, ""),
    "in-tree before the switch": ({"volumesAttached": [{"name": IN_TREE}]}, "", False, ""),
    "in-tree after it": ({"volumesAttached": [{"name": IN_TREE}], **SWITCHED}, AWS, True, IN_TREE),
    "by CSI after going back": ({"volumesAttached": [{"name": CSI}], **SWITCHED}, "", True, CSI),
    "on a node that nobody switches": ({"volumesAttached": [{"name": IN_TREE}]}, AWS, True, ""),
}


def nodes(status: dict[str, Any], lists: str, *, driver: bool) -> Nodes:
    found = Nodes("n1", "n2")
    found.node("n1", **status)
    found.csi_node("n1", lists=lists)
    if not driver:
        marks = {"storage.alpha.kubernetes.io/migrated-plugins": lists}
        found.put(CSI_NODES, "n1", annotations=marks, spec={})
    return found


@pytest.mark.parametrize(("status", "lists", "driver", "expected"), CASES.values(), ids=CASES)
def test_what_is_waited_for(
    status: dict[str, Any], lists: str, driver: bool, expected: str
) -> None:
    waits = list(in_the_way_of_a_restart(nodes(status, lists, driver=driver).world, 900))
    assert [it.what[: len(expected)] for it in waits] == ([expected] if expected else [])


MISSING = nodes({"volumesAttached": [{"name": CSI}]}, AWS, driver=False).world
THERE = nodes({"volumesAttached": [{"name": CSI}]}, AWS, driver=True).world


def test_no_leader_is_restarted_while_a_driver_is_missing_nor_counts_as_new() -> None:
    leading = Leading("roll-nodes", 1200, 900, Memory(), back=True)

    def decided(now: float, world: Any) -> Decision:
        decision = Decision()
        assert leading.holds_up(now, decision, world)
        return decision

    assert decided(0, MISSING).acts == [LOOK]
    leading.learn(Leader("host_1", "5"), 1)
    waiting = decided(2, MISSING)
    assert not any(isinstance(it, RestartLeader) for it in waiting.acts)
    assert "to be registered on n1 before kube-controller-manager" in waiting.waits[0].what
    assert leading.waits_for_nodes
    assert isinstance(only(decided(3, THERE)), RestartLeader)

    leading.learn(None, 4)
    decided(5, THERE)
    leading.learn(Leader("host_2", "9"), 6)
    assert all(isinstance(it, LookAtLeader) for it in decided(7, MISSING).acts)
    assert not leading.holds_up(9, Decision(), THERE)


def test_nor_are_the_controllers_switched() -> None:
    step = next(it for it in ENABLE.steps if isinstance(it, SwitchControlPlane))
    stage = Switching(step, ENABLE, Patience())
    stage.learn(only(stage.decide(MISSING, 0)), (Replica("kcm-1", OFF),), 1)
    waiting = stage.decide(MISSING, 2)
    assert waiting.acts == []
    assert "the driver ebs.csi.aws.com to be registered on n1" in waiting.waits[0].what
    assert len(stage.decide(THERE, 3).acts) == 1
