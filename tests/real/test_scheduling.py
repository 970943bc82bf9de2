"""What the real scheduler does: who counts a volume towards a node's limit, and whom it keeps off.

A pod with two volumes wants a node that takes one: one by the limit that an in-tree filter knows,
or one by the limit that the driver has told. It waits where that limit counts its volumes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count, product
from typing import Any

import pytest

from tests.real import records
from tests.real.ground.api import Api, Object
from tests.real.ground.cloud import ZONE
from tests.real.ground.controlplane import ControlPlane
from tests.real.ground.nodes import MIGRATED
from tests.real.ground.processes import wait_for
from tests.real.ground.programs import OLD
from tests.real.ground.volumes import claim_object, pod_object, pv_object

Row = dict[str, Any]
GATES: tuple[dict[str, bool], ...] = (
    {},
    {"CSIMigrationAWS": False},
    {"CSIMigration": False},
    {"CSIMigrationPortworx": True, "CSIMigrationvSphere": True, "CSIMigrationRBD": True},
)
SOURCES: dict[str, tuple[str, str, Object]] = {
    "aws-ebs": (
        "ebs.csi.aws.com", "awsElasticBlockStore", {"volumeID": f"aws://{ZONE}/vol-0123456789ab"},
    ),
    "gce-pd": ("pd.csi.storage.gke.io", "gcePersistentDisk", {"pdName": "disk"}),
    "azure-disk": (
        "disk.csi.azure.com", "azureDisk",
        {
            "diskName": "disk",
            "diskURI": "/subscriptions/a/resourceGroups/b/providers/Microsoft.Compute/disks/disk",
            "kind": "Managed",
        },
    ),
    "cinder": ("cinder.csi.openstack.org", "cinder", {"volumeID": "disk"}),
    "azure-file": (
        "file.csi.azure.com", "azureFile",
        {"secretName": "secret", "secretNamespace": "default", "shareName": "disk"},
    ),
    "vsphere-volume": (
        "csi.vsphere.vmware.com", "vsphereVolume", {"volumePath": "[store] kubevols/disk.vmdk"},
    ),
    "portworx-volume": ("pxd.portworx.com", "portworxVolume", {"volumeID": "disk"}),
    "rbd": ("rbd.csi.ceph.com", "rbd", {"monitors": ["10.0.0.1"], "pool": "pool", "image": "disk"}),
}  # fmt: skip
"""By plugin: its driver, and a source of a volume."""
ROOM = {"cpu": "4", "memory": "8Gi", "pods": "110"}
_numbers = count()


@pytest.fixture(params=["old", "new"])
def plane(request: pytest.FixtureRequest) -> ControlPlane:
    found: ControlPlane = request.getfixturevalue(request.param)
    return found


def test_who_counts_volumes(plane: ControlPlane) -> None:
    plane.start_controller_manager()
    gates = GATES if plane.version == OLD else ({},)
    rows = [row for given in gates for row in counted(plane, given)]
    version = plane.version
    records.check(f"limits/{version}", {"kubernetesVersion": version, "rows": rows})


def counted(plane: ControlPlane, gates: Mapping[str, bool]) -> Iterator[Row]:
    plane.start_scheduler(gates)
    trials = []
    for plugin, csi_node, listed in product(SOURCES, (False, True), (False, True)):
        if csi_node or not listed:
            claims = [claim(plane.api, plugin) for _disk in range(2)]
            limits = ("in-tree", "csi") if csi_node else ("in-tree",)
            names = {
                limit: wants(plane.api, claims, node(plane.api, plugin, limit, csi_node, listed))
                for limit in limits
            }
            trials.append((plugin, csi_node, listed, names))
    for plugin, csi_node, listed, names in trials:
        waits = [limit for limit, name in names.items() if answer(plane.api, name) == "waits"]
        assert len(waits) < 2, f"a volume of {plugin} is counted twice"
        yield {
            "schedulerGates": dict(gates),
            "plugin": f"kubernetes.io/{plugin}",
            "csiNode": csi_node,
            "annotated": listed,
            "countedBy": "".join(waits) or "nobody",
        }
    for _plugin, _csi_node, _listed, names in trials:
        for name in names.values():
            plane.api.delete("Pod", name, "default", gracePeriodSeconds=0)


def node(api: Api, plugin: str, limit: str, csi_node: bool, listed: bool) -> str:
    """A node that takes one volume, by one of the limits."""
    name = f"limited-{next(_numbers)}"
    room = dict(ROOM)
    if limit == "in-tree":
        room[f"attachable-volumes-{plugin}"] = "1"
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    meta = {"name": name, "labels": {"topology.kubernetes.io/zone": ZONE}}
    status = {"conditions": [ready], "capacity": room, "allocatable": room}
    api.create_status({"apiVersion": "v1", "kind": "Node", "metadata": meta}, status)
    if csi_node:
        driver: Object = {"name": SOURCES[plugin][0], "nodeID": name, "topologyKeys": []}
        if limit == "csi":
            driver["allocatable"] = {"count": 1}
        annotations = {MIGRATED: f"kubernetes.io/{plugin}"} if listed else {}
        api.create(
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "CSINode",
                "metadata": {"name": name, "annotations": annotations},
                "spec": {"drivers": [driver]},
            }
        )
    return name


def claim(api: Api, plugin: str) -> str:
    """A claim that is bound to a volume of the plugin."""
    name = f"counted-{next(_numbers)}"
    _driver, field, source = SOURCES[plugin]
    volume = pv_object(name, name, claimRef={"name": name, "namespace": "default"})
    del volume["spec"]["awsElasticBlockStore"]
    # Each volume is a disk of its own.
    volume["spec"][field] = {
        key: f"{value}-{name}" if "disk" in str(value) or "vol-" in str(value) else value
        for key, value in source.items()
    }
    api.create(volume)
    api.create(claim_object(name, volumeName=name, storageClassName=""))
    wait_for(
        lambda: api.get("PersistentVolumeClaim", name, "default")["status"]["phase"] == "Bound",
        f"{name} to be bound",
    )
    return name


def wants(api: Api, claims: list[str], node: str, **spec: object) -> str:
    """A pod that has both volumes, and goes to that node or nowhere."""
    name = f"wants-{next(_numbers)}"
    pod = pod_object(name)
    pod["spec"]["volumes"] = [
        {"name": it, "persistentVolumeClaim": {"claimName": it}} for it in claims
    ]
    chosen = {"key": "metadata.name", "operator": "In", "values": [node]}
    required = {"nodeSelectorTerms": [{"matchFields": [chosen]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    pod["spec"] |= {"affinity": affinity, **spec}
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
        name = node(plane.api, "aws-ebs", "", csi_node=False, listed=False)
        if spec:
            plane.api.patch("Node", name, {"spec": spec})
        pod = wants(plane.api, [], name, tolerations=tolerations)
        comes = answer(plane.api, pod)
        plane.api.delete("Pod", pod, "default", gracePeriodSeconds=0)
        rows.append({"node": kept_off_by, "podTolerates": tolerated, "pod": comes})
    version = plane.version
    records.check(f"scheduling/{version}", {"kubernetesVersion": version, "rows": rows})
