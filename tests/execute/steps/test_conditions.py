"""Where a disk is in use, and what is said of those nodes at that moment."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from msgspec import convert

from replant.cluster.ports import PODS, VOLUME_ATTACHMENTS
from replant.core.convert.conditions import MET, Conditions
from replant.execute.steps.conditions import (
    FreshState,
    before_create,
    conditions,
    nodes_in_use,
)
from replant.execute.world import CsiNode, Node
from replant.gates.versions import Version
from replant.inventory.controlplane import ControlPlanePod
from tests.core.convert.test_conditions import DISK, PLUGIN
from tests.execute.nodes import Nodes

V = Version(1, 24, 17)
EBS = DISK
UNUSED = replace(DISK, in_use=False)
VOLUMES = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]


def cluster() -> Nodes:
    nodes = Nodes("n1", "n2", "n3")
    for name in ("n1", "n2", "n3"):
        nodes.csi_node(name, lists=PLUGIN)
    return nodes


def using(nodes: Nodes, node: str, phase: str = "Running") -> Nodes:
    nodes.put(
        PODS, "db-0", spec={"nodeName": node, "volumes": VOLUMES}, status={"phase": phase},
        namespace="shop",
    )  # fmt: skip
    return nodes


def attached(nodes: Nodes, node: str) -> Nodes:
    source = {"persistentVolumeName": "pv-1"}
    nodes.put(
        VOLUME_ATTACHMENTS, "csi-1",
        spec={"attacher": DISK.driver, "nodeName": node, "source": source},
    )  # fmt: skip
    return nodes


def test_it_is_where_a_pod_an_attachment_or_a_node_has_it() -> None:
    nodes = attached(using(cluster(), "n1"), "n2")
    nodes.node("n3", volumesInUse=[DISK.in_tree])
    assert nodes_in_use([DISK], nodes.world) == {"pv-1": {"n1", "n2", "n3"}}
    assert nodes_in_use([DISK], using(cluster(), "n1", "Succeeded").world) == {"pv-1": set()}
    nodes = cluster()
    nodes.node("n2", volumesAttached=[{"name": DISK.csi, "devicePath": ""}])
    assert nodes_in_use([DISK, replace(DISK, name="other", csi="", in_tree="")], nodes.world) == {
        "pv-1": {"n2"}, "other": set(),
    }  # fmt: skip


def told(nodes: Nodes, fresh: FreshState, disk: object = DISK) -> Conditions:
    assert disk in (DISK, UNUSED)
    found = DISK if disk is DISK else UNUSED
    return conditions(found, nodes_in_use([found], nodes.world)["pv-1"], nodes.world, fresh)


def test_what_the_server_says_now_counts_more_than_what_watches_have_told() -> None:
    nodes = using(cluster(), "n1")
    assert told(nodes, FreshState(V, ())) == MET
    plain = {"n1": CsiNode()}
    assert "n1 does not redirect" in told(nodes, FreshState(V, (), {}, plain)).broken.lower()
    in_tree = convert({"status": {"volumesAttached": [{"name": DISK.in_tree}]}}, Node)
    assert "in-tree plugin" in told(nodes, FreshState(V, (), {"n1": in_tree})).broken


@pytest.mark.parametrize("redirects", [True, False])
def test_a_node_that_is_gone_is_the_controllers_affair(redirects: bool) -> None:
    nodes = attached(cluster(), "n2")
    replica = ControlPlanePod(
        "kube-controller-manager", "kcm", "m", {"CSIMigrationAWS": redirects}, {}
    )
    found = told(nodes, FreshState(V, (replica,), {"n2": None}))
    assert (found == MET) is redirects


def test_a_disk_that_is_nowhere_must_not_be_attached_in_the_tree_by_any_node() -> None:
    nodes = cluster()
    assert told(nodes, FreshState(V, ())) == MET
    nodes.csi_node("n3")
    assert told(nodes, FreshState(V, ())).broken == f"N3 does not redirect {PLUGIN}."


def test_a_disk_that_must_be_unused_waits_for_whoever_has_it_again() -> None:
    fresh = FreshState(V, ())
    assert told(cluster(), fresh, UNUSED) == MET
    for nodes, who in ((attached(cluster(), "n2"), "n2"), (using(cluster(), ""), "shop/db-0")):
        waits = told(nodes, fresh, UNUSED)
        assert waits.missing == f"PersistentVolume pv-1 to be let go by {who}"


GOING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
STAYING: dict[str, Any] = {}


@pytest.mark.parametrize(
    ("node", "phase", "going", "waits"),
    [
        ("n1", "Running", GOING, True),
        ("n1", "Succeeded", GOING, False),
        ("n2", "Running", GOING, False),
        ("n1", "Running", STAYING, False),
    ],
    ids=["under its pod", "its pod has ended", "on another node", "it stays"],
)
def test_a_volume_is_not_created_while_its_disk_would_be_detached_under_a_pod(
    node: str, phase: str, going: dict[str, Any], waits: bool
) -> None:
    nodes = using(cluster(), "n1", phase)
    source = {"persistentVolumeName": "pv-1"}
    spec = {"nodeName": node, "source": source}
    nodes.put(VOLUME_ATTACHMENTS, "csi-1", spec=spec, **going)
    found = before_create(DISK, nodes.world)
    assert bool(found.detaching) is waits
    if waits:
        assert found.detaching.startswith("pod shop/db-0 to end. The VolumeAttachment csi-1 ")
