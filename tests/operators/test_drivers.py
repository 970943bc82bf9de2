"""The operator of drivers in a cluster that lives: what it does and says, and who serves then."""

from __future__ import annotations

import base64
from functools import partial
from typing import Any

import pytest

from replant.drivers.catalog import DRIVERS
from replant.drivers.programs import PROGRAMS
from replant.objects import Object
from tests.operators.driving import (
    CINDER,
    EBS,
    MANILA,
    VSPHERE,
    Operator,
    World,
    cloud,
    openshift,
    run,
)

WELL = ("True", "AsExpected", "All is well")
RESTS = ("False", "AsExpected", "All is well")
NAMESPACE = "openshift-aws-ebs-csi-driver"
CONTROLLER, NODE = "aws-ebs-csi-driver-controller", "aws-ebs-csi-driver-node"
OPERATORS, CSV = "openshift-operators", "aws-ebs-csi-driver-operator.v4.5"
DEFAULT = "storageclass.kubernetes.io/is-default-class"
MANAGED = "csi.openshift.io/managed"


def secret(name: str = "ebs-cloud-credentials", namespace: str = NAMESPACE) -> Object:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {}}


def whole_secret(name: str) -> tuple[Object, ...]:
    """All that a driver's secret has to have, which OpenShift's own has not for every driver."""
    driver = DRIVERS[name]
    data = dict.fromkeys(PROGRAMS[name].secret_keys, "")
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": driver.namespace}}
    return space, {**secret(driver.secret, driver.namespace), "data": data}


def cr(kind: str, **spec: Any) -> Object:
    metadata = {"name": "cluster"}
    return {"apiVersion": "csi.openshift.io/v1", "kind": kind, "metadata": metadata, "spec": spec}


def lived(world: World, seconds: float = 120, **more: Any) -> Operator:
    operator = Operator(world, **more)
    run(operator.live(seconds))
    return operator


