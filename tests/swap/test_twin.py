"""What a volume is replaced by: all that names it stays, all that the server writes goes."""

from __future__ import annotations

from typing import Any

import pytest

from replant.errors import TranslationError
from replant.swap import twin
from replant.translate import driver_of, plugin_of, plugins
from tests.plan.clusters import SOURCES

STORED: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {
        "name": "data",
        "uid": "old",
        "resourceVersion": "7",
        "creationTimestamp": "2022-01-01T00:00:00Z",
        "labels": {"app": "db"},
        "annotations": {
            twin.PROVISIONED_BY: "kubernetes.io/aws-ebs",
            twin.MIGRATED_TO: "ebs.csi.aws.com",
            twin.LAST_APPLIED: "{}",
            "pv.kubernetes.io/bound-by-controller": "yes",
        },
        "finalizers": [
            "kubernetes.io/pv-protection",
            twin.IN_TREE_FINALIZER,
            "external-attacher/ebs-csi-aws-com",
        ],
        "managedFields": [{"manager": "somebody"}],
    },
    "spec": {
        "capacity": {"storage": "10Gi"},
        "accessModes": ["ReadWriteOnce"],
        "mountOptions": ["noatime"],
        "volumeMode": "Block",
        "storageClassName": "gp2",
        "persistentVolumeReclaimPolicy": "Delete",
        "claimRef": {
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": "data",
            "namespace": "shop", "uid": "claim", "resourceVersion": "5",
        },
        "awsElasticBlockStore": {"volumeID": "aws://us-east-1a/vol-1", "fsType": "xfs"},
    },
    "status": {"phase": "Bound"},
}  # fmt: skip


def test_a_native_twin_is_the_same_volume_for_the_same_claim() -> None:
    made = twin.native(STORED)
    kept = ("capacity", "accessModes", "mountOptions", "volumeMode", "storageClassName")
    assert {it: made["spec"][it] for it in kept} == {it: STORED["spec"][it] for it in kept}
    assert made["spec"]["persistentVolumeReclaimPolicy"] == "Delete"
    claim = {k: v for k, v in STORED["spec"]["claimRef"].items() if k != "resourceVersion"}
    assert made["spec"]["claimRef"] == claim
    assert "awsElasticBlockStore" not in made["spec"]
    assert twin.source(made) == {"driver": "ebs.csi.aws.com", "handle": "vol-1"}
    assert made["metadata"] == {
        "name": "data",
        "labels": {"app": "db"},
        "annotations": {
            twin.PROVISIONED_BY: "ebs.csi.aws.com",
            "pv.kubernetes.io/bound-by-controller": "yes",
        },
        "finalizers": ["kubernetes.io/pv-protection", "external-attacher/ebs-csi-aws-com"],
    }
    assert "status" not in made


@pytest.mark.parametrize("plugin", plugins())
def test_every_plugin_has_a_twin_that_its_driver_deletes(plugin: str) -> None:
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], **SOURCES[plugin]}
    by = {"annotations": {twin.PROVISIONED_BY: plugin}}
    made = twin.native({"metadata": {"name": "it", "uid": "1", **by}, "spec": spec})
    assert twin.is_native(made)
    assert made["metadata"]["annotations"][twin.PROVISIONED_BY] == driver_of(plugin)
    assert twin.source(made)["driver"] == driver_of(plugin)
    assert plugin_of(made) is None


def test_what_nobody_provisioned_nobody_deletes_afterwards() -> None:
    spec = {"capacity": {"storage": "1Gi"}, **SOURCES["kubernetes.io/aws-ebs"]}
    made = twin.native({"metadata": {"name": "it"}, "spec": spec}, {"said": "besides"})
    assert made["metadata"]["annotations"] == {"said": "besides"}


def test_a_secret_without_a_namespace_is_that_of_the_claim() -> None:
    """In memory that passes; an API server refuses to store it."""
    rbd = {"image": "i", "monitors": ["m"], "pool": "p", "secretRef": {"name": "ceph"}}
    ref = {"name": "data", "namespace": "shop", "uid": "1"}
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "claimRef": ref}
    made = twin.native({"metadata": {"name": "it"}, "spec": {**spec, "rbd": rbd}})
    assert made["spec"]["csi"]["nodeStageSecretRef"] == {"name": "ceph", "namespace": "shop"}


def test_what_its_owner_has_changed_since_comes_back_with_a_volume() -> None:
    now = twin.native(STORED)
    now["spec"] |= {
        "capacity": {"storage": "20Gi"},
        "persistentVolumeReclaimPolicy": "Retain",
        "claimRef": {"name": "data", "namespace": "shop", "uid": "another"},
    }
    now["metadata"]["labels"] = {"app": "db", "new": "label"}
    made = twin.restored(STORED, now)
    assert made["spec"]["awsElasticBlockStore"] == STORED["spec"]["awsElasticBlockStore"]
    assert made["spec"]["capacity"] == {"storage": "20Gi"}
    assert made["spec"]["claimRef"]["uid"] == "another"
    assert twin.policy(made) == "Retain"
    assert made["metadata"]["labels"] == {"app": "db", "new": "label"}
    assert twin.restored(STORED, None) == twin.pristine(STORED)


def test_what_has_no_twin_is_refused_by_name() -> None:
    with pytest.raises(TranslationError, match="source"):
        twin.native({"metadata": {"name": "it"}, "spec": {"hostPath": {"path": "/"}}})


def test_a_backup_has_all_but_who_wrote_what() -> None:
    made = twin.backup_of(STORED)
    assert "managedFields" not in made["metadata"]
    assert made["spec"] == STORED["spec"]
    assert made["metadata"]["uid"] == "old"


def test_a_backup_that_is_made_again_forgets_nothing_that_we_have_changed() -> None:
    first = twin.backup_of(STORED)
    held = twin.held(STORED)
    stripped = {"finalizers": ["kubernetes.io/pv-protection", "new"], "deletionTimestamp": "now"}
    held["metadata"] = {**held["metadata"], **stripped}
    again = twin.backup_of(held, first)
    assert twin.policy(again) == "Delete"
    assert again["metadata"]["finalizers"] == [*STORED["metadata"]["finalizers"], "new"]
    other = {**held, "metadata": {**held["metadata"], "uid": "another"}}
    assert twin.policy(twin.backup_of(other, first)) == "Retain"


def test_two_disks_never_have_the_same_source() -> None:
    sources = [{"metadata": {}, "spec": spec} for spec in SOURCES.values()]
    sources.append({"metadata": {}, "spec": {"awsElasticBlockStore": {"volumeID": "vol-2"}}})
    found = [twin.source(it) for it in sources]
    assert all(one != other for n, one in enumerate(found) for other in found[:n])


def test_a_claim_says_who_provides_its_volume_and_says_it_again_afterwards() -> None:
    had = {
        twin.STORAGE_PROVISIONERS[0]: "kubernetes.io/aws-ebs",
        twin.MIGRATED_TO: "ebs.csi.aws.com",
        "mine": "stays",
    }
    claim = {"metadata": {"annotations": had}}
    assert twin.claim_annotations(claim, "ebs.csi.aws.com") == {
        twin.STORAGE_PROVISIONERS[0]: "ebs.csi.aws.com",
        twin.MIGRATED_TO: None,
    }
    assert twin.annotations_again(claim) == {k: v for k, v in had.items() if k != "mine"}
    assert twin.claim_annotations({"metadata": {}}, "ebs.csi.aws.com") == {}
