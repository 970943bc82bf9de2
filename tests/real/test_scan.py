"""`replant scan` and `replant translate` with the role that we ship, on a real API server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

from replant.cluster.live import PAGE_SIZE
from replant.cluster.ports import FEATURE_GATES, SCANNED, SCANNED_WHERE_SERVED
from replant.translate import api as translate
from tests.real.ground import programs
from tests.real.ground.api import Api, Object
from tests.real.ground.controlplane import ControlPlane
from tests.real.ground.volumes import pv_object

REPLANT = Path(sys.executable).with_name("replant")
SAMPLE = Path(__file__).parents[2] / "examples" / "cluster.yaml"
MANY = 2000


@dataclass(frozen=True)
class Cluster:
    """A control plane with many volumes, and the kubeconfig of the scan role."""

    plane: ControlPlane
    role: Path

    def replant(self, *arguments: str, stdin: str = "") -> str:
        done = subprocess.run(
            [REPLANT, *arguments], input=stdin, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def scan(self, *where: str) -> Any:
        return json.loads(self.replant("scan", *where, "-o", "json", "--fail-on", "never"))

    def dump(self, *resources: str) -> str:
        """What a person gets with kubectl and that role."""
        return kubectl(self.plane, self.role, "get", ",".join(resources), "-A", "-ojson")


def kubectl(plane: ControlPlane, kubeconfig: Path, *arguments: str) -> str:
    program = str(programs.program(plane.version, "kubectl"))
    command = [program, f"--kubeconfig={kubeconfig}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module", params=["old", "new"])
def cluster(request: pytest.FixtureRequest, ground: Path) -> Iterator[Cluster]:
    version = {"old": programs.OLD, "new": programs.newest()}[request.param]
    with ControlPlane(version, ground / f"scan-{request.param}") as plane:
        create_namespaces(plane.api)
        # It is shortened, and statuses are not ours to write: kubectl is told not to mind.
        kubectl(plane, plane.kubeconfig(), "create", "--validate=false", "-f", str(SAMPLE))
        many = (pv_object(f"many-{number}", f"vol-{number}") for number in range(MANY))
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(plane.api.create, many))
        yield Cluster(plane, plane.role_kubeconfig("scan"))


def create_namespaces(api: Api) -> None:
    """Those of the demo's cluster, each with the account that a controller would make."""
    namespaces = {obj["metadata"].get("namespace", "default") for obj in sample()}
    for namespace in namespaces:
        if not api.find("Namespace", namespace):
            api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    for namespace in namespaces:
        account = {"name": "default", "namespace": namespace}
        api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})


def sample() -> list[Object]:
    objects: list[Object] = yaml.safe_load(SAMPLE.read_text())["items"]
    return objects


def sample_volumes() -> list[Object]:
    return [obj for obj in sample() if obj["kind"] == "PersistentVolume"]


def test_every_volume_is_read_in_pages_and_nothing_else_is_asked(cluster: Cluster) -> None:
    before = len(cluster.plane.asked_by_roles())
    found = cluster.scan("--kubeconfig", str(cluster.role))
    asked = cluster.plane.asked_by_roles()[before:]
    ours = [obj for obj in sample_volumes() if "awsElasticBlockStore" in obj["spec"]]
    assert found["server"]["version"] == cluster.plane.version
    assert found["inventory"]["plugins"]["kubernetes.io/aws-ebs"]["volumes"] == MANY + len(ours)
    lists = [request for request in asked if "objectRef" in request]
    pages = [
        parse_qs(urlsplit(request["requestURI"]).query)
        for request in lists
        if request["objectRef"]["resource"] == "persistentvolumes"
    ]
    assert len(pages) == (MANY + len(sample_volumes())) // PAGE_SIZE + 1
    assert all(page["limit"] == [str(PAGE_SIZE)] for page in pages)
    assert sum("continue" in page for page in pages) == len(pages) - 1
    assert {request["verb"] for request in lists} == {"list"}
    assert {request["responseStatus"]["code"] for request in asked} == {200}
    assert {request["objectRef"]["resource"] for request in lists} == {
        resource.plural for resource in SCANNED
    }
    others = [request["requestURI"] for request in asked if request not in lists]
    assert sorted(others) == ["/apis", "/version"]


