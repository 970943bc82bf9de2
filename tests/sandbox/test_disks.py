"""What a switch costs those whose data it is: a right order a drain, a wrong one the disk."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replant.objects import Object
from replant.sandbox.changes import Deletion
from replant.sandbox.cluster import Cluster
from replant.sandbox.resources import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STATEFUL_SETS,
    STORAGE_CLASSES,
)
from replant.translate import pv_to_csi
from tests.sandbox.playing import (
    DRIVER,
    OFF,
    ON,
    PLUGIN,
    UNREGISTERED,
    new_cluster,
    phase,
)

NODE_NAMES = ("a", "b", "c")
A_DRAIN = timedelta(seconds=30)
"""Longer than ending a pod, detaching, attaching and starting it take together."""


def stateful_set(replicas: int = 2) -> Object:
    labels = {"app": "db"}
    container = {"name": "db", "image": "db"}
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "standard",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    return {
        "metadata": {"name": "db"},
        "spec": {
            "replicas": replicas,
            "serviceName": "db",
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
            "volumeClaimTemplates": [claim],
        },
    }


def running_database(replicas: int = 2, controllers: int = 3) -> Cluster:
    """A StatefulSet that writes, on three nodes that are off, as all else is."""
    cluster = new_cluster(gates=OFF, replicas=controllers)
    cluster.run_driver(DRIVER)
    for name in NODE_NAMES:
        cluster.add_node(name, OFF, drivers=[DRIVER])
    late = {"volumeBindingMode": "WaitForFirstConsumer"}
    cluster.store.create(
        STORAGE_CLASSES, {"metadata": {"name": "standard"}, "provisioner": PLUGIN, **late}
    )
    cluster.store.create(STATEFUL_SETS, stateful_set(replicas), namespace="default")
    assert cluster.run_until(lambda: all_run(cluster, replicas))
    cluster.run_for(60)
    return cluster


def all_run(cluster: Cluster, replicas: int = 2) -> bool:
    return all(phase(cluster, PODS, f"db-{number}") == "Running" for number in range(replicas))


def disks(cluster: Cluster) -> Iterator[str]:
    for volume in cluster.store.list(PERSISTENT_VOLUMES):
        source = volume["spec"].get("csi") or pv_to_csi(volume)["spec"]["csi"]
        yield source["volumeHandle"]


def cordon(cluster: Cluster, name: str, *, cordoned: bool) -> None:
    node = cluster.store.get(NODES, name)
    node["spec"]["unschedulable"] = cordoned
    cluster.store.update(NODES, node)


def drain(cluster: Cluster, name: str) -> None:
    """Cordon a node, delete its pods, and wait until no disk is left on it, in the cloud too."""
    cordon(cluster, name, cordoned=True)
    for pod in cluster.pods_on(name):
        cluster.store.delete(PODS, pod["metadata"]["name"], pod["metadata"]["namespace"])
    assert cluster.run_until(
        lambda: (
            not any(node == name for _disk, node in cluster.cloud.attachments())
            and not cluster.pods_on(name)
        )
    )
    cluster.run_for(5)


def switch_controllers(cluster: Cluster, gates: dict[str, bool]) -> None:
    for number in range(len(cluster.control_plane.replicas)):
        cluster.switch_controller(number, gates)
        cluster.run_for(10)
    assert cluster.control_plane.confirmed(gates)


def switch_node(cluster: Cluster, name: str, gates: dict[str, bool]) -> None:
    drain(cluster, name)
    cluster.restart_kubelet(name, gates)
    cluster.run_for(5)
    cordon(cluster, name, cordoned=False)
    assert cluster.run_until(lambda: all_run(cluster))


def longest_gap(cluster: Cluster) -> timedelta:
    now = cluster.clock.now()
    gaps = [gap for disk in disks(cluster) for gap in cluster.writes.gaps(disk)]
    return max(((gap.end or now) - gap.start for gap in gaps), default=timedelta())


@pytest.mark.parametrize("order", list(permutations(NODE_NAMES)), ids="".join)
def test_a_right_order_costs_no_more_than_its_drains(order: tuple[str, ...]) -> None:
    cluster = running_database()

    switch_controllers(cluster, ON)
    for name in order:
        switch_node(cluster, name, ON)
    switch_controllers(cluster, UNREGISTERED)
    switch_controllers(cluster, ON)
    for name in order:
        switch_node(cluster, name, OFF)
    switch_controllers(cluster, OFF)
    cluster.run_for(600)

    assert all_run(cluster)
    assert cluster.writes.yanked() == []
    assert longest_gap(cluster) <= A_DRAIN


def test_without_a_drain_a_restart_of_the_controller_yanks_the_disk() -> None:
    cluster = running_database(replicas=1)
    (disk,) = disks(cluster)
    switch_controllers(cluster, ON)
    for name in NODE_NAMES:
        cluster.restart_kubelet(name, ON)
    cluster.run_for(120)
    assert cluster.writes.yanked() == []

    switch_controllers(cluster, ON)
    cluster.run_for(60)

    assert cluster.writes.yanked() == [disk]
    assert all_run(cluster, replicas=1), "and nobody sees it"
    written = cluster.writes.count(disk)
    cluster.run_for(3600)
    assert cluster.writes.count(disk) == written, "nobody mends that until the pod goes"


@settings(max_examples=25, deadline=None)
@given(
    data=st.data(),
    steps=st.lists(st.sampled_from(["drain", "restart", "touch", "wait", "kubelet"]), max_size=8),
)
def test_while_the_order_is_right_nothing_that_happens_meanwhile_yanks(
    data: st.DataObject, steps: list[str]
) -> None:
    cluster = running_database()
    switch_controllers(cluster, ON)
    gates = dict.fromkeys(NODE_NAMES, OFF)
    for step in steps:
        name = data.draw(st.sampled_from(NODE_NAMES))
        if step == "drain":
            gates[name] = ON if gates[name] == OFF else OFF
            if gates[name] == OFF:
                # As `replant apply` does: until the controllers restart, an in-tree detach that
                # the driver has overtaken keeps the disk from being attached in-tree.
                switch_controllers(cluster, ON)
            switch_node(cluster, name, gates[name])
        elif step == "restart":
            replica = data.draw(st.integers(0, 2))
            cluster.switch_controller(replica, ON)
        elif step == "kubelet":
            cluster.restart_kubelet(name, gates[name])
        elif step == "touch" and cluster.store.find(PODS, "db-0", "default"):
            pod = cluster.store.get(PODS, "db-0", "default")
            pod["metadata"].setdefault("labels", {})["touched"] = str(cluster.store.version)
            cluster.store.update(PODS, pod)
        else:
            cluster.run_for(data.draw(st.integers(1, 400)))
    assert cluster.run_until(lambda: all_run(cluster))

    assert cluster.writes.yanked() == []
    assert longest_gap(cluster) <= A_DRAIN


@pytest.mark.parametrize("restarted", [False, True], ids=["", "controllers restarted"])
def test_a_volume_is_swapped_for_its_native_twin_under_a_pod_that_writes(restarted: bool) -> None:
    cluster = running_database(replicas=1)
    switch_controllers(cluster, ON)
    for name in NODE_NAMES:
        switch_node_alone(cluster, name)
    pod = cluster.store.get(PODS, "db-0", "default")
    (volume,) = cluster.store.list(PERSISTENT_VOLUMES)
    (disk,) = disks(cluster)
    before = cluster.writes.gaps(disk)
    name = volume["metadata"]["name"]

    cluster.store.delete(PERSISTENT_VOLUMES, name)
    stored = cluster.store.get(PERSISTENT_VOLUMES, name)
    stored["metadata"]["finalizers"] = []
    cluster.store.update(PERSISTENT_VOLUMES, stored)
    cluster.settle()
    assert phase(cluster, PERSISTENT_VOLUME_CLAIMS, "data-db-0") == "Lost"
    if restarted:
        switch_controllers(cluster, ON)
        attached = cluster.store.get(NODES, pod["spec"]["nodeName"])["status"]["volumesAttached"]
        assert [it["name"] for it in attached] == [f"kubernetes.io/csi/{DRIVER}^{disk}"]
    twin = pv_to_csi(volume)
    for said in ("resourceVersion", "uid", "creationTimestamp"):
        twin["metadata"].pop(said)
    cluster.store.create(PERSISTENT_VOLUMES, twin)
    cluster.run_for(15)

    assert phase(cluster, PERSISTENT_VOLUME_CLAIMS, "data-db-0") == "Bound"
    cluster.run_for(600)
    assert cluster.store.get(PODS, "db-0", "default")["metadata"]["uid"] == pod["metadata"]["uid"]
    assert cluster.writes.gaps(disk) == before
    drain(cluster, pod["spec"]["nodeName"])
    assert cluster.run_until(lambda: all_run(cluster, replicas=1))


def switch_node_alone(cluster: Cluster, name: str) -> None:
    drain(cluster, name)
    cluster.restart_kubelet(name, ON)
    cordon(cluster, name, cordoned=False)
    assert cluster.run_until(lambda: all_run(cluster, replicas=1))


def test_a_dead_nodes_disk_is_waited_for_six_minutes() -> None:
    cluster = running_database(replicas=1)
    node = cluster.store.get(PODS, "db-0", "default")["spec"]["nodeName"]
    (disk,) = disks(cluster)
    cluster.kill_node(node)
    cluster.run_for(400)
    stuck = cluster.store.get(PODS, "db-0", "default")
    assert "deletionTimestamp" in stuck["metadata"], "evicted, but nobody lets it go"
    cluster.store.delete(PODS, "db-0", "default", Deletion(grace_period=0))
    cluster.run_for(5 * 60)
    assert cluster.cloud.attached_to(disk) == node

    cluster.run_for(2 * 60)

    assert all_run(cluster, replicas=1)
    assert cluster.cloud.attached_to(disk) not in ("", node)
    assert cluster.writes.yanked() == []


@pytest.mark.parametrize("restarted", [False, True])
def test_a_detach_that_is_overtaken_takes_the_disk_half_an_hour_later(restarted: bool) -> None:
    """As on real Kubernetes: docs/observed.md tells it."""
    cluster = running_database()
    first = cluster.store.get(PODS, "db-0", "default")["spec"]["nodeName"]
    others = [it for it in NODE_NAMES if it != first]
    switch_controllers(cluster, ON)
    for name in (*others, first):
        switch_node(cluster, name, ON)
    if restarted:
        switch_controllers(cluster, ON)
    for name in others:
        cordon(cluster, name, cordoned=True)
    cluster.store.delete(PODS, "db-0", "default")
    assert cluster.run_until(lambda: bool(cluster.pods_on(first)) and all_run(cluster))

    cluster.run_for(30 * 60)
    assert cluster.writes.yanked() == []
    cluster.run_for(10 * 60)

    assert bool(cluster.writes.yanked()) is not restarted
    assert all_run(cluster)
