"""What controllers and kubelets forget when they restart, and what becomes of disks in use."""

from __future__ import annotations

import pytest

from replant.objects import Object
from replant.sandbox.changes import Deletion
from replant.sandbox.cluster import Cluster
from replant.sandbox.resources import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    VOLUME_ATTACHMENTS,
)
from replant.translate import pv_to_csi
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


# The gap between the deletion of an in-tree volume and the native one in its place


def take_volume_away(cluster: Cluster) -> Object:
    volume = cluster.store.get(PERSISTENT_VOLUMES, "data")
    cluster.store.delete(PERSISTENT_VOLUMES, "data")
    gone = cluster.store.get(PERSISTENT_VOLUMES, "data")
    gone["metadata"]["finalizers"] = []
    cluster.store.update(PERSISTENT_VOLUMES, gone)
    cluster.run_for(20)
    assert phase(cluster, PERSISTENT_VOLUMES, "data") == "gone"
    assert phase(cluster, PERSISTENT_VOLUME_CLAIMS, "data") == "Lost"
    return volume


def put_native_volume(cluster: Cluster, volume: Object) -> None:
    native = pv_to_csi(volume)
    kept = ("name", "labels", "annotations")
    native["metadata"] = {k: v for k, v in native["metadata"].items() if k in kept}
    cluster.store.create(PERSISTENT_VOLUMES, native)
    # The claim is looked at again.
    claim = cluster.store.get(PERSISTENT_VOLUME_CLAIMS, "data", "default")
    claim["metadata"]["labels"] = {"touched": "true"}
    cluster.store.update(PERSISTENT_VOLUME_CLAIMS, claim)
    cluster.run_for(60)
    assert phase(cluster, PERSISTENT_VOLUME_CLAIMS, "data") == "Bound"


def in_use(cluster: Cluster) -> list[str]:
    return list(cluster.store.get(NODES, "one")["status"].get("volumesInUse") or ())


def test_a_gap_in_which_nothing_restarts_costs_nothing() -> None:
    cluster = running()
    volume = take_volume_away(cluster)
    cluster.run_for(600)
    assert in_use(cluster)
    put_native_volume(cluster, volume)
    assert cluster.writes.gaps(DISK) == []


@pytest.mark.parametrize("restarts", ["kubelet", "controller"])
def test_a_gap_in_which_one_of_them_restarts_costs_nothing(restarts: str) -> None:
    cluster = running()
    volume = take_volume_away(cluster)
    if restarts == "kubelet":
        cluster.restart_kubelet("one", ON)
        cluster.run_for(10)
        assert in_use(cluster) == []
    else:
        restart_controller(cluster)
        assert in_use(cluster)
    put_native_volume(cluster, volume)
    assert in_use(cluster)
    assert cluster.writes.gaps(DISK) == []


def test_a_gap_in_which_both_restart_costs_the_disk() -> None:
    cluster = running()
    volume = take_volume_away(cluster)
    cluster.restart_kubelet("one", ON)
    restart_controller(cluster)
    cluster.run_for(60)
    (attachment,) = cluster.store.list(VOLUME_ATTACHMENTS)
    assert "deletionTimestamp" in attachment["metadata"]
    # Without a PersistentVolume the attacher cannot tell which disk that is.
    assert cluster.cloud.attached_to(DISK) == "one"
    assert cluster.writes.yanked() == []

    put_native_volume(cluster, volume)
    cluster.run_for(60)  # it tries again ever more seldom
    assert phase(cluster, PODS, "app") == "Running"
    assert cluster.writes.yanked() == [DISK]


def test_a_kubelet_that_restarts_reports_what_it_finds() -> None:
    cluster = running()
    before = in_use(cluster)
    cluster.restart_kubelet("one", ON)
    cluster.run_for(10)
    assert in_use(cluster) == before
