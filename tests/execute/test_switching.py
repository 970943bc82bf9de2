"""Components of the control plane: when they may be switched, and when they count as switched."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from replant.execute.acts import Decision, ObservePlace, Switch
from replant.execute.actuators import Replica
from replant.execute.patience import Patience
from replant.execute.switching import Switching
from replant.plan.courses import CONTROLLER
from replant.plan.model import Plan, SwitchControlPlane
from replant.plan.undo import undo_plan
from tests.execute.nodes import AWS, ENABLE, Nodes, only
from tests.plan.clusters import Kubelet, planned

ON = {"CSIMigrationAWS": True}
DISABLE = planned("disable", server="1.24.17", gates=ON, kubelets=[Kubelet(gates=ON)] * 3)
COMPLETE = planned("complete", server="1.24.17", gates=ON, kubelets=[Kubelet(gates=ON)] * 3)
UNDO = undo_plan(ENABLE, "roll-nodes")


def last_switch(plan: Plan) -> SwitchControlPlane:
    return [it for it in plan.steps if isinstance(it, SwitchControlPlane)][-1]


def decided(plan: Plan, nodes: Nodes, gates: dict[str, bool], **more: Any) -> Decision:
    """After its first look at the controllers."""
    stage = Switching(last_switch(plan), plan, Patience(), **more)
    look = only(stage.decide(nodes.world, 0))
    assert isinstance(look, ObservePlace)
    stage.learn(look, (Replica("kcm", gates),), 1)
    return stage.decide(nodes.world, 2)


@pytest.mark.parametrize(
    ("plan", "listed", "newcomer", "told"),
    [
        (DISABLE, "", AWS, f"n9 to redirect {AWS} no more before kube-controller-manager"),
        (UNDO, "", AWS, f"n9 to redirect {AWS} no more before kube-controller-manager"),
        (COMPLETE, AWS, "", f"n9 to redirect {AWS} before kube-controller-manager"),
    ],
    ids=["disable", "undo", "complete"],
)
def test_a_node_that_came_meanwhile_is_in_the_way(
    plan: Plan, listed: str, newcomer: str, told: str
) -> None:
    nodes = Nodes("n1", "n2", "n3")
    for name in ("n1", "n2", "n3"):
        nodes.csi_node(name, lists=listed)
    assert isinstance(only(decided(plan, nodes, ON)), Switch)

    nodes.node("n9")
    nodes.csi_node("n9", lists=newcomer)
    decision = decided(plan, nodes, ON)

    assert decision.acts == []
    assert [it.what.startswith(told) for it in decision.waits] == [True]


def test_turning_on_asks_nothing_of_nodes() -> None:
    nodes = Nodes("n1", "n2", "n3")
    assert isinstance(only(decided(ENABLE, nodes, {"CSIMigrationAWS": False})), Switch)


def test_going_back_trusts_no_component_that_a_switch_may_still_reach() -> None:
    off = {"CSIMigrationAWS": False}
    back = undo_plan(ENABLE, "switch-control-plane")
    nodes = Nodes("n1", "n2", "n3")
    doubted = decided(back, nodes, off, doubted={"kube-controller-manager"})
    assert isinstance(only(doubted), Switch)
    trusted = decided(back, nodes, off)
    assert not any(isinstance(it, Switch) for it in trusted.acts)


def test_a_replica_that_is_down_is_waited_for() -> None:
    plan = replace(DISABLE, control_plane=replace(DISABLE.control_plane, replicas=2))
    nodes = Nodes("n1", "n2", "n3")
    off = {"CSIMigrationAWS": False}
    decision = decided(plan, nodes, off)
    assert not decision.done
    assert "1 of 2 replicas run" in decision.waits[0].what

    stage = Switching(last_switch(plan), plan, Patience())
    look = only(stage.decide(nodes.world, 0))
    stage.learn(look, (Replica("kcm-1", off), Replica("kcm-2", off)), 1)
    acts = stage.decide(nodes.world, 2).acts
    assert CONTROLLER not in [it.target for it in acts]


def test_a_platform_that_gets_on_is_waited_for_anew() -> None:
    nodes, stage = Nodes("n1", "n2", "n3"), Switching(last_switch(ENABLE), ENABLE, Patience())
    look = only(stage.decide(nodes.world, 0))
    stage.learn(look, (Replica("m0", {}),), 1)
    stage.learn(only(stage.decide(nodes.world, 2)), None, 3)
    keys = []
    for lag in ("m0 is at revision 2", "m1 is at revision 2", "m1 is at revision 2"):
        stage.learn(look, (Replica("m0", ON, ready=False, why=lag),), 4)
        (wait,) = stage.decide(nodes.world, 5).waits
        assert wait.what.endswith(f"m0 is not ready: {lag}")
        keys.append(wait.key)
    assert keys[0] != keys[1] == keys[2]
