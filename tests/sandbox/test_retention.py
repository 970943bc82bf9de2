"""What becomes of a StatefulSet's claims when it is scaled down, and when it is deleted."""

from __future__ import annotations

import pytest

from replant.objects import Object
from replant.sandbox.cluster import Cluster
from replant.sandbox.resources import PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS, STORAGE_CLASSES
from tests.sandbox.playing import DRIVER, OFF, new_cluster, phase
from tests.sandbox.test_disks import all_run, stateful_set

AUTO_DELETE = {"StatefulSetAutoDeletePVC": True}
CLAIMS = ("data-db-0", "data-db-1")


def database(version: str, gates: dict[str, bool], scaled: str, deleted: str) -> Cluster:
    cluster = new_cluster(version, gates=gates)
    cluster.run_driver(DRIVER)
    cluster.add_node("node", drivers=[DRIVER])
    cluster.store.create(STORAGE_CLASSES, {"metadata": {"name": "standard"}, "provisioner": DRIVER})
    made = stateful_set()
    made["spec"]["persistentVolumeClaimRetentionPolicy"] = {
        "whenScaled": scaled,
        "whenDeleted": deleted,
    }
    cluster.store.create(STATEFUL_SETS, made, namespace="default")
    assert cluster.run_until(lambda: all_run(cluster))
    return cluster


def change(cluster: Cluster, **spec: object) -> None:
    made = cluster.store.get(STATEFUL_SETS, "db", "default")
    made["spec"] |= spec
    cluster.store.update(STATEFUL_SETS, made)
    cluster.run_for(60)


def there(cluster: Cluster) -> list[str]:
    return [it for it in CLAIMS if phase(cluster, PERSISTENT_VOLUME_CLAIMS, it) != "gone"]


def owners(cluster: Cluster, claim: str) -> list[Object]:
    found = cluster.store.get(PERSISTENT_VOLUME_CLAIMS, claim, "default")
    return list(found["metadata"].get("ownerReferences") or ())


@pytest.mark.parametrize(
    ("version", "gates", "scaled", "kept"),
    [
        ("1.36.3", {}, "Delete", CLAIMS[:1]),
        ("1.36.3", {}, "Retain", CLAIMS),
        ("1.24.17", {**OFF, **AUTO_DELETE}, "Delete", CLAIMS[:1]),
        ("1.24.17", OFF, "Delete", CLAIMS),
    ],
)
def test_scaled_down(
    version: str, gates: dict[str, bool], scaled: str, kept: tuple[str, ...]
) -> None:
    cluster = database(version, gates, scaled, "Retain")
    change(cluster, replicas=1)
    assert phase(cluster, PODS, "db-1") == "gone"
    assert there(cluster) == list(kept)
    assert len(cluster.cloud.disks) == len(kept)


@pytest.mark.parametrize(
    ("scaled", "deleted", "kept"),
    [
        ("Retain", "Delete", ()),
        ("Delete", "Delete", ()),
        ("Delete", "Retain", CLAIMS),
        ("Retain", "Retain", CLAIMS),
    ],
)
def test_deleted(scaled: str, deleted: str, kept: tuple[str, ...]) -> None:
    cluster = database("1.36.3", {}, scaled, deleted)
    cluster.store.delete(STATEFUL_SETS, "db", "default")
    cluster.run_for(120)
    assert phase(cluster, PODS, "db-0") == "gone"
    assert there(cluster) == list(kept)


def test_a_policy_that_is_changed_in_time_keeps_the_claims() -> None:
    cluster = database("1.36.3", {}, "Delete", "Delete")
    assert [it["kind"] for it in owners(cluster, "data-db-1")] == ["StatefulSet"]
    retain = {"whenScaled": "Retain", "whenDeleted": "Retain"}
    change(cluster, persistentVolumeClaimRetentionPolicy=retain)
    assert owners(cluster, "data-db-1") == []
    change(cluster, replicas=0)
    assert there(cluster) == list(CLAIMS)


def test_scaled_up_again_a_pod_waits_for_a_claim_of_its_own() -> None:
    cluster = database("1.36.3", {}, "Delete", "Retain")
    first = cluster.store.get(PERSISTENT_VOLUME_CLAIMS, "data-db-1", "default")["metadata"]["uid"]
    change(cluster, replicas=1)
    change(cluster, replicas=2)
    assert all_run(cluster)
    second = cluster.store.get(PERSISTENT_VOLUME_CLAIMS, "data-db-1", "default")["metadata"]["uid"]
    assert second != first
