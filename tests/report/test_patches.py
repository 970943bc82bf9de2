"""What ``-o patch`` gives: manifests that a repository can hold, and nothing that servers write."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from replant.errors import Refused
from replant.inventory.model import Inventory
from replant.plan.classes import AskedClasses, ClassWay
from replant.plan.convert import Asked
from replant.plan.deletion_secrets import DELETION_SECRET
from replant.plan.inline import AskedInline
from replant.plan.repository import repository_changes
from replant.plan.verdicts import Accepted
from replant.report import patches
from tests.inventory.clusters import AWS, EBS, Object, inventory_of, obj, pod, pv, storage_class

REPLACED = AskedClasses(ClassWay.REPLACE)
RBD = "kubernetes.io/rbd"
TWINS = AskedClasses(ClassWay.TWIN, "-csi")
INLINE = AskedInline(convert=True, capacity="20Gi")
DATA = {"name": "data", "awsElasticBlockStore": {"volumeID": "vol-9"}}
MANAGED = {
    "labels": {"argocd.argoproj.io/instance": "db", "team": "db"},
    "annotations": {
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
        "pv.kubernetes.io/bound-by-controller": "yes",
        "argocd.argoproj.io/tracking-id": "x",
        "pv.kubernetes.io/provisioned-by": AWS,
        "note": "kept",
    },
}
CLAIM = {"kind": "PersistentVolumeClaim", "namespace": "shop", "name": "data"}
SPEC: Object = {
    "awsElasticBlockStore": {"volumeID": "vol-1", "fsType": "ext4"},
    "accessModes": ["ReadWriteOnce"],
    "capacity": {"storage": "10Gi"},
    "claimRef": {**CLAIM, "uid": "u", "resourceVersion": "5"},
    "persistentVolumeReclaimPolicy": "Delete",
}


def dump(*objects: Object) -> Inventory:
    """What a file with these has, and nothing else: no node, no version."""
    return inventory_of(objects, server="")


def stream(*objects: Object, **asked: Any) -> tuple[str, list[Object]]:
    text = patches.text(repository_changes(Asked(**asked), dump(*objects)))
    return text, [it for it in yaml.safe_load_all(text) if it is not None]


def deployment(**metadata: Any) -> Object:
    template = {"spec": {"volumes": [{"name": "tmp", "emptyDir": {}}, DATA]}}
    return obj("Deployment", "web", "shop", metadata=metadata, spec={"template": template})


def test_a_volume_is_whole_and_as_a_repository_says_it() -> None:
    text, (found,) = stream(pv("db", metadata=MANAGED, **SPEC))
    assert found["metadata"] == {
        "name": "db",
        "labels": {"team": "db"},
        "annotations": {"note": "kept", "pv.kubernetes.io/provisioned-by": EBS},
    }
    spec = dict(SPEC)
    del spec["awsElasticBlockStore"]
    csi = {"driver": EBS, "fsType": "ext4", "volumeHandle": "vol-1"}
    assert found["spec"].pop("csi").items() >= csi.items()
    assert found["spec"] == {**spec, "claimRef": CLAIM}
    assert "status" not in found
    assert "# In place of PersistentVolume db (kubernetes.io/aws-ebs). Argo CD writes it." in text
    assert "--accept-owners --dry-run=false" in text


def test_classes_are_given_if_they_are_asked_for() -> None:
    default = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
    given = storage_class(parameters={"fsType": "xfs"}, metadata=default)
    assert stream(given)[1] == []
    _, (found,) = stream(given, classes=REPLACED)
    assert (found["metadata"], found["provisioner"]) == ({"name": "gp2", **default}, EBS)
    assert found["parameters"] == {"csi.storage.k8s.io/fstype": "xfs"}
    text, (found,) = stream(given, classes=TWINS)
    assert found["metadata"] == {"name": "gp2-csi"}
    assert "# New, beside StorageClass gp2" in text


def test_a_workload_gets_a_volume_a_claim_and_a_patch() -> None:
    text, (volume, claim, patch) = stream(deployment(), inline=INLINE)
    name = claim["metadata"]["name"]
    assert volume["spec"]["claimRef"]["name"] == name == claim["spec"]["volumeName"]
    assert claim["spec"]["resources"]["requests"]["storage"] == "20Gi"
    assert patch == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "template": {
                "spec": {
                    "volumes": [
                        {
                            "name": "data",
                            "persistentVolumeClaim": {"claimName": name},
                            "awsElasticBlockStore": None,
                        }
                    ]
                }
            }
        },
    }
    assert "# Patch of Deployment shop/web: the volume data becomes a claim." in text


def test_two_that_share_a_disk_share_its_volume() -> None:
    other = deployment()
    other["metadata"] = {"name": "other", "namespace": "shop"}
    _, found = stream(deployment(), other, inline=INLINE)
    kinds = [it["kind"] for it in found]
    assert kinds == ["PersistentVolume", "PersistentVolumeClaim", "Deployment", "Deployment"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (pod("naked", "shop", volumes=[DATA]), "A pod's volumes cannot be changed"),
        (
            obj("Job", "once", "shop", spec={"template": {"spec": {"volumes": [DATA]}}}),
            "A job's template cannot be changed",
        ),
    ],
)
def test_what_cannot_be_patched_says_so(given: Object, said: str) -> None:
    text, (_, _, patch) = stream(given, inline=INLINE)
    assert said in text
    assert patch["kind"] == given["kind"]


def test_what_stays_is_named() -> None:
    odd = pv("odd", azureDisk={"diskName": "d", "diskURI": "u", "kind": "Shared"})
    native = pv("native", csi={"driver": EBS, "volumeHandle": "vol-2"})
    text, found = stream(odd, native, names=("odd", "native"))
    assert found == []
    assert "Stays as it is: PersistentVolume native has no in-tree source." in text
    assert "Stays as it is: PersistentVolume odd: spec.azureDisk.kind: is Shared" in text
    assert "Nothing that was asked for changes." in text
    with pytest.raises(Refused, match="There is no PersistentVolume gone"):
        stream(odd, names=("gone",))


VSPHERE: Object = {"vsphereVolume": {"volumePath": "[ds] d.vmdk"}}


def test_what_a_conversion_refuses_is_not_what_a_repository_has_to_say() -> None:
    going = pv("going", metadata={"deletionTimestamp": "now"}, **SPEC)
    failed = {**pv("failed", **SPEC), "status": {"phase": "Failed"}}
    released = {**pv("released", **SPEC), "status": {"phase": "Released"}}
    kept = {
        **pv("kept", **{**SPEC, "persistentVolumeReclaimPolicy": "Retain"}),
        "status": {"phase": "Released"},
    }
    text, found = stream(going, failed, released, kept, pv("vs", **VSPHERE))
    assert [it["metadata"]["name"] for it in found] == ["kept"]
    said = " ".join(text.replace("\n# ", " ").split())
    assert "PersistentVolume going: It is being deleted" in said
    assert "PersistentVolume failed: Its phase is Failed" in said
    assert "PersistentVolume released: Its claim is gone" in said
    assert "PersistentVolume vs: A native volume of this driver is known by its CNS" in said
    _, found = stream(pv("vs", **VSPHERE), accepted=Accepted(unsuited=True))
    assert [it["metadata"]["name"] for it in found] == ["vs"]


def test_a_workload_with_a_disk_that_its_driver_does_not_cope_with_is_left() -> None:
    web = deployment()
    web["spec"]["template"]["spec"]["volumes"] = [{"name": "data", **VSPHERE}]
    text, found = stream(web, inline=INLINE)
    assert found == []
    assert "Stays as it is: Deployment shop/web: A native volume of this driver" in text
    _, found = stream(web, inline=INLINE, accepted=Accepted(unsuited=True))
    assert len(found) == 3


def test_a_volume_names_the_secret_with_which_it_is_deleted() -> None:
    """As what a conversion leaves does: a tool that is resumed would take it away else."""
    rbd = {"image": "kubernetes-dynamic-pvc-1", "monitors": ["m"], "pool": "p"}
    spec = {"storageClassName": "ceph", "persistentVolumeReclaimPolicy": "Delete"}
    given = {"monitors": "m", "adminSecretName": "admin", "adminSecretNamespace": "ns"}
    volume = pv("db", rbd=rbd, **{**SPEC, "awsElasticBlockStore": None, **spec})
    _, (found,) = stream(volume, storage_class("ceph", RBD, parameters=given))
    assert [found["metadata"]["annotations"][it] for it in DELETION_SECRET] == ["admin", "ns"]
    text, found_ = stream(volume)
    assert found_ == []
    assert "needs a secret" in text


def test_labels_that_stand_in_a_repository_stay_there() -> None:
    labels = {"app.kubernetes.io/instance": "db", "app.kubernetes.io/managed-by": "Helm"}
    text, (found,) = stream(pv("db", metadata={"labels": labels}, **SPEC))
    assert found["metadata"]["labels"] == labels
    assert "Argo CD or Helm writes it." in text


def test_nothing_in_a_name_ends_a_comment() -> None:
    for ending in ("\n", "\u2028", "\x85"):
        text, found = stream(pv(f"db{ending}kind: Secret", **SPEC))
        assert [it["kind"] for it in found] == ["PersistentVolume"]
        assert f"{ending}kind: Secret" not in text


def test_only_what_is_chosen_is_given() -> None:
    zone = {"labels": {"topology.kubernetes.io/zone": "a"}}
    gce = pv("disk", metadata=zone, gcePersistentDisk={"pdName": "disk"})
    both = (pv("db", **SPEC), gce)
    assert [it["metadata"]["name"] for it in stream(*both)[1]] == ["db", "disk"]
    assert [it["metadata"]["name"] for it in stream(*both, plugins=(AWS,))[1]] == ["db"]
    assert [it["metadata"]["name"] for it in stream(*both, namespace="shop")[1]] == ["db"]


def test_classes_of_inline_disks_are_meant_with_them() -> None:
    objects = (deployment(), storage_class("gp2", AWS), storage_class("pd", "kubernetes.io/gce-pd"))
    _, found = stream(*objects, namespace="shop", inline=INLINE, classes=REPLACED)
    classes = [it["metadata"]["name"] for it in found if it["kind"] == "StorageClass"]
    assert classes == ["gp2"]
