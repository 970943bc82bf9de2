"""What holds of every plan: of all plugins, at all versions, to all goals, from any beginning."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replant.errors import Refused
from replant.gates.history import gate_at
from replant.gates.plugins import LIVES
from replant.gates.settings import REVIEW_GATE, problems
from replant.gates.versions import Version
from replant.manifests import yamltext
from replant.plan.courses import off_gate
from replant.plan.model import Plan, RollNodes, SwitchControlPlane
from replant.plan.soundness import problems as unsound
from replant.plan.undo import undo_plan
from tests.inventory.clusters import AWS, CONTROLLER, storage_class
from tests.plan.clusters import Kubelet, planned

pytestmark = pytest.mark.exhaustive


GOALS = ("enable", "disable", "complete")
MINORS = [f"1.{minor}.0" for minor in range(17, 37)]
Given = dict[str, bool]
Gates = dict[str, dict[str, bool]]
"""What each component and each group of nodes is given."""


def starts(plugin: str, version: str) -> Iterator[Given]:
    """Off, on and complete, as far as the version has the gates."""
    at = Version.parse(version)
    gate, off = LIVES[plugin].migration_gate, off_gate(plugin, at)
    spec = gate_at(gate, at)
    switches = [{}] if spec is None or spec.locked else [{gate: False}, {gate: True}]
    yield from switches
    if gate_at(off, at):
        yield {**switches[-1], off: True}


def started(plan: Plan) -> Gates:
    gates = {CONTROLLER: clean(plan.control_plane.gates)}
    return gates | {group.name: clean(group.gates) for group in plan.groups}


def clean(gates: dict[str, bool | None]) -> dict[str, bool]:
    return {gate: on for gate, on in gates.items() if on is not None}


def applied(plan: Plan, gates: Gates, last: str = "") -> Gates:
    """What everybody is given after the steps, each with what it says was there before."""
    now = dict(gates)
    for step in plan.steps:
        if isinstance(step, SwitchControlPlane):
            changes = [(it.name, it) for it in step.components if it.name == CONTROLLER]
        elif isinstance(step, RollNodes):
            changes = [(it.group, it) for it in step.changes]  # type: ignore[misc]
        else:
            changes = []
        for name, change in changes:
            assert {gate: now[name].get(gate) for gate in change.gates} == change.before
            now[name] = clean({**now[name], **change.gates})
        if step.id == last:
            break
    return now


def versions(plan: Plan) -> dict[str, Version]:
    found = {CONTROLLER: plan.control_plane.version}
    found |= {group.name: group.version for group in plan.groups}
    return {name: Version.parse(text) for name, text in found.items()}


def refused_or_sound(goal: str, plugin: str, **cluster: Any) -> Plan | None:
    """What is promised of whatever is asked for."""
    try:
        plan = planned(goal, plugin, storage_class("legacy", plugin), **cluster)
    except Refused:
        return None  # with a sentence: test_refusals has one of each
    assert plan.proof is not None
    assert plan.proof.safe or plan.blockers, plan.proof.story
    assert REVIEW_GATE not in msgspec.json.encode(plan).decode()
    assert list(unsound(plan)) == []
    if not plan.blockers:
        after = applied(plan, started(plan))
        for name, version in versions(plan).items():
            assert problems(version, after[name]) == []
    return plan


def undone_from_everywhere(plan: Plan) -> None:
    for step in plan.steps:
        undo = undo_plan(plan, step.id)
        assert undo.proof is not None
        assert undo.proof.safe or plan.blockers, undo.proof.story
        assert list(unsound(undo)) == []
        there = applied(plan, started(plan), last=step.id)
        assert started(undo) == there
        assert applied(undo, there) == started(plan)
        assert [it.after for it in undo.steps] == [
            (), *((it.id,) for it in undo.steps[:-1])
        ]  # fmt: skip


def changes(plan: Plan) -> list[Any]:
    """What steps do, whatever they are called."""
    words = {"id", "title", "why", "doneWhen", "undo", "after"}
    steps = msgspec.to_builtins(plan)["steps"]
    return [{key: it for key, it in step.items() if key not in words} for step in steps]


@pytest.mark.parametrize("plugin", LIVES)
def test_at_every_version_a_plan_is_refused_or_safe_and_can_be_undone(plugin: str) -> None:
    made = 0
    for version, goal in product(MINORS, GOALS):
        for gates in starts(plugin, version):
            kubelets = (Kubelet(gates=gates),)
            plan = refused_or_sound(
                goal, plugin, server=version, gates=gates, kubelets=kubelets, asked=True
            )
            if plan:
                made += 1
                undone_from_everywhere(plan)
    assert made > 20


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize(
    ("plugin", "version"),
    [(AWS, "1.20.2"), (AWS, "1.24.17"), ("kubernetes.io/azure-file", "1.22.1")],
)
def test_the_same_with_nodes_that_a_disk_can_move_between(
    goal: str, plugin: str, version: str
) -> None:
    gate = LIVES[plugin].migration_gate
    on = {gate: goal != "enable"}
    plan = refused_or_sound(
        goal, plugin, server=version, gates=on, kubelets=(Kubelet(gates=on),) * 2
    )
    assert plan is not None
    assert plan.blockers == ()
    undone_from_everywhere(plan)


def of_aws(version: str) -> list[Given]:
    gates = ("CSIMigrationAWS", off_gate(AWS, Version.parse(version)))
    return [dict(zip(gates, on, strict=True)) for on in product((True, False), repeat=2)]


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.data())
def test_from_any_beginning_no_blocker_means_safe(data: st.DataObject) -> None:
    version = data.draw(st.sampled_from(["1.20.2", "1.22.17"]))
    gates = st.sampled_from(of_aws(version))
    number = data.draw(st.sampled_from([1, 1, 2]))
    plan = refused_or_sound(
        data.draw(st.sampled_from(GOALS)),
        AWS,
        server=version,
        gates=data.draw(gates),
        kubelets=[Kubelet(gates=data.draw(gates)) for _ in range(number)],
        asked=True,
        volume=data.draw(st.booleans()),
    )
    if plan:
        undone_from_everywhere(plan)


PLANS: dict[str, dict[str, Any]] = {
    "enable": {"plugin": "kubernetes.io/gce-pd"},
    "disable": {"gates": {"CSIMigrationAWS": True, "InTreePluginAWSUnregister": True},
                "kubelets": (Kubelet(gates={"CSIMigrationAWS": True}),)},
    "complete": {"server": "1.24.17", "flags": ("--external-cloud-volume-plugin=aws",)},
}  # fmt: skip


@pytest.mark.parametrize("goal", PLANS)
def test_a_plan_is_the_same_after_a_file(goal: str) -> None:
    plan = refused_or_sound(goal, **{"plugin": AWS, "kubelets": (Kubelet(),), **PLANS[goal]})
    assert plan is not None
    assert msgspec.json.decode(msgspec.json.encode(plan), type=Plan) == plan
    text = yamltext.dump(msgspec.to_builtins(plan))
    assert msgspec.convert(yamltext.load(text), Plan) == plan


@pytest.mark.parametrize("goal", PLANS)
def test_the_undo_of_an_undo_does_the_same_again(goal: str) -> None:
    plan = refused_or_sound(goal, **{"plugin": AWS, "kubelets": (Kubelet(),), **PLANS[goal]})
    assert plan is not None
    assert len(plan.steps) > 1
    undo = undo_plan(plan, plan.steps[-1].id)
    again = undo_plan(undo, undo.steps[-1].id)
    assert changes(again) == changes(plan)
    assert changes(undo) != changes(plan)
    assert started(again) == started(plan)