def claimed(world: World, name: str, storage_class: str) -> str:
    """Ask for a volume with a pod that wants it; what has become of the pod."""
    metadata = {"name": name, "namespace": "default"}
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": storage_class,
    }
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": name}}
    pod = {"containers": [{"name": "c", "image": "i"}], "volumes": [volume]}
    for kind, spec in (("PersistentVolumeClaim", claim), ("Pod", pod)):
        world.create({"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec})
    world.cluster.run_for(120)
    phase: str = world.get("Pod", name, "default")["status"]["phase"]
    return phase


def test_on_openshift_a_default_driver_comes_and_serves_next_to_the_in_tree_plugin() -> None:
    world = World(openshift())
    operator = Operator(world)
    run(operator.once())
    waits = (
        "CredentialsRequest openshift-cloud-credential-operator/openshift-aws-ebs-csi-driver is "
        f"not provisioned yet: the cloud-credential-operator makes Secret {NAMESPACE}/"
        "ebs-cloud-credentials"
    )
    said = world.conditions("AWSEBSDriver")
    assert said["Available"] == ("False", "WaitingForCredentials", waits)
    assert said["Progressing"] == ("True", "WaitingForCredentials", waits)
    assert said["Degraded"] == RESTS
    assert world.get("CSIDriver", EBS)["spec"]["fsGroupPolicy"] == "File"
    assert not world.all("DaemonSet")
    assert world.clusterwide()["Available"] == (
        "False", "AWSEBSDriver_WaitingForCredentials", f"AWSEBSDriverAvailable: {waits}",
    )  # fmt: skip
    run(operator.live(120))
    for condition in (world.conditions("AWSEBSDriver"), world.clusterwide()):
        assert condition["Available"] == condition["Upgradeable"] == WELL
        assert condition["Progressing"] == condition["Degraded"] == RESTS
    assert world.registered(EBS) == {"master-0", "master-1", "worker-0", "worker-1"}
    classes = {it["metadata"]["name"]: it["metadata"]["annotations"][DEFAULT]
               for it in world.all("StorageClass")}  # fmt: skip
    assert classes == {"gp2": "true", "gp3-csi": "false", "gp2-csi": "false"}
    assert claimed(world, "native", "gp3-csi") == "Running"
    [volume] = [it for it in world.all("PersistentVolume") if "csi" in it["spec"]]
    assert volume["spec"]["csi"]["driver"] == EBS


def test_elsewhere_the_cloud_is_told_by_nodes_and_the_secret_by_a_person() -> None:
    world = World(cloud("aws"))
    operator = lived(world)
    missing = f"Secret {NAMESPACE}/ebs-cloud-credentials is not there"
    status, reason, message = world.conditions("AWSEBSDriver")["Progressing"]
    assert (status, reason) == ("True", "WaitingForCredentials")
    assert message.startswith(missing)
    world.create(secret())
    run(operator.live(600))
    assert world.conditions("AWSEBSDriver")["Available"] == WELL
    assert world.clusterwide()["Available"] == WELL
    assert world.names("CSIDriver") == {EBS}


def test_an_infrastructure_that_does_not_say_where_it_is() -> None:
    world = World(openshift(""))
    operator = Operator(world)

    async def main() -> None:
        await operator.status.tell()

    run(main())
    said = world.clusterwide()
    assert (said["Available"][0], said["Progressing"][0]) == ("False", "True")
    assert "status.platformStatus.type is not there yet" in said["Progressing"][2]
    assert not world.all("CSIDriver")

    def say(obj: Object) -> None:
        obj["status"] = {"platformStatus": {"type": "AWS"}}

    world.change("Infrastructure", say, part="status")
    world.cluster.run_for(60)
    run(operator.live(120))
    assert world.clusterwide()["Available"] == WELL
    world.change("Infrastructure", lambda it: it.update(status={}), part="status")
    world.cluster.run_for(60)
    run(main())
    said = world.clusterwide()
    assert (said["Available"], said["Progressing"][0]) == (WELL, "True")


def test_what_openshifts_own_operator_says_is_not_written_over() -> None:
    """Its conditions gate upgrades. Ours are beside them, in a ConfigMap."""
    theirs = {
        "apiVersion": "config.openshift.io/v1",
        "kind": "ClusterOperator",
        "metadata": {
            "name": "storage",
            "managedFields": [
                {
                    "manager": "cluster-storage-operator",
                    "operation": "Update",
                    "apiVersion": "config.openshift.io/v1",
                    "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:status": {"f:conditions": {}}},
                    "subresource": "status",
                }
            ],
        },
        "spec": {},
        "status": {"conditions": [{"type": "Theirs", "status": "True"}]},
    }
    world = World(openshift(), (theirs,))
    before = world.get("ClusterOperator", "storage")
    assert before["metadata"]["managedFields"]
    lived(world, 180)
    assert world.get("ClusterOperator", "storage") == before
    told = world.get("ConfigMap", "replant-drivers-status", "replant-system")["data"]
    assert "All is well" in told["conditions.json"]


def test_a_default_driver_comes_back_and_a_users_cr_is_kept() -> None:
    world = World(openshift())
    operator = lived(world)
    pods = {it["metadata"]["uid"] for it in world.all("Pod")}
    world.delete("AWSEBSDriver")
    run(operator.live(60))
    world.change("AWSEBSDriver", lambda it: it["spec"].update(logLevel="Debug"))
    run(operator.live(120))
    assert world.get("AWSEBSDriver")["spec"]["logLevel"] == "Debug"
    assert world.conditions("AWSEBSDriver")["Available"] == WELL
    assert not pods & {it["metadata"]["uid"] for it in world.all("Pod")
                       if "csi" in it["metadata"]["name"]}  # fmt: skip
    args = str(world.get("DaemonSet", NODE, NAMESPACE)["spec"]["template"])
    assert "--v=4" in args


def test_unmanaged_means_hands_off() -> None:
    world = World(openshift())
    operator = lived(world)
    world.change("AWSEBSDriver", lambda it: it["spec"].update(managementState="Unmanaged"))
    run(operator.live(60))
    said = world.conditions("AWSEBSDriver")
    assert {it[:2] for kind, it in said.items() if kind in ("Available", "Degraded")} == {
        ("Unknown", "Unmanaged")
    }
    world.delete("Deployment", CONTROLLER, NAMESPACE)
    world.delete("CSIDriver", EBS)
    writes = len(world.writes)
    run(operator.live(1200))
    # How many replicas are ready is still told, and nothing is done about it.
    assert {it.path.rpartition("/")[2] for it in world.writes[writes:]} <= {"status"}
    assert world.get("CSIDriver", EBS) is None
    assert world.get("Deployment", CONTROLLER, NAMESPACE) is None


def test_drift_is_put_right_and_what_others_add_stays() -> None:
    world = World(openshift())
    operator = lived(world)

    def drift(obj: Object) -> None:
        obj["metadata"].setdefault("labels", {})["theirs"] = "1"
        obj["spec"]["template"]["spec"]["containers"][0]["image"] = "theirs"

    world.change("DaemonSet", drift, NODE, NAMESPACE)
    run(operator.live(120))
    found = world.get("DaemonSet", NODE, NAMESPACE)
    assert found["metadata"]["labels"]["theirs"] == "1"
    assert "theirs" not in str(found["spec"])
    assert world.conditions("AWSEBSDriver")["Progressing"] == RESTS


def test_changed_credentials_roll_out() -> None:
    world = World(openshift())
    operator = lived(world)
    pods = {it["metadata"]["uid"] for it in world.all("Pod") if CONTROLLER in str(it["metadata"])}
    changed = {"credentials": base64.b64encode(b"new").decode()}
    name = "ebs-cloud-credentials"
    world.change("Secret", lambda it: it.update(data=changed), name, NAMESPACE)
    run(operator.live(600))
    assert not pods & {it["metadata"]["uid"] for it in world.all("Pod")}
    assert world.conditions("AWSEBSDriver")["Available"] == WELL


def test_csi_becomes_the_default_class_and_the_in_tree_one_stands_back() -> None:
    world = World(openshift())
    operator = lived(world)

    def defaults() -> set[str]:
        return {
            it["metadata"]["name"]
            for it in world.all("StorageClass")
            if it["metadata"]["annotations"].get(DEFAULT) == "true"
        }

    for wanted, name in (
        ({"defaultStorageClass": "csi"}, "gp3-csi"),
        ({"defaultStorageClass": "in-tree"}, "gp2"),
    ):
        world.change("AWSEBSDriver", partial(_ask, wanted))
        run(operator.live(30))
        assert defaults() == {name}


def _ask(wanted: Object, found: Object) -> None:
    found["spec"] |= wanted


def test_a_foreign_driver_is_degraded_and_not_touched() -> None:
    foreign = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": EBS, "labels": {"app.kubernetes.io/managed-by": "Helm"}},
        "spec": {"attachRequired": True},
    }
    world = World(openshift(), (foreign,))
    before = world.get("CSIDriver", EBS)
    operator = lived(world, 60)
    said = world.conditions("AWSEBSDriver")
    assert said["Degraded"][0] == "True"
    assert said["PrereqsSatisfied"][0] == "False"
    assert "CSIDriver" in said["Degraded"][2]
    assert world.get("CSIDriver", EBS) == before
    assert not world.all("DaemonSet")
    # Of the cluster it is said once it has been so for two minutes.
    assert world.clusterwide()["Degraded"] == RESTS
    run(operator.live(120))
    assert world.clusterwide()["Degraded"][0] == "True"


