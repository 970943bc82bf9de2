"""Drivers that run as pods: they serve while these are ready, and no longer."""

from __future__ import annotations

from typing import Any

import pytest

from replant.objects import Object
from replant.sandbox.cluster import Cluster
from replant.sandbox.resources import (
    CSI_DRIVERS,
    CSI_NODES,
    DAEMON_SETS,
    DEPLOYMENTS,
    PERSISTENT_VOLUME_CLAIMS,
    STORAGE_CLASSES,
)
from tests.sandbox.playing import claim_object, new_cluster, phase

DRIVER = "ebs.csi.aws.com"
OTHER = "disk.csi.azure.com"


def pods(name: str, *containers: Object) -> Object:
    labels = {"app": name, "app.kubernetes.io/name": DRIVER}
    template = {"metadata": {"labels": labels}, "spec": {"containers": list(containers)}}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": template},
    }


NODE = pods(
    "ebs-node",
    {
        "name": "node-driver-registrar",
        "image": "csi-node-driver-registrar",
        "args": [f"--kubelet-registration-path=/var/lib/kubelet/plugins/{DRIVER}/csi.sock"],
    },
)
SIDECARS = pods(
    "ebs-controller",
    {"name": "csi-provisioner", "image": "p"},
    {"name": "csi-attacher", "image": "a"},
    {"name": "csi-resizer", "image": "r"},
)


def drivers(cluster: Cluster) -> dict[str, list[str]]:
    return {
        it["metadata"]["name"]: [driver["name"] for driver in it["spec"]["drivers"]]
        for it in cluster.store.list(CSI_NODES)
    }


def rolled_out(**more: Any) -> Cluster:
    cluster = new_cluster()
    cluster.add_node("bare", **more)
    cluster.add_node("other", drivers=[OTHER], **more)
    cluster.store.create(DAEMON_SETS, NODE)
    cluster.run_for(30)
    return cluster


def test_a_daemon_set_brings_a_driver_to_every_node_and_takes_it_away() -> None:
    cluster = rolled_out()
    assert drivers(cluster) == {"bare": [DRIVER], "other": [OTHER, DRIVER]}
    cluster.add_node("late")
    assert drivers(cluster)["late"] == []
    cluster.run_for(30)
    assert drivers(cluster)["late"] == [DRIVER]
    cluster.store.delete(DAEMON_SETS, "ebs-node", "default")
    cluster.run_for(60)
    assert drivers(cluster) == {"bare": [], "other": [OTHER], "late": []}


def test_what_a_node_has_by_itself_stays_when_pods_of_the_same_driver_go() -> None:
    cluster = new_cluster()
    cluster.add_node("n", drivers=[DRIVER])
    cluster.store.create(DAEMON_SETS, NODE)
    cluster.run_for(30)
    cluster.store.delete(DAEMON_SETS, "ebs-node", "default")
    cluster.run_for(60)
    assert drivers(cluster) == {"n": [DRIVER]}


def test_a_new_machine_has_a_driver_only_once_its_pod_runs() -> None:
    cluster = rolled_out()
    new = cluster.replace_node("other", {})
    assert drivers(cluster)[new] == [OTHER]
    cluster.run_for(60)
    assert drivers(cluster)[new] == [OTHER, DRIVER]


@pytest.mark.parametrize("built_in", [False, True])
def test_sidecars_serve_as_long_as_a_pod_has_them(built_in: bool) -> None:
    cluster = rolled_out()
    cluster.store.create(CSI_DRIVERS, {"metadata": {"name": DRIVER}, "spec": {}})
    if built_in:
        cluster.run_driver(DRIVER)
    cluster.store.create(STORAGE_CLASSES, {"metadata": {"name": "s"}, "provisioner": DRIVER})

    def claimed(name: str) -> str:
        claim = {**claim_object(name, storageClassName="s")}
        cluster.store.create(PERSISTENT_VOLUME_CLAIMS, claim)
        cluster.run_for(60)
        return phase(cluster, PERSISTENT_VOLUME_CLAIMS, name)

    assert claimed("before") == ("Bound" if built_in else "Pending")
    cluster.store.create(DEPLOYMENTS, SIDECARS)
    cluster.run_for(60)
    assert claimed("meanwhile") == phase(cluster, PERSISTENT_VOLUME_CLAIMS, "before") == "Bound"
    cluster.store.delete(DEPLOYMENTS, "ebs-controller", "default")
    cluster.run_for(60)
    assert claimed("after") == ("Bound" if built_in else "Pending")
