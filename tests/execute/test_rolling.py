"""What is decided about nodes, look by look: the cases that whole runs seldom come to."""

from __future__ import annotations

from typing import Any

import pytest

from replant.cluster.ports import PODS
from replant.errors import Conflict, EvictionBlocked, Missing, ReplantError, Uncertain
from replant.execute.acts import Cordon, Evict, LookAtNode, RestartLeader, Switch, Uncordon
from replant.execute.emptying import EVICT_AGAIN, FRESH, RETRY_EVICTION, FreshNode
from replant.execute.leading import LOOK, Leader, Memory
from replant.execute.outages import Outages
from replant.execute.rolling_node import DECIDE_AGAIN
from replant.execute.steps.scheduling import TaintNode
from replant.execute.world import Pod
from replant.plan.undo import undo_plan
from tests.execute.nodes import AWS, ENABLE, Nodes, only, rolling
from tests.plan.clusters import Kubelet, planned

BEGUN = Memory(step="undo-roll-nodes", since=0.0)
FORGOTTEN = Memory(step="roll-nodes", holder="leader", version="7")
TWO_BUDGETS = Uncertain("500: This pod has more than one PodDisruptionBudget")


def draining() -> Nodes:
    nodes = Nodes("n1", "n2", "n3")
    nodes.node("n1", cordoned=True, run="run")
    nodes.pod("db-0", "n1")
    return nodes


@pytest.mark.parametrize("outcome", [EvictionBlocked("budget db"), TWO_BUDGETS, Conflict("other")])
def test_a_pod_that_does_not_go_is_waited_for_by_name_and_tried_again(outcome: Exception) -> None:
    nodes, stage = draining(), rolling()
    evict = only(stage.decide(nodes.world, 0))
    assert isinstance(evict, Evict)

    stage.learn(evict, outcome, 1)
    blocked = stage.decide(nodes.world, 2)

    (wait,) = blocked.waits
    assert wait.what == f"pod shop/db-0 to be let go from n1: {outcome}"
    assert blocked.acts == []
    assert only(stage.decide(nodes.world, 1 + RETRY_EVICTION)) == evict


@pytest.mark.parametrize("outcome", [None, Missing("gone")])
def test_a_pod_that_went_is_not_evicted_anew_while_no_watch_tells(
    outcome: ReplantError | None,
) -> None:
    nodes, stage = draining(), rolling()
    evict = only(stage.decide(nodes.world, 0))
    stage.learn(evict, outcome, 1)

    waiting = stage.decide(nodes.world, 2)

    assert waiting.acts == []
    assert [it.what for it in waiting.waits] == ["pod shop/db-0 to end on n1"]
    assert only(stage.decide(nodes.world, 1 + EVICT_AGAIN)) == evict


def test_going_back_trusts_no_node_that_a_switch_may_still_reach() -> None:
    """Its CSINode is as before, but a command that outlived us may be about to restart it."""
    undo = undo_plan(ENABLE, "roll-nodes")
    nodes = Nodes("n1", "n2", "n3")
    nodes.node("n1", cordoned=True, run="run")
    stage = rolling(undo, doubted={"node n1"}, memory=BEGUN)

    acts = stage.decide(nodes.world, 0).acts
    acts += stage.decide(nodes.world, 20).acts
    assert [type(it) for it in acts] == [LookAtNode]

    node = nodes.world.node("n1")
    stage.learn(acts[0], FreshNode(node, (), "99"), 21)
    switch = only(stage.decide(nodes.world, 22))
    assert isinstance(switch, Switch)
    assert switch.wanted.gates == {"CSIMigrationAWS": False}


def test_going_back_leaves_alone_what_was_never_switched() -> None:
    stage = rolling(undo_plan(ENABLE, "roll-nodes"), memory=FORGOTTEN)
    stage.learn(LOOK, Leader("another", "9"), 0)
    decision = stage.decide(Nodes("n1", "n2", "n3").world, 0)
    assert (decision.acts, decision.done) == ([], True)


def test_a_node_without_a_drain_is_not_switched_under_a_volume() -> None:
    off = {"CSIMigrationAWS": False}
    plan = planned(
        "enable", server="1.24.17", gates=off, volume=False, kubelets=[Kubelet(gates=off)]
    )
    assert plan.empty
    nodes = Nodes("n1")
    assert isinstance(only(rolling(plan).decide(nodes.world, 0)), Switch)

    nodes.node("n1", volumesInUse=[f"{AWS}/vol-1"])
    decision = rolling(plan).decide(nodes.world, 0)

    assert decision.acts == []
    assert f"By now n1 has {AWS}/vol-1" in decision.failed