def olm_objects() -> tuple[Object, ...]:
    """A driver that an operator of OLM's has installed, and that operator."""

    def workload(kind: str, name: str, containers: list[Object], **more: Any) -> Object:
        labels = {"app": name, "app.kubernetes.io/name": EBS}
        template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
        return {
            "apiVersion": "apps/v1",
            "kind": kind,
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"selector": {"matchLabels": {"app": name}}, "template": template, **more},
        }

    path = f"--kubelet-registration-path=/var/lib/kubelet/plugins/{EBS}/csi.sock"
    registrar = {"name": "csi-node-driver-registrar", "image": "node-driver-registrar:old",
                 "args": [path]}  # fmt: skip
    sidecars = [{"name": f"csi-{it}", "image": "old"} for it in ("provisioner", "attacher")]
    driver = {"name": "csi-driver", "image": "old"}
    labels = {"name": "o"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [driver]}}
    deployment = {"selector": {"matchLabels": labels}, "template": template}
    install = {
        "spec": {"deployments": [{"name": "aws-ebs-csi-driver-operator", "spec": deployment}]}
    }
    olm = "operators.coreos.com/v1alpha1"
    package = {
        "name": "aws-ebs-csi-driver-operator",
        "source": "redhat-operators",
        "sourceNamespace": "openshift-marketplace",
    }
    old_cr = {
        **cr("AWSEBSDriver", managementState="Managed"),
        "apiVersion": "csi.openshift.io/v1alpha1",
    }
    return (
        secret(),
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSIDriver",
            "metadata": {"name": EBS, "annotations": {MANAGED: "true"}},
            "spec": {"attachRequired": True, "podInfoOnMount": False, "fsGroupPolicy": "File"},
        },
        workload("DaemonSet", NODE, [driver, registrar]),
        workload("Deployment", CONTROLLER, [driver, *sidecars], replicas=1),
        old_cr,
        {
            "apiVersion": olm,
            "kind": "ClusterServiceVersion",
            "metadata": {"name": CSV, "namespace": OPERATORS},
            "spec": {"install": install},
        },
        {
            "apiVersion": olm,
            "kind": "Subscription",
            "metadata": {"name": "sub", "namespace": OPERATORS},
            "spec": package,
            "status": {"currentCSV": CSV},
        },
    )  # fmt: skip


