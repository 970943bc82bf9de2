"""The role that ships may do what the operator of drivers does, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from replant.cli.operator import DRIVERS as CONTROLLER
from replant.cli.operator import command
from replant.drivers.catalog import DRIVERS
from replant.drivers.crds import crds
from replant.drivers.kinds import KINDS
from replant.objects import Object
from replant.operator.health import HEALTH, READY
from tests.definitions import definition
from tests.drivers.test_adoption import workload
from tests.operators.driving import World, cloud, openshift, run
from tests.operators.granting import Right, operands, passed_on, rights
from tests.operators.test_drivers import by_olm, claimed, cr, lived, secret, two_types, whole_secret

EBS = DRIVERS["ebs.csi.aws.com"]
DEPLOY = Path(__file__).parents[2] / "deploy"
VERBS = {"PATCH": "patch", "POST": "create", "DELETE": "delete", "PUT": "update"}
BY_THE_PROCESS = {
    ("create", "", "events"),
    ("get", "", "namespaces"),
    *(("list", "csi.openshift.io", it.plural) for it in DRIVERS.values()),
    ("list", "storage.k8s.io", "csidrivers"),
    ("list", "config.openshift.io", "infrastructures"),
    ("list", "operator.openshift.io", "storages"),
}
"""What is asked by whoever runs it: tried on real Kubernetes."""
NOTED = {("patch", "csi.openshift.io", it.plural) for it in DRIVERS.values() if not it.own_operator}
"""What a CR keeps in mind while a class is made anew, which any driver may have to do."""


def shipped(name: str) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for it in yaml.safe_load_all((DEPLOY / name).read_text()):
        found.setdefault(it["kind"], []).append(it)
    return found


def granted(role: str) -> set[Right]:
    [found] = [
        it for it in shipped("rbac/drivers.yaml")["ClusterRole"] if it["metadata"]["name"] == role
    ]
    return set(rights(found["rules"]))


def asked(world: World) -> set[Right]:
    return {right for method, path in world.asked if (right := _right(method, path))}


def _right(method: str, path: str) -> Right | None:
    base, *rest = path.strip("/").split("/")
    group = rest.pop(0) if base == "apis" and rest else ""
    if len(rest) < 2:
        return None  # what is served is told to everybody
    del rest[0]
    if rest[0] == "namespaces" and len(rest) > 2:
        del rest[:2]
    resource, *name = rest
    if name[1:]:
        resource = f"{resource}/{name[1]}"
    verb = VERBS.get(method) or ("get" if name else "list")
    return verb, group, resource, name[0] if name else ""


SNAPSHOTS = "snapshot.storage.k8s.io"
OTHERS = (
    definition("VolumeSnapshotClass", "volumesnapshotclasses", SNAPSHOTS),
    definition("VolumeSnapshotContent", "volumesnapshotcontents", SNAPSHOTS),
    definition("VolumeSnapshot", "volumesnapshots", SNAPSHOTS, "Namespaced"),
    definition("StorageCluster", "storageclusters", "core.libopenstorage.org", "Namespaced"),
)


@pytest.fixture(scope="module")
def done() -> set[Right]:
    """What is asked of a cluster in all that may happen to a driver."""
    found: set[Right] = set()
    for platform in ("AWS", "GCP", "Azure", "OpenStack"):
        told = openshift(platform, classes=())
        world = World(told, (*OTHERS, cr("PortworxDriver"), *secrets(platform)))
        lived(world, 180, shares=two_types)
        found |= asked(world)
    world = by_olm()
    lived(world, 180)
    found |= asked(world)
    told = openshift("VSphere", classes=())
    world = World(told, (*OTHERS, cr("VSphereDriver"), *secrets("VSphere")))
    operator = lived(world, 180)
    assert claimed(world, "data", "thin-csi") == "Running"
    world.delete("VSphereDriver")
    run(operator.live(30))
    for kind in ("Pod", "PersistentVolumeClaim"):
        world.delete(kind, "data", "default")
        world.cluster.run_for(120)
    run(operator.live(120))
    assert world.get("VSphereDriver") is None
    found |= asked(world)
    world = World(cloud("aws"), (foreign(), cr("AWSEBSDriver", adoption="Adopt")))
    lived(world, 60)
    return found | asked(world)


def secrets(platform: str) -> list[Object]:
    """What OpenShift gives only in part, but on AWS."""
    here = [it.name for it in DRIVERS.values() if it.cloud == platform and platform != "AWS"]
    return [obj for name in here for obj in whole_secret(name)]


def foreign() -> Object:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": "ebs.csi.aws.com"},
        "spec": {"attachRequired": True},
    }


def test_the_role_may_what_is_done(done: set[Right]) -> None:
    [role] = shipped("rbac/drivers.yaml")["Role"]
    may = granted("replant-drivers") | set(rights(role["rules"]))
    assert {it for it in done if not _allowed(it, may)} == set()


def test_what_the_role_may_is_done(done: set[Right]) -> None:
    may = {it[:3] for it in granted("replant-drivers") if it[0] != "watch"}
    assert may - {it[:3] for it in done} - BY_THE_PROCESS - NOTED == set()


def test_taking_over_from_others_needs_the_other_role_too() -> None:
    """What Helm has installed has names of its own, and keeps them."""
    helm = {"app.kubernetes.io/managed-by": "Helm"}
    csi = foreign()
    csi["metadata"]["labels"] = helm
    csi["spec"] |= {"podInfoOnMount": False, "fsGroupPolicy": "File"}
    parts = [
        workload(EBS, "Deployment", "ebs-csi-controller", "kube-system", "csi-provisioner"),
        workload(EBS, "DaemonSet", "ebs-csi-node", "kube-system", "node-driver-registrar"),
    ]
    for it in parts:
        del it["metadata"]["uid"]
    world = World(
        cloud("aws"),
        (
            csi,
            *({"apiVersion": "apps/v1", **it} for it in parts),
            secret(namespace="kube-system"),
            cr("AWSEBSDriver", adoption="Adopt"),
        ),
    )
    lived(world, 300)
    assert world.conditions("AWSEBSDriver")["Available"][0] == "True"
    assert world.names("DaemonSet") == {"ebs-csi-node"}
    [role] = shipped("rbac/drivers.yaml")["Role"]
    [more] = shipped("rbac/drivers-adopt.yaml")["ClusterRole"]
    may = granted("replant-drivers") | set(rights(role["rules"]))
    lacking = {it for it in asked(world) if not _allowed(it, may)}
    assert lacking
    assert {it for it in lacking if not _allowed(it, set(rights(more["rules"])))} == set()


def _allowed(right: Right, may: set[Right]) -> bool:
    return right in may or (*right[:3], "") in may


def test_names_are_those_of_what_drivers_consist_of() -> None:
    names: dict[str, set[str]] = {}
    for it in operands():
        names.setdefault(KINDS[it["kind"]].plural, set()).add(it["metadata"]["name"])
    names["namespaces"].add("replant-system")
    names["secrets"] = {it.secret for it in DRIVERS.values() if not it.own_operator}
    names["clusteroperators"] = names["clusteroperators/status"] = {"storage"}
    said: dict[str, set[str]] = {}
    for _, _, resource, name in granted("replant-drivers"):
        if name:
            said.setdefault(resource, set()).add(name)
    assert said == names


def test_what_is_not_named_is_little() -> None:
    changes = {"create", "update", "patch", "delete"}
    anything = {it[1:3] for it in granted("replant-drivers") if it[0] in changes and not it[3]}
    crs = {("csi.openshift.io", it) for driver in DRIVERS.values()
           for it in (driver.plural, f"{driver.plural}/status")}  # fmt: skip
    assert anything - crs == {
        ("", "events"),
        ("config.openshift.io", "clusteroperators"),
        ("operator.openshift.io", "storages"),
        ("storage.k8s.io", "storageclasses"),
        ("operators.coreos.com", "subscriptions"),
        ("operators.coreos.com", "clusterserviceversions"),
    }


def test_what_drivers_may_can_be_granted_and_no_more() -> None:
    assert granted("replant-drivers-grants") == passed_on()


def test_definitions_are_those_of_the_code() -> None:
    assert shipped("drivers/crds.yaml")["CustomResourceDefinition"] == crds()


def test_the_operator_runs_as_who_has_the_role() -> None:
    role, deployed = shipped("rbac/drivers.yaml"), shipped("drivers/operator.yaml")
    [account] = role["ServiceAccount"]
    [deployment] = deployed["Deployment"]
    assert deployment["metadata"]["namespace"] == account["metadata"]["namespace"]
    pod = deployment["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == account["metadata"]["name"]
    for binding in (*role["ClusterRoleBinding"], *role["RoleBinding"]):
        assert binding["subjects"] == [{"kind": "ServiceAccount", **account["metadata"]}]
    [container] = pod["containers"]
    first, *arguments = container["args"]
    given = command.make_context(first, arguments).params
    assert given["controllers"] == (CONTROLLER,)
    [port] = container["ports"]
    assert given["health_port"] == port["containerPort"]
    probes = [container[it]["httpGet"] for it in ("livenessProbe", "readinessProbe")]
    assert [(it["path"], it["port"]) for it in probes] == [(it, port["name"])
                                                           for it in (HEALTH, READY)]  # fmt: skip
