"""The operator of drivers on real Kubernetes: with real kopf, real CRDs and the role that ships.

Nothing runs there but the API server: what controllers and kubelets would say of a rollout is
said by the test.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from replant.cli.operator import read_values
from replant.cluster.live import connect
from replant.cluster.writing import LiveWriter
from replant.drivers.catalog import DRIVERS
from replant.drivers.classes import class_table, storage_class
from replant.drivers.kinds import GROUP
from replant.drivers.naming import names_of
from replant.drivers.operand import Split
from replant.drivers.settings import Settings
from replant.errors import ReplantError
from replant.operator import driver_run
from replant.operator import drivers as operator_of_drivers
from replant.operator.driver_run import Asked, drivers
from replant.operator.driver_sight import resource_of
from replant.operator.run import Running, Where
from replant.sandbox.controllers.openshift import objects as openshift
from tests.drivers.test_adoption import workload
from tests.operators.granting import operands
from tests.real.ground import programs
from tests.real.ground.api import Object, Refused
from tests.real.ground.controlplane import ControlPlane
from tests.real.ground.processes import wait_for

DEPLOY = Path(__file__).parents[2] / "deploy"
CRDS = DEPLOY / "drivers/crds.yaml"
SHIPPED = ("rbac/drivers.yaml", "rbac/drivers-adopt.yaml", "drivers/operator.yaml")
SEED = Split("shoot--garden--one", "shoot-access")
BUILT_IN = "openshift.io", "snapshot.storage.k8s.io"
CR = f"/apis/{GROUP}/v1/awsebsdrivers/cluster"
NAMESPACE = "openshift-aws-ebs-csi-driver"
DEPLOYMENT = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/aws-ebs-csi-driver-controller"
DAEMON_SET = f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets/aws-ebs-csi-driver-node"
NOT_FOUND, UNPROCESSABLE = 404, 422


@pytest.fixture(scope="module", params=["old", "new"])
def plane(request: pytest.FixtureRequest, ground: Path) -> Iterator[ControlPlane]:
    """One of its own: namespaces cannot be cleared away where no controller does it."""
    with with_definitions(request.param, ground / f"drivers-{request.param}") as plane:
        yield plane


@contextmanager
def with_definitions(age: str, folder: Path) -> Iterator[ControlPlane]:
    """A control plane, the old or the new one, that serves the CRs of drivers."""
    version = programs.OLD if age == "old" else programs.newest()
    with ControlPlane(version, folder) as plane:
        with plane.api.client() as http:
            for obj in yaml.safe_load_all(CRDS.read_text()):
                path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
                assert http.post(path, json=obj).status_code == 201
        for driver in DRIVERS.values():
            plane.wait_served(f"/apis/{GROUP}/v1/{driver.plural}")
        yield plane


def ask(plane: ControlPlane, method: str, path: str, body: Any = None, **more: Any) -> Any:
    merge = {"Content-Type": "application/merge-patch+json"} if method == "PATCH" else {}
    with plane.api.client() as http:
        answer = http.request(method, path, json=body, headers=merge, **more)
    if not answer.is_success:
        raise Refused(answer)
    return answer.json()


def find(plane: ControlPlane, path: str) -> Any:
    try:
        return ask(plane, "GET", path)
    except Refused as refusal:
        if refusal.code != NOT_FOUND:
            raise
        return None


def test_one_of_a_kind_is_taken(plane: ControlPlane) -> None:
    for driver in DRIVERS.values():
        for version in ("v1", "v1alpha1"):
            path = f"/apis/{GROUP}/{version}/{driver.plural}"
            cr: Object = {"apiVersion": f"{GROUP}/{version}", "kind": driver.kind}
            dry = {"dryRun": "All"}
            ask(plane, "POST", path, {**cr, "metadata": {"name": "cluster"}}, params=dry)
            for wrong in (
                {"metadata": {"name": "other"}},
                {"metadata": {"name": "cluster"}, "spec": {"logLevel": "Loud"}},
                {"metadata": {"name": "cluster"}, "spec": {"managementState": "Mine"}},
            ):
                with pytest.raises(Refused) as refused:
                    ask(plane, "POST", path, {**cr, **wrong}, params=dry)
                assert refused.value.code == UNPROCESSABLE


def test_every_manifest_is_taken(plane: ControlPlane) -> None:
    """By server-side apply, which refuses every field that the schema has not."""
    everything = [
        it
        for it in (*operands(), *operands(SEED))
        if not any(g in it["apiVersion"] for g in BUILT_IN)
    ]
    everything += [
        storage_class(driver, of, "false", None)
        for driver in DRIVERS.values()
        for of in class_table(driver, Settings(), names_of(driver, None, {}), ("gold",))
    ]
    everything.append(named("v1", "Namespace", SEED.namespace))
    for it in SHIPPED:
        everything += yaml.safe_load_all((DEPLOY / it).read_text())
    # A namespace has to be there even for a rehearsal.
    everything.sort(key=lambda it: it["kind"] != "Namespace")
    assert {it["kind"] for it in everything} == {
        "Namespace", "CSIDriver", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role",
        "RoleBinding", "ConfigMap", "Deployment", "PodDisruptionBudget", "DaemonSet",
        "StorageClass",
    }  # fmt: skip

    async def main() -> None:
        async with connect(str(plane.kubeconfig())) as reader:
            writer = LiveWriter(reader, "replant-drivers")
            for obj in everything:
                namespace = obj["metadata"].get("namespace", "")
                if obj["kind"] == "Namespace":
                    await writer.apply(resource_of("Namespace"), obj)
                await writer.apply(
                    resource_of(obj["kind"]), obj, namespace=namespace, rehearsed=True
                )
            csi = next(it for it in everything if it["kind"] == "CSIDriver")
            wrong = {**csi, "spec": {"attachRequired": True, "unheardOf": True}}
            with pytest.raises(ReplantError, match="unheardOf"):
                await writer.apply(resource_of("CSIDriver"), wrong, rehearsed=True)

    asyncio.run(main())


@contextmanager
def operating(kubeconfig: Path) -> Iterator[list[str]]:
    """The operator, in a thread; what it says."""
    notes: list[str] = []
    running, loops, ended = Running(), [], []
    up = threading.Event()

    async def main() -> None:
        loops.append(asyncio.get_running_loop())
        up.set()
        asked = Asked(Where(str(kubeconfig)), read_values(None))
        await drivers(asked, note=notes.append, pause=lambda _tries: 0.5)(running)

    def live() -> None:
        try:
            asyncio.run(main())
        except BaseException as error:  # noqa: BLE001 - told by the test
            ended.append(error)

    thread = threading.Thread(target=live)
    thread.start()
    up.wait()
    try:
        yield notes
    finally:
        loops[0].call_soon_threadsafe(running.stop.set)
        thread.join(60)
    assert not ended, (ended, notes)
    assert not thread.is_alive()


def conditions(plane: ControlPlane, cr: str = CR) -> dict[str, tuple[str, str]]:
    found = (find(plane, cr) or {}).get("status") or {}
    return {it["type"]: (it["status"], it["reason"]) for it in found.get("conditions") or ()}


def test_a_driver_is_installed_kept_and_left_alone(plane: ControlPlane) -> None:
    kubeconfig = plane.role_kubeconfig("drivers")
    for name in ("n-1", "n-2"):
        spec = {"providerID": f"aws:///us-east-1a/{name}"}
        plane.api.create(
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": spec}
        )
    with operating(kubeconfig) as notes:

        def told() -> tuple[str, str]:
            return conditions(plane).get("Progressing", ("", ""))

        wait_for(lambda: told()[0] == "True", "that credentials are waited for", 30)
        assert find(plane, "/apis/storage.k8s.io/v1/csidrivers/ebs.csi.aws.com")
        assert find(plane, DEPLOYMENT) is None
        metadata = {"name": "ebs-cloud-credentials", "namespace": NAMESPACE}
        plane_secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
        ask(plane, "POST", f"/api/v1/namespaces/{NAMESPACE}/secrets", plane_secret)
        wait_for(lambda: find(plane, DAEMON_SET), "the DaemonSet", 60)
        wait_for(
            lambda: find(plane, "/apis/storage.k8s.io/v1/storageclasses/gp2-csi"), "classes", 30
        )
        rolled_out(plane)
        wait_for(lambda: conditions(plane).get("Available") == ("True", "AsExpected"), "it", 30)
        wait_for(lambda: told() == ("False", "AsExpected"), "the end of the rollout", 30)
        # Drift is put right.
        image = {"name": "csi-driver", "image": "theirs"}
        change = {"spec": {"template": {"spec": {"containers": [image]}}}}
        before = find(plane, DEPLOYMENT)["spec"]["template"]["spec"]["containers"]
        strategic = {"Content-Type": "application/strategic-merge-patch+json"}
        with plane.api.client() as http:
            assert http.patch(DEPLOYMENT, json=change, headers=strategic).is_success
        wait_for(
            lambda: find(plane, DEPLOYMENT)["spec"]["template"]["spec"]["containers"] == before,
            "what it was", 30,
        )  # fmt: skip
        # A default driver comes back.
        uid = find(plane, CR)["metadata"]["uid"]
        ask(plane, "DELETE", CR)
        wait_for(lambda: (find(plane, CR) or {"metadata": {"uid": uid}})["metadata"]["uid"] != uid,
                 "its CR", 30)  # fmt: skip
        rolled_out(plane)
        wait_for(lambda: conditions(plane).get("Available") == ("True", "AsExpected"), "it", 30)
        quiet(plane)
        # Hands off.
        ask(plane, "PATCH", CR, {"spec": {"managementState": "Unmanaged"}})
        wait_for(lambda: told() == ("Unknown", "Unmanaged"), "that it is unmanaged", 30)
        ask(plane, "DELETE", DEPLOYMENT)
        quiet(plane)
        assert find(plane, DEPLOYMENT) is None
        second(kubeconfig)
    refused = [it for it in asked_by(plane) if it["responseStatus"]["code"] in (401, 403)]
    assert [(it["verb"], it["requestURI"]) for it in refused] == [], notes


OPERATORS, CSV = "openshift-operators", "aws-ebs-csi-driver-operator.v4.5"
OLM = f"/apis/operators.coreos.com/v1alpha1/namespaces/{OPERATORS}"
OLD_OPERATOR = f"/apis/apps/v1/namespaces/{OPERATORS}/deployments/aws-ebs-csi-driver-operator"
CLUSTER_OPERATOR = "/apis/config.openshift.io/v1/clusteroperators/storage"
STORAGE = "/apis/operator.openshift.io/v1/storages/cluster"
REQUEST = (
    "/apis/cloudcredential.openshift.io/v1/namespaces/openshift-cloud-credential-operator"
    "/credentialsrequests/openshift-aws-ebs-csi-driver"
)


def become_openshift(plane: ControlPlane) -> None:
    """Its definitions, and a driver whose operator OLM has installed."""
    for it in openshift.definitions(()):
        ask(plane, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", it)
    for it in openshift.definitions(()):
        spec = it["spec"]
        plane.wait_served(
            f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
        )
    config = "/apis/config.openshift.io/v1/infrastructures"
    for path, obj in (
        (config, named("config.openshift.io/v1", "Infrastructure", "cluster", spec={})),
        (STORAGE.rpartition("/")[0], named("operator.openshift.io/v1", "Storage", "cluster")),
        ("/api/v1/namespaces", named("v1", "Namespace", "openshift-cloud-credential-operator")),
        ("/api/v1/namespaces", named("v1", "Namespace", OPERATORS)),
    ):
        ask(plane, "POST", path, obj)
    platform = {"status": {"platformStatus": {"type": "AWS"}}}
    ask(plane, "PATCH", f"{config}/cluster/status", platform)
    labels = {"name": "o"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    package = {
        "name": "aws-ebs-csi-driver-operator",
        "source": "redhat-operators",
        "sourceNamespace": "openshift-marketplace",
    }
    olm = "operators.coreos.com/v1alpha1"
    ask(plane, "POST", f"{OLM}/subscriptions", named(olm, "Subscription", "sub", spec=package))
    status = {"status": {"currentCSV": CSV}}
    ask(plane, "PATCH", f"{OLM}/subscriptions/sub/status", status)
    ask(plane, "POST", f"{OLM}/clusterserviceversions", named(olm, "ClusterServiceVersion", CSV))
    spec = {"selector": {"matchLabels": labels}, "template": pod}
    old = named("apps/v1", "Deployment", "aws-ebs-csi-driver-operator", spec=spec)
    ask(plane, "POST", OLD_OPERATOR.rpartition("/")[0], old)


def named(api_version: str, kind: str, name: str, **more: Any) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **more}


CSI_DRIVER = "/apis/storage.k8s.io/v1/csidrivers/ebs.csi.aws.com"


def install_by_olm(plane: ControlPlane) -> None:
    """An operand that Replant has never made, under the names that both have for it."""
    for path in (DAEMON_SET, CSI_DRIVER):
        ask(plane, "DELETE", path)
    managed = {"csi.openshift.io/managed": "true"}
    csi = named("storage.k8s.io/v1", "CSIDriver", "ebs.csi.aws.com")
    csi["metadata"]["annotations"] = managed
    csi["spec"] = {"attachRequired": True, "fsGroupPolicy": "ReadWriteOnceWithFSType"}
    ask(plane, "POST", CSI_DRIVER.rpartition("/")[0], csi)
    for path, kind, sidecar in (
        (DEPLOYMENT, "Deployment", "csi-provisioner"),
        (DAEMON_SET, "DaemonSet", "csi-node-driver-registrar"),
    ):
        where, _, name = path.rpartition("/")
        obj = workload(DRIVERS["ebs.csi.aws.com"], kind, name, NAMESPACE, sidecar, "theirs")
        del obj["metadata"]["uid"]
        ask(plane, "POST", where, {"apiVersion": "apps/v1", **obj})


def taken_over(plane: ControlPlane, paths: tuple[str, ...], before: list[Object]) -> None:
    """Same workloads, new content: nothing is left of the old but what cannot be changed."""
    for path, was in zip(paths, before, strict=True):
        found = find(plane, path)
        assert found["metadata"]["uid"] == was["metadata"]["uid"]
        assert found["spec"]["selector"] == was["spec"]["selector"]
        assert found["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "replant"
        containers = found["spec"]["template"]["spec"]["containers"]
        assert "theirs" not in {it["name"] for it in containers}
        assert "registry.example" not in str(containers)


def test_an_operator_of_olms_is_taken_over_from(plane: ControlPlane) -> None:
    """With an operator that is stopped on the way, and another that goes on."""
    kubeconfig = plane.role_kubeconfig("drivers")
    become_openshift(plane)
    install_by_olm(plane)
    theirs = [find(plane, it) for it in (DEPLOYMENT, DAEMON_SET)]
    daemon_set = theirs[1]["metadata"]
    since = len(asked_by(plane))
    ask(plane, "PATCH", CR, {"spec": {"managementState": "Managed"}})
    waiting = ("True", "RemovingOLMOperator")
    with operating(kubeconfig):
        wait_for(lambda: conditions(plane).get("Progressing") == waiting, "the first step", 40)
        wait_for(lambda: not find(plane, f"{OLM}/subscriptions/sub"), "no Subscription", 30)
    kept = find(plane, STORAGE)["metadata"]["annotations"]
    assert kept == {
        "replant.dev/aws-ebs-olm-namespace": OPERATORS,
        "replant.dev/aws-ebs-olm-csv": CSV,
    }
    with operating(kubeconfig):
        path = f"{OLM}/clusterserviceversions/{CSV}"
        wait_for(lambda: not find(plane, path), "no version", 40)
        wait_for(
            lambda: "waiting for OLM" in str(find(plane, CR)["status"]),
            "that OLM is waited for",
            30,
        )
        assert conditions(plane)["Available"] == ("False", "RemovingOLMOperator")
        now = find(plane, DAEMON_SET)["metadata"]
        assert (now["uid"], now["generation"]) == (daemon_set["uid"], daemon_set["generation"])
        ask(plane, "DELETE", OLD_OPERATOR)
        wait_for(lambda: find(plane, REQUEST), "the request for credentials", 40)
        ask(plane, "PATCH", f"{REQUEST}/status", {"status": {"provisioned": True}})
        wait_for(
            lambda: all(
                "theirs" not in str(find(plane, it)["spec"]["template"]["spec"]["containers"])
                for it in (DEPLOYMENT, DAEMON_SET)
            ),
            "the driver's own content",
            40,
        )
        rolled_out(plane)
        wait_for(lambda: conditions(plane).get("Available") == ("True", "AsExpected"), "it", 40)

        def said() -> dict[str, tuple[str, str, str]]:
            found = (find(plane, CLUSTER_OPERATOR) or {}).get("status", {}).get("conditions", ())
            return {it["type"]: (it["status"], it["reason"], it["message"]) for it in found}

        well = ("True", "AsExpected", "All is well")
        wait_for(lambda: said().get("Available") == well, "that all is well", 30)
        wait_for(lambda: said().get("Progressing") == ("False", *well[1:]), "the end of it", 30)
        assert said()["Degraded"] == ("False", *well[1:])
    deleted = [it["objectRef"]["resource"] for it in asked_by(plane)[since:]
               if it["verb"] == "delete"]  # fmt: skip
    # A CSIDriver cannot be changed in every release; no pod that runs minds.
    assert deleted == ["subscriptions", "clusterserviceversions", "csidrivers"]
    assert find(plane, CSI_DRIVER)["spec"]["fsGroupPolicy"] == "File"
    taken_over(plane, (DEPLOYMENT, DAEMON_SET), theirs)
    refused = [it for it in asked_by(plane) if it["responseStatus"]["code"] in (401, 403)]
    assert [(it["verb"], it["requestURI"]) for it in refused] == []


def rolled_out(plane: ControlPlane, *paths: str) -> None:
    """Say what controllers would."""
    for path in paths or (DEPLOYMENT, DAEMON_SET):
        found = find(plane, path)
        status: Object = {"observedGeneration": found["metadata"]["generation"]}
        if found["kind"] == "Deployment":
            count = found["spec"]["replicas"]
            pods = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
            status |= dict.fromkeys(pods, count)
        else:
            kinds = ("currentNumberScheduled", "desiredNumberScheduled", "numberReady",
                     "numberAvailable", "updatedNumberScheduled")  # fmt: skip
            status |= {**dict.fromkeys(kinds, 2), "numberMisscheduled": 0}
        ask(plane, "PATCH", f"{path}/status", {"status": status})


def asked_by(plane: ControlPlane) -> list[Object]:
    return [
        it for it in plane.asked_by_roles() if it["user"]["username"].endswith(":replant-drivers")
    ]


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is looked at again every second: what is written then would be seen."""
    monkeypatch.setattr(operator_of_drivers, "RESYNC", 1.0)
    monkeypatch.setattr(driver_run, "RESYNC", 1.0)


def quiet(plane: ControlPlane) -> None:
    """Nothing is written for a while but that somebody is at work."""

    def written() -> list[str]:
        reads = ("get", "list", "watch")
        return [
            f"{it['verb']} {it['requestURI']}"
            for it in asked_by(plane)
            if it["verb"] not in reads and "/leases" not in it["requestURI"]
        ]

    time.sleep(3)
    before = written()
    time.sleep(5)
    assert written() == before


def second(kubeconfig: Path) -> None:
    """Another one stands down, says so, and writes nothing."""
    with operating(kubeconfig) as notes:
        wait_for(lambda: any("standing down" in it for it in notes), "that it stands down", 40)
    assert any("is at work in this cluster" in it for it in notes)
