"""OpenShift's feature sets turn on six plugins: what that does besides a plan is said."""

from __future__ import annotations

import pytest

from replant.gates.featuresets import CONTROL_PLANE_SET, CUSTOM, NODE_SET
from replant.plan.model import Check, Goal, Weight
from replant.plan.preflight.featuresets import feature_sets
from replant.plan.situation import situation
from tests.inventory.clusters import AWS, Object, csi_node, inventory_of, obj, pv, storage_class
from tests.plan.clusters import SOURCES, objects_of, planned, tripped

VSPHERE = "kubernetes.io/vsphere-volume"
STEPS = planned("enable").steps
DISK, CLASS = pv("vs", **SOURCES[VSPHERE]), storage_class("thin", VSPHERE)
NONE: tuple[str, ...] = ()


def said(
    goal: Goal, *extra: Object, now: str = "", listed: tuple[str, ...] = NONE, server: str
) -> list[tuple[Weight, str]]:
    """What is found of a plan for EBS, with nodes that list these plugins."""
    there = [it for it in objects_of(AWS, server=server) if it["kind"] != "CSINode"]
    there += [csi_node(it, migrated=",".join(listed)) for it in ("n1", "n2")]
    features = obj("FeatureGate", "cluster", spec={"featureSet": now})
    inventory = inventory_of([*there, features, *extra], server=server)
    found: list[Check] = list(feature_sets(goal, situation(inventory, (AWS,)), STEPS))
    return tripped(found, "feature-sets")


@pytest.mark.parametrize("extra", [DISK, CLASS], ids=["volume", "class"])
@pytest.mark.parametrize(
    ("goal", "now", "listed", "weight", "what"),
    [
        (Goal.ENABLE, "", NONE, Weight.WARNING, "turn on"),
        (Goal.ENABLE, CONTROL_PLANE_SET, NONE, Weight.BLOCKER, "turn on"),
        (Goal.DISABLE, NODE_SET, (AWS, VSPHERE), Weight.BLOCKER, "turn off"),
    ],
)
def test_a_plugin_in_use_that_the_plan_leaves_out_is_named(
    goal: Goal, now: str, listed: tuple[str, ...], weight: Weight, what: str, extra: Object
) -> None:
    ((found, message),) = said(goal, extra, now=now, listed=listed, server="1.20.15")
    assert found is weight
    assert f"The feature sets {what} {VSPHERE} as well" in message
    assert f"replant plan {goal} --plugin aws-ebs --plugin vsphere-volume" in message


@pytest.mark.parametrize(
    ("goal", "extra", "now", "listed"),
    [
        (Goal.ENABLE, [], "", NONE),  # nobody uses another one
        (Goal.ENABLE, [DISK], NODE_SET, (AWS, VSPHERE)),  # it is on everywhere
        (Goal.ENABLE, [DISK], CUSTOM, NONE),  # which names gates one by one
        (Goal.DISABLE, [DISK], NODE_SET, (AWS,)),  # it is off everywhere
    ],
)
def test_nothing_is_said_where_nothing_else_is_switched(
    goal: Goal, extra: list[Object], now: str, listed: tuple[str, ...]
) -> None:
    assert said(goal, *extra, now=now, listed=listed, server="1.20.15") == []


def test_what_a_downgrade_would_turn_on_has_to_be_enabled_before() -> None:
    found = said(Goal.DOWNGRADE, DISK, now="", listed=(AWS,), server="1.23.17")
    ((weight, message),) = found
    assert weight is Weight.WARNING
    assert f"turn on {VSPHERE} as well" in message
    assert "does not redirect everywhere yet. First: replant plan enable" in message


@pytest.mark.parametrize(
    ("now", "message"),
    [
        ("", "CSIMigrationAWS is on by default, and there is no set to take away."),
        (NODE_SET, "off only where the release gives it as off by itself"),
    ],
)
def test_what_is_on_by_default_may_stay_on(now: str, message: str) -> None:
    ((weight, found),) = said(Goal.DISABLE, now=now, listed=(AWS,), server="1.23.17")
    assert weight is Weight.WARNING
    assert message in found
    assert said(Goal.DISABLE, now=now, listed=(AWS,), server="1.20.15") == []
