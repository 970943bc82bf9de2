"""A seed of Gardener on a real API server, with Gardener's own definitions and our own role.

The shoot's API server is the seed's: its kubeconfig leads to the same one, as another user.
"""

from __future__ import annotations

import base64
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from replant.gardener.shoots import FINISHED, NEEDS_COMPLETE
from tests.gardener.objects import AWS, NAMESPACE, cluster, deployment, shoot
from tests.operators.seeds import (
    SCENARIO,
    attend,
    control_plane,
    node,
    secret,
    storage_class,
    stored,
)
from tests.real.ground import programs
from tests.real.ground.api import Refused
from tests.real.ground.controlplane import ControlPlane
from tests.real.ground.processes import Process, free_port, wait_for
from tests.real.ground.toll import Toll, Write

DEPLOY = Path(__file__).parents[2] / "deploy" / "gardener"
DEPLOYMENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
LEGACY = ("default", "gp2")
CLUSTER = f"/apis/extensions.gardener.cloud/v1alpha1/clusters/{NAMESPACE}"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
CONTROL_PLANE = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
WRITES = [
    *(("DELETE", f"{CLASSES}/{it}") for it in LEGACY),
    ("PATCH", CLUSTER),
    *(("PATCH", f"{CONTROL_PLANE}/{it}") for it in DEPLOYMENTS),
    ("PATCH", CLUSTER),
]
"""All that a migration writes, in this order."""
BOTH = {NEEDS_COMPLETE: "true", FINISHED: "true"}
GATES = "CSIMigration=true,CSIMigrationAWS=true"
SHOOT_USER = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "shoot-user"},
    "roleRef": {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole",
        "name": "cluster-admin",
    },
    "subjects": [{"kind": "ServiceAccount", "name": "shoot-user", "namespace": "garden-dev"}],
}


def named(kind: str, name: str, namespace: str = "", **meta: Any) -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {}), **meta}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata}


def kubeconfig_of(server: str, token: str) -> str:
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": server}}],
            "users": [{"name": "u", "user": {"token": token}}],
        }
    )


def definitions() -> Iterator[dict[str, Any]]:
    """Gardener's own, and one that stands in for Shoots, which an API server of its own serves."""
    for path in programs.gardener().folder.iterdir():
        yield from (it for it in yaml.safe_load_all(path.read_text()) if it)
    for obj in yaml.safe_load(SCENARIO.read_text())["objects"]:
        if obj["metadata"]["name"] == "shoots.core.gardener.cloud":
            yield obj


@dataclass
class Seed:
    """A seed that is its own shoot, and the way on which the operator comes to it."""

    plane: ControlPlane
    toll: Toll
    operators: Path
    """The kubeconfig of the operator, who has the role that ships and nothing more."""

    @property
    def kubeconfig(self) -> Path:
        return self.operators

    def operator(self, *more: str) -> Process:
        command = [sys.executable, "-m", "replant", "operator", "--provider", "aws"]
        command += ["--kubeconfig", str(self.operators), *more]
        return Process("operator", command, self.plane.folder)

    def migrates(self) -> Process:
        return self.operator("--controllers", "gardener-csi-migration")

    def fill(self) -> None:
        """A shoot as it is when all of its machines were rolled."""
        for name in LEGACY:
            self.plane.api.create(storage_class(name, "kubernetes.io/aws-ebs"))
        self.plane.api.create(storage_class("own", "kubernetes.io/aws-ebs"))
        self.plane.api.create(stored(cluster()))

    def empty(self) -> None:
        self.plane.api.delete("Cluster", NAMESPACE)
        for found in self.plane.api.list("StorageClass"):
            self.plane.api.delete("StorageClass", found["metadata"]["name"])

    def annotations(self) -> dict[str, str]:
        found: dict[str, str] = self.plane.api.get("Cluster", NAMESPACE)["metadata"].get(
            "annotations", {}
        )
        return found

    def classes(self) -> set[str]:
        return {it["metadata"]["name"] for it in self.plane.api.list("StorageClass")}

    def is_finished(self) -> bool:
        return FINISHED in self.annotations()

    def command_of(self, name: str) -> list[str]:
        spec = self.plane.api.get("Deployment", name, NAMESPACE)["spec"]
        words: list[str] = spec["template"]["spec"]["containers"][1]["command"]
        return words[1:]


