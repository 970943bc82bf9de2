"""Two nodes are enough, says docs/proof.md. Here three are searched, and nothing new is found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from replant.proof import Verdict
from replant.proof.orders import API_VERSION, KIND
from replant.proof.search import search
from tests.proof.making import closed

pytestmark = pytest.mark.exhaustive


Step = dict[str, Any]


def control_plane(**gates: bool) -> Step:
    return {"controlPlane": gates}


def nodes(*, drain: bool = True, **gates: bool) -> Step:
    return {"nodes": {"drain": drain, "restartControllers": drain, "gates": gates}}


AWS_ON, AWS_OFF = {"CSIMigrationAWS": True}, {"CSIMigrationAWS": False}
COMPLETE = AWS_ON | {"InTreePluginAWSUnregister": True}
FILE_ON, FILE_OFF = {"CSIMigrationAzureFile": True}, {"CSIMigrationAzureFile": False}

ORDERS: dict[str, tuple[str, dict[str, bool], list[Step]]] = {
    "right": ("aws-ebs", AWS_OFF, [control_plane(**AWS_ON), nodes(**AWS_ON)]),
    "no drain": ("aws-ebs", AWS_OFF, [control_plane(**AWS_ON), nodes(drain=False, **AWS_ON)]),
    "back without a drain": ("aws-ebs", AWS_ON, [nodes(drain=False, **AWS_OFF)]),
    "complete too early": ("aws-ebs", AWS_OFF, [control_plane(**COMPLETE)]),
    "controllers back first": ("aws-ebs", AWS_ON, [control_plane(**AWS_OFF)]),
    "right, never attached": (
        "azure-file", FILE_OFF, [control_plane(**FILE_ON), nodes(**FILE_ON)],
    ),
}  # fmt: skip


def searched(order: str, count: int, *, at_once: int = 1) -> Verdict:
    """The verdict on an order, with so many nodes that are all alike."""
    plugin, gates, steps = ORDERS[order]
    course = closed(
        {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "plugin": plugin,
            "kubernetesVersion": "1.24",
            "from": {"controlPlane": gates, "nodes": gates},
            "steps": steps,
        }
    )
    return search(replace(course, at_once=at_once), (0,) * count)


@pytest.mark.parametrize("order", ORDERS)
def test_a_third_node_adds_states_but_neither_harm_nor_a_shorter_story(order: str) -> None:
    two, three = searched(order, 2), searched(order, 3)
    assert two.states < three.states
    assert (three.bad_state, len(three.story)) == (two.bad_state, len(two.story))


def test_nor_does_it_where_two_nodes_are_cordoned_at_a_time() -> None:
    order = "right, never attached"
    assert searched(order, 2, at_once=2).safe
    assert searched(order, 3, at_once=2).safe
