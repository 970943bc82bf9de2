"""Whose attach takes a disk from a pod on a node of the other kind: by plugin and version.

The record (``test_records.py``) has EBS at 1.24.17; the others are read in the sources.
"""

from __future__ import annotations

import pytest

from replant.gates.plugins import LIVES
from replant.sandbox.cluster import Cluster
from replant.sandbox.resources import PERSISTENT_VOLUMES, PODS
from replant.sandbox.sources import in_tree_source
from replant.translate import driver_of
from tests.sandbox.playing import bound_volume, new_cluster, phase, pod_object

ENDS_AFTER = 45
IN_TREE, CSI = "in-tree", "csi"


def successor_on_the_other_kind(plugin: str, version: str, first: str, second: str) -> Cluster:
    """A pod takes its time to end; its successor is bound to another node at once."""
    gate, driver = LIVES[plugin].migration_gate, driver_of(plugin)
    cluster = new_cluster(version, gates={gate: True})
    cluster.run_driver(driver, provisioner=False, resizer=False)
    source, _labels = in_tree_source(plugin, 1, "us-east-1a")
    bound_volume(cluster, "claim", "unused", **{"awsElasticBlockStore": None, **source})
    for node, side in (("first", first), ("second", second)):
        cluster.add_node(node, {gate: side == CSI}, drivers=[driver])
        pod = pod_object(node, "claim", node)
        pod["metadata"]["annotations"] = {"sandbox.replant.dev/ends-after": str(ENDS_AFTER)}
        pod["spec"]["terminationGracePeriodSeconds"] = ENDS_AFTER
        cluster.store.create(PODS, pod)
        if node == "first":
            assert cluster.run_until(lambda: phase(cluster, PODS, "first") == "Running", 30)
            cluster.store.delete(PODS, "first", "default")
    cluster.run_for(ENDS_AFTER - 1)
    assert phase(cluster, PODS, "first") == "Running"
    assert phase(cluster, PERSISTENT_VOLUMES, "claim") == "Bound"
    return cluster


@pytest.mark.parametrize(
    ("plugin", "version", "from_csi", "from_in_tree"),
    [
        ("aws-ebs", "1.17.17", True, False),
        ("aws-ebs", "1.24.17", True, False),
        ("cinder", "1.23.17", True, False),
        ("azure-disk", "1.19.16", True, True),
        ("azure-disk", "1.24.17", True, True),
        ("vsphere-volume", "1.19.15", False, False),
        ("vsphere-volume", "1.19.16", True, False),
        ("vsphere-volume", "1.25.16", True, False),
        ("gce-pd", "1.24.17", False, False),
        ("rbd", "1.24.17", False, False),
    ],
)
def test_a_pod_loses_its_disk_to_its_successor(
    plugin: str, version: str, from_csi: bool, from_in_tree: bool
) -> None:
    """``from_csi``: from a node that redirects the plugin to one that does not."""
    name = f"kubernetes.io/{plugin}"
    for first, second, is_lost in ((CSI, IN_TREE, from_csi), (IN_TREE, CSI, from_in_tree)):
        cluster = successor_on_the_other_kind(name, version, first, second)
        assert bool(cluster.writes.yanked()) is is_lost, (first, second)


@pytest.mark.parametrize("side", [IN_TREE, CSI])
@pytest.mark.parametrize("plugin", ["aws-ebs", "azure-disk", "gce-pd"])
def test_nodes_of_one_kind_keep_their_disks(plugin: str, side: str) -> None:
    cluster = successor_on_the_other_kind(f"kubernetes.io/{plugin}", "1.24.17", side, side)
    assert cluster.writes.yanked() == []
