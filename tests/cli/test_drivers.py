"""``replant drivers`` as a shell runs it, on a cluster without a driver."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from replant.drivers.catalog import Driver
from replant.drivers.crds import crds
from replant.drivers.seen import Seen
from replant.errors import Forbidden
from replant.operator.driver_sight import Sight
from replant.sandbox.scenario import Scenario
from replant.sandbox.server import Sandbox, open_port, serving, write_kubeconfig
from tests.cli.shell import replant_here
from tests.operators.driving import MANILA, cloud, openshift
from tests.operators.test_drivers import olm_objects, whole_secret

BLOCKED, UNFINISHED = 3, 4
SECRET: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "ebs-cloud-credentials", "namespace": "openshift-aws-ebs-csi-driver"},
}
NAMESPACE = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "openshift-aws-ebs-csi-driver"},
}


class Cluster:
    def __init__(self, sandbox: Sandbox, kubeconfig: str) -> None:
        self.sandbox = sandbox
        self.kubeconfig = kubeconfig

    def drivers(self, *arguments: str) -> tuple[int, str, str]:
        return replant_here("drivers", *arguments, "--kubeconfig", self.kubeconfig)

    def found(
        self, kind: str, name: str, version: str = "storage.k8s.io/v1", namespace: str = ""
    ) -> Any:
        resource = self.sandbox.registry.of_kind(version, kind)
        assert resource
        found = self.sandbox.store.find(resource, name, namespace)
        return found.value() if found else None

    def update(self, obj: dict[str, Any], part: str = "") -> None:
        resource = self.sandbox.registry.of_kind(obj["apiVersion"], obj["kind"])
        assert resource
        self.sandbox.store.update(resource, obj, part)

    def status(self, *drivers: str) -> Any:
        code, out, said = self.drivers("status", *drivers, "-o", "json")
        assert code == 0, said
        return {it["backend"]: it for it in json.loads(out)["drivers"]}


def served(folder: Path, where: str | Scenario, *objects: dict[str, Any]) -> Iterator[Cluster]:
    sandbox = Sandbox.of(cloud(where) if isinstance(where, str) else where, speed=20)
    sandbox.load(list(objects))
    with closing(open_port(0)) as listening, serving(sandbox, listening):
        write_kubeconfig(folder / "config", listening.getsockname()[1])
        yield Cluster(sandbox, str(folder / "config"))


def helm_objects(fs_group: str = "File") -> tuple[dict[str, Any], ...]:
    """A driver as Helm installs it: under other names, with containers of its own."""

    def workload(kind: str, name: str, image: str) -> dict[str, Any]:
        path = "/var/lib/kubelet/plugins/ebs.csi.aws.com/"
        labels = {"app": name}
        spec = {
            "serviceAccountName": name,
            "containers": [
                {"name": "ebs-plugin", "image": "r.example/aws-ebs-csi-driver:v1"},
                {"name": "side", "image": image},
            ],
            "volumes": [{"name": "plugin-dir", "hostPath": {"path": path}}],
        }
        template = {"metadata": {"labels": labels}, "spec": spec}
        return {
            "apiVersion": "apps/v1",
            "kind": kind,
            "metadata": {"name": name, "namespace": "kube-system"},
            "spec": {"selector": {"matchLabels": labels}, "template": template},
        }

    driver = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {
            "name": "ebs.csi.aws.com",
            "labels": {"app.kubernetes.io/managed-by": "Helm"},
        },
        "spec": {"attachRequired": True, "podInfoOnMount": False, "fsGroupPolicy": fs_group},
    }
    return (
        driver,
        workload("Deployment", "ebs-csi-controller", "r.example/csi-provisioner:v1"),
        workload("DaemonSet", "ebs-csi-node", "r.example/registrar:v1"),
    )


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """It stays as it is: nothing is done here."""
    yield from served(tmp_path_factory.mktemp("bare"), "aws")


@pytest.mark.workflow("drivers")
def test_from_nothing_to_a_driver_that_runs(tmp_path: Path) -> None:
    for it in served(tmp_path, "aws", NAMESPACE, SECRET):
        before = it.status()
        assert list(before) == ["aws-ebs"]
        assert before["aws-ebs"]["next"] == ["create AWSEBSDriver cluster"]
        # Shown first, and nothing is done.
        code, out, said = it.drivers("install", "aws-ebs")
        assert code == 0, said
        assert "  create CSIDriver ebs.csi.aws.com" in out
        assert "  create StorageClass gp3-csi" in out
        assert "Nothing was done. Do it with --yes." in said
        assert it.found("CSIDriver", "ebs.csi.aws.com") is None
        code, out, said = it.drivers("install", "aws-ebs", "--yes", "--log-level", "Debug")
        assert (code, out.splitlines()[-1]) == (0, "ebs.csi.aws.com runs"), said
        # Again: there is nothing to do.
        code, out, said = it.drivers("install", "aws-ebs")
        assert "create" not in out
        assert "objects are as they should be" in out
        code, out, said = it.drivers("status")
        assert "ebs.csi.aws.com (aws-ebs, installed by default), there by Replant" in out
        assert "available True, progressing False, degraded False" in out
        assert "  next: all is as it should be" in out
        # It is not to be removed.
        code, out, said = it.drivers("remove", "aws-ebs", "--yes")
        assert code == BLOCKED
        assert "blocker: ebs.csi.aws.com is installed by default" in said


def test_manifests_for_a_repository(bare: Cluster) -> None:
    code, out, said = bare.drivers("install", "aws-ebs", "-o", "yaml", "--default-class", "csi")
    assert code == 0, said
    objects = list(yaml.safe_load_all(out))
    kinds = [it["kind"] for it in objects]
    assert kinds[:4] == ["CustomResourceDefinition", "AWSEBSDriver", "Namespace", "CSIDriver"]
    assert {"Deployment", "DaemonSet", "StorageClass", "PodDisruptionBudget"} <= set(kinds)
    assert objects[1]["spec"]["defaultStorageClass"] == "csi"
    assert bare.found("CSIDriver", "ebs.csi.aws.com") is None
    code, _out, said = bare.drivers("install", "aws-ebs", "-o", "yaml", "--yes")
    assert (code, "leave out --yes" in said) == (1, True)


def test_images_of_a_file(bare: Cluster, tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text("images: {}\n")
    code, _out, said = bare.drivers("install", "aws-ebs", "--values", str(values))
    assert code == 1
    assert f"error: {values}: images.csi-provisioner is missing" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("install", "gcp-pd"),
            "blocker: pd.csi.storage.gke.io is for GCP, and this cluster is in",
        ),
        (
            ("install", "portworx"),
            "blocker: pxd.portworx.com is installed by its vendor's operator",
        ),
        (
            ("adopt", "aws-ebs"),
            "blocker: ebs.csi.aws.com is not installed: replant drivers install",
        ),
        (("remove", "vmware-vsphere"), "blocker: there is no VSphereDriver cluster"),
    ],
)
def test_what_is_refused(bare: Cluster, arguments: tuple[str, ...], said: str) -> None:
    code, _out, error = bare.drivers(*arguments)
    assert (code, said in error) == (BLOCKED, True), error


def test_a_driver_that_nobody_knows(bare: Cluster) -> None:
    code, _out, said = bare.drivers("install", "floppy")
    assert code == 1
    assert "floppy: is no driver that is known here: aws-ebs, gcp-pd" in said


@pytest.mark.wall_clock("the command waits by the machine's clock")
def test_a_driver_of_helm_is_left_or_adopted(tmp_path: Path) -> None:
    objects = helm_objects()
    for it in served(tmp_path, "aws", *objects):
        code, _out, said = it.drivers("install", "aws-ebs", "--yes")
        assert code == BLOCKED
        assert "CSIDriver ebs.csi.aws.com was installed by Helm, and is left alone" in said
        code, out, said = it.drivers("adopt", "aws-ebs")
        assert code == 0, said
        assert "Deployment kube-system/ebs-csi-controller and DaemonSet kube-system/ebs-csi" in out
        # Its rights have come from the machine so far, which is not what a CR asks for by itself.
        code, _out, said = it.drivers("adopt", "aws-ebs", "--yes", "--timeout", "1")
        assert code == UNFINISHED
        waits = "Secret kube-system/ebs-cloud-credentials is not there"
        assert waits in said
        assert "stopped: not yet: ebs.csi.aws.com runs; the same command goes on" in said
        code, out, said = it.drivers("adopt", "aws-ebs", "--yes", "--timeout", "1")
        assert (code, waits in said) == (UNFINISHED, True), said
        assert "ebs.csi.aws.com is being adopted already, which goes on" in out
        it.sandbox.load(
            [{**SECRET, "metadata": {**SECRET["metadata"], "namespace": "kube-system"}}]
        )
        code, out, said = it.drivers("adopt", "aws-ebs", "--yes")
        assert (code, out.splitlines()[-1]) == (0, "ebs.csi.aws.com runs"), said
        labels = it.found("CSIDriver", "ebs.csi.aws.com")["metadata"]["labels"]
        assert labels == {"app.kubernetes.io/managed-by": "replant"}
        code, _out, said = it.drivers("adopt", "aws-ebs", "--yes")
        assert (code, "is Replant's already" in said) == (BLOCKED, True), said
        _claimed_back(it)


def _claimed_back(it: Cluster) -> None:
    """It is left to Helm, however often, until somebody adopts it once more."""
    found = it.found("CSIDriver", "ebs.csi.aws.com")
    found["metadata"]["labels"]["app.kubernetes.io/managed-by"] = "Helm"
    it.update(found)
    cr = it.found("AWSEBSDriver", "cluster", "csi.openshift.io/v1")
    # As an operator at work says it then, which a command must not take for what will be.
    told = {"type": "PrereqsSatisfied", "status": "False", "reason": "ForeignCSIDriver"}
    it.update({**cr, "status": {"conditions": [{**told, "message": "it is Helm's"}]}}, "status")
    code, _out, said = it.drivers("install", "aws-ebs", "--yes")
    assert (code, "was adopted, and Helm has claimed it back" in said) == (BLOCKED, True), said
    assert (
        it.found("CSIDriver", "ebs.csi.aws.com")["metadata"]["labels"]
        == found["metadata"]["labels"]
    )
    code, out, said = it.drivers("adopt", "aws-ebs", "--yes")
    assert (code, out.splitlines()[-1]) == (0, "ebs.csi.aws.com runs"), said
    labels = it.found("CSIDriver", "ebs.csi.aws.com")["metadata"]["labels"]
    assert labels == {"app.kubernetes.io/managed-by": "replant"}


@pytest.mark.wall_clock("the command waits by the machine's clock")
def test_a_driver_of_olms_is_adopted_while_its_pods_run(tmp_path: Path) -> None:
    objects = olm_objects()
    (csv,) = (it for it in objects if it["kind"] == "ClusterServiceVersion")
    csv["metadata"]["finalizers"] = ["olm.example/slow"]
    for it in served(tmp_path, openshift(), *crds(), *objects):
        code, out, said = it.drivers("adopt", "aws-ebs")
        assert code == 0, said
        assert "ebs.csi.aws.com is kept by an operator of OLM. Subscription openshift-" in out
        assert "the driver's pods run on" in out
        code, _out, said = it.drivers("adopt", "aws-ebs", "--yes", "--timeout", "1")
        assert code == UNFINISHED, said
        assert "note: ebs.csi.aws.com: delete ClusterServiceVersion openshift-operators/" in said
        code, _out, said = it.drivers("adopt", "aws-ebs", "--yes", "--timeout", "1")
        assert (code, "waiting for ClusterServiceVersion" in said) == (UNFINISHED, True), said
        name, namespace = csv["metadata"]["name"], csv["metadata"]["namespace"]
        slow = it.found(csv["kind"], name, csv["apiVersion"], namespace)
        it.update({**slow, "metadata": {**slow["metadata"], "finalizers": []}})
        code, out, said = it.drivers("adopt", "aws-ebs", "--yes")
        assert (code, out.splitlines()[-1]) == (0, "ebs.csi.aws.com runs"), said
        # It is done; there is nothing left to adopt.
        code, _out, said = it.drivers("adopt", "aws-ebs")
        assert (code, "is Replant's already" in said) == (BLOCKED, True)


def test_an_optional_driver_comes_and_goes(tmp_path: Path) -> None:
    for it in served(tmp_path, "vsphere"):
        assert it.status()["vmware-vsphere"]["next"] == ["nobody has asked for it"]
        code, out, said = it.drivers("install", "vmware-vsphere")
        assert "It waits until this is there: Secret openshift-vmware-vsphere-csi-driver/" in out
        code, out, said = it.drivers("install", "vmware-vsphere", "--yes", "--credentials", "Node")
        assert (code, out.splitlines()[-1]) == (0, "csi.vsphere.vmware.com runs"), said
        volume = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "pv-1"},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "csi": {"driver": "csi.vsphere.vmware.com", "volumeHandle": "v"},
            },
        }
        it.sandbox.load([volume])
        code, _out, said = it.drivers("remove", "vmware-vsphere", "--yes")
        assert code == BLOCKED
        assert "is still in use by 1 PersistentVolume (pv-1)" in said
        found = it.sandbox.registry.of_kind("v1", "PersistentVolume")
        assert found
        it.sandbox.store.delete(found, "pv-1", "")
        code, out, said = it.drivers("remove", "vmware-vsphere")
        assert "  delete DaemonSet openshift-vmware-vsphere-csi-driver/" in out
        assert it.found("CSIDriver", "csi.vsphere.vmware.com")
        code, out, said = it.drivers("remove", "vmware-vsphere", "--yes")
        assert (code, out.splitlines()[-1]) == (0, "csi.vsphere.vmware.com is removed"), said
        assert it.found("CSIDriver", "csi.vsphere.vmware.com") is None


def test_what_is_there_is_shown_wherever_that_is(tmp_path: Path) -> None:
    """Nodes of a machine room: nothing is installed by default, and one has been all the same."""
    for it in served(tmp_path, "room", *helm_objects()):
        code, out, said = it.drivers("status")
        assert code == 0, said
        assert out.startswith("Cloud: not known, by what nodes say of their provider\n")
        assert "ebs.csi.aws.com (aws-ebs, installed by default), there by Helm" in out
        assert list(it.status()) == ["aws-ebs"]


def test_one_that_cannot_be_looked_at_hides_no_other(
    bare: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = Sight.driver

    async def refused(sight: Sight, driver: Driver, supposed: Any = None) -> Seen:
        if driver.backend == "portworx":
            raise Forbidden("GET storageclusters: you may not")
        return await look(sight, driver, supposed)

    monkeypatch.setattr(Sight, "driver", refused)
    code, out, said = bare.drivers("status")
    assert code == 1, said
    assert "ebs.csi.aws.com (aws-ebs, installed by default), not there" in out
    assert (
        "pxd.portworx.com (portworx, optional), could not be looked at\n"
        "  GET storageclusters: you may not\n"
    ) in out
    code, out, said = bare.drivers("status", "-o", "json")
    assert (code, [it["backend"] for it in json.loads(out)["drivers"]]) == (
        1,
        ["aws-ebs", "portworx"],
    )
    assert bare.drivers("status", "aws-ebs")[0] == 0


@pytest.mark.wall_clock("the command waits by the machine's clock")
def test_a_cloud_that_cannot_be_asked_for_share_types(tmp_path: Path) -> None:
    """What can be said of its drivers is said all the same."""
    space, secret = whole_secret(MANILA)
    auth = b"clouds: {openstack: {auth: {auth_url: 'http://127.0.0.1:1/v3'}}}"
    secret["data"] = dict.fromkeys(secret["data"], base64.b64encode(auth).decode())
    for it in served(tmp_path, cloud("openstack", classes=()), *crds(), space, secret):
        code, _out, said = it.drivers("install", "manila", "--yes", "--timeout", "1")
        trouble = "ShareTypesUnknown: POST http://127.0.0.1:1/v3/auth/tokens: the connection failed"
        assert (code, trouble in said) == (UNFINISHED, True), said
        code, out, said = it.drivers("status")
        assert code == 1, said
        assert "cinder.csi.openstack.org (openstack-cinder, installed by default), not there" in out
        assert f"  {trouble}\n" in out
