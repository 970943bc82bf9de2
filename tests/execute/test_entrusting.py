"""Nodes that the platform rolls: asked once, and not done before every one of them is."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from replant.errors import Refused, Retryable
from replant.execute.acts import LookAtLeader, ObservePlace, RestartLeader, Switch
from replant.execute.actuators import KUBELETS, Replica
from replant.execute.awaiting import GRACE, OBSERVE_AGAIN
from replant.execute.entrusting import Entrusting
from replant.execute.leading import Leader
from replant.execute.patience import Patience
from replant.plan.model import NodeMethod
from tests.execute.nodes import AWS, ENABLE, Nodes, only, roll_step

GATE = "CSIMigrationAWS"
REST, TOLD = Replica("pool", {GATE: False}), Replica("pool", {GATE: True})
BUSY = Replica("pool", {GATE: True}, ready=False, why="1 of 3 machines are updated")


def entrusting(restart: int = 0, **more: Any) -> Entrusting:
    step = roll_step(ENABLE)
    step = replace(step, method=NodeMethod.PLATFORM, restart_controllers_seconds=restart)
    return Entrusting(step, ENABLE, Patience(), **more)


def asked(stage: Entrusting, nodes: Nodes, pools: tuple[Replica, ...] | None = (REST,)) -> object:
    look = only(stage.decide(nodes.world, 0))
    assert isinstance(look, ObservePlace)
    stage.learn(look, pools, 1)
    return stage.decide(nodes.world, 2)


def test_it_is_asked_once_and_waited_for() -> None:
    nodes, stage = Nodes("n1", "n2", "n3"), entrusting()
    switch = only(asked(stage, nodes))  # type: ignore[arg-type]
    assert isinstance(switch, Switch)
    assert (switch.place, switch.wanted.gates) == (KUBELETS, {GATE: True})

    stage.learn(switch, None, 3)
    stage.learn(only(stage.decide(nodes.world, 4)), (BUSY,), 5)
    nodes.csi_node("n1", lists=AWS)
    waiting = stage.decide(nodes.world, 6)
    assert waiting.acts == []
    assert [it.what for it in waiting.waits] == [
        "pool to be at rest with its new gates: 1 of 3 machines are updated",
        f"n2, n3 to be rolled: the CSINode of n2 does not list {AWS} yet",
    ]
    assert waiting.progress.told == "1 of 3 nodes"

    for name in ("n2", "n3"):
        nodes.csi_node(name, lists=AWS)
    look = only(stage.decide(nodes.world, 5 + OBSERVE_AGAIN))
    assert not stage.decide(nodes.world, 7).done  # the pool is still at work
    stage.learn(look, (TOLD,), 8)
    assert stage.decide(nodes.world, 9).done


def test_what_is_so_already_is_not_asked_for_unless_it_is_doubted() -> None:
    nodes = Nodes("n1", "n2", "n3")
    for name in ("n1", "n2", "n3"):
        nodes.csi_node(name, lists=AWS)
    assert asked(entrusting(), nodes, (TOLD,)).done  # type: ignore[attr-defined]
    doubted = asked(entrusting(doubted={"kubelets"}), nodes, (TOLD,))
    assert isinstance(only(doubted), Switch)  # type: ignore[arg-type]


def test_a_driver_that_is_missing_is_waited_for_first() -> None:
    nodes = Nodes("n1", "n2", "n3")
    from replant.cluster.ports import CSI_NODES

    nodes.put(CSI_NODES, "n2", spec={"drivers": []})
    decision: Any = asked(entrusting(), nodes)
    assert decision.acts == []
    assert [it.key for it in decision.waits] == ["driver n2"]


def test_a_node_that_has_left_is_not_waited_for() -> None:
    nodes = Nodes("n1", "n2")
    for name in ("n1", "n2"):
        nodes.csi_node(name, lists=AWS)
    assert asked(entrusting(), nodes, (TOLD,)).done  # type: ignore[attr-defined]


@pytest.mark.parametrize("error", [Refused("no"), Retryable("later")])
def test_a_refusal_ends_it_and_what_may_work_later_is_asked_again(error: Exception) -> None:
    nodes, stage = Nodes("n1", "n2", "n3"), entrusting()
    switch = only(asked(stage, nodes))  # type: ignore[arg-type]
    stage.learn(switch, error, 3)
    if isinstance(error, Retryable):
        assert only(stage.decide(nodes.world, 4)) == switch
        return
    stage.learn(only(stage.decide(nodes.world, 4)), (REST,), 5)
    assert stage.decide(nodes.world, 4 + GRACE).failed == "The nodes were not switched: no"


def test_where_nobody_sees_the_nodes_it_says_what_to_do() -> None:
    decision: Any = asked(entrusting(), Nodes("n1", "n2", "n3"), None)
    assert "--nodes in-place" in decision.failed


def test_nobody_leads_to_the_end_under_whom_the_platform_moved_pods() -> None:
    nodes, stage = Nodes("n1", "n2", "n3"), entrusting(restart=1200)
    switch = only(asked(stage, nodes))  # type: ignore[arg-type]
    stage.learn(switch, None, 3)
    stage.learn(only(stage.decide(nodes.world, 4)), (BUSY,), 5)
    assert stage.leaves_detaches
    # In time, while it is still at it.
    look = only(stage.decide(nodes.world, 1203))
    assert isinstance(look, LookAtLeader)
    stage.learn(look, Leader("a", "7"), 1204)
    assert isinstance(only(stage.decide(nodes.world, 1204)), RestartLeader)
    stage.learn(look, Leader("b", "8"), 1206)
    stage.decide(nodes.world, 1206)
    # And at the end, for it has moved pods since.
    for name in ("n1", "n2", "n3"):
        nodes.csi_node(name, lists=AWS)
    stage.learn(_OBSERVED, (TOLD,), 1300)
    ending = stage.decide(nodes.world, 1301)
    assert not ending.done
    assert isinstance(only(ending), LookAtLeader)
    stage.learn(look, Leader("b", "8"), 1302)
    assert isinstance(only(stage.decide(nodes.world, 1302)), RestartLeader)
    stage.learn(look, Leader("c", "9"), 1304)
    assert stage.decide(nodes.world, 1304).done
    assert not stage.leaves_detaches


_OBSERVED = ObservePlace(why="", place=KUBELETS)