def test_a_node_that_leaves_is_done_with_and_the_next_begins() -> None:
    nodes, stage = Nodes("n2", "n3"), rolling()
    decision = stage.decide(nodes.world, 0)
    decision = stage.decide(nodes.world, 1)
    assert isinstance(only(decision), Cordon)
    assert decision.progress.done == 1


def test_no_other_node_is_drained_before_the_pods_of_the_last_one_serve_again() -> None:
    """If the driver does not work, the pods of one node are without their disks, not all pods."""
    nodes, outages = Nodes("n2", "n3"), Outages(lambda: 0.0)
    serves = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}}]

    def pod(node: str) -> Pod:
        spec = {"nodeName": node, "volumes": volumes}
        found = Nodes().put(PODS, "db-0", spec, serves, namespace="shop")
        assert isinstance(found, Pod)
        return found

    outages.saw(None, pod("n1"))
    outages.saw(pod("n1"), None)
    stage = rolling(outages=outages)
    stage.decide(nodes.world, 0)  # n1 is gone
    waiting = stage.decide(nodes.world, 1)
    assert waiting.acts == []
    assert [it.what for it in waiting.waits] == [
        "a pod to serve shop/data-db-0 again before another node is drained"
    ]
    outages.saw(None, pod("n2"))
    assert isinstance(only(stage.decide(nodes.world, 2)), Cordon)


def test_a_node_that_somebody_lets_take_pods_while_it_is_switched_is_cordoned_again() -> None:
    nodes, stage = Nodes("n1", "n2", "n3"), rolling()
    nodes.node("n1", cordoned=True, run="run")
    stage.decide(nodes.world, 0)
    look = only(stage.decide(nodes.world, 20))
    stage.learn(look, FreshNode(nodes.world.node("n1"), (), "99"), 21)
    stage.learn(only(stage.decide(nodes.world, 22)), None, 23)
    nodes.node("n1", cordoned=False, run="run")
    assert isinstance(only(stage.decide(nodes.world, 24)), Cordon)


@pytest.mark.parametrize(
    "fresh",
    [
        {"cordoned": False},
        {"cordoned": True, "volumesInUse": [f"{AWS}/vol-1"]},
        {
            "cordoned": True,
            "volumesAttached": [{"name": "kubernetes.io/csi/ebs.csi.aws.com^vol-1"}],
        },
        None,
    ],
    ids=["uncordoned", "in use", "attached", "a pod"],
)
def test_a_last_look_that_shows_anything_keeps_a_kubelet_as_it_is(fresh: Any) -> None:
    nodes, stage = Nodes("n1", "n2", "n3"), rolling()
    nodes.node("n1", cordoned=True, run="run")
    stage.decide(nodes.world, 0)
    look = only(stage.decide(nodes.world, 20))
    assert isinstance(look, LookAtNode)
    aside = Nodes()
    aside.node("n1", **(fresh or {"cordoned": True}))
    pods = () if fresh else (aside.pod("late", "n1"),)
    stage.learn(look, FreshNode(aside.world.node("n1"), pods, "99"), 21)
    assert not any(isinstance(it, Switch) for it in stage.decide(nodes.world, 22).acts)


def test_a_node_is_tainted_before_it_is_switched_and_until_it_is_uncordoned() -> None:
    """Some pods tolerate a cordon; this taint none does that was not made to."""
    nodes, stage = Nodes("n1", "n2", "n3"), rolling()
    nodes.node("n1", cordoned=True, run="run", tainted=False)
    stage.decide(nodes.world, 0)
    tainted = only(stage.decide(nodes.world, 20))
    assert isinstance(tainted, TaintNode)
    assert [(it.key, it.value, it.effect) for it in tainted.taints] == [
        ("replant.dev/aws-ebs", "switching", "NoSchedule")
    ]
    nodes.csi_node("n1", lists=AWS)
    nodes.node("n1", cordoned=True, run="run")
    assert stage.decide(nodes.world, 40).acts == []  # the controllers have not heard of it yet
    looked = only(stage.decide(nodes.world, 60))
    stage.learn(looked, FreshNode(nodes.world.node("n1"), (), "99"), 61)
    stage.decide(nodes.world, 62)
    untainted = only(stage.decide(nodes.world, 63))
    assert isinstance(untainted, TaintNode)
    assert untainted.taints == ()
    nodes.node("n1", cordoned=True, run="run", tainted=False)
    assert isinstance(only(stage.decide(nodes.world, 64)), Uncordon)


