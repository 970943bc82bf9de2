"""Objects as they are stored: classes, workloads with volumes of their own, and what is refused."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replant.errors import TranslationError
from replant.objects import POD_SPEC_PATHS
from replant.translate.manifest import Target, Translated, translate_object
from replant.translate.workloads import InlineDefaults
from tests.translate import strategies

EBS = {"awsElasticBlockStore": {"volumeID": "aws://us-east-1a/vol-1", "fsType": "xfs"}}
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def to_csi(obj: dict[str, Any], **inline: str) -> Translated:
    return translate_object(obj, obj["kind"], Target.CSI, InlineDefaults(**inline))


def workload(kind: str, *volumes: dict[str, Any], namespace: str = "prod") -> dict[str, Any]:
    inner: dict[str, Any] = {"containers": [], "volumes": list(volumes)}
    for step in reversed(POD_SPEC_PATHS[kind]):
        inner = {step: inner}
    return {"kind": kind, "metadata": {"name": "web", "namespace": namespace}, **inner}


def pod_spec(obj: dict[str, Any]) -> dict[str, Any]:
    for step in POD_SPEC_PATHS[obj["kind"]]:
        obj = obj[step]
    return obj


@pytest.mark.parametrize("kind", POD_SPEC_PATHS)
def test_inline_volumes_become_claims_in_every_kind_that_makes_pods(kind: str) -> None:
    scratch = {"name": "scratch", "emptyDir": {}}
    result = to_csi(workload(kind, {"name": "data", **EBS}, scratch))
    pv, claim = result.added
    name = claim["metadata"]["name"]
    assert pod_spec(result.obj)["volumes"] == [
        {"name": "data", "persistentVolumeClaim": {"claimName": name}},
        scratch,
    ]
    assert pv == {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": pv["metadata"]["name"]},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "name": name,
                "namespace": "prod",
            },
            "csi": {
                "driver": "ebs.csi.aws.com",
                "fsType": "xfs",
                "volumeAttributes": {"partition": "0"},
                "volumeHandle": "vol-1",
            },
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "",
            "volumeMode": "Filesystem",
        },
    }
    assert claim == {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "prod"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "",
            "volumeMode": "Filesystem",
            "volumeName": pv["metadata"]["name"],
        },
    }
    assert any("1Gi" in note and "--inline-capacity" in note for note in result.notes)


@settings(deadline=None)
@given(st.sampled_from(strategies.PLUGINS).flatmap(strategies.inline_volumes))
def test_added_names_are_valid_and_always_the_same(volume: dict[str, Any]) -> None:
    first, second = (to_csi(workload("Pod", volume)).added for _ in range(2))
    assert first == second
    for obj in first:
        assert SUBDOMAIN.fullmatch(obj["metadata"]["name"])
        assert len(obj["metadata"]["name"]) <= 63


def test_the_same_disk_has_one_claim_in_a_namespace_and_another_elsewhere() -> None:
    volume = {"name": "data", **EBS}
    here = to_csi(workload("Deployment", volume)).added
    beside = to_csi(workload("Job", {**volume, "name": "other"})).added
    elsewhere = to_csi(workload("Job", volume, namespace="test")).added
    assert here == beside
    assert here[0]["metadata"] != elsewhere[0]["metadata"]


def test_read_only_volumes_stay_read_only() -> None:
    volume = {"name": "data", "portworxVolume": {"volumeID": "px-1", "readOnly": True}}
    result = to_csi(workload("Pod", volume))
    assert pod_spec(result.obj)["volumes"][0]["persistentVolumeClaim"]["readOnly"] is True
    assert result.added[0]["spec"]["accessModes"] == ["ReadOnlyMany"]


def test_a_workload_without_a_namespace_gets_a_claim_without_one() -> None:
    pod = workload("Pod", {"name": "data", **EBS}, namespace="")
    pv, claim = to_csi(pod, namespace="team-a", capacity="20Gi").added
    assert "namespace" not in claim["metadata"]
    assert pv["spec"]["claimRef"]["namespace"] == "team-a"
    assert pv["spec"]["capacity"] == {"storage": "20Gi"}


def test_claim_templates_are_left_alone_and_mentioned() -> None:
    stateful_set = workload("StatefulSet")
    stateful_set["spec"]["volumeClaimTemplates"] = [{"metadata": {"name": "data"}}]
    result = to_csi(stateful_set)
    assert result.obj is stateful_set
    assert "StatefulSet prod/web: volumeClaimTemplates are left alone" in result.notes[0]


@pytest.mark.parametrize("plugin", strategies.PLUGINS)
def test_classes_get_the_driver_as_provisioner(plugin: str) -> None:
    parameters = {"monitors": "m", "adminSecretName": "s"} if plugin.endswith("rbd") else {}
    old = {"kind": "StorageClass", "provisioner": plugin, "parameters": parameters}
    new = to_csi(old).obj
    assert new["provisioner"] == strategies.CSI_SOURCES[plugin][0]


def rbd_pv(secret: dict[str, str], **spec: Any) -> dict[str, Any]:
    source = {"image": "a", "monitors": ["m"], "secretRef": secret}
    return {"kind": "PersistentVolume", "spec": {"rbd": source, **spec}}


def test_stored_secret_references_are_complete() -> None:
    claim = {"namespace": "shop", "name": "data"}
    csi = to_csi(rbd_pv({"name": "ceph"}, claimRef=claim)).obj["spec"]["csi"]
    assert csi["nodeStageSecretRef"] == {"name": "ceph", "namespace": "shop"}
    with pytest.raises(TranslationError, match="says no namespace"):
        to_csi(rbd_pv({"name": "ceph"}))
    assert "nodeStageSecretRef" not in to_csi(rbd_pv({})).obj["spec"]["csi"]
    volume = {"name": "data", "rbd": {"image": "a", "monitors": ["m"]}}
    pv, _ = to_csi(workload("Pod", volume)).added
    assert "nodeStageSecretRef" not in pv["spec"]["csi"]


def test_names_are_cut_between_words() -> None:
    path = "[datastore] " + "folder/" * 9 + "disk.vmdk"
    volume = {"name": "data", "vsphereVolume": {"volumePath": path}}
    pv, _ = to_csi(workload("Pod", volume)).added
    words = pv["metadata"]["name"].split("-")
    assert set(words[2:-3]) == {"folder"}


UNTOUCHED: list[dict[str, Any]] = [
    {"kind": "ConfigMap", "data": {"awsElasticBlockStore": "x"}},
    {"kind": "PersistentVolume", "spec": {"nfs": {"server": "a"}}},
    {"kind": "PersistentVolume", "spec": {"csi": {"driver": "ebs.csi.aws.com"}}},
    {"kind": "PersistentVolume"},
    {"kind": "StorageClass", "provisioner": "ebs.csi.aws.com"},
    {"kind": "StorageClass", "provisioner": "kubernetes.io/no-provisioner"},
    {"kind": "Pod", "spec": {"volumes": [{"name": "a", "emptyDir": {}}]}},
    {"kind": "Deployment"},
    {"kind": "Deployment", "apiVersion": "example.com/v1", "spec": {"template": "mine"}},
]


@pytest.mark.parametrize("obj", UNTOUCHED)
def test_what_needs_no_change_is_the_very_same_object(obj: dict[str, Any]) -> None:
    assert to_csi(obj) == Translated(obj)
    assert to_csi(obj).obj is obj


REFUSED: list[tuple[dict[str, Any], Target, str]] = [
    *(
        ({"kind": "PersistentVolume", "spec": {gone: {}}}, Target.CSI, f"spec.{gone}")
        for gone in (
            "cephfs",
            "flocker",
            "glusterfs",
            "photonPersistentDisk",
            "quobyte",
            "scaleIO",
            "storageos",
        )
    ),
    ({"kind": "StorageClass", "provisioner": "kubernetes.io/quobyte"}, Target.CSI, "provisioner"),
    (workload("Job", {"name": "a", "cephfs": {}}), Target.CSI, "volumes[0].cephfs"),
    ({"kind": "StorageClass", "provisioner": "ebs.csi.aws.com"}, Target.IN_TREE, "provisioner"),
    (
        {
            "kind": "PersistentVolume",
            "spec": {"csi": {"driver": "csi.vsphere.vmware.com", "volumeHandle": "b25278c8"}},
        },
        Target.IN_TREE,
        "spec.vsphereVolume.volumePath",
    ),
]


@pytest.mark.parametrize(("obj", "target", "field"), REFUSED)
def test_what_has_no_twin_is_refused(obj: dict[str, Any], target: Target, field: str) -> None:
    with pytest.raises(TranslationError) as caught:
        translate_object(obj, obj["kind"], target, InlineDefaults())
    assert caught.value.field.endswith(field)


def test_the_way_back_of_an_rbd_volume_names_what_is_missing() -> None:
    csi = {
        "driver": "rbd.csi.ceph.com",
        "volumeHandle": "0001",
        "volumeAttributes": {"imageName": "a"},
    }
    pv = {"kind": "PersistentVolume", "metadata": {"name": "db"}, "spec": {"csi": csi}}
    result = translate_object(pv, "PersistentVolume", Target.IN_TREE, InlineDefaults())
    assert result.obj["spec"]["rbd"]["image"] == "a"
    assert "PersistentVolume db: spec.rbd.monitors" in result.notes[0]