@pytest.fixture(scope="module", params=["old", "new"])
def seed(request: pytest.FixtureRequest, ground: Path) -> Iterator[Seed]:
    version = {"old": programs.OLD, "new": programs.newest()}[request.param]
    with ControlPlane(version, ground / f"gardener-{request.param}") as plane:
        api = plane.api
        for definition in definitions():
            api.create(definition)
        label = {"shoot.gardener.cloud/provider": "aws"}
        api.create(named("Namespace", NAMESPACE, labels=label))
        for namespace in ("garden-dev", "default"):
            if not api.find("Namespace", namespace):
                api.create(named("Namespace", namespace))
        api.create(named("ServiceAccount", "shoot-user", "garden-dev"))
        api.create(SHOOT_USER)
        for it in ("clusters", "controlplanes"):
            plane.wait_served(f"/apis/extensions.gardener.cloud/v1alpha1/{it}")
        plane.wait_served("/apis/core.gardener.cloud/v1beta1/shoots")
        role = yaml.safe_load(plane.role_kubeconfig("gardener").read_text())
        server = role["clusters"][0]["cluster"]["server"]
        with Toll(server, plane.folder / "ca.crt") as toll:
            operators = plane.folder / "operators.kubeconfig"
            operators.write_text(kubeconfig_of(toll.address, role["users"][0]["user"]["token"]))
            user = api.token("shoot-user", "garden-dev")
            api.create(secret(kubeconfig_of(toll.address, user)))
            [plane_object, *_deployments] = control_plane()
            api.create(plane_object)
            ready = node("n", "v1.18.0")
            api.create_status({**ready, "status": {}}, ready["status"])
            yield Seed(plane, toll, operators)


def certificate(plane: ControlPlane) -> tuple[Path, Path, str]:
    """For the webhooks: the certificate, its key, and the bundle that the API server trusts."""
    files = plane.certificate("webhooks", "127.0.0.1", user="webhooks")
    return *files, base64.b64encode((plane.folder / "ca.crt").read_bytes()).decode()


def configurations(address: str, bundle: str) -> Iterator[dict[str, Any]]:
    """Those that ship, but for where the webhooks are: there is no network of Services here."""
    for obj in yaml.safe_load_all((DEPLOY / "webhooks.yaml").read_text()):
        if obj["kind"] != "Service":
            for webhook in obj["webhooks"]:
                path = webhook["clientConfig"]["service"]["path"]
                webhook["clientConfig"] = {"url": f"{address}{path}", "caBundle": bundle}
            yield obj