def by_olm() -> World:
    world = World(openshift(), olm_objects())
    world.cluster.run_for(30)
    assert world.get("Deployment", "aws-ebs-csi-driver-operator", OPERATORS)
    assert world.registered(EBS) == world.names("Node")
    return world


def operand_uids(world: World) -> list[str]:
    """Of what runs: it must be the same all the time."""
    these = (("Deployment", CONTROLLER, NAMESPACE), ("DaemonSet", NODE, NAMESPACE),
             ("CSIDriver", EBS, ""), ("Namespace", NAMESPACE, ""))  # fmt: skip
    return [world.get(*it)["metadata"]["uid"] for it in these]


def adopted(world: World) -> None:
    """What an adoption has come to, however it went."""
    assert not world.all("Subscription")
    assert not world.all("ClusterServiceVersion")
    assert world.get("Deployment", "aws-ebs-csi-driver-operator", OPERATORS) is None
    assert world.registered(EBS) == world.names("Node")
    said = world.conditions("AWSEBSDriver")
    assert (said["Available"], said["Progressing"], said["Degraded"]) == (WELL, RESTS, RESTS)
    assert not any("olm" in it for it in world.get("Storage")["metadata"].get("annotations") or {})


def test_an_operator_of_olms_is_taken_over_from_while_its_driver_runs_on() -> None:
    world = by_olm()
    before = operand_uids(world)
    operator = Operator(world)
    run(operator.once())
    said = world.conditions("AWSEBSDriver")
    assert said["Progressing"][:2] == ("True", "RemovingOLMOperator")
    assert said["Available"][:2] == ("False", "RemovingOLMOperator")
    kept = world.get("Storage")["metadata"]["annotations"]
    assert kept == {
        "replant.dev/aws-ebs-olm-namespace": OPERATORS,
        "replant.dev/aws-ebs-olm-csv": CSV,
    }
    assert world.get("DaemonSet", NODE, NAMESPACE)["metadata"]["generation"] == 1
    run(operator.live(300))
    adopted(world)
    assert operand_uids(world) == before
    deleted = [it.path.rsplit("/", 2)[1] for it in world.writes if it.method == "DELETE"]
    assert deleted == ["subscriptions", "clusterserviceversions"]
    assert claimed(world, "after", "gp3-csi") == "Running"


def test_an_optional_driver_stays_while_something_uses_it_and_leaves_then() -> None:
    world = World(openshift("VSphere", classes=()), whole_secret(VSPHERE))
    operator = lived(world)
    assert not world.all("CSIDriver")
    world.create(cr("VSphereDriver", managementState="Managed"))
    run(operator.live(180))
    assert world.registered(VSPHERE) == world.names("Node")
    assert claimed(world, "data", "thin-csi") == "Running"
    [volume] = world.names("PersistentVolume")
    [attachment] = world.names("VolumeAttachment")
    world.delete("VSphereDriver")
    run(operator.live(60))
    used = (
        f"{VSPHERE} is still in use by 1 PersistentVolume ({volume}); 1 PersistentVolumeClaim ("
        f"default/data); 1 Pod (default/data); 1 VolumeAttachment ({attachment})"
    )
    assert world.conditions("VSphereDriver")["Progressing"] == ("True", "RemovingOperand", used)
    assert world.registered(VSPHERE) == world.names("Node")
    for kind in ("Pod", "PersistentVolumeClaim"):
        world.delete(kind, "data", "default")
        world.cluster.run_for(120)
    run(operator.live(300))
    assert world.get("VSphereDriver") is None
    assert not world.all("CSIDriver")
    assert not world.registered(VSPHERE)
    assert not [it for it in world.names("ClusterRole") if "vsphere" in it]


async def two_types(_secret: Object) -> tuple[str, ...]:
    return ("default", "fast")


@pytest.mark.parametrize("service", [True, False])
def test_manila_only_where_the_service_is(service: bool) -> None:
    world = World(openshift("OpenStack", classes=()), whole_secret(MANILA))
    lived(world, 180, **({"shares": two_types} if service else {}))
    assert world.registered(CINDER) == world.names("Node")
    assert world.registered(MANILA) == (world.names("Node") if service else set())
    manila = {"csi-manila-default", "csi-manila-fast"} if service else set()
    assert world.names("StorageClass") == {"standard-csi"} | manila
    assert world.clusterwide()["Available"] == WELL
