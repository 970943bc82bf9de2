"""Each check of a preflight: what trips it, what does not, and that it names what is wrong."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from replant.plan.model import Goal, Weight
from replant.plan.preflight import preflight
from replant.plan.situation import situation
from tests.inventory.clusters import (
    AWS,
    EBS,
    Object,
    attachment,
    budget,
    claim_ref,
    component,
    obj,
    pod,
    pv,
    storage_class,
)
from tests.plan.clusters import (
    API_SERVER,
    SCHEDULER,
    SOURCES,
    Kubelet,
    inventory_of,
    looked,
    planned,
    tripped,
    written,
)

GATE, UNREGISTER = "CSIMigrationAWS", "InTreePluginAWSUnregister"
ON, OFF = {GATE: True}, {GATE: False}
BLOCKER, WARNING = Weight.BLOCKER, Weight.WARNING
PORTWORX = "kubernetes.io/portworx-volume"


class Case(NamedTuple):
    """A cluster that trips a check, and what the check then says."""

    check: str
    weight: Weight
    says: tuple[str, ...]
    cluster: dict[str, Any]
    extra: tuple[Object, ...] = ()
    goal: str = "enable"


def used_by(*, kind: str = "StatefulSet", name: str = "web", **more: Any) -> tuple[Object, ...]:
    """A pod that uses the volume, and belongs to that."""
    owner = {"kind": kind, "name": name, "controller": True}
    metadata = {"ownerReferences": [owner]} if kind else {}
    claimed = pv("data", claimRef=claim_ref(), **SOURCES[AWS])
    return claimed, pod("web-0", claim="data", metadata=metadata, nodeName="n1", **more)


def workload(kind: str, **spec: Any) -> Object:
    return obj(kind, "web", "shop", spec={"template": {"spec": spec}})


def allowing(expected: int, desired: int, allowed: int) -> Object:
    return {
        "expectedPods": expected,
        "desiredHealthy": desired,
        "disruptionsAllowed": allowed,
        "currentHealthy": expected,
    }


SECRET = {
    "openstorage.io/auth-secret-name": "token",
    "openstorage.io/auth-secret-namespace": "portworx",
}
ONE_ON = (Kubelet(gates=ON), Kubelet())

TRIPS = {
    "kubelet newer": Case(
        "versions", BLOCKER, ("n2", "newer", "1.22"), {"kubelets": (Kubelet(), Kubelet("1.23.1"))}
    ),
    "kubelet too old": Case(
        "versions", BLOCKER, ("n1", "2 minors"), {"kubelets": (Kubelet("1.19.1"), Kubelet())}
    ),
    "kubelet far too old": Case(
        "versions", BLOCKER, ("n1", "3 minors"),
        {"server": "1.28.1", "kubelets": (Kubelet("1.24.1"), Kubelet())},
    ),
    "kubelet that says nothing": Case(
        "versions", BLOCKER, ("n9",), {}, (obj("Node", "n9", status={}),)
    ),
    "hidden flags": Case("control-plane", WARNING, ("does not show",), {"replicas": 0}),
    "hidden flags on the way back": Case(
        "control-plane", BLOCKER, ("does not show",),
        {"replicas": 0, "kubelets": (Kubelet(gates=ON),)}, goal="disable",
    ),
    "one controller": Case("control-plane", WARNING, ("one kube-controller",), {"replicas": 1}),
    "replicas differ": Case(
        "control-plane", BLOCKER, ("kube-controller-manager", "different"), {},
        (component(written(ON), on="z"),),
    ),
    "schedulers differ": Case(
        "control-plane", BLOCKER, ("kube-scheduler", "different"), {},
        (component(written(ON), component=SCHEDULER, on="z"),),
    ),
    "base gate off": Case(
        "base-gate", BLOCKER, ("kube-controller-manager",), {"gates": {"CSIMigration": False}}
    ),
    "base gate off in a kubelet": Case(
        "base-gate", BLOCKER, ("n1",),
        {"kubelets": (Kubelet(gates={"CSIMigration": False}), Kubelet()), "asked": True},
    ),
    "base gate off in the API server": Case(
        "base-gate", BLOCKER, (API_SERVER,), {},
        (component("--feature-gates=CSIMigration=false", component=API_SERVER),),
    ),
    "plugin given up by controllers that do not redirect": Case(
        "taken-away", BLOCKER, (UNREGISTER, "not redirected by kube-controller-manager"),
        {"gates": {UNREGISTER: True}, "kubelets": (Kubelet(gates=ON),)},
    ),
    "plugin given up before the nodes": Case(
        "taken-away", BLOCKER, (UNREGISTER, "n2"),
        {"gates": {**ON, UNREGISTER: True}, "kubelets": ONE_ON},
    ),
    "plugin given up when it will redirect": Case(
        "taken-away", BLOCKER, ("CSIMigrationAWSComplete",),
        {"server": "1.20.2", "gates": {"CSIMigrationAWSComplete": True}},
    ),
    "kubelet without the plugin": Case(
        "kubelets", BLOCKER, ("n1", AWS),
        {"kubelets": (Kubelet(gates={UNREGISTER: True}), Kubelet()), "asked": True},
    ),
    "driver not installed": Case("drivers", BLOCKER, (EBS,), {"installed": False}),
    "driver not on a node": Case(
        "drivers", BLOCKER, (EBS, "n2"), {"kubelets": (Kubelet(), Kubelet(drivers=()))}
    ),
    "node down": Case(
        "nodes", BLOCKER, ("n2", "not ready"), {"kubelets": (Kubelet(), Kubelet(ready="Unknown"))}
    ),
    "node cordoned": Case(
        "nodes", WARNING, ("n1", "cordoned"), {"kubelets": (Kubelet(cordoned=True), Kubelet())}
    ),
    "single node": Case("nodes", WARNING, ("one node",), {"kubelets": (Kubelet(),)}),
    "no CSINode": Case(
        "announced", BLOCKER, ("n9", "no CSINode"), {},
        (obj("Node", "n9", status={"nodeInfo": {"kubeletVersion": "v1.22.17"}}),),
    ),
    "node redirects alone": Case("announced", BLOCKER, ("n1", "pull out"),
                                 {"kubelets": ONE_ON}),
    "node does not say so": Case(
        "announced", BLOCKER, ("n1", AWS), {
            "gates": ON, "server": "1.26.1",
            "kubelets": (Kubelet(announces=False), Kubelet()),
        },
    ),
    "complete before every node": Case(
        "announced", BLOCKER, ("n2", AWS), {"gates": ON, "kubelets": ONE_ON}, goal="complete"
    ),
    "DaemonSet": Case("drain", BLOCKER, ("shop/web-0", "DaemonSet"), {}, used_by(kind="DaemonSet")),
    "static pod": Case("drain", BLOCKER, ("shop/web-0", "static"), {}, used_by(kind="Node")),
    "pod of nobody": Case("drain", BLOCKER, ("shop/web-0", "no controller"), {}, used_by(kind="")),
    "pod bound by name": Case(
        "drain", BLOCKER, ("shop/web-0", "by name"), {},
        (*used_by(), workload("StatefulSet", nodeName="n1")),
    ),
    "pod bound by name, of a Deployment": Case(
        "drain", BLOCKER, ("shop/web-0", "by name"), {},
        (*used_by(kind="ReplicaSet", name="web-5d4f8c7b9"), workload("Deployment", nodeName="n1")),
    ),
    "DaemonSet with a disk of its own": Case(
        "drain", BLOCKER, ("shop/log-1",), {},
        (
            pod(
                "log-1", volumes=[{"name": "v", "awsElasticBlockStore": {"volumeID": "vol-7"}}],
                metadata={
                    "ownerReferences": [{"kind": "DaemonSet", "name": "log", "controller": True}]
                },
            ),
        ),
    ),
    "budget without a status": Case(
        "budgets", BLOCKER, ("shop/web",), {}, (budget(spec={"maxUnavailable": 0}),)
    ),
    "budget of all": Case(
        "budgets", BLOCKER, ("shop/web",), {},
        (budget(spec={"minAvailable": 3}, status=allowing(3, 3, 0)),),
    ),
    "budget of half of one": Case(
        "budgets", BLOCKER, ("shop/web",), {},
        (budget(spec={"minAvailable": "50%"}, status=allowing(1, 1, 0)),),
    ),
    "budget that is used up": Case(
        "budgets", WARNING, ("shop/web",), {},
        (budget(spec={"maxUnavailable": 1}, status=allowing(3, 2, 0)),),
    ),
    "stuck attachment": Case(
        "volumes", WARNING, ("csi-1",), {"gates": ON, "kubelets": ONE_ON},
        (attachment(node="gone"),),
    ),
    "class that no driver takes": Case(
        "volumes", BLOCKER, ("StorageClass odd",), {},
        (
            storage_class(
                "odd", parameters={"zone": "a"},
                allowedTopologies=[{"matchLabelExpressions": []}],
            ),
        ),
    ),
    "cloud not reached": Case(
        "cloud", BLOCKER, ("cloud aws", "kube-controller-manager"),
        {"gates": ON, "kubelets": (Kubelet(gates=ON),), "flags": []}, goal="disable",
    ),
    "cloud run by the controllers": Case(
        "cloud-flags", WARNING, ("load balancers",),
        {"gates": ON, "kubelets": (Kubelet(gates=ON),)}, goal="complete",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TRIPS)
def test_what_is_wrong_is_found_and_named(name: str) -> None:
    case = TRIPS[name]
    found = tripped(looked(case.goal, AWS, *case.extra, **case.cluster), case.check)
    assert any(
        weight == case.weight and all(it in message for it in case.says)
        for weight, message in found
    ), found


SOUND: dict[str, tuple[str, dict[str, Any], tuple[Object, ...]]] = {
    "enable": ("enable", {}, ()),
    "disable": ("disable", {"gates": ON, "kubelets": (Kubelet(gates=ON),) * 2}, ()),
    "complete": (
        "complete",
        {"gates": ON, "kubelets": (Kubelet(gates=ON),) * 2, "flags": []},
        (storage_class(),),
    ),
    "nothing to go back from": ("disable", {"flags": []}, ()),
    "older kubelets": ("enable", {"server": "1.24.1", "kubelets": (Kubelet("1.22.1"),) * 2}, ()),
    "oldest kubelets": (
        "complete", {"server": "1.28.1", "flags": [], "kubelets": (Kubelet("1.25.1"),) * 2}, (),
    ),
    "pod of a StatefulSet": ("enable", {}, (*used_by(), workload("StatefulSet"))),
    "pinned, but without such a volume": ("enable", {}, (workload("Deployment", nodeName="n1"),)),
    "DaemonSet without such a volume": (
        "enable", {}, (workload("DaemonSet"), pod("log-1", claim="other")),
    ),
    "generous budget": (
        "enable", {}, (budget(spec={"minAvailable": "50%"}, status=allowing(4, 2, 2)),)
    ),
    "budget of nobody": (
        "enable", {}, (budget(spec={"maxUnavailable": 0}, status=allowing(0, 0, 0)),)
    ),
    "another plugin's class": (
        "enable", {}, (storage_class("odd", "kubernetes.io/gce-pd", parameters={"zone": "a"},
                                     allowedTopologies=[{"matchLabelExpressions": []}]),),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_cluster_passes(name: str) -> None:
    goal, cluster, extra = SOUND[name]
    checks = looked(goal, AWS, *extra, **cluster)
    # Most of these versions have controllers of which a person must know.
    checks = tuple(it for it in checks if it.check != "restarts")
    assert [it.message for it in checks if it.result is not Weight.PASSED] == []
    assert all(it.message for it in checks)


RESTARTS: dict[str, tuple[str, list[Weight]]] = {
    "1.21.1": (AWS, [Weight.BLOCKER, Weight.WARNING]),
    "1.21.2": (AWS, [Weight.WARNING]),
    "1.24.11": (AWS, [Weight.WARNING]),
    "1.24.12": (AWS, [Weight.PASSED]),
    "1.21.0": ("kubernetes.io/azure-file", [Weight.PASSED]),
}


@pytest.mark.parametrize("version", RESTARTS)
def test_versions_whose_controllers_detach_disks_when_they_start(version: str) -> None:
    plugin, expected = RESTARTS[version]
    checks = looked("enable", plugin, server=version, kubelets=(Kubelet(version),) * 2)
    assert [it.result for it in checks if it.check == "restarts"] == expected


@pytest.mark.parametrize(
    ("plugin", "fix"),
    [
        (AWS, f"replant drivers install aws-ebs; then: kubectl get csidriver {EBS}"),
        # Their vendors install these.
        (
            "kubernetes.io/portworx-volume",
            "Install it; then: kubectl get csidriver pxd.portworx.com",
        ),
        ("kubernetes.io/rbd", "Install it; then: kubectl get csidriver rbd.csi.ceph.com"),
    ],
)
def test_a_driver_that_is_missing_comes_by_a_command_of_ours(plugin: str, fix: str) -> None:
    checks = looked("enable", plugin, installed=False)
    (found,) = (it for it in checks if it.check == "drivers")
    assert (found.result, found.fix) == (Weight.BLOCKER, fix)


def test_many_objects_are_named_in_part_and_counted() -> None:
    ((_, message),) = tripped(looked("enable", kubelets=[Kubelet(drivers=())] * 8), "drivers")
    assert "n1, n2, n3, n4, n5 and 3 more" in message


@pytest.mark.parametrize(
    ("goal", "kind", "check"),
    [
        ("enable", "CSIDriver", "drivers"),
        ("enable", "Pod", "drain"),
        ("enable", "PodDisruptionBudget", "budgets"),
        ("complete", "StorageClass", "classes"),
    ],
)
def test_what_was_not_read_is_not_taken_for_absent(goal: str, kind: str, check: str) -> None:
    inventory = inventory_of(gates=ON, kubelets=(Kubelet(gates=ON),) * 2)
    inventory.unknown[kind] = "you may not"
    checks = preflight(Goal(goal), situation(inventory, (AWS,)))
    assert any("you may not" in message for _, message in tripped(checks, check))


SECURED = (PORTWORX, storage_class("px", PORTWORX, parameters=SECRET))


def portworx(name: str, *values: str, klass: str = "px") -> Object:
    """A volume with so many of the annotations."""
    annotations = dict(zip(SECRET, values, strict=False))
    spec = {"portworxVolume": {"volumeID": "1"}, "storageClassName": klass}
    return pv(name, metadata={"annotations": annotations}, **spec)


def test_with_portworx_security_on_volumes_are_annotated_before_any_switch() -> None:
    extra = (
        portworx("bare"),
        portworx("half", "mine"),
        portworx("done", "mine", "shop"),
    )
    plan = planned("enable", *SECURED, *extra, volume=False, server="1.25.1")
    assert [step.id for step in plan.steps] == [
        "annotate-volumes", "switch-control-plane", "roll-nodes",
    ]  # fmt: skip
    first = plan.steps[0]
    volumes = {it.name: (it.annotations, it.before) for it in getattr(first, "volumes")}  # noqa: B009
    name, namespace = SECRET
    assert volumes == {
        "bare": (SECRET, {name: None, namespace: None}),
        "half": ({**SECRET, name: "mine"}, {name: "mine", namespace: None}),
    }
    assert tripped(plan.preflight, "secrets") == []


def test_a_secret_that_nothing_tells_is_a_blocker() -> None:
    checks = looked(
        "enable", *SECURED, portworx("lost", klass="other"), volume=False, server="1.25.1"
    )
    ((weight, message),) = tripped(checks, "secrets")
    assert weight is BLOCKER
    assert "lost" in message


def test_without_security_no_volume_is_annotated() -> None:
    plan = planned("enable", PORTWORX, portworx("bare"), server="1.25.1")
    assert "annotate-volumes" not in [step.id for step in plan.steps]
    assert tripped(plan.preflight, "secrets") == []


def test_what_is_said_of_hidden_controllers_counts_for_the_volumes_too() -> None:
    """At 1.24 they redirect by default; these do not, and their volumes are marked accordingly."""
    metadata = {"annotations": {"pv.kubernetes.io/provisioned-by": AWS}}
    cluster = inventory_of(
        AWS,
        pv("provisioned", metadata=metadata, **SOURCES[AWS]),
        server="1.24.17",
        replicas=0,
        kubelets=(Kubelet(gates=OFF), Kubelet(gates=OFF)),
    )
    unsaid, said = (situation(cluster, (AWS,), gates) for gates in (None, OFF))
    assert "RP110" in str(tripped(preflight(Goal.ENABLE, unsaid), "volumes"))
    assert "RP110" not in str(tripped(preflight(Goal.ENABLE, said), "volumes"))
