"""What complete takes away besides the plugin, and what it makes again."""

from __future__ import annotations

from typing import Any

import pytest

from replant.plan.model import Plan
from tests.inventory.clusters import (
    AWS,
    CONTROLLER,
    EBS,
    Object,
    component,
    pod,
    pv,
    storage_class,
)
from tests.plan.clusters import API_SERVER, SOURCES, Kubelet, ids, planned, step_of, tripped

DISK, FILE = "kubernetes.io/azure-disk", "kubernetes.io/azure-file"
ON = (Kubelet(gates={"CSIMigrationAWS": True}),)
DEFAULT = "storageclass.kubernetes.io/is-default-class"


def completed(*extra: Object, flags: tuple[str, ...] = (), **more: Any) -> Plan:
    more = {"gates": {"CSIMigrationAWS": True}, "kubelets": ON, **more}
    return planned("complete", AWS, *extra, flags=flags, **more)


def removed(plan: Plan) -> dict[str, dict[str, str]]:
    step = step_of(plan, "complete-control-plane")
    return {it.name: it.remove_flags for it in step.components if it.remove_flags}


KEPT_UNTIL_THEN = (
    "--external-cloud-volume-plugin=aws",
    "--cloud-config=/etc/c",
    "--cloud-provider=external",
)


def server(*flags: str) -> Object:
    return component(*flags, component=API_SERVER)


def test_what_was_kept_for_the_plugin_goes_with_it() -> None:
    labels = "--enable-admission-plugins=NodeRestriction,PersistentVolumeLabel"
    plan = completed(
        server("--cloud-provider=aws", "--cloud-config=/etc/c", labels), flags=KEPT_UNTIL_THEN
    )
    assert removed(plan) == {
        CONTROLLER: {"external-cloud-volume-plugin": "aws", "cloud-config": "/etc/c"},
        API_SERVER: {
            "cloud-provider": "aws",
            "cloud-config": "/etc/c",
            "enable-admission-plugins": "PersistentVolumeLabel",
        },
    }
    for it in step_of(plan, "complete-control-plane").components:
        assert it.why


def test_the_controllers_flags_stay_while_they_run_the_cloud() -> None:
    plan = completed(server("--cloud-provider=aws"), flags=("--cloud-provider=aws",))
    assert removed(plan) == {API_SERVER: {"cloud-provider": "aws"}}


def test_another_cloud_s_flags_stay() -> None:
    flags = ("--external-cloud-volume-plugin=vsphere", "--cloud-config=/etc/c")
    assert removed(completed(server("--cloud-provider=vsphere"), flags=flags)) == {}


@pytest.mark.parametrize(
    "user",
    [
        pv("share", **SOURCES[FILE]),
        pod("web", volumes=[{"name": "v", **SOURCES[FILE]}]),
        storage_class("share", FILE),
    ],
    ids=["volume", "pod", "class"],
)
def test_flags_stay_for_a_plugin_of_the_same_cloud(user: Object) -> None:
    flags = ("--external-cloud-volume-plugin=azure", "--cloud-config=/etc/c")
    # A pod's own share has no secretNamespace.
    if user["kind"] == "Pod":
        user["spec"]["volumes"][0]["azureFile"] = {"secretName": "key", "shareName": "share"}
    plan = planned("complete", DISK, user, server="1.24.17", flags=flags)
    assert removed(plan) == {}
    ((_, message),) = tripped(plan.preflight, "cloud-flags")
    assert FILE in message


def test_flags_go_when_both_plugins_of_a_cloud_do() -> None:
    flags = ("--external-cloud-volume-plugin=azure", "--cloud-config=/etc/c")
    plan = planned(
        "complete", DISK, pv("share", **SOURCES[FILE]), server="1.24.17", flags=flags,
        wanted={"plugins": (DISK, FILE)},
    )  # fmt: skip
    assert set(removed(plan)) == {CONTROLLER}


def test_flags_alone_are_a_step_too() -> None:
    plan = planned("complete", server="1.31.1", flags=KEPT_UNTIL_THEN)
    assert ids(plan) == ["complete-control-plane"]
    assert set(removed(plan)) == {CONTROLLER}


WHOLE: Object = {
    "parameters": {"type": "io1", "fsType": "xfs", "iopsPerGB": "10"},
    "allowedTopologies": [
        {"matchLabelExpressions": [
            {"key": "failure-domain.beta.kubernetes.io/zone", "values": ["us-east-1a"]}
        ]}
    ],
    "mountOptions": ["noatime"],
    "reclaimPolicy": "Retain",
    "volumeBindingMode": "WaitForFirstConsumer",
    "allowVolumeExpansion": True,
    "metadata": {
        "labels": {"team": "shop"},
        "annotations": {
            DEFAULT: "true",
            "kubectl.kubernetes.io/last-applied-configuration": "{}",
        },
        "uid": "1", "resourceVersion": "7",
    },
}  # fmt: skip


def test_a_class_is_made_again_whole_under_its_name() -> None:
    plan = completed(storage_class("gp2", **WHOLE), storage_class("other", EBS))
    assert ids(plan) == ["complete-control-plane", "replace-classes"]
    (change,) = step_of(plan, "replace-classes").classes
    for it in (change.before, change.after):
        assert (it["apiVersion"], it["kind"]) == ("storage.k8s.io/v1", "StorageClass")
        assert it["metadata"]["name"] == "gp2"
        assert it["metadata"]["labels"] == {"team": "shop"}
        assert it["metadata"]["annotations"][DEFAULT] == "true"
        assert not {"uid", "resourceVersion"} & it["metadata"].keys()
        for same in ("mountOptions", "reclaimPolicy", "volumeBindingMode", "allowVolumeExpansion"):
            assert it[same] == WHOLE[same]
    assert change.before["provisioner"] == AWS
    assert change.before["parameters"] == WHOLE["parameters"]
    assert change.before["allowedTopologies"] == WHOLE["allowedTopologies"]
    assert change.after["provisioner"] == EBS
    assert change.after["parameters"]["csi.storage.k8s.io/fstype"] == "xfs"
    (term,) = change.after["allowedTopologies"]
    assert term["matchLabelExpressions"] == [
        {"key": "topology.ebs.csi.aws.com/zone", "values": ["us-east-1a"]}
    ]
    assert set(change.after["metadata"]["annotations"]) == {DEFAULT}


def test_a_class_that_cannot_be_translated_is_left_and_named() -> None:
    odd = storage_class(
        "odd", parameters={"zone": "a"}, allowedTopologies=[{"matchLabelExpressions": []}]
    )
    plan = completed(odd)
    assert "replace-classes" not in ids(plan)
    assert any("odd" in check.message for check in plan.blockers)