def test_a_shoot_is_migrated_by_operator_and_webhooks(seed: Seed) -> None:
    api = seed.plane.api
    crt, key, bundle = certificate(seed.plane)
    port = free_port()
    operator = seed.operator(
        "--controllers", "gardener-csi-migration", "--controllers", "gardener-webhook",
        "--port", str(port), "--tls-cert", str(crt), "--tls-key", str(key),
    )  # fmt: skip
    made = list(configurations(f"https://127.0.0.1:{port}", bundle))
    try:
        operator.wait_until(lambda: operator.listens(port))
        for configuration in made:
            api.create(configuration)
        before = stored(cluster(shoot("1.17.9")))
        api.create(before)
        # Admission looks at configurations that it has heard of: until then flags are not changed.
        probe = deployment("kube-scheduler", "--feature-gates=CSIMigration=true")

        def is_told() -> bool:
            found = api.create(probe, dryRun="All")
            return "CSIMigration" not in str(found["spec"])

        wait_for(is_told, "the webhook to be asked")
        for name in DEPLOYMENTS:
            api.create(deployment(name, "--v=2"))
        config = "--cloud-config=/etc/kubernetes/cloudprovider/cloudprovider.conf"
        label = "--enable-admission-plugins=PersistentVolumeLabel"
        volumes = "--external-cloud-volume-plugin=aws"
        assert [seed.command_of(it) for it in DEPLOYMENTS] == [
            ["--v=2", "--cloud-provider=aws", config, label],
            ["--v=2", "--cloud-provider=external", config, volumes],
            ["--v=2"],
        ]
        assert seed.annotations() == {}
        for name in LEGACY:
            api.create(storage_class(name, "kubernetes.io/aws-ebs"))
        api.create(storage_class("own", "kubernetes.io/aws-ebs"))
        seed.toll.begin()
        # The update to the minor of the migration: all machines are new by now.
        api.patch("Cluster", NAMESPACE, {"spec": {"shoot": shoot("1.18.2")}})
        operator.wait_until(seed.is_finished)
        assert [(it.method, it.path) for it in seed.toll.writes] == WRITES
        patches = [(it.type, it.body) for it in seed.toll.writes[3:6]]
        assert patches == [("application/strategic-merge-patch+json", b"{}")] * 3
        assert seed.annotations() == BOTH
        assert seed.classes() == {"own"}
        three = f"--feature-gates={GATES},CSIMigrationAWSComplete=true"
        assert [seed.command_of(it) for it in DEPLOYMENTS] == [
            ["--v=2", "--disable-admission-plugins=PersistentVolumeLabel", three],
            ["--v=2", "--cloud-provider=external", three],
            ["--v=2", three],
        ]
        refused_shoots(seed)
        assert all(it["responseStatus"]["code"] < 400 for it in asked(seed)), "more was wanted"
    finally:
        operator.stop()
        for configuration in made:
            api.delete(configuration["kind"], configuration["metadata"]["name"])
        for name in DEPLOYMENTS:
            api.delete("Deployment", name, NAMESPACE)
        seed.empty()


def asked(seed: Seed) -> list[dict[str, Any]]:
    """What the operator asked for as itself, once it was there."""
    return [it for it in seed.plane.asked_by_roles() if "objectRef" in it]


def refused_shoots(seed: Seed) -> None:
    """What the API server says of Shoots once the webhook has judged them."""
    api = seed.plane.api

    def pools(*versions: str) -> dict[str, Any]:
        workers = [{"name": "w", "kubernetes": {"version": it}} for it in versions]
        return shoot("1.18.2", provider={"type": "aws", "workers": workers})

    with pytest.raises(Refused) as refusal:
        api.create(pools("1.18.0", "1.17.3"))
    assert refusal.value.code == 422
    said = str(refusal.value)
    assert "shoots.gardener.replant.dev" in said
    assert "denied the request" in said
    assert "spec.provider.workers[1].kubernetes.version: Forbidden: 1.17.3 is below 1.18" in said
    api.create(pools("1.18.0"))
    with pytest.raises(Refused, match=r"Forbidden: 1\.17\.3 is below 1\.18"):
        api.patch("Shoot", "crazy", {"spec": pools("1.17.3")["spec"]}, "garden-dev")
    api.delete("Shoot", "crazy", "garden-dev")


NEWER = storage_class("gp2", "ebs.csi.aws.com")


@dataclass(frozen=True)
class Case:
    """A shoot, and what one look at it comes to."""

    embedded: dict[str, Any]
    again: float | None
    writes: list[tuple[str, str]]
    new: bool = False
    """Whether there is no ControlPlane yet."""
    kubelet: str = "v1.18.0"
    """Of one more node."""
    gp2: dict[str, Any] | None = None
    """What is there under this name; by default the legacy one."""


