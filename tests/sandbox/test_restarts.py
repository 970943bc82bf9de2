"""What controllers and kubelets forget when they restart, and what becomes of disks in use."""

from __future__ import annotations

import pytest

from replant.sandbox.changes import Deletion
from replant.sandbox.cluster import Cluster
from replant.sandbox.resources import NODES, PODS, VOLUME_ATTACHMENTS
from tests.sandbox.playing import DRIVER, ON, bound_volume, new_cluster, phase, pod_object

DISK = "vol-1"


def running(version: str = "1.24.17") -> Cluster:
    """A pod that writes to a disk which the driver has attached; all is on."""
    cluster = new_cluster(version, gates=ON)
    cluster.run_driver(DRIVER)
    for node in ("one", "two"):
        cluster.add_node(node, ON, drivers=[DRIVER])
    bound_volume(cluster, "data", DISK)
    cluster.store.create(PODS, pod_object("app", "data", "one"))
    assert cluster.run_until(lambda: phase(cluster, PODS, "app") == "Running", 30)
    return cluster


def start_with_own_volume(cluster: Cluster, name: str, node: str) -> None:
    pod = pod_object(name, node=node)
    source = {"volumeID": "vol-own", "fsType": "ext4"}
    pod["spec"]["volumes"] = [{"name": "own", "awsElasticBlockStore": source}]
    cluster.store.create(PODS, pod)
    cluster.run_for(30)


def restart_controller(cluster: Cluster) -> None:
    cluster.switch_controller(0, ON)
    cluster.run_for(10)


@pytest.mark.parametrize(
    ("version", "is_detached"),
    [
        ("1.23.17", True),
        ("1.24.3", True),
        ("1.24.8", True),
        # From here on healthy nodes are spared, though the volume is still dropped.
        ("1.24.9", False),
        ("1.24.12", False),
        ("1.25.3", False),
    ],
)
def test_a_controller_that_starts_while_a_driver_is_missing(
    version: str, is_detached: bool
) -> None:
    cluster = running(version)
    cluster.kubelets.register("one", frozenset())
    cluster.run_for(600)
    assert cluster.writes.yanked() == []
    restart_controller(cluster)
    cluster.run_for(345)
    assert cluster.writes.yanked() == []
    cluster.run_for(30)
    assert bool(cluster.writes.yanked()) is is_detached


def test_a_driver_that_is_back_in_time_saves_the_disk() -> None:
    cluster = running("1.24.3")
    cluster.kubelets.register("one", frozenset())
    restart_controller(cluster)
    cluster.run_for(60)
    cluster.kubelets.register("one", frozenset({DRIVER}))
    cluster.run_for(600)
    assert cluster.writes.yanked() == []


def test_the_attachment_of_a_pods_own_volume_is_forgotten() -> None:
    """A controller that is killed between the node's status and the VolumeAttachment's deletion."""
    cluster = running()
    start_with_own_volume(cluster, "first", "one")
    assert phase(cluster, PODS, "first") == "Running"
    cluster.switch_controller(0, ON)
    node = cluster.store.get(NODES, "one")
    attached = node["status"]["volumesAttached"]
    node["status"]["volumesAttached"] = [it for it in attached if "vol-own" not in it["name"]]
    cluster.store.update(NODES, node, "status")
    cluster.store.delete(PODS, "first", "default", Deletion(grace_period=0))
    cluster.run_for(30)
    start_with_own_volume(cluster, "second", "two")
    cluster.run_for(3600)

    assert phase(cluster, PODS, "second") == "Pending"
    assert cluster.cloud.attached_to("vol-own") == "one"
    left = [it["spec"] for it in cluster.store.list(VOLUME_ATTACHMENTS)]
    own = [it["nodeName"] for it in left if "inlineVolumeSpec" in it["source"]]
    assert sorted(own) == ["one", "two"]


def test_a_pods_own_volume_that_the_node_reports_as_attached_is_not_forgotten() -> None:
    cluster = running()
    start_with_own_volume(cluster, "first", "one")
    restart_controller(cluster)
    cluster.store.delete(PODS, "first", "default")
    cluster.run_for(30)
    assert cluster.cloud.attached_to("vol-own") == ""