def test_a_scan_of_the_cluster_and_one_of_its_dump_agree(cluster: Cluster) -> None:
    resources = [f"{resource.plural}.{resource.group}".strip(".") for resource in SCANNED]
    dumped = cluster.plane.folder / "dump.json"
    dumped.write_text(cluster.dump(*resources))
    live = cluster.scan("--kubeconfig", str(cluster.role))
    # A file cannot say of which kinds there are none, and a scan of it says so.
    given = ["-f", str(dumped), "--server-version", cluster.plane.version, "--skip", "RP001"]
    filed = cluster.scan(*given)
    assert live["findings"] == filed["findings"]
    assert live["inventory"] == filed["inventory"]
    assert live["verdict"] == filed["verdict"] == "not ready"


# The account of a pod is in files at a fixed place, so there must be such a place.
AS_A_POD = """
mount -t tmpfs pod /run
mkdir -p /var/run/secrets/kubernetes.io/serviceaccount
cd /var/run/secrets/kubernetes.io/serviceaccount
printf %s "$TOKEN" > token
printf %s replant > namespace
cp "$AUTHORITY" ca.crt
exec "$@"
"""


def test_a_pod_with_the_role_s_account_can_scan(cluster: Cluster) -> None:
    config = yaml.safe_load(cluster.role.read_text())
    address = urlsplit(config["clusters"][0]["cluster"]["server"])
    pod = {
        "PATH": os.environ["PATH"],
        "HOME": str(cluster.plane.folder),
        "KUBERNETES_SERVICE_HOST": str(address.hostname),
        "KUBERNETES_SERVICE_PORT": str(address.port),
        "TOKEN": config["users"][0]["user"]["token"],
        "AUTHORITY": config["clusters"][0]["cluster"]["certificate-authority"],
    }
    scan = [str(REPLANT), "scan", "-o", "json", "--fail-on", "never"]
    command = ["unshare", "--mount", "sh", "-ec", AS_A_POD, "sh", *scan]
    done = subprocess.run(command, env=pod, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    from_outside = cluster.scan("--kubeconfig", str(cluster.role))
    assert json.loads(done.stdout)["inventory"] == from_outside["inventory"]


def test_every_translated_volume_is_one_that_the_api_server_takes(cluster: Cluster) -> None:
    stored = cluster.dump("pv")
    translated = json.loads(cluster.replant("translate", "-f", "-", "-o", "json", stdin=stored))
    native = [obj for obj in translated["items"] if "csi" in obj["spec"]]
    assert len(native) > MANY
    assert {obj["spec"]["csi"]["driver"] for obj in native} >= {
        translate.driver_of(plugin)
        for obj in sample_volumes()
        if (plugin := translate.plugin_of(obj))
    }
    few = [obj for obj in native if not obj["metadata"]["name"].startswith("many-")]
    for obj in [*few, *native[-5:]]:
        meta = obj["metadata"]
        kept = {key: meta[key] for key in ("labels", "annotations") if key in meta}
        obj["metadata"] = {"name": f"native-{meta['name']}", **kept}
        cluster.plane.api.create(obj, dryRun="All")


def test_the_role_may_get_and_list_and_nothing_else(cluster: Cluster) -> None:
    asker = Api(cluster.role)
    review = asker.create(
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectRulesReview",
            "metadata": {},
            "spec": {"namespace": "default"},
        }
    )
    asker.close()
    # Everybody may ask who they are and what they may do.
    about_oneself = {"authorization.k8s.io", "authentication.k8s.io"}
    rules = [
        rule
        for rule in review["status"]["resourceRules"]
        if not about_oneself.intersection(rule["apiGroups"])
    ]
    assert {verb for rule in rules for verb in rule["verbs"]} == {"get", "list"}
    assert {resource for rule in rules for resource in rule["resources"]} == {
        resource.plural for resource in (*SCANNED, *SCANNED_WHERE_SERVED, FEATURE_GATES)
    }