CASES = {
    "a new shoot": Case(shoot(), None, [("PATCH", CLUSTER)], new=True),
    "another minor": Case(shoot("1.17.1"), None, []),
    "hibernated": Case(shoot(hibernation={"enabled": True}), 300, []),
    "an old kubelet": Case(shoot(), 60, [], kubelet="v1.17.0"),
    "another provisioner": Case(shoot(), None, [WRITES[0], *WRITES[2:]], gp2=NEWER),
    "a version of its own": Case(shoot("1.17.9", override="1.17"), None, WRITES),
}
"""The scenarios of the controller's document, but for the two that others here are about."""


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_one_look_writes_this_and_nothing_else(seed: Seed, case: Case) -> None:
    api = seed.plane.api
    [plane_object, *deployments] = control_plane()
    more = node("more", case.kubelet)
    legacy = storage_class("gp2", "kubernetes.io/aws-ebs")
    classes = [storage_class("default", "kubernetes.io/aws-ebs"), case.gp2 or legacy]
    try:
        api.create_status({**more, "status": {}}, more["status"])
        for it in (*deployments, *classes):
            api.create(it)
        if case.new:
            api.delete("ControlPlane", plane_object["metadata"]["name"], NAMESPACE)
        api.create(stored(cluster(case.embedded)))
        seed.toll.begin()
        assert attend(seed, provider=AWS) == case.again
        assert [(it.method, it.path) for it in seed.toll.writes] == case.writes
        assert seed.annotations() == (BOTH if case.writes else {})
        gone = {path.rpartition("/")[2] for method, path in case.writes if method == "DELETE"}
        assert seed.classes() == {"default", "gp2"} - gone
        seed.toll.begin()
        assert attend(seed, provider=AWS) == case.again
        assert seed.toll.writes == []
    finally:
        if case.new:
            api.create(plane_object)
        for it in deployments:
            api.delete("Deployment", it["metadata"]["name"], NAMESPACE)
        api.delete("Node", "more")
        seed.empty()


@pytest.mark.parametrize("seed", ["new"], indirect=True)
def test_killed_between_any_two_writes_it_comes_to_the_same_end(seed: Seed) -> None:
    for name in DEPLOYMENTS:
        seed.plane.api.create(deployment(name))
    operator = seed.migrates()
    try:
        for number in range(len(WRITES)):
            seed.toll.begin(fatal=number)
            seed.toll.end = operator.kill
            seed.fill()
            assert seed.toll.fell.wait(60), operator.log.read_text()
            assert [(it.method, it.path) for it in seed.toll.writes] == WRITES[:number]
            assert not operator.running
            seed.toll.begin()
            # Who goes on is whoever is killed next, in another shoot's migration.
            operator = seed.migrates()
            operator.wait_until(seed.is_finished)
            assert [(it.method, it.path) for it in seed.toll.writes] == left(number)
            assert seed.annotations() == BOTH
            assert seed.classes() == {"own"}
            seed.empty()
    finally:
        operator.kill()
        for name in DEPLOYMENTS:
            seed.plane.api.delete("Deployment", name, NAMESPACE)


def left(done: int) -> list[tuple[str, str]]:
    """What is still to be written after so many writes: only patches are sent again."""
    first_patch = len(LEGACY) + 1
    return WRITES[min(done, first_patch) :]


def test_writes_are_counted_on_their_way(seed: Seed) -> None:
    """What the others stand on: the toll passes on what it counts, and nothing that is fatal."""
    seed.toll.begin(fatal=1)
    with seed.plane.api.client() as client:
        auth = yaml.safe_load(seed.operators.read_text())["users"][0]["user"]["token"]
        path = f"{seed.toll.address}{CLUSTER}"
        headers = {
            "Authorization": f"Bearer {auth}",
            "Content-Type": "application/merge-patch+json",
        }
        codes = [client.patch(path, content=b"{}", headers=headers).status_code for _ in range(2)]
    assert codes == [404, 503]
    sort = headers["Content-Type"]
    assert seed.toll.writes == [Write("PATCH", urlsplit(path).path, b"{}", sort)]
