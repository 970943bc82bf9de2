"""Drivers that OLM, Helm or a person has installed."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from replant.drivers.adoption import csv_key, namespace_key
from replant.drivers.catalog import Driver
from replant.drivers.decisions import WAIT
from replant.drivers.kinds import key_of
from replant.drivers.naming import OPERAND
from replant.drivers.writes import Annotate, Apply, Create, Delete, Replace, Status
from replant.objects import Object
from tests.drivers.world import EBS, MANILA, Killed, World, provision

OPERATORS, CSV = "openshift-operators", "operator.v4.5"
KEPT = ("Deployment", "DaemonSet", "OperatorGroup", "Namespace", "CustomResourceDefinition")


def workload(driver: Driver, kind: str, name: str, namespace: str, *extra: str) -> Object:
    """As somebody else has made it."""
    image = f"registry.example/{driver.backend}-csi-driver:old"
    volumes = [
        {"name": "plugin-dir", "hostPath": {"path": f"/var/lib/kubelet/plugins/{driver.name}/"}}
    ]
    names = ["csi-driver", *extra]
    return {
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace, "uid": f"{kind}-uid"},
        "spec": {
            "selector": {"matchLabels": {"app": f"old-{name}"}},
            "template": {
                "metadata": {"labels": {"app": f"old-{name}"}},
                "spec": {
                    "serviceAccountName": f"{name}-theirs",
                    "containers": [
                        {"name": it, "image": image if it == "csi-driver" else f"x/{it}:old"}
                        for it in names
                    ],
                    "volumes": volumes if kind == "DaemonSet" else [],
                },
            },
        },
    }


def by_olm(driver: Driver = EBS, *, storage: bool = True) -> World:
    """A cluster of 4.5 with a driver that OLM's operator has installed."""
    world = World(driver, openshift=storage)
    spec = {
        "name": driver.olm_package,
        "source": "redhat-operators",
        "sourceNamespace": "openshift-marketplace",
    }
    csi = {"attachRequired": driver.attach, "fsGroupPolicy": "ReadWriteOnceWithFSType"}
    there: list[Object] = [
        _object("Subscription", "sub", OPERATORS, spec=spec, status={"currentCSV": CSV}),
        _object("ClusterServiceVersion", CSV, OPERATORS),
        _object("Deployment", driver.olm_deployment, OPERATORS, spec={}),
        _object("OperatorGroup", "group", OPERATORS),
        _object("Namespace", driver.namespace),
        _object("CSIDriver", driver.name, spec=csi),
        workload(driver, "Deployment", driver.controller_name, driver.namespace),
        workload(driver, "DaemonSet", driver.node_name, driver.namespace),
        _object(
            driver.kind,
            "cluster",
            apiVersion="csi.openshift.io/v1alpha1",
            spec={"managementState": "Managed"},
        ),
    ]
    for obj in there:
        world.put(obj)
    return world.secret()


def _object(kind: str, name: str, namespace: str = "", **rest: Any) -> Object:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"kind": kind, "metadata": metadata, **rest}


def olm(world: World, driver: Driver = EBS) -> Any:
    """OLM removes the Deployment of an operator whose ClusterServiceVersion is gone."""

    def act() -> None:
        if ("ClusterServiceVersion", OPERATORS, CSV) not in world.objects:
            world.objects.pop(("Deployment", OPERATORS, driver.olm_deployment), None)

    return act


@pytest.mark.parametrize("driver", [EBS, MANILA], ids=lambda it: it.backend)
@pytest.mark.parametrize("storage", [True, False])
def test_the_operator_goes_and_the_operand_runs_on(driver: Driver, storage: bool) -> None:
    world = by_olm(driver, storage=storage)
    keeper = "Storage" if storage else driver.kind
    world.settle(olm(world, driver), provision(world))
    done = [it for it in world.writes if not isinstance(it, Status)]
    # What must not be forgotten comes first; then what makes the operator, in its order.
    assert isinstance(done[0], Annotate)
    assert done[0].object["kind"] == keeper
    assert done[0].annotations == {
        f"replant.dev/{driver.backend}-olm-namespace": OPERATORS,
        f"replant.dev/{driver.backend}-olm-csv": CSV,
    }
    deleted = [it.object["kind"] for it in done if isinstance(it, Delete)]
    assert deleted == ["Subscription", "ClusterServiceVersion", "CSIDriver"]
    # Same objects, new content, with nothing left of the old; selectors cannot be changed.
    replaced = [it.object["kind"] for it in done if isinstance(it, Replace)]
    assert replaced == ["Deployment", "DaemonSet"]
    for kind, name in (("Deployment", driver.controller_name), ("DaemonSet", driver.node_name)):
        found = world.objects[kind, driver.namespace, name]
        assert found["metadata"]["uid"] == f"{kind}-uid"
        assert found["spec"]["selector"]["matchLabels"] == {"app": f"old-{name}"}
        assert "registry.example" not in str(found)
    assert {kind for kind, _, _ in world.objects} >= {"OperatorGroup", "Namespace"}
    assert world.objects[keeper, "", "cluster"]["metadata"]["annotations"] == {}
    assert world.conditions()["Available"] == ("True", "AsExpected")
    assert world.decide().writes == ()


