"""Down to an older version where the platform takes the control plane first."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from replant.errors import Refused
from replant.gates.versions import Version
from replant.plan import courses
from replant.plan.compose import Choices
from replant.plan.make import Wanted, make_plan
from replant.plan.model import Goal, NodeMethod, Plan
from replant.plan.soundness import problems
from replant.plan.undo import undo_plan
from replant.routing import AttachController
from tests.inventory.clusters import AWS
from tests.plan.clusters import Kubelet, given_to, ids, inventory_of, planned, step_of

GATE = "CSIMigrationAWS"
UPSTREAM, NODE_DRIVEN = AttachController.UPSTREAM, AttachController.NODE_DRIVEN


def down(
    adc: AttachController, server: str = "1.23.17", to: str = "1.22", plugin: str = AWS
) -> Plan:
    wanted = {
        "platform": "openshift",
        "attach_controller": adc,
        "to": Version.parse(to),
        "choices": Choices(NodeMethod.PLATFORM),
    }
    return planned("downgrade", plugin, server=server, wanted=wanted)


def outlook(plan: Plan) -> str:
    (found,) = (it.message for it in plan.preflight if it.check == "downgrade")
    return found


def test_controllers_that_would_go_back_first_are_given_the_gates_by_name() -> None:
    plan = down(UPSTREAM)
    assert [(it.id, it.after) for it in plan.steps] == [
        ("keep-control-plane", ()), ("keep-nodes", ("keep-control-plane",)),
        ("downgrade", ("keep-nodes",)),
    ]  # fmt: skip
    keep, nodes, downgrade = (step_of(plan, it) for it in ids(plan))
    assert given_to(keep) == given_to(keep, "kube-scheduler") == {GATE: True}
    assert [it.before for it in (*keep.components, *nodes.changes)] == [{GATE: None}] * 3
    assert keep.by_name
    assert nodes.by_name
    assert (downgrade.version, downgrade.before) == ("1.22", "1.23")
    assert downgrade.restart_controllers_seconds == 0  # no volume changes sides
    assert "it is told to before, so that all stays redirected" in outlook(plan)
    assert plan.proof
    assert plan.proof.safe
    assert not plan.blockers
    assert list(problems(plan)) == []
    # Without them the proof finds what the document warns of.
    bare = courses.proved(replace(plan, steps=(replace(downgrade, after=()),)))
    assert (bare.safe, bare.bad_state) == (False, "unservable")


def test_from_anywhere_on_the_way_down_there_is_a_safe_way_back() -> None:
    plan = down(UPSTREAM)
    ways = [undo_plan(plan, last) for last in ids(plan)]
    assert [ids(it) for it in ways] == [
        ["undo-keep-control-plane"],
        ["undo-keep-nodes", "undo-keep-control-plane"],
        ["undo-downgrade", "undo-keep-nodes", "undo-keep-control-plane"],
    ]
    assert all(it.proof and it.proof.safe for it in ways)
    assert step_of(ways[2], "undo-downgrade").version == "1.23"
    assert (ways[2].control_plane.version, ways[2].groups[0].version) == ("1.22", "1.22")


def test_controllers_that_ask_the_node_may_go_down_first() -> None:
    plan = down(NODE_DRIVEN)
    assert ids(plan) == ["downgrade"]
    assert "the control plane may safely go down before them" in outlook(plan)
    assert plan.proof
    assert plan.proof.safe
    # EBS volumes change sides on the way: nobody may lead for long who could wait for a detach.
    downgrade = step_of(plan, "downgrade")
    assert downgrade.restart_controllers_seconds == 20 * 60
    careless = replace(downgrade, restart_controllers_seconds=0)
    assert courses.proved(replace(plan, steps=(careless,))).bad_state == "yanked"


@pytest.mark.parametrize("adc", list(AttachController))
def test_where_both_versions_redirect_nothing_has_to_be_kept(adc: AttachController) -> None:
    plan = down(adc, server="1.24.17", to="1.23")
    assert ids(plan) == ["downgrade"]
    assert "redirects the same plugins" in outlook(plan)
    assert plan.proof
    assert plan.proof.safe


def test_gates_that_are_given_already_are_taken_along() -> None:
    wanted = {"to": Version(1, 21), "choices": Choices(NodeMethod.PLATFORM)}
    on = {GATE: True}
    asked: dict[str, Any] = {"goal": Goal.DOWNGRADE, "plugins": (AWS,), **wanted}
    kubelets = (Kubelet(gates=on), Kubelet(gates=on))
    plan = make_plan(Wanted(**asked), inventory_of(gates=on, kubelets=kubelets, asked=True))
    assert ids(plan) == ["downgrade"]
    assert plan.proof
    assert plan.proof.safe


@pytest.mark.parametrize(
    ("server", "to", "method", "why"),
    [
        ("1.23.17", "1.22", NodeMethod.IN_PLACE, "Elsewhere take nodes down first"),
        ("1.23.17", "1.23.4", NodeMethod.PLATFORM, "1.23 is no version to go down to from 1.23"),
        ("1.23.17", "1.24", NodeMethod.PLATFORM, "1.24 is no version to go down to"),
        ("1.23.17", "1.16", NodeMethod.PLATFORM, "at least 1.17"),
    ],
)
def test_what_cannot_be_is_refused(server: str, to: str, method: NodeMethod, why: str) -> None:
    wanted = {"to": Version.parse(to), "choices": Choices(method)}
    with pytest.raises(Refused, match=why):
        planned("downgrade", server=server, wanted=wanted)
