"""csi-provisioner 5: whose volumes it takes for its own, and when it deletes their disks."""

from __future__ import annotations

import pytest

from replant.sandbox.cluster import Cluster
from replant.sandbox.controllers.provisioner import FINALIZER
from replant.sandbox.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from tests.sandbox.playing import DRIVER, OFF, ON, PROVISIONED_BY, bound_volume, new_cluster, phase

PLUGIN = "kubernetes.io/aws-ebs"
DISK = "vol-0hand"


def cluster_with(
    version: str, gates: dict[str, bool], said: dict[str, str], **spec: object
) -> Cluster:
    cluster = new_cluster(version, gates=gates)
    cluster.cloud.place(DISK)
    cluster.run_driver(DRIVER)
    bound_volume(cluster, "hand", DISK, said, **spec)  # type: ignore[arg-type]
    return cluster


def finalizers(cluster: Cluster) -> list[str]:
    volume = cluster.store.get(PERSISTENT_VOLUMES, "hand")
    return list(volume["metadata"].get("finalizers") or ())


def set_policy(cluster: Cluster, policy: str) -> None:
    volume = cluster.store.get(PERSISTENT_VOLUMES, "hand")
    volume["spec"]["persistentVolumeReclaimPolicy"] = policy
    cluster.store.update(PERSISTENT_VOLUMES, volume)
    cluster.settle()


@pytest.mark.parametrize(
    ("said", "native", "gates", "theirs"),
    [
        ({}, True, OFF, True),
        ({PROVISIONED_BY: DRIVER}, True, OFF, True),
        ({PROVISIONED_BY: "somebody.example.org"}, True, OFF, False),
        ({PROVISIONED_BY: PLUGIN}, False, ON, True),
        ({PROVISIONED_BY: PLUGIN}, False, OFF, False),
        ({}, False, ON, False),
    ],
    ids=["native", "native, its own", "another's", "redirected", "in-tree", "in-tree by hand"],
)
def test_which_volumes_are_its_own(
    said: dict[str, str], native: bool, gates: dict[str, bool], theirs: bool
) -> None:
    cluster = cluster_with(
        "1.24.17", gates, said, native=native, persistentVolumeReclaimPolicy="Delete"
    )
    assert (FINALIZER in finalizers(cluster)) is theirs


@pytest.mark.parametrize("version", ["1.24.17", "1.36.3"])
def test_the_disk_of_a_native_volume_made_by_hand_goes_with_the_claim(version: str) -> None:
    gates = OFF if version == "1.24.17" else {}
    cluster = cluster_with(version, gates, {}, native=True, persistentVolumeReclaimPolicy="Delete")
    cluster.store.delete(PERSISTENT_VOLUME_CLAIMS, "hand", "default")
    cluster.run_for(60)
    assert DISK not in cluster.cloud.disks
    assert phase(cluster, PERSISTENT_VOLUMES, "hand") == "gone"


def test_an_in_tree_volume_made_by_hand_fails_where_there_is_no_plugin() -> None:
    cluster = cluster_with("1.36.3", {}, {}, persistentVolumeReclaimPolicy="Delete")
    cluster.store.delete(PERSISTENT_VOLUME_CLAIMS, "hand", "default")
    cluster.run_for(60)
    assert DISK in cluster.cloud.disks
    assert phase(cluster, PERSISTENT_VOLUMES, "hand") == "Failed"


def test_the_policy_decides_at_any_time() -> None:
    cluster = cluster_with("1.24.17", OFF, {}, native=True)
    assert FINALIZER not in finalizers(cluster)
    set_policy(cluster, "Delete")
    assert FINALIZER in finalizers(cluster)
    set_policy(cluster, "Retain")
    assert FINALIZER not in finalizers(cluster)
    cluster.store.delete(PERSISTENT_VOLUME_CLAIMS, "hand", "default")
    cluster.run_for(60)
    assert DISK in cluster.cloud.disks
    assert phase(cluster, PERSISTENT_VOLUMES, "hand") == "Released"


def test_a_volume_that_is_deleted_before_its_claim_takes_its_disk_along() -> None:
    cluster = cluster_with("1.24.17", OFF, {}, native=True, persistentVolumeReclaimPolicy="Delete")
    cluster.store.delete(PERSISTENT_VOLUMES, "hand")
    cluster.run_for(60)
    assert phase(cluster, PERSISTENT_VOLUMES, "hand") == "Bound"
    cluster.store.delete(PERSISTENT_VOLUME_CLAIMS, "hand", "default")
    cluster.run_for(60)
    assert DISK not in cluster.cloud.disks
    assert phase(cluster, PERSISTENT_VOLUMES, "hand") == "gone"
