"""Every statement of the facts about a driver's life, with exact conditions and reasons."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replant import __version__
from replant.drivers.catalog import Cloud, Driver
from replant.drivers.conditions import TYPES
from replant.drivers.decisions import FINALIZER, WAIT, decide
from replant.drivers.kinds import KINDS, key_of
from replant.drivers.sameness import HASH
from replant.drivers.seen import Look
from replant.drivers.writes import Apply, Create, Delete, Replace, Status
from replant.objects import Object
from tests.drivers.world import (
    EBS,
    INSTALLED,
    MANILA,
    PORTWORX,
    VSPHERE,
    Killed,
    World,
    provision,
    shipped,
)

WELL = {
    "Available": ("True", "AsExpected"),
    "Progressing": ("False", "AsExpected"),
    "Degraded": ("False", "AsExpected"),
    "Upgradeable": ("True", "AsExpected"),
    "PrereqsSatisfied": ("True", "AsExpected"),
}
each = pytest.mark.parametrize("driver", INSTALLED, ids=lambda it: it.backend)


def four(world: World) -> dict[str, tuple[str, str]]:
    return {key: it for key, it in world.conditions().items() if key in WELL}


def workload(kind: str, world: World) -> Object:
    (found,) = (it for it in world.objects.values() if it["kind"] == kind)
    return found


# Installing


@each
@pytest.mark.parametrize("openshift", [True, False])
def test_a_driver_is_installed_and_then_left_alone(driver: Driver, openshift: bool) -> None:
    world = World(driver, openshift=openshift)
    if not driver.default:
        world.ask()
    if not openshift:
        world.secret()
    world.settle(provision(world))
    assert four(world) == WELL
    assert world.cr["status"]["version"] == __version__
    assert world.cr["status"]["readyReplicas"] == 2
    generations = world.cr["status"]["generations"]
    assert [it["resource"] for it in generations] == ["deployments", "daemonsets"]
    assert all(it["lastGeneration"] == 1 and it["hash"] for it in generations)
    world.now += 86_400
    assert world.decide().writes == ()
    assert ("CredentialsRequest" in world.kinds()) == openshift
    assert ("VolumeSnapshotClass" in world.kinds()) == openshift


@each
def test_a_kill_between_any_two_writes_changes_nothing_in_the_end(driver: Driver) -> None:
    whole = World(driver).secret().ask()
    whole.settle()
    expected = {key: _content(it) for key, it in whole.objects.items()}
    for kill in range(0, len(whole.writes), 5):
        world = World(driver).secret().ask()
        world.kill_after = kill
        with pytest.raises(Killed):
            world.settle()
        world.kill_after = None
        world.settle()
        assert {key: _content(it) for key, it in world.objects.items()} == expected


def _content(obj: Object) -> Object:
    metadata = {
        key: it
        for key, it in obj["metadata"].items()
        if key not in ("uid", "resourceVersion", "generation")
    }
    metadata.get("annotations", {}).pop(HASH, None)  # follows from the rest, and the secret's uid
    content = {**obj, "metadata": metadata}
    content.pop("status", None)
    if obj["kind"] in ("Deployment", "DaemonSet"):
        content["spec"]["template"]["metadata"].pop("annotations", None)
    return content


def test_a_default_driver_gets_a_cr_and_an_optional_one_is_waited_for() -> None:
    (write,) = World(EBS).decide().writes
    assert isinstance(write, Create)
    assert (write.object["kind"], write.object["metadata"]) == ("AWSEBSDriver", {"name": "cluster"})
    assert World(VSPHERE).decide().writes == ()
    assert World(EBS, cloud=Cloud.GCP).decide().writes == ()
    assert World(EBS, cloud=None).decide().writes == ()


def test_a_users_cr_is_never_overwritten() -> None:
    world = World(EBS).secret().ask(logLevel="Trace", mine="stays")
    world.settle()
    assert world.cr["spec"]["mine"] == "stays"
    assert world.cr["spec"]["logLevel"] == "Trace"
    assert "--v=6" in str(workload("Deployment", world))


def test_changed_log_levels_roll_out() -> None:
    world = World(EBS).secret().ask()
    world.settle()
    world.rolls_out = False
    world.ask(logLevel="Debug")
    world.now += 60
    world.settle()
    assert four(world) | {"Progressing": ("False", "AsExpected")} == WELL
    assert four(world)["Progressing"] == (
        "True", "DriverController_Deploying::DriverNode_Deploying",
    )  # fmt: skip
    lines = world.message("Progressing").splitlines()
    assert lines[0].startswith("DriverControllerProgressing: Deployment openshift-aws-ebs")
    world.rolls_out = True
    world.settle()
    assert four(world) == WELL


@pytest.mark.parametrize("openshift", [True, False])
def test_without_a_secret_there_is_only_what_asks_for_one(openshift: bool) -> None:
    world = World(EBS, openshift=openshift).ask()
    decision = world.settle()
    made = ["CSIDriver", "CredentialsRequest", "Namespace", "Storage"]
    assert world.kinds() == (made if openshift else ["CSIDriver", "Namespace"])
    assert four(world) == {
        "Available": ("False", "WaitingForCredentials"),
        "Progressing": ("True", "WaitingForCredentials"),
        "Degraded": ("False", "AsExpected"),
        "Upgradeable": ("True", "AsExpected"),
    }
    waits = world.message("Progressing")
    if openshift:
        assert waits == (
            "CredentialsRequest openshift-cloud-credential-operator/openshift-aws-ebs-csi-driver "
            "is not provisioned yet: the cloud-credential-operator makes Secret "
            "openshift-aws-ebs-csi-driver/ebs-cloud-credentials"
        )
    else:
        assert waits == (
            "Secret openshift-aws-ebs-csi-driver/ebs-cloud-credentials is not there; make it with "
            "the rights that docs/drivers.md names"
        )
    assert decision.again == WAIT


def test_a_request_for_credentials() -> None:
    world = World(EBS, openshift=True).ask()
    world.settle()
    request = world.objects[
        "CredentialsRequest", "openshift-cloud-credential-operator", "openshift-aws-ebs-csi-driver"
    ]["spec"]
    assert request["secretRef"] == {
        "name": "ebs-cloud-credentials",
        "namespace": "openshift-aws-ebs-csi-driver",
    }
    assert request["serviceAccountNames"] == ["aws-ebs-csi-driver-controller-sa"]
    assert request["providerSpec"]["kind"] == "AWSProviderSpec"


def test_provisioned_is_not_enough_without_the_secret() -> None:
    world = World(EBS, openshift=True).ask()
    world.settle()
    (request,) = (it for it in world.objects.values() if it["kind"] == "CredentialsRequest")
    world.put({**request, "status": {"provisioned": True}})
    world.settle()
    assert world.message("Progressing").endswith("ebs-cloud-credentials is not there")
    assert "Deployment" not in world.kinds()


def test_rights_of_the_machine_are_not_waited_for() -> None:
    world = World(EBS, openshift=True).ask(credentials="Node")
    world.settle()
    assert four(world) == WELL
    assert "CredentialsRequest" not in world.kinds()


def test_changed_credentials_roll_out() -> None:
    world = World(EBS).secret().ask()
    world.settle()
    before = {kind: workload(kind, world)["spec"] for kind in ("Deployment", "DaemonSet")}
    world.secret()
    world.settle()
    # EBS's pods on nodes have no credentials: they are left in peace.
    assert workload("DaemonSet", world)["spec"] == before.pop("DaemonSet")
    for kind, spec in before.items():
        now = workload(kind, world)["spec"]
        assert (
            now["template"]["metadata"]["annotations"]
            != spec["template"]["metadata"]["annotations"]
        )
        assert now["template"]["spec"] == spec["template"]["spec"]


@pytest.mark.parametrize(
    ("driver", "keys", "lacks"),
    [
        # OpenShift makes it in a format of its own, which this driver does not read.
        (VSPHERE, ["vcenter.username"], "csi-vsphere.conf"),
        (
            MANILA,
            ["clouds.yaml"],
            "os-authURL, os-region, os-userName, os-password, os-projectName",
        ),
        (VSPHERE, ["csi-vsphere.conf", "more"], ""),
        (EBS, ["credentials"], ""),
    ],
)
def test_a_secret_that_a_driver_could_not_start_with(
    driver: Driver, keys: list[str], lacks: str
) -> None:
    world = World(driver).secret().ask()
    secret = world.objects["Secret", driver.namespace, driver.secret]
    world.put({**secret, "data": dict.fromkeys(keys, "")})
    world.settle()
    assert ("Deployment" in world.kinds()) == (not lacks)
    if lacks:
        place = f"Secret {driver.namespace}/{driver.secret}"
        assert world.message("Progressing") == (
            f"{place} has no {lacks}: add what docs/drivers.md names"
        )
        assert four(world)["Available"] == ("False", "WaitingForCredentials")


def test_a_secret_that_vanishes_stops_nothing() -> None:
    world = World(EBS).secret().ask()
    world.settle()
    pods = workload("Deployment", world)["spec"]
    del world.objects["Secret", EBS.namespace, EBS.secret]
    world.settle()
    assert workload("Deployment", world)["spec"] == pods
    assert world.conditions()["CredentialsDegraded"] == ("True", "CredentialsMissing")
    assert four(world) | {"Degraded": ("False", "AsExpected")} == WELL
    assert four(world)["Degraded"] == ("True", "Credentials_CredentialsMissing")


def test_drift_is_put_back() -> None:
    world = World(EBS, openshift=True).ask()
    world.settle(provision(world))
    others = (*world.objects,)
    for key in others:
        if key[0] in ("Storage", "Secret", EBS.kind):
            continue
        changed = {**world.objects[key]}
        world.put({**changed, "metadata": {**changed["metadata"], "annotations": {}}})
        world.writes.clear()
        world.settle(provision(world))
        assert {type(it) for it in world.writes if not isinstance(it, Status)} <= {Apply, Replace}
        del world.objects[key]
        world.settle(provision(world))
        assert key in world.objects
        assert four(world) == WELL


def test_what_cannot_be_changed_of_a_csidriver_is_made_anew() -> None:
    world = World(EBS).secret().ask()
    world.settle()
    found = world.objects["CSIDriver", "", EBS.name]
    world.put({**found, "spec": {**found["spec"], "fsGroupPolicy": "None"}})
    world.writes.clear()
    world.settle()
    assert [type(it) for it in world.writes] == [Delete, Apply]
    assert world.objects["CSIDriver", "", EBS.name]["spec"]["fsGroupPolicy"] == "File"


def test_what_is_being_deleted_is_made_anew_once_it_is_gone() -> None:
    world = World(EBS).secret().ask()
    world.settle()
    key = ("ServiceAccount", EBS.namespace, "aws-ebs-csi-driver-node-sa")
    found = world.objects[key]
    world.put({**found, "metadata": {**found["metadata"], "finalizers": ["x/y"]}})
    world.delete(key)
    decision = world.decide()
    assert (decision.writes, decision.again) == ((), WAIT)
    del world.objects[key]
    world.settle()
    assert "deletionTimestamp" not in world.objects[key]["metadata"]


def test_one_node_alone() -> None:
    world = World(EBS, nodes=1).secret().ask()
    world.settle()
    assert workload("Deployment", world)["spec"]["replicas"] == 1
    assert "PodDisruptionBudget" not in world.kinds()
    world = World(EBS, openshift=True).ask()
    world.seen.infrastructure["status"]["infrastructureTopology"] = "SingleReplica"  # type: ignore[index]
    world.settle(provision(world))
    assert workload("Deployment", world)["spec"]["replicas"] == 1
    assert World(EBS).secret().ask(replicas=3).settle().writes == ()


# How far a rollout is


def test_nodes_that_come_and_go_make_nothing_progress() -> None:
    world = World(EBS).secret().ask()
    world.settle()
    world.rolls_out = False
    nodes = workload("DaemonSet", world)["status"]
    for desired, available in ((5000, 4000), (5001, 4999), (1, 0), (5000, 5000)):
        nodes |= {"desiredNumberScheduled": desired, "numberAvailable": available}
        nodes["updatedNumberScheduled"] = available
        said = world.decide().writes
        assert all(isinstance(it, Status) for it in said)
        assert bool(said) == (available == 0)


@pytest.mark.parametrize(
    ("desired", "updated", "available", "progressing"),
    [
        (5000, 5000, 5000, "False"),
        (5000, 4500, 4500, "False"),
        (5000, 4499, 5000, "True"),
        (5000, 5000, 4499, "True"),
        (3, 3, 2, "True"),
        (0, 0, 0, "False"),
    ],
)
def test_a_rollout_is_over_when_as_many_are_away_as_it_may_take(
    desired: int, updated: int, available: int, progressing: str
) -> None:
    world = World(EBS).secret().ask()
    world.rolls_out = False
    world.settle()
    workload("DaemonSet", world)["status"] = {
        "observedGeneration": 1,
        "desiredNumberScheduled": desired,
        "updatedNumberScheduled": updated,
        "numberAvailable": available,
    }
    world.settle()
    assert world.conditions()["DriverNodeProgressing"][0] == progressing
    assert world.conditions()["DriverNodeAvailable"][0] == "True"


def test_a_status_that_is_about_an_older_generation_is_not_trusted() -> None:
    world = World(EBS).secret().ask()
    world.settle()
    world.rolls_out = False
    world.ask(logLevel="Debug").settle()
    for kind in ("Deployment", "DaemonSet"):
        assert workload(kind, world)["status"]["observedGeneration"] == 1
    assert world.conditions()["Progressing"][0] == "True"


def test_controllers_that_do_not_get_on() -> None:
    world = World(EBS).secret().ask()
    world.rolls_out = False
    world.settle()
    assert four(world)["Available"] == ("False", "DriverController_Deploying::DriverNode_Deploying")
    workload("Deployment", world)["status"] = {
        "observedGeneration": 1,
        "conditions": [
            {"type": "Progressing", "reason": "ProgressDeadlineExceeded", "message": "too long"}
        ],
    }
    world.settle()
    assert four(world)["Degraded"] == ("True", "DriverController_ProgressDeadlineExceeded")
    assert world.message("Degraded").endswith("aws-ebs-csi-driver-controller: too long")


# Hands off


@each
def test_unmanaged_means_hands_off(driver: Driver) -> None:
    world = World(driver).secret().ask()
    world.settle()
    for key in list(world.objects):
        if key[0] in ("Deployment", "StorageClass"):
            del world.objects[key]
    world.writes.clear()
    world.ask(managementState="Unmanaged").settle()
    assert [type(it) for it in world.writes] == [Status]
    assert world.conditions() == dict.fromkeys(TYPES, ("Unknown", "Unmanaged"))
    assert "Deployment" not in world.kinds()
    world.ask(managementState="Managed").settle()
    assert four(world) == WELL


def test_a_wrong_setting_changes_nothing() -> None:
    world = World(EBS).secret().ask()
    world.settle()
    before = workload("Deployment", world)
    world.ask(logLevel="Loud").settle()
    assert workload("Deployment", world) == before
    assert four(world)["Degraded"] == ("True", "InvalidSettings")
    assert world.message("Degraded").startswith("AWSEBSDriver cluster: spec.logLevel is 'Loud'")


def test_a_driver_of_another_cloud() -> None:
    world = World(EBS, cloud=Cloud.GCP).secret().ask()
    world.settle()
    assert world.kinds() == ["Secret"]
    assert four(world)["Degraded"] == ("True", "OtherCloud")
    assert four(world)["PrereqsSatisfied"] == ("False", "OtherCloud")
    # Somebody who asks for one in a cluster that says nothing of its cloud gets it.
    world = World(EBS, cloud=None).secret().ask()
    world.settle()
    assert four(world) == WELL


def test_openshifts_own_operator_is_reported_and_not_fought() -> None:
    conditions = [
        {
            "type": "AWSEBSDriverControllerAvailable",
            "status": "False",
            "reason": "R",
            "message": "m",
        },
        {"type": "AWSEBSDriverProgressing", "status": "False"},
        {"type": "AWSEBSDriverDegraded", "status": "False"},
        {"type": "AWSEBSDriverUpgradeable", "status": "True"},
    ]
    theirs: Object = {
        "kind": "ClusterCSIDriver",
        "metadata": {"name": EBS.name},
        "spec": {"managementState": "Managed"},
        "status": {"conditions": conditions},
    }
    world = World(EBS, vendor=theirs).secret().ask()
    world.settle()
    assert world.kinds() == ["Secret"]
    assert four(world) == {
        **WELL,
        "Available": ("False", "AWSEBSDriverController_R"),
        "PrereqsSatisfied": ("False", "ManagedByPlatform"),
    }
    world.seen = replace(world.seen, vendor={**theirs, "spec": {"managementState": "Unmanaged"}})
    world.settle()
    assert four(world) == WELL


@pytest.mark.parametrize(
    ("there", "phase", "said"),
    [
        (False, None, {"Available": ("False", "NotInstalled")}),
        (True, None, {}),
        (True, "Online", {}),
        (True, "Running", {}),
        (True, "Degraded", {"Degraded": ("True", "VendorNotOnline")}),
    ],
)
def test_portworx_is_looked_at_and_nothing_else(
    there: bool, phase: str | None, said: dict[str, Any]
) -> None:
    vendor = {"kind": "StorageCluster", "status": {"phase": phase}} if phase else None
    world = World(PORTWORX, vendor=vendor).ask()
    if there:
        world.put({"kind": "CSIDriver", "metadata": {"name": PORTWORX.name}})
    world.settle()
    assert world.kinds() == (["CSIDriver"] if there else [])
    prereqs = {} if there else {"PrereqsSatisfied": ("False", "NotInstalled")}
    assert four(world) == WELL | said | prereqs
    world.delete(world.cr_key)
    assert world.decide().writes == ()


# Manila


def test_manila_where_the_service_is_not() -> None:
    world = World(MANILA).secret().ask()
    world.share_types = ()
    decision = world.settle()
    assert world.conditions()["Disabled"] == ("True", "ManilaNotFound")
    assert world.kinds() == ["Secret"]
    assert decision.again == 60
    world.share_types = ("default",)
    world.settle()
    assert four(world) == WELL
    assert "Disabled" not in world.conditions()
    # It may be away for a while: pods still have to unmount.
    world.share_types = ()
    world.settle()
    assert "DaemonSet" in world.kinds()
    assert "StorageClass" in world.kinds()


def test_manila_by_the_share_types_that_its_cr_names() -> None:
    world = World(MANILA).secret().ask(shareTypes=["gold"])
    world.share_types = ("never", "looked", "at")
    world.settle()
    assert [it["metadata"]["name"] for it in world.look().classes] == ["csi-manila-gold"]


# Going


def test_a_default_driver_comes_back() -> None:
    world = World(EBS).secret()
    world.settle()
    running = workload("DaemonSet", world)["metadata"]["uid"]
    world.delete(world.cr_key)
    assert world.cr_key not in world.objects
    world.settle()
    assert four(world) == WELL
    assert workload("DaemonSet", world)["metadata"]["uid"] == running
    assert not any(isinstance(it, Delete) for it in world.writes)


def test_a_default_driver_cannot_be_removed() -> None:
    world = World(EBS).secret().ask()
    world.settle()
    world.writes.clear()
    world.ask(managementState="Removed").settle()
    assert [type(it) for it in world.writes] == [Status]
    assert four(world)["Degraded"] == ("True", "ManagementState_Removed")
    assert "Unmanaged and delete this one by hand" in world.message("Degraded")


def test_a_driver_that_was_optional_once_lets_its_cr_go() -> None:
    world = World(EBS).secret().ask()
    world.put({**world.cr, "metadata": {**world.cr["metadata"], "finalizers": [FINALIZER, "x/y"]}})
    world.settle()
    assert world.cr["metadata"]["finalizers"] == ["x/y"]
    world.delete(world.cr_key)
    assert world.decide().writes == ()


@pytest.mark.parametrize("way", ["delete", "Removed"])
def test_an_optional_driver_leaves_when_nothing_uses_it(way: str) -> None:
    world = World(VSPHERE, openshift=True).ask()
    world.settle(provision(world))
    assert world.cr["metadata"]["finalizers"] == [FINALIZER]
    world.uses = (
        "PersistentVolume pv-2", "PersistentVolume pv-1", "PersistentVolume pv-3",
        "PersistentVolume pv-4", "PersistentVolumeClaim shop/data", "Pod shop/db-0",
        "VolumeSnapshot shop/monday",
    )  # fmt: skip
    if way == "delete":
        world.delete(world.cr_key)
    else:
        world.ask(managementState="Removed")
    before = world.kinds()
    world.settle()
    assert world.kinds() == before
    assert four(world)["Progressing"] == ("True", "RemovingOperand")
    assert world.message("Progressing") == (
        "csi.vsphere.vmware.com is still in use by 4 PersistentVolume (pv-1, pv-2, pv-3 and 1 "
        "more); 1 PersistentVolumeClaim (shop/data); 1 Pod (shop/db-0); 1 VolumeSnapshot "
        "(shop/monday)"
    )
    world.uses = ()
    world.writes.clear()
    decision = world.settle()
    assert world.kinds() == ["Namespace", "Secret", "Storage"]
    gone = [it.object["kind"] for it in world.writes if isinstance(it, Delete)]
    assert gone[0] == "StorageClass"
    assert gone.index("Deployment") < gone.index("CSIDriver")
    if way == "delete":
        assert world.cr_key not in world.objects
    else:
        assert four(world)["Available"] == ("False", "Removed")
        assert decision.writes == ()


def test_unmanaged_is_hands_off_to_the_end() -> None:
    world = World(VSPHERE).secret().ask()
    world.settle()
    before = world.kinds()
    world.ask(managementState="Unmanaged")
    world.delete(world.cr_key)
    world.settle()
    assert world.kinds() == before
    assert world.cr_key not in world.objects


def test_what_makes_volumes_goes_before_what_mounts_them() -> None:
    world = World(VSPHERE, openshift=True).ask()
    world.settle(provision(world))
    world.delete(world.cr_key)
    gone = {it.object["kind"] for it in world.decide().writes if isinstance(it, Delete)}
    assert gone == {"StorageClass", "VolumeSnapshotClass", "Deployment"}
    for write in world.decide().writes:
        world.write(write)
    rest = set(world.kinds())
    # A volume was made just before: its controllers come back, or nobody could delete it. Nothing
    # comes back that would make more.
    world.uses = ("PersistentVolume late",)
    world.rolls_out = False
    world.settle()
    assert set(world.kinds()) - rest == {"Deployment"}
    assert not gone & rest
    removing = {
        "Available": ("False", "RemovingOperand"),
        "Progressing": ("True", "RemovingOperand"),
        "Degraded": ("False", "AsExpected"),
        "Upgradeable": ("True", "AsExpected"),
    }
    assert world.conditions() == removing
    assert "PersistentVolume (late)" in world.message("Available")
    world.rolls_out = True
    world.settle()
    assert world.conditions() == removing | {"Available": ("True", "AsExpected")}
    world.uses = ()
    world.settle()
    assert world.cr_key not in world.objects
    assert world.kinds() == ["Namespace", "Secret", "Storage"]


def test_what_is_used_again_does_not_come_back_over_somebody_elses() -> None:
    world = World(VSPHERE).secret().ask()
    world.settle()
    world.delete(world.cr_key)
    for write in world.decide().writes:
        world.write(write)
    found = world.objects["CSIDriver", "", VSPHERE.name]
    theirs = {**found["metadata"], "labels": {"app.kubernetes.io/managed-by": "Helm"}}
    world.put({**found, "metadata": theirs})
    world.uses = ("PersistentVolume late",)
    world.writes.clear()
    world.settle()
    assert {type(it) for it in world.writes} == {Status}
    assert world.conditions()["Available"] == ("False", "RemovingOperand")


def test_somebodys_own_snapshot_class_is_not_changed() -> None:
    world = World(EBS, openshift=True).ask()
    own = {"kind": "VolumeSnapshotClass", "metadata": {"name": "aws-ebs-csi"}}
    world.put({**own, "driver": EBS.name, "deletionPolicy": "Retain"})
    world.settle(provision(world))
    assert world.objects["VolumeSnapshotClass", "", "aws-ebs-csi"]["deletionPolicy"] == "Retain"
    assert four(world) == WELL


def test_uses_are_looked_at_only_when_it_matters() -> None:
    world = World(VSPHERE).secret().ask()
    world.settle()
    seen = world.look()
    world.delete(world.cr_key)
    assert decide(seen, shipped()).look == ()
    assert decide(world.look(), shipped()).look == (Look.USES,)


def test_removal_killed_between_any_two_writes() -> None:
    whole = World(VSPHERE).secret().ask()
    whole.settle()
    whole.delete(whole.cr_key)
    whole.writes.clear()
    whole.settle()
    for kill in range(0, len(whole.writes), 3):
        world = World(VSPHERE).secret().ask()
        world.settle()
        world.delete(world.cr_key)
        world.kill_after = kill
        with pytest.raises(Killed):
            world.settle()
        world.kill_after = None
        world.settle()
        assert world.kinds() == ["Namespace", "Secret"]
        assert world.cr_key not in world.objects


def test_classes_and_volumes_of_others_are_not_ours_to_delete() -> None:
    world = World(VSPHERE).secret().ask()
    world.settle()
    world.put({"kind": "StorageClass", "metadata": {"name": "mine"}, "provisioner": VSPHERE.name})
    world.delete(world.cr_key)
    world.settle()
    assert world.kinds() == ["Namespace", "Secret", "StorageClass"]


# Whatever happens


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_it_always_comes_to_rest_and_never_touches_what_is_not_its_own(data: st.DataObject) -> None:
    driver = data.draw(st.sampled_from([EBS, VSPHERE, MANILA]))
    world = World(driver, openshift=data.draw(st.booleans())).ask()
    stranger = {"kind": "StorageClass", "metadata": {"name": "other"}, "provisioner": "x"}
    world.put(stranger)
    moves = ("secret", "Managed", "Unmanaged", "Removed", "lose", "csi", "in-tree", "delete")
    for move in data.draw(st.lists(st.sampled_from(moves), max_size=5)):
        if move == "secret":
            world.secret()
        elif move in ("csi", "in-tree"):
            world.ask(defaultStorageClass=move)
        elif move == "delete" and world.cr_key in world.objects:
            world.delete(world.cr_key)
        elif move == "lose":
            kept = ("StorageClass", "Storage")
            kinds = sorted(it for it in world.objects if it[0] in KINDS and it[0] not in kept)
            if kinds:
                del world.objects[data.draw(st.sampled_from(kinds))]
        elif move in ("Managed", "Unmanaged", "Removed"):
            world.ask(managementState=move)
        world.now += 7
        world.settle(provision(world))
        assert world.decide().writes == ()
        for write in world.writes:
            key = key_of(write.object)
            assert key != ("StorageClass", "", "other")
            assert not (isinstance(write, Delete) and key[0] in ("Namespace", "Secret"))