def test_while_it_is_waited_for() -> None:
    world = by_olm()
    running = deepcopy(world.objects["Deployment", EBS.namespace, EBS.controller_name])
    said = []
    for _ in range(6):
        decision = world.decide()
        for write in decision.writes:
            world.write(write)
        assert decision.again == WAIT
        said.append(world.message("Progressing"))
        conditions = world.conditions()
        assert conditions["Progressing"] == ("True", "RemovingOLMOperator")
        assert conditions["Available"] == ("False", "RemovingOLMOperator")
        assert conditions["Degraded"] == ("False", "AsExpected")
        assert world.objects["Deployment", EBS.namespace, EBS.controller_name] == running
    assert said[0] == "found Subscription openshift-operators/sub"
    assert said[1] == "deleting Subscription openshift-operators/sub"
    assert said[2] == "deleting ClusterServiceVersion openshift-operators/operator.v4.5"
    place = "openshift-operators/aws-ebs-csi-driver-operator"
    assert said[3:] == [f"waiting for OLM to remove the operator's Deployment {place}"] * 3
    assert ("Deployment", OPERATORS, EBS.olm_deployment) in world.objects
    olm(world)()
    assert any(isinstance(it, Apply | Replace) for it in world.decide().writes)


@pytest.mark.parametrize("kind", ["Subscription", "ClusterServiceVersion"])
def test_what_others_keep_is_waited_for(kind: str) -> None:
    world = by_olm()
    (obj,) = (it for it in world.objects.values() if it["kind"] == kind)
    world.put({**obj, "metadata": {**obj["metadata"], "finalizers": ["olm/x"]}})
    for _ in range(8):
        for write in world.decide().writes:
            world.write(write)
        olm(world)()
    assert world.message("Progressing").startswith(f"waiting for {kind} {OPERATORS}/")
    assert (
        len([it for it in world.writes if isinstance(it, Delete) and it.object["kind"] == kind])
        == 1
    )
    assert world.decide().writes == ()


@pytest.mark.parametrize("storage", [True, False])
def test_killed_between_any_two_writes_of_an_adoption(storage: bool) -> None:
    whole = by_olm(storage=storage)
    whole.settle(olm(whole), provision(whole))
    for kill in range(len(whole.writes)):
        world = by_olm(storage=storage)
        world.kill_after = kill
        with pytest.raises(Killed):
            world.settle(olm(world), provision(world))
        world.kill_after = None
        world.settle(olm(world), provision(world))
        assert world.objects.keys() == whole.objects.keys()
        assert world.conditions() == whole.conditions()
        for write in world.writes:
            assert not (isinstance(write, Delete) and write.object["kind"] in KEPT)
        for kind in ("Deployment", "DaemonSet"):
            (found,) = (it for it in world.objects.values() if it["kind"] == kind)
            assert found["metadata"]["uid"] == f"{kind}-uid"


def test_a_subscription_that_olm_is_still_at() -> None:
    world = by_olm()
    subscription = world.objects["Subscription", OPERATORS, "sub"]
    world.put({**subscription, "status": {}})
    world.settle()
    assert "does not say its currentCSV yet" in world.message("Progressing")
    assert ("Subscription", OPERATORS, "sub") in world.objects


