"""Which nodes the real scheduler binds pods to: what keeps them off, and what they tolerate."""

from __future__ import annotations

import time
from itertools import count, product

import pytest

from tests.real import records
from tests.real.ground.api import Api, Object
from tests.real.ground.controlplane import ControlPlane
from tests.real.ground.processes import wait_for
from tests.real.ground.volumes import pod_object
from tests.real.stories import SEEN_BY_NOW

ROOM = {"cpu": "4", "memory": "8Gi", "pods": "110"}
_numbers = count()


@pytest.fixture(params=["old", "new"])
def plane(request: pytest.FixtureRequest) -> ControlPlane:
    found: ControlPlane = request.getfixturevalue(request.param)
    return found


def node(api: Api, **spec: object) -> str:
    name = f"node-{next(_numbers)}"
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    status = {"conditions": [ready], "capacity": ROOM, "allocatable": ROOM}
    api.create_status({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}, status)
    # Each node begins with a taint, which goes once a controller has seen that it is ready.
    wait_for(lambda: not api.get("Node", name)["spec"].get("taints"), f"{name} to be ready")
    if spec:
        api.patch("Node", name, {"spec": spec})
        wait_for(lambda: api.get("Node", name)["spec"].get("taints"), f"{name} to have its taint")
    time.sleep(SEEN_BY_NOW)
    return name


def wants(api: Api, node: str, tolerations: list[Object]) -> str:
    """A pod that goes to that node or nowhere."""
    name = f"wants-{next(_numbers)}"
    pod = pod_object(name)
    chosen = {"key": "metadata.name", "operator": "In", "values": [node]}
    required = {"nodeSelectorTerms": [{"matchFields": [chosen]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    pod["spec"] |= {"affinity": affinity, "tolerations": tolerations}
    api.create(pod)
    return name


def answer(api: Api, name: str) -> str:
    """Whether a pod has come to a node, or waits."""

    def told() -> str:
        pod = api.get("Pod", name, "default")
        if pod["spec"].get("nodeName"):
            return "comes"
        conditions = pod["status"].get("conditions", [])
        refused = any(it.get("reason") == "Unschedulable" for it in conditions)
        return "waits" if refused else ""

    return wait_for(told, f"{name} to be looked at by the scheduler")


KEY = "example.org/kind"
KEEPS_OFF: tuple[tuple[str, Object], ...] = (
    ("nothing", {}),
    ("unschedulable", {"unschedulable": True}),
    ("a taint", {"taints": [{"key": KEY, "value": "csi", "effect": "NoSchedule"}]}),
)
TOLERATES: tuple[tuple[str, list[Object]], ...] = (
    ("nothing", []),
    ("another value", [{"key": KEY, "operator": "Equal", "value": "in-tree"}]),
    ("the taint", [{"key": KEY, "operator": "Equal", "value": "csi"}]),
    ("unschedulable", [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]),
)


def test_which_nodes_take_pods(plane: ControlPlane) -> None:
    plane.start_controller_manager()
    plane.start_scheduler({})
    rows = []
    for (kept_off_by, spec), (tolerated, tolerations) in product(KEEPS_OFF, TOLERATES):
        pod = wants(plane.api, node(plane.api, **spec), tolerations)
        comes = answer(plane.api, pod)
        plane.api.delete("Pod", pod, "default", gracePeriodSeconds=0)
        rows.append({"node": kept_off_by, "podTolerates": tolerated, "pod": comes})
    version = plane.version
    records.check(f"scheduling/{version}", {"kubernetesVersion": version, "rows": rows})
