"""``replant drivers`` on real Kubernetes: a driver of Helm's is taken over, and kept.

Nothing runs there but the API server: what controllers would say of a rollout is said by the test.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import replant_here
from tests.cli.test_drivers import BLOCKED, UNFINISHED, helm_objects
from tests.real.ground import programs
from tests.real.ground.controlplane import ControlPlane

STORAGE = "/apis/storage.k8s.io/v1"
WORKLOADS = {
    "Deployment": "/apis/apps/v1/namespaces/kube-system/deployments/ebs-csi-controller",
    "DaemonSet": "/apis/apps/v1/namespaces/kube-system/daemonsets/ebs-csi-node",
}

REPLICAS = ("replicas", "updatedReplicas", "availableReplicas", "readyReplicas")
ON_NODES = (
    "currentNumberScheduled",
    "desiredNumberScheduled",
    "updatedNumberScheduled",
    "numberAvailable",
    "numberReady",
)


@pytest.fixture(scope="module", params=["old", "new"])
def plane(request: pytest.FixtureRequest, ground: Path) -> Iterator[ControlPlane]:
    version = programs.OLD if request.param == "old" else programs.newest()
    with ControlPlane(version, ground / f"driver-commands-{request.param}") as plane:
        yield plane


def get(plane: ControlPlane, path: str) -> Any:
    with plane.api.client() as http:
        answer = http.get(path)
    assert answer.is_success, answer.text
    return answer.json()


def roll_out(plane: ControlPlane) -> None:
    """Say what controllers would."""
    for kind, path in WORKLOADS.items():
        found = get(plane, path)
        status = dict.fromkeys(REPLICAS, found["spec"].get("replicas", 1))
        if kind == "DaemonSet":
            status = dict.fromkeys(ON_NODES, 2) | {"numberMisscheduled": 0}
        status["observedGeneration"] = found["metadata"]["generation"]
        with plane.api.client() as http:
            headers = {"Content-Type": "application/merge-patch+json"}
            answer = http.patch(f"{path}/status", json={"status": status}, headers=headers)
        assert answer.is_success, answer.text


def default_class(plane: ControlPlane, name: str) -> str | None:
    found = get(plane, f"{STORAGE}/storageclasses/{name}")
    value: str | None = found["metadata"]["annotations"].get(
        "storageclass.kubernetes.io/is-default-class"
    )
    return value


def test_a_driver_of_helms_is_taken_over_and_kept(plane: ControlPlane) -> None:
    def drivers(*arguments: str) -> tuple[int, str, str]:
        return replant_here("drivers", *arguments, "--kubeconfig", str(plane.kubeconfig()))

    install = ("install", "aws-ebs", "--credentials", "Node", "--timeout", "1", "--yes")
    node = {"metadata": {"name": "n-1"}, "spec": {"providerID": "aws:///us-east-1a/n-1"}}
    plane.api.create({"apiVersion": "v1", "kind": "Node", **node})
    # Its fsGroupPolicy is another, which not every release lets be changed.
    with plane.api.client() as http:
        paths = (f"{STORAGE}/csidrivers", *(it.rpartition("/")[0] for it in WORKLOADS.values()))
        for path, obj in zip(paths, helm_objects("ReadWriteOnceWithFSType"), strict=True):
            assert http.post(path, json=obj).is_success
    before = {kind: get(plane, path)["metadata"]["uid"] for kind, path in WORKLOADS.items()}
    code, _out, said = drivers(*install)
    assert (code, "was installed by Helm, and is left alone" in said) == (BLOCKED, True), said
    adopt = ("adopt", "aws-ebs", "--timeout", "1", "--yes")
    for _again in range(2):
        code, _out, said = drivers(*adopt)
        assert code == UNFINISHED, said
    code, _out, said = drivers(*install)
    assert code == UNFINISHED, said
    for kind, path in WORKLOADS.items():
        found = get(plane, path)
        assert found["metadata"]["uid"] == before[kind]
        spec = found["spec"]["template"]["spec"]
        assert "r.example" not in str(spec)
        assert {it["name"] for it in spec["containers"]} >= {"csi-driver", "csi-liveness-probe"}
        assert spec["serviceAccountName"] == found["metadata"]["name"]
    policy = get(plane, f"{STORAGE}/csidrivers/ebs.csi.aws.com")["spec"]["fsGroupPolicy"]
    assert policy == "File"
    roll_out(plane)
    code, out, said = drivers(*adopt)
    assert (code, out.splitlines()[-1]) == (0, "ebs.csi.aws.com runs"), said
    # Nothing is left to write: what the API server has added is no drift.
    code, out, said = drivers("status")
    assert "  next: all is as it should be" in out
    assert default_class(plane, "gp3-csi") == "true"
    _classes(plane, drivers, install)


def _classes(plane: ControlPlane, drivers: Any, install: tuple[str, ...]) -> None:
    """A class that somebody has made under our name stays as it is."""
    path = f"{STORAGE}/storageclasses"
    annotations = {"storageclass.kubernetes.io/is-default-class": ""}
    changed = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "gp3-csi", "annotations": annotations},
        "provisioner": "ebs.csi.aws.com",
        "parameters": {"type": "io1"},
    }
    with plane.api.client() as http:
        assert http.delete(f"{path}/gp3-csi").is_success
        assert http.post(path, json=changed).is_success
    code, _out, said = drivers(*install)
    assert code == 0, said
    found = get(plane, f"{path}/gp3-csi")
    assert found["parameters"] == {"type": "io1"}
    assert default_class(plane, "gp3-csi") == ""
    code, out, said = drivers("status")
    assert "  next: all is as it should be" in out