def test_an_upgrade_that_did_not_get_through_leaves_two_of_them() -> None:
    world = by_olm()
    subscription = world.objects["Subscription", OPERATORS, "sub"]
    status = {"currentCSV": "operator.v4.6", "installedCSV": CSV}
    world.put({**subscription, "status": status})
    world.settle(olm(world), provision(world))
    kept = next(it for it in world.writes if isinstance(it, Annotate))
    assert kept.annotations["replant.dev/aws-ebs-olm-installed-csv"] == CSV
    assert ("ClusterServiceVersion", OPERATORS, CSV) not in world.objects
    assert world.conditions()["Available"] == ("True", "AsExpected")
    assert world.objects["Storage", "", "cluster"]["metadata"]["annotations"] == {}


@pytest.mark.parametrize(
    "other", [{"name": "other"}, {"source": "community"}, {"sourceNamespace": "elsewhere"}]
)
def test_subscriptions_of_others_are_not_ours(other: dict[str, str]) -> None:
    world = by_olm()
    subscription = world.objects["Subscription", OPERATORS, "sub"]
    world.put({**subscription, "spec": {**subscription["spec"], **other}})
    world.settle(olm(world))
    assert ("Subscription", OPERATORS, "sub") in world.objects
    # What it has installed is not ours then.
    assert world.conditions()["Degraded"] == ("True", "ForeignCSIDriver")


def test_an_older_cr_is_reconciled() -> None:
    world = by_olm()
    world.settle(olm(world), provision(world))
    assert world.cr["apiVersion"] == "csi.openshift.io/v1alpha1"
    assert world.cr["spec"] == {"managementState": "Managed"}
    assert not any(isinstance(it, Create) for it in world.writes)


def test_the_names_of_annotations() -> None:
    assert namespace_key(EBS) == "replant.dev/aws-ebs-olm-namespace"
    assert csv_key(MANILA) == "replant.dev/manila-olm-csv"


# Helm, kubectl and others


def foreign(how: str, *extra: str) -> World:
    world = World(EBS)
    metadata: Object = {"name": EBS.name}
    if how == "Helm":
        metadata["labels"] = {"app.kubernetes.io/managed-by": "Helm"}
        metadata["annotations"] = {
            "meta.helm.sh/release-name": "ebs",
            "meta.helm.sh/release-namespace": "kube-system",
        }
    if how == "kubectl":
        metadata["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": "{}"}
    spec = {"attachRequired": True, "podInfoOnMount": False, "fsGroupPolicy": "File"}
    world.put({"kind": "CSIDriver", "metadata": metadata, "spec": spec})
    sidecars = ("csi-provisioner", *extra)
    world.put(workload(EBS, "Deployment", "ebs-csi-controller", "kube-system", *sidecars))
    world.put(workload(EBS, "DaemonSet", "ebs-csi-node", "kube-system", "node-driver-registrar"))
    world.put({"kind": "Secret", "metadata": {"name": EBS.secret, "namespace": "kube-system"}})
    return world


@pytest.mark.parametrize(
    ("how", "who"),
    [
        ("Helm", "Helm (release kube-system/ebs)"),
        ("kubectl", "kubectl"),
        ("by hand", "somebody else"),
    ],
)
def test_a_foreign_driver_is_degraded_and_not_touched(how: str, who: str) -> None:
    world = foreign(how)
    world.rolls_out = False
    before = {key: deepcopy(it) for key, it in world.objects.items()}
    world.settle()
    assert {key: it for key, it in world.objects.items() if key in before} == before
    assert {key_of(it.object)[0] for it in world.writes} == {EBS.kind}
    assert world.conditions() == {
        "Available": ("Unknown", "ForeignCSIDriver"),
        "Progressing": ("False", "AsExpected"),
        "Degraded": ("True", "ForeignCSIDriver"),
        "Upgradeable": ("True", "AsExpected"),
        "PrereqsSatisfied": ("False", "ForeignCSIDriver"),
    }
    assert world.message("Degraded") == (
        f"CSIDriver ebs.csi.aws.com was installed by {who}, and is left alone; remove that driver, "
        "set adoption to Adopt, or managementState to Unmanaged"
    )


