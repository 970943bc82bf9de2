"""What an inventory says of nodes."""

from __future__ import annotations

import pytest

from replant.gates.versions import Version
from tests.inventory.clusters import Object, inventory_of, node


def conditions(ready: str) -> Object:
    story = {"reason": "KubeletReady", "message": "told every minute"}
    return {
        "conditions": [
            {"type": "MemoryPressure", "status": "True", **story},
            {"type": "Ready", "status": ready, **story},
        ]
    }


@pytest.mark.parametrize(
    ("status", "ready"),
    [
        (conditions("True"), True),
        (conditions("False"), False),
        (conditions("Unknown"), False),
        ({"conditions": []}, False),
        ({}, False),
    ],
)
def test_a_node_is_ready_when_it_says_so(status: Object, ready: bool) -> None:
    assert inventory_of([node(status=status)]).ready("n1") is ready


def test_of_the_conditions_only_that_one_is_kept() -> None:
    (found,) = inventory_of([node(status=conditions("True"))]).nodes.values()
    assert found.status is not None
    assert [it.type for it in found.status.conditions or ()] == ["Ready"]


def test_a_node_that_takes_no_pods_is_cordoned() -> None:
    inventory = inventory_of([node("a", spec={"unschedulable": True}), node("b", spec={})])
    assert inventory.cordoned("a")
    assert not inventory.cordoned("b")


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("v1.24.17", Version(1, 24, 17)),
        ("v1.27.3-gke.100", Version(1, 27, 3)),
        ("latest", None),
        ("", None),
    ],
)
def test_the_kubelet_s_version(said: str, version: Version | None) -> None:
    status = {"nodeInfo": {"kubeletVersion": said}}
    assert inventory_of([node(status=status)]).kubelet_version("n1") == version


@pytest.mark.parametrize(
    ("role", "controls"), [("control-plane", True), ("master", True), ("worker", False)]
)
def test_the_control_plane_s_nodes_have_its_role(role: str, controls: bool) -> None:
    labels = {f"node-role.kubernetes.io/{role}": ""}
    assert inventory_of([node(labels=labels)]).is_control_plane("n1") is controls


def test_what_is_attached_and_in_use_is_known_by_name() -> None:
    name = "kubernetes.io/aws-ebs/aws://us-east-1a/vol-1"
    (found,) = inventory_of([node(attached=[name], status={"volumesInUse": [name]})]).nodes.values()
    assert found.status is not None
    assert [it.name for it in found.status.volumesAttached or ()] == [name]
    assert found.status.volumesInUse == [name]


def test_nothing_is_said_of_a_node_that_is_not_there() -> None:
    inventory = inventory_of([])
    assert not inventory.ready("gone")
    assert not inventory.cordoned("gone")
    assert not inventory.is_control_plane("gone")
    assert inventory.kubelet_version("gone") is None