def test_a_node_that_somebody_else_cordoned_loses_the_taint_and_stays_cordoned() -> None:
    nodes, stage = Nodes("n1", "n2", "n3"), rolling()
    nodes.node("n1", cordoned=True)
    nodes.csi_node("n1", lists=AWS)
    stage.decide(nodes.world, 0)
    looked = only(stage.decide(nodes.world, 20))
    stage.learn(looked, FreshNode(nodes.world.node("n1"), (), "99"), 21)
    stage.decide(nodes.world, 22)
    untainted = only(stage.decide(nodes.world, 23))
    assert isinstance(untainted, TaintNode)
    assert untainted.taints == ()
    nodes.node("n1", cordoned=True, tainted=False)
    begun = only(stage.decide(nodes.world, 24))
    assert isinstance(begun, Cordon)
    assert begun.node == "n2"


def test_a_pod_that_comes_once_a_node_is_to_be_switched_is_not_evicted_again_and_again() -> None:
    nodes, stage = Nodes("n1", "n2", "n3"), rolling()
    nodes.node("n1", cordoned=True, run="run")
    stage.decide(nodes.world, 0)
    look = only(stage.decide(nodes.world, 20))
    stage.learn(look, FreshNode(nodes.world.node("n1"), (), "99"), 21)
    assert isinstance(only(stage.decide(nodes.world, 22)), Switch)
    nodes.pod("late", "n1")
    decision = stage.decide(nodes.world, 23)
    assert decision.acts == []
    assert decision.waits[-1].what.startswith("shop/late to leave n1: it came after the last look")


LATE: dict[str, Any] = {
    "cordoned": True,
    "run": "run",
    "volumesAttached": [{"name": f"{AWS}/aws://a/vol-1"}],
}


def test_a_pod_that_came_before_the_restart_has_to_leave_the_node() -> None:
    """Its disk is attached under the name of before: whoever leads next would detach it."""
    nodes, stage = Nodes("n1", "n2", "n3"), rolling()
    nodes.node("n1", **LATE)
    nodes.csi_node("n1", lists=AWS)
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    nodes.put(PODS, "late", spec={"nodeName": "n1", "volumes": volumes}, namespace="shop")
    stage.decide(nodes.world, 0)
    decision = stage.decide(nodes.world, 20)
    assert decision.acts == []  # evicted it would come back at once
    assert decision.waits[-1].what.startswith(f"shop/late to leave n1, and with it {AWS}/aws://a/")


def test_no_controller_is_restarted_while_such_a_pod_is_there() -> None:
    nodes = Nodes("n1", "n2", "n3")
    nodes.node("n1", **LATE)
    nodes.csi_node("n1", lists=AWS)
    nodes.pod("late", "n1")
    stage = rolling(memory=Memory(step="another", holder="leader", version="7"))
    stage.learn(LOOK, Leader("leader", "9"), 0)
    decision = stage.decide(nodes.world, 1)
    assert decision.acts == []
    stage.decide(nodes.world, 20)
    waiting = stage.decide(nodes.world, 40)
    assert not any(isinstance(it, RestartLeader) for it in waiting.acts)
    assert {it.key for it in waiting.waits} >= {f"late n1 , and with it {AWS}/aws://a/vol-1"}


def test_a_look_that_has_grown_old_is_taken_anew() -> None:
    nodes, stage = Nodes("n1", "n2", "n3"), rolling()
    nodes.node("n1", cordoned=True, run="run")
    stage.decide(nodes.world, 0)
    look = only(stage.decide(nodes.world, 20))
    stage.learn(look, FreshNode(nodes.world.node("n1"), (), "99"), 21)
    assert isinstance(only(stage.decide(nodes.world, 21 + FRESH)), Switch)
    assert isinstance(only(stage.decide(nodes.world, 21.1 + FRESH)), LookAtNode)


def test_what_is_to_be_done_stays_decided_until_something_is_seen() -> None:
    """Hundreds of nodes are under way, and something happens to one of them: look at that one."""
    nodes, stage = draining(), rolling()
    evict = only(stage.decide(nodes.world, 0))
    again = stage.decide(nodes.world, DECIDE_AGAIN / 2)
    assert only(again) is evict
    assert again.wake == DECIDE_AGAIN / 2
    later = only(stage.decide(nodes.world, DECIDE_AGAIN))
    assert (later == evict, later is evict) == (True, False)
    nodes.pod("db-0", "n1", deletionTimestamp="2024-05-01T00:00:00Z")
    assert stage.decide(nodes.world, DECIDE_AGAIN).acts == []