@pytest.mark.parametrize("how", ["Helm", "kubectl", "by hand"])
def test_a_foreign_driver_is_adopted_under_its_names(how: str) -> None:
    world = foreign(how, "their-own-sidecar").ask(adoption="Adopt")
    world.settle()
    assert world.conditions()["Available"] == ("True", "AsExpected")
    for kind, name in (("Deployment", "ebs-csi-controller"), ("DaemonSet", "ebs-csi-node")):
        (found,) = (it for it in world.objects.values() if it["kind"] == kind)
        assert (found["metadata"]["name"], found["metadata"]["uid"]) == (name, f"{kind}-uid")
        spec = found["spec"]["template"]["spec"]
        assert spec["serviceAccountName"] == f"{name}-theirs"
        assert found["spec"]["selector"]["matchLabels"] == {"app": f"old-{name}"}
        assert "their-own-sidecar" not in [it["name"] for it in spec["containers"]]
    assert ("Namespace", "", EBS.namespace) not in world.objects
    assert not any(isinstance(it, Delete) for it in world.writes)


def test_an_adopted_driver_keeps_its_names_when_its_cr_is_deleted() -> None:
    world = foreign("Helm").ask(adoption="Adopt")
    world.settle()
    assert OPERAND in world.objects["CSIDriver", "", EBS.name]["metadata"]["annotations"]
    world.delete(world.cr_key)
    world.settle()
    assert [it[2] for it in world.objects if it[0] == "DaemonSet"] == ["ebs-csi-node"]
    assert world.conditions()["Available"] == ("True", "AsExpected")


@pytest.mark.parametrize("marked", [True, False])
def test_whoever_takes_an_adopted_driver_back_has_it(marked: bool) -> None:
    world = foreign("Helm").ask(adoption="Adopt")
    world.settle()
    found = world.objects["CSIDriver", "", EBS.name]
    found["metadata"]["labels"]["app.kubernetes.io/managed-by"] = "Helm"
    if not marked:
        found["metadata"]["annotations"] = {}  # as when it was put in the place of ours
    node = world.objects["DaemonSet", "kube-system", "ebs-csi-node"]
    node["spec"]["template"]["spec"]["containers"][0]["image"] = "helms"
    world.writes.clear()
    world.settle()
    assert [type(it) for it in world.writes] == [Status]
    assert world.conditions()["Degraded"] == ("True", "ForeignCSIDriver")
    assert "was adopted, and Helm" in world.message("Degraded")
    # Until somebody wants it once more, who has to say so: under the names that are there then.
    world.objects["DaemonSet", "kube-system", "ebs-csi-nodes"] = {
        **world.objects.pop(("DaemonSet", "kube-system", "ebs-csi-node")),
        "metadata": {**node["metadata"], "name": "ebs-csi-nodes"},
    }
    for wish in ("Leave", "Adopt"):
        world.ask(adoption=wish)
        world.settle()
    assert world.conditions()["Available"] == ("True", "AsExpected")
    assert "helms" not in str(world.objects["DaemonSet", "kube-system", "ebs-csi-nodes"])
    assert ("DaemonSet", "kube-system", "ebs-csi-node") not in world.objects


@pytest.mark.parametrize(
    ("drop", "said"),
    [
        (
            "DaemonSet",
            "one DaemonSet with the socket of ebs.csi.aws.com is looked for, and found is: none",
        ),
        ("Deployment", "one Deployment with a csi-provisioner for ebs.csi.aws.com is looked for"),
    ],
)
def test_an_operand_that_cannot_be_found_is_not_adopted(drop: str, said: str) -> None:
    world = foreign("by hand").ask(adoption="Adopt")
    (key,) = (it for it in world.objects if it[0] == drop)
    del world.objects[key]
    world.settle()
    assert world.conditions()["Degraded"] == ("True", "OperandNotFound")
    assert said in world.message("Degraded")
    assert not any(isinstance(it, Apply | Replace | Delete) for it in world.writes)


def test_a_controller_that_is_a_statefulset_is_not_adopted() -> None:
    world = foreign("by hand").ask(adoption="Adopt")
    found = world.objects.pop(("Deployment", "kube-system", "ebs-csi-controller"))
    world.put({**found, "kind": "StatefulSet"})
    world.settle()
    assert "found is: StatefulSet ebs-csi-controller" in world.message("Degraded")


def test_adopting_a_foreign_driver_killed_between_any_two_writes() -> None:
    whole = foreign("Helm").ask(adoption="Adopt")
    whole.settle()
    for kill in range(len(whole.writes)):
        world = foreign("Helm").ask(adoption="Adopt")
        world.kill_after = kill
        with pytest.raises(Killed):
            world.settle()
        world.kill_after = None
        world.settle()
        assert world.objects.keys() == whole.objects.keys()
        assert [it[2] for it in world.objects if it[0] == "DaemonSet"] == ["ebs-csi-node"]
