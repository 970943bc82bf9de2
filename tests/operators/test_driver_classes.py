"""The operator's classes in a cluster that lives, and what of a cluster it depends on."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from replant.drivers.catalog import DRIVERS
from replant.drivers.classes import CHOSEN, DEFAULT, STOOD_BACK
from replant.drivers.programs import PROGRAMS
from replant.drivers.sameness import HASH
from replant.objects import DEFAULT_CLASS, Object
from tests.definitions import definition
from tests.drivers.test_adoption import workload
from tests.operators.driving import EBS, MANILA, World, cloud, openshift, run
from tests.operators.test_drivers import RESTS, WELL, cr, lived, secret, two_types

BETA = DEFAULT_CLASS[1]
SNAPSHOTS = "snapshot.storage.k8s.io"


def asks(world: World, **spec: Any) -> None:
    world.change("AWSEBSDriver", lambda it: it["spec"].update(spec))


def noted(world: World, name: str) -> dict[str, str]:
    """Of a class, but for the digest of what was wanted."""
    found = world.get("StorageClass", name)["metadata"].get("annotations") or {}
    return {key: it for key, it in found.items() if key != HASH}


def _annotate(wanted: dict[str, str], found: Object) -> None:
    found["metadata"]["annotations"] = {**(found["metadata"].get("annotations") or {}), **wanted}


def test_whether_classes_are_kept_left_or_removed() -> None:
    world = World(openshift())
    operator = lived(world)
    assert world.names("StorageClass") == {"gp2", "gp3-csi", "gp2-csi"}
    asks(world, storageClassState="Unmanaged")
    world.delete("StorageClass", "gp2-csi")
    run(operator.live(60))
    assert world.names("StorageClass") == {"gp2", "gp3-csi"}
    asks(world, storageClassState="Managed")
    run(operator.live(60))
    assert world.names("StorageClass") == {"gp2", "gp3-csi", "gp2-csi"}
    asks(world, storageClassState="Removed", defaultStorageClass="csi")
    run(operator.live(60))
    assert world.names("StorageClass") == {"gp2"}
    assert noted(world, "gp2")[DEFAULT] == "true"
    said = world.conditions("AWSEBSDriver")
    assert (said["Available"], said["Progressing"], said["Degraded"]) == (WELL, RESTS, RESTS)


@pytest.mark.parametrize("chosen", ["true", ""])
def test_a_class_that_was_made_with_other_parameters_is_made_anew(chosen: str) -> None:
    """The API lets nobody change them: somebody has deleted it and made another of it."""
    world = World(openshift())
    operator = lived(world)
    theirs = world.get("StorageClass", "gp3-csi")
    world.delete("StorageClass", "gp3-csi")
    meta = {it: theirs["metadata"][it] for it in ("name", "labels", "annotations")}
    meta["annotations"][DEFAULT] = chosen
    world.create({**theirs, "metadata": meta, "parameters": {"type": "io1"}})
    uid = world.get("StorageClass", "gp3-csi")["metadata"]["uid"]
    run(operator.live(60))
    found = world.get("StorageClass", "gp3-csi")
    assert found["metadata"]["uid"] != uid
    assert found["parameters"] == {"type": "gp3", "encrypted": "true"}
    assert noted(world, "gp3-csi") == {DEFAULT: chosen}
    assert not world.get("AWSEBSDriver")["metadata"].get("annotations")


def test_more_than_one_default_is_a_warning_until_there_is_one() -> None:
    world = World(openshift())
    operator = lived(world)
    world.change("StorageClass", partial(_annotate, {DEFAULT: "true"}), "gp2-csi")
    run(operator.live(60))
    said = world.conditions("AWSEBSDriver")
    message = "more than one StorageClass is the default: gp2, gp2-csi"
    assert said["StorageClassWarning"] == ("True", "MultipleDefaultClasses", message)
    assert (said["Available"], said["Degraded"]) == (WELL, RESTS)
    world.change("StorageClass", partial(_annotate, {DEFAULT: "false"}), "gp2-csi")
    run(operator.live(60))
    assert "StorageClassWarning" not in world.conditions("AWSEBSDriver")


def test_a_default_by_the_older_annotation_stands_back_and_comes_again() -> None:
    world = World(openshift())
    world.change("StorageClass", partial(_annotate, {DEFAULT: "false", BETA: "true"}), "gp2")
    before = noted(world, "gp2")
    operator = lived(world)
    asks(world, defaultStorageClass="csi")
    run(operator.live(60))
    assert noted(world, "gp2") == {**before, BETA: "false", STOOD_BACK: BETA}
    assert noted(world, "gp3-csi") == {DEFAULT: "true", CHOSEN: "csi:true"}
    writes = len(world.writes)
    run(operator.live(600))
    assert [str(it) for it in world.writes[writes:]] == []
    asks(world, defaultStorageClass="in-tree")
    run(operator.live(60))
    assert noted(world, "gp2") == before
    assert noted(world, "gp3-csi") == {DEFAULT: "false", CHOSEN: "in-tree:false"}


# What a cluster serves, and where things are


@pytest.mark.parametrize(
    ("kind", "plural", "version"),
    [
        ("VolumeSnapshotClass", "volumesnapshotclasses", "v1beta1"),
        ("VolumeGroupSnapshotClass", "volumegroupsnapshotclasses", "v1"),
    ],
)
def test_snapshots_are_taken_only_where_their_classes_are_served(
    kind: str, plural: str, version: str
) -> None:
    """The group may be there in an older version, or with other kinds."""
    served = definition(kind, plural, SNAPSHOTS)
    served["spec"]["versions"][0]["name"] = version
    world = World(openshift(), (served,))
    operator = lived(world)
    said = world.conditions("AWSEBSDriver")
    assert (said["Available"], said["Progressing"], said["Degraded"]) == (WELL, RESTS, RESTS)
    assert world.names("StorageClass") == {"gp2", "gp3-csi", "gp2-csi"}
    if kind == "VolumeSnapshotClass":
        now = definition(kind, plural, SNAPSHOTS)["spec"]["versions"]
        old = {**served["spec"]["versions"][0], "storage": False}
        name = f"{plural}.{SNAPSHOTS}"
        world.change(
            "CustomResourceDefinition", lambda it: it["spec"].update(versions=[*now, old]), name
        )
    else:
        world.create(definition("VolumeSnapshotClass", "volumesnapshotclasses", SNAPSHOTS))
    run(operator.live(120))
    assert world.names("VolumeSnapshotClass") == {"aws-ebs-csi"}
    assert world.conditions("AWSEBSDriver")["Available"] == WELL


def test_share_types_are_asked_for_with_the_secret_of_what_was_adopted() -> None:
    manila = DRIVERS[MANILA]
    parts = [
        workload(manila, "Deployment", "manila-ctl", "manila", "csi-provisioner"),
        workload(manila, "DaemonSet", "manila-node", "manila", "node-driver-registrar"),
    ]
    for it in parts:
        del it["metadata"]["uid"]
    csi = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": MANILA},
        "spec": {"attachRequired": False, "podInfoOnMount": False, "fsGroupPolicy": "None"},
    }
    credentials = secret(manila.secret, "manila")
    credentials["data"] = dict.fromkeys(PROGRAMS[MANILA].secret_keys, "")
    place = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "manila"}}
    there = (place, credentials, csi, *({"apiVersion": "apps/v1", **it} for it in parts))
    world = World(cloud("openstack", classes=()), (*there, cr("ManilaDriver", adoption="Adopt")))
    lived(world, keys=(MANILA,), shares=two_types)
    said = world.conditions("ManilaDriver")
    assert (said["Available"], said["Progressing"], said["Degraded"]) == (WELL, RESTS, RESTS)
    assert world.names("DaemonSet") == {"manila-node"}
    for name, share_type in (("csi-manila-default", "default"), ("csi-manila-fast", "fast")):
        parameters = world.get("StorageClass", name)["parameters"]
        assert parameters["type"] == share_type
        assert parameters["csi.storage.k8s.io/provisioner-secret-namespace"] == "manila"


def test_a_driver_of_openshifts_own_operator_is_reported() -> None:
    theirs = {
        "apiVersion": "operator.openshift.io/v1",
        "kind": "ClusterCSIDriver",
        "metadata": {"name": EBS},
        "spec": {"managementState": "Managed"},
        "status": {
            "conditions": [
                {"type": "AWSEBSDriverControllerAvailable", "status": "False", "reason": "R",
                 "message": "no pod"},
                {"type": "AWSEBSProgressing", "status": "False"},
                {"type": "AWSEBSDegraded", "status": "False"},
                {"type": "AWSEBSUpgradeable", "status": "True"},
            ]
        },
    }  # fmt: skip
    world = World(openshift(), (theirs,))
    operator = lived(world)
    message = f"ClusterCSIDriver {EBS} is managed by OpenShift's own operator"
    lacks = ("False", "AWSEBSDriverController_R", "AWSEBSDriverControllerAvailable: no pod")
    assert world.conditions("AWSEBSDriver") == {
        "Available": lacks,
        "Progressing": RESTS,
        "Degraded": RESTS,
        "Upgradeable": WELL,
        "PrereqsSatisfied": ("False", "ManagedByPlatform", message),
    }
    assert world.clusterwide()["Available"] == (
        "False", f"AWSEBSDriver_{lacks[1]}", f"AWSEBSDriverAvailable: {lacks[2]}",
    )  # fmt: skip
    assert not world.all("CSIDriver")
    assert not world.all("DaemonSet")
    world.change("ClusterCSIDriver", lambda it: it["spec"].update(managementState="Unmanaged"), EBS)
    run(operator.live(120))
    assert world.conditions("AWSEBSDriver")["PrereqsSatisfied"][:2] == ("True", "AsExpected")
    assert world.registered(EBS) == world.names("Node")
