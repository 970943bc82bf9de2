"""The steps to each goal: which, in which order, with what, and why."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from msgspec.structs import replace

from replant.gates.versions import Version
from replant.plan import courses
from replant.plan.compose import Choices
from replant.plan.model import NodeMethod, Plan
from replant.plan.undo import undo_plan
from replant.proof import verify
from replant.routing import AttachController
from tests.inventory.clusters import AWS, CONTROLLER, component, pod
from tests.plan.clusters import (
    SCHEDULER,
    Kubelet,
    given_to,
    ids,
    inventory_of,
    planned,
    step_of,
    written,
)

GATE, COMPLETE, UNREGISTER = (
    "CSIMigrationAWS",
    "CSIMigrationAWSComplete",
    "InTreePluginAWSUnregister",
)
ON, OFF = {GATE: True}, {GATE: False}
ADC = {"ADC_CSIMigrationAWS": True}
BOTH_ON = (Kubelet(gates=ON), Kubelet(gates=ON))

DRAINED = (
    "cordon",
    "drain",
    "wait until no volume of the plugins is attached or in use there, and 10 seconds more",
    "switch the kubelet",
    "wait for the annotation and the drivers in its CSINode, and 10 seconds more",
    "uncordon",
)


def proved(plan: Plan) -> bool:
    return plan.proof is not None and plan.proof.safe


def test_enable_switches_the_control_plane_and_then_drained_nodes() -> None:
    plan = planned("enable")
    assert ids(plan) == ["switch-control-plane", "roll-nodes"]
    switch, roll = plan.steps
    assert given_to(switch) == given_to(switch, SCHEDULER) == {GATE: True}
    assert step_of(plan, switch.id).components[0].before == {GATE: None}
    assert roll.after == (switch.id,)
    assert [(it.group, it.gates, it.before) for it in step_of(plan, roll.id).changes] == [
        ("all", {GATE: True}, {GATE: None})
    ]
    assert step_of(plan, roll.id).each_node == DRAINED
    assert step_of(plan, roll.id).drain
    assert step_of(plan, roll.id).settle_seconds == 10
    assert step_of(plan, roll.id).restart_controllers_seconds == 20 * 60
    assert proved(plan)
    assert plan.proof is not None
    assert plan.proof.states > 1000


def test_disable_goes_the_other_way_round() -> None:
    plan = planned("disable", gates=ON, kubelets=BOTH_ON)
    assert ids(plan) == ["roll-nodes", "switch-control-plane"]
    assert given_to(step_of(plan, "switch-control-plane")) == {GATE: False}
    assert step_of(plan, "switch-control-plane").components[0].before == {GATE: True}
    assert step_of(plan, "roll-nodes").each_node == DRAINED
    assert "no more" in step_of(plan, "roll-nodes").done_when
    assert proved(plan)


@pytest.mark.parametrize(("server", "gate"), [("1.20.2", COMPLETE), ("1.22.17", UNREGISTER)])
def test_complete_takes_the_plugin_away_from_the_controllers_alone(server: str, gate: str) -> None:
    plan = planned("complete", server=server, gates=ON, kubelets=BOTH_ON)
    assert ids(plan) == ["complete-control-plane"]
    (switched,) = step_of(plan, "complete-control-plane").components
    assert (switched.name, switched.gates, switched.before) == (
        CONTROLLER,
        {gate: True},
        {gate: None},
    )
    assert proved(plan)


@pytest.mark.parametrize(("server", "gate"), [("1.20.2", COMPLETE), ("1.22.17", UNREGISTER)])
def test_the_way_back_from_complete_gives_the_controllers_their_plugin_first(
    server: str, gate: str
) -> None:
    gates = {**ON, gate: True}
    plan = planned("disable", server=server, gates=gates, kubelets=BOTH_ON)
    assert ids(plan) == ["register-plugins", "roll-nodes", "switch-control-plane"]
    assert given_to(step_of(plan, "register-plugins")) == {gate: False}
    assert proved(plan)


def test_kubelets_with_all_gates_get_their_plugin_back_too() -> None:
    everything = {**ON, UNREGISTER: True}
    kubelets = (Kubelet(gates=everything), Kubelet(gates=ON))
    plan = planned("disable", gates=ON, kubelets=kubelets, asked=True)
    changes = step_of(plan, "roll-nodes").changes
    assert sorted((it.gates for it in changes), key=len) == [OFF, {**OFF, UNREGISTER: False}]
    assert proved(plan)


@pytest.mark.parametrize("goal", ["enable", "disable", "complete"])
def test_nothing_is_done_twice(goal: str) -> None:
    done: dict[str, dict[str, Any]] = {
        "enable": {"gates": ON, "kubelets": BOTH_ON},
        "disable": {},
        "complete": {"gates": {**ON, UNREGISTER: True}, "kubelets": BOTH_ON, "flags": []},
    }
    plan = planned(goal, **done[goal])
    assert ids(plan) == []
    assert proved(plan)


def test_nodes_that_are_switched_already_are_left_alone() -> None:
    plan = planned("enable", gates=ON, kubelets=(Kubelet(gates=ON), Kubelet()))
    assert ids(plan) == ["roll-nodes"]
    (change,) = step_of(plan, "roll-nodes").changes
    assert next(it.nodes for it in plan.groups if it.name == change.group) == ("n2",)


def test_pools_of_several_versions_get_what_each_needs() -> None:
    kubelets = (Kubelet("1.22.9"), Kubelet("1.24.17", OFF))
    plan = planned("enable", server="1.24.17", gates=OFF, kubelets=kubelets)
    groups = {it.name: (it.version, it.nodes) for it in plan.groups}
    changes = {
        groups[it.group]: (it.gates, it.before) for it in step_of(plan, "roll-nodes").changes
    }
    assert changes == {
        ("1.22.9", ("n1",)): ({GATE: True}, {GATE: None}),
        ("1.24.17", ("n2",)): ({GATE: True}, {GATE: False}),
    }
    assert proved(plan)


def test_a_scheduler_that_lags_behind_is_switched_too() -> None:
    """It must count volumes as the controllers attach them."""
    extra = [component(written(OFF), component=SCHEDULER, on="z")]
    plan = planned("enable", AWS, *extra, server="1.24.17", replicas=0, flags=[])
    (switched,) = step_of(plan, "switch-control-plane").components
    assert (switched.name, switched.gates, switched.before) == (SCHEDULER, ON, OFF)
    assert "limits" in switched.why


def test_a_scheduler_that_hides_is_taken_to_be_given_what_the_controllers_are() -> None:
    plan = planned(
        "disable", AWS, component(written(ON), "--cloud-provider=aws"), replicas=0, kubelets=BOTH_ON
    )
    befores = {it.name: it.before for it in step_of(plan, "switch-control-plane").components}
    assert befores == {CONTROLLER: ON, SCHEDULER: ON}


@pytest.mark.parametrize("server", ["1.20.2", "1.22.17", "1.24.17"])
def test_a_new_cluster_gets_all_gates_at_once(server: str) -> None:
    off = COMPLETE if Version.parse(server) < Version(1, 21) else UNREGISTER
    kubelets = (Kubelet(gates=OFF), Kubelet(gates=OFF))
    plan = planned("enable", server=server, gates=OFF, kubelets=kubelets, volume=False)
    assert plan.empty
    assert given_to(step_of(plan, "switch-control-plane")) == {GATE: True, off: True}
    roll = step_of(plan, "roll-nodes")
    assert (roll.drain, roll.settle_seconds) == (False, 0)
    assert not {"cordon", "drain", "uncordon"} & set(roll.each_node)
    assert proved(plan)


def test_the_undo_of_an_empty_cluster_s_plan_says_that_it_must_be_empty_still() -> None:
    plan = planned("enable", volume=False)
    (check,) = undo_plan(plan, "roll-nodes").preflight
    assert "no volume" in check.message
    assert "plan disable" in check.fix


@pytest.mark.parametrize("kind", ["pod", "stored"])
def test_a_cluster_with_any_volume_is_not_new(kind: str) -> None:
    volume = {"name": "v", "awsElasticBlockStore": {"volumeID": "vol-9"}}
    extra = [pod("inline", volumes=[volume])] if kind == "pod" else []
    plan = planned("enable", AWS, *extra, volume=kind == "stored")
    assert not plan.empty
    assert step_of(plan, "roll-nodes").drain


def test_nodes_may_be_replaced_and_several_at_a_time() -> None:
    choices = Choices(NodeMethod.REPLACE, max_unavailable=3)
    roll = step_of(planned("enable", wanted={"choices": choices}), "roll-nodes")
    assert (roll.method, roll.max_unavailable) == (NodeMethod.REPLACE, 3)
    assert "replace the machine by one with the new kubelet" in roll.each_node
    assert roll.each_node[:2] == ("cordon", "drain")


@pytest.mark.parametrize(
    "cluster",
    [
        {"plugin": "kubernetes.io/gce-pd"},
        {"wanted": {"choices": Choices(NodeMethod.REPLACE, one_pod_per_volume=True)}},
        {"volume": False},
    ],
    ids=["a plugin that does not wait", "a node that does not come back", "no volume"],
)
def test_who_leads_matters_only_where_a_detach_can_be_overtaken(cluster: dict[str, Any]) -> None:
    plan = planned("enable", server="1.22.17", **cluster)
    assert step_of(plan, "roll-nodes").restart_controllers_seconds == 0
    assert proved(plan)


@pytest.mark.parametrize("seconds", [0, 60 * 60])
def test_a_plan_under_which_one_leads_for_too_long_is_refuted(seconds: int) -> None:
    plan = planned("enable")
    *others, roll = plan.steps
    edited = replace(plan, steps=(*others, replace(roll, restart_controllers_seconds=seconds)))
    proof = courses.proved(edited)
    assert proof.bad_state == "yanked"
    assert "half an hour after the driver overtook its detach" in proof.story[-1]


@pytest.mark.parametrize(
    ("platform", "gates", "expected"),
    [
        ("openshift", ADC, "node-driven"),
        ("openshift", {}, "upstream"),
        ("openshift", None, "upstream"),
        ("generic", ADC, "upstream"),
    ],
)
def test_the_platform_s_controllers_are_those_that_are_proved(
    platform: str, gates: dict[str, bool] | None, expected: str
) -> None:
    wanted = {"platform": platform, "controller_gates": gates}
    plan = planned("enable", wanted=wanted)
    assert (plan.platform, plan.attach_controller) == (platform, expected)
    said = [it.message for it in plan.preflight if it.check == "attacher"]
    assert len(said) == (platform == "openshift")
    assert all(("goes by the nodes alone" in it) is (expected == "node-driven") for it in said)


def test_an_openshift_that_shows_nothing_goes_in_the_documented_order() -> None:
    wanted = {"platform": "openshift", "choices": Choices(NodeMethod.PLATFORM)}
    on, off = {GATE: True}, {GATE: False}
    there = planned("enable", wanted={**wanted, "controller_gates": off})
    assert [(it.id, it.after) for it in there.steps] == [
        ("switch-control-plane", ()), ("roll-nodes", ("switch-control-plane",)),
    ]  # fmt: skip
    nodes = [Kubelet(gates=on)] * 3
    back = planned("disable", kubelets=nodes, wanted={**wanted, "controller_gates": on})
    assert [(it.id, it.after) for it in back.steps] == [
        ("roll-nodes", ()), ("switch-control-plane", ("roll-nodes",)),
    ]  # fmt: skip


def test_every_step_says_why_how_it_ends_and_how_it_is_undone() -> None:
    for goal, gates, kubelets in (("enable", {}, (Kubelet(),)), ("disable", ON, BOTH_ON)):
        for step in planned(goal, gates=gates, kubelets=kubelets).steps:
            assert all([step.title, step.why, step.done_when, step.undo])


@pytest.mark.parametrize(("said", "expected"), [(None, {}), (ON, ON), ({"Other": True, **ON}, ON)])
def test_what_a_hidden_control_plane_is_given_can_be_said(
    said: dict[str, bool] | None, expected: dict[str, bool]
) -> None:
    plan = planned("enable", replicas=0, wanted={"controller_gates": said})
    assert plan.control_plane.gates == expected
    assert plan.control_plane.replicas == 0
    assert ("switch-control-plane" in ids(plan)) is not bool(said)


def test_a_hidden_control_plane_redirects_if_a_node_does() -> None:
    plan = planned("enable", replicas=0, kubelets=(Kubelet(gates=ON), Kubelet()))
    assert plan.control_plane.gates == ON
    assert ids(plan) == ["roll-nodes"]


def test_several_plugins_are_switched_together() -> None:
    gce = inventory_of("kubernetes.io/gce-pd")
    assert gce.in_tree
    plan = planned(
        "enable",
        AWS,
        wanted={"plugins": (AWS, "kubernetes.io/gce-pd")},
    )
    assert given_to(step_of(plan, "switch-control-plane")) == {
        GATE: True,
        "CSIMigrationGCE": True,
    }


# Platforms that roll their nodes by themselves


def by_platform(goal: str, adc: AttachController) -> Plan:
    gates = ON if goal == "disable" else {}
    wanted = {
        "platform": "openshift",
        "attach_controller": adc,
        "choices": Choices(NodeMethod.PLATFORM),
    }
    return planned(goal, gates=gates, kubelets=[Kubelet(gates=gates)] * 3, wanted=wanted)


@pytest.mark.parametrize("goal", ["enable", "disable"])
@pytest.mark.exhaustive
def test_where_the_order_is_free_no_step_comes_after_another(goal: str) -> None:
    free = by_platform(goal, AttachController.NODE_DRIVEN)
    assert [(it.id, it.after) for it in free.steps] == [
        ("roll-nodes", ()), ("switch-control-plane", ()),
    ]  # fmt: skip
    back = undo_plan(free, "switch-control-plane")
    assert [(it.id, it.after) for it in back.steps] == [
        ("undo-switch-control-plane", ()), ("undo-roll-nodes", ()),
    ]  # fmt: skip
    # In this order, in the other, and with the controllers amid the nodes.
    assert len(list(courses.courses(free))) == len(list(courses.courses(back))) == 3
    assert free.proof
    assert back.proof
    assert free.proof.safe
    assert back.proof.safe
    # The same orders are not safe with the controllers that others have.
    others = (
        dataclasses.replace(it, attach_controller=AttachController.UPSTREAM)
        for it in courses.courses(free)
    )
    assert any(not verify(it).safe for it in others)


def test_with_other_controllers_the_platform_goes_in_order() -> None:
    plan = by_platform("enable", AttachController.UPSTREAM)
    assert [(it.id, it.after) for it in plan.steps] == [
        ("switch-control-plane", ()), ("roll-nodes", ("switch-control-plane",)),
    ]  # fmt: skip
    assert plan.proof
    assert plan.proof.safe
    (course,) = courses.courses(plan)
    assert course.at_once == 3  # the platform alone knows how many it takes
    assert any(it.check == "platform-drains" for it in plan.preflight)


def test_a_new_openshift_is_given_no_gate_that_it_cannot_switch() -> None:
    wanted = {"platform": "openshift", "choices": Choices(NodeMethod.PLATFORM)}
    plan = planned("enable", volume=False, wanted=wanted)
    assert plan.empty
    switch = step_of(plan, "switch-control-plane")
    assert [set(it.gates) for it in switch.components] == [{"CSIMigrationAWS"}] * 2
