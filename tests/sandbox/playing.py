"""Plays on a sandbox what was recorded on real Kubernetes, and tells what is seen there.

The records are those of ``tests/real``: stories of a disk and its pod, step by step, and rows of
who attaches, provisions, deletes and expands. Here stands what each step and each row does; what
is seen is said in the records' own words, so that a test can compare them as they are.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

from replant.objects import Object
from replant.sandbox.clock import VirtualClock
from replant.sandbox.cloud import CREATE, DETACH, Call
from replant.sandbox.cluster import Cluster
from replant.sandbox.resources import (
    EVENTS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
    Registry,
)
from replant.sandbox.sides import Side
from replant.sandbox.store import Store
from replant.sandbox.upkeep import Upkeep
from replant.translate import pv_to_csi

OBSERVED = Path(__file__).parents[1] / "real/observed"
DRIVER, PLUGIN, ZONE = "ebs.csi.aws.com", "kubernetes.io/aws-ebs", "us-east-1a"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
MIGRATED_TO = "pv.kubernetes.io/migrated-to"
TOLD = (
    "volume.kubernetes.io/storage-provisioner",
    "volume.beta.kubernetes.io/storage-provisioner",
    "volume.kubernetes.io/storage-resizer",
)
GATE, UNREGISTER = "CSIMigrationAWS", "InTreePluginAWSUnregister"
ON, OFF = {GATE: True}, {GATE: False}
UNREGISTERED = {**ON, UNREGISTER: True}
A_LOOK = 20.0
"""So many seconds pass before somebody looks, as they did for the records, or nearly."""

Seen = dict[str, Any]


def record(name: str) -> Any:
    return json.loads((OBSERVED / f"{name}.json").read_text())


def new_cluster(version: str = "1.24.17", **options: Any) -> Cluster:
    """A cluster in virtual time, with nothing in it yet."""
    clock, numbers = VirtualClock(), count(1)
    store = Store(clock.now, lambda: f"{next(numbers):08x}-0000-4000-8000-000000000000")
    registry = Registry()
    Upkeep(store, registry, clock.now)
    cluster = Cluster(store, registry, clock, version=version, **options)
    cluster.cloud.keep_calls()
    return cluster


def pv_object(name: str, disk: str, **spec: object) -> Object:
    return {
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "awsElasticBlockStore": {"volumeID": f"aws://{ZONE}/{disk}", "fsType": "ext4"},
            "persistentVolumeReclaimPolicy": "Retain",
            **spec,
        },
    }


def claim_object(name: str, **spec: object) -> Object:
    resources = {"requests": {"storage": "1Gi"}}
    return {
        "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": resources, **spec},
    }


def pod_object(name: str, claim: str = "", node: str = "") -> Object:
    spec: Object = {
        "terminationGracePeriodSeconds": 1,
        "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "main", "image": "busybox"}],
    }
    if claim:
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": claim}}
        spec["volumes"] = [volume]
    if node:
        spec["nodeName"] = node
    return {"metadata": {"name": name}, "spec": spec}


def bound_volume(
    cluster: Cluster,
    name: str,
    disk: str,
    annotations: dict[str, str] | None = None,
    *,
    native: bool = False,
    **spec: Any,
) -> None:
    """A disk, its volume and a claim that is bound to it, all but the disk of one name."""
    volume = pv_object(name, disk, claimRef={"name": name, "namespace": "default"}, **spec)
    volume["metadata"]["annotations"] = annotations or {}
    cluster.store.create(PERSISTENT_VOLUMES, pv_to_csi(volume) if native else volume)
    class_name = spec.get("storageClassName", "")
    claim = claim_object(name, volumeName=name, storageClassName=class_name)
    cluster.store.create(PERSISTENT_VOLUME_CLAIMS, claim)
    cluster.settle()
    assert phase(cluster, PERSISTENT_VOLUME_CLAIMS, name) == "Bound"


def phase(cluster: Cluster, resource: Any, name: str) -> str:
    namespace = "default" if resource.namespaced else ""
    found = cluster.store.find(resource, name, namespace)
    return str(found.value()["status"]["phase"]) if found else "gone"


def end_pod(cluster: Cluster, name: str) -> None:
    if cluster.store.find(PODS, name, "default"):
        cluster.store.delete(PODS, name, "default")
        gone = cluster.run_until(lambda: not cluster.store.find(PODS, name, "default"), 30)
        assert gone


def attachments(cluster: Cluster, volume: str) -> Iterator[tuple[str, str]]:
    """Who is to attach a volume, and how far that is."""
    for found in cluster.store.list(VOLUME_ATTACHMENTS):
        if found["spec"]["source"].get("persistentVolumeName") == volume:
            attached = (found.get("status") or {}).get("attached")
            yield found["spec"]["attacher"], "attached" if attached else "waiting"


def names_attached(cluster: Cluster, node: str) -> list[str]:
    status = cluster.store.get(NODES, node)["status"]
    return [it["name"] for it in status.get("volumesAttached", [])]


def reasons(cluster: Cluster, name: str) -> list[str]:
    """The events about whatever has that name, by their reason."""
    return sorted(
        {it["reason"] for it in cluster.store.list(EVENTS) if it["involvedObject"]["name"] == name}
    )


# Stories


class Story:
    """One disk, the pod that wants it, and two nodes on which it can be."""

    name, disk = "story", "vol-0story"

    def __init__(self) -> None:
        self.cluster = new_cluster(gates=OFF)
        self.cluster.run_driver(DRIVER, provisioner=False, resizer=False)
        for node in ("one", "other"):
            self.cluster.add_node(node, OFF, drivers=[DRIVER])
        bound_volume(self.cluster, self.name, self.disk)
        self.node = "one"
        self._calls = 0
        self._pod_was, self._raced = "gone", False

    def start(self, node: str) -> None:
        self.end()
        self.node = node
        self.cluster.store.create(PODS, pod_object(self.name, self.name, node))

    def end(self) -> None:
        end_pod(self.cluster, self.name)
        self._pod_was, self._raced = "gone", False

    def touch(self) -> None:
        pod = self.cluster.store.get(PODS, self.name, "default")
        pod["metadata"]["labels"] = {"touched": "true"}
        self.cluster.store.update(PODS, pod)

    def kubelet(self, node: str, gates: Mapping[str, bool]) -> None:
        self.cluster.restart_kubelet(node, gates)

    def controller(self, gates: Mapping[str, bool]) -> None:
        self.cluster.switch_controller(0, gates)
        assert self.cluster.run_until(lambda: self.cluster.control_plane.confirmed(gates), 30)

    def look(self) -> Seen:
        """Wait for a while, and tell what is seen; the disk only where that is no race."""
        self.cluster.run_for(A_LOOK)
        names = names_attached(self.cluster, self.node)
        seen: Seen = {
            "pod": phase(self.cluster, PODS, self.name),
            "disk": "attached" if self.cluster.cloud.attached_to(self.disk) else "free",
            "volumeAttachments": [how for _who, how in attachments(self.cluster, self.name)],
            "volumesAttached": sorted("csi" if "/csi/" in it else "in-tree" for it in names),
        }
        calls = self.cluster.cloud.calls(self.disk)
        new, self._calls = calls[self._calls :], len(calls)
        if self._pod_was != "gone" and (sides := _detached_by(new)):
            seen["detachedBy"] = f"{sides}, while the pod is {self._pod_was}"
            self._raced = True
        if self._raced:
            del seen["disk"]
        self._pod_was = seen["pod"]
        return seen


def _detached_by(calls: list[Call]) -> str:
    sides = {it.side for it in calls if it.action == DETACH and not it.refused}
    return " and ".join(sorted("in-tree" if it is Side.IN_TREE else "CSI" for it in sides))


Do = Callable[[Story], None]


def _controller(gates: Mapping[str, bool]) -> Do:
    return lambda story: story.controller(gates)


def _kubelet(node: str, gates: Mapping[str, bool]) -> Do:
    return lambda story: story.kubelet(node, gates)


def _start(node: str) -> Do:
    return lambda story: story.start(node)


def _touch(story: Story) -> None:
    story.touch()


def _switch_in_place(story: Story) -> None:
    on = story.cluster.kubelets.all[story.node].process.gates == ON
    story.kubelet(story.node, OFF if on else ON)


def _restart(story: Story) -> None:
    leader = story.cluster.control_plane.leader
    assert leader is not None
    story.controller(leader.process.gates)


FIRST: dict[str, list[Do]] = {
    "all off": [_start("one")],
    "all on": [_controller(ON), _kubelet("one", ON), _kubelet("other", ON), _start("one")],
    "pod started on the node that is on": [_kubelet("one", ON), _start("one")],
    "pod started on the node that is off": [_controller(UNREGISTERED), _start("one")],
}
THEN: dict[str, list[Do]] = {
    "controller on": [_controller(ON)],
    "controller on, pod gone": [_controller(ON)],
    "controller off": [_controller(OFF)],
    "controller on, plugin unregistered": [_controller(UNREGISTERED)],
    "controller restarted": [_restart],
    "node on": [_kubelet("one", ON)],
    "node off": [_kubelet("one", OFF)],
    "node on, pod still there": [_kubelet("one", ON)],
    "node switched, pod still there": [_switch_in_place],
    "node switched, then a label of the pod": [_switch_in_place, _touch],
    "drained node on, pod moved there": [_kubelet("one", ON), _start("one")],
    "all nodes on, plugin unregistered in the controller": [
        _kubelet("other", ON),
        _controller(UNREGISTERED),
    ],
    "pod moved": [_start("other")],
    "pod moved; its node is off": [_start("other")],
    "pod moved to a node that is off": [_start("other")],
    "pod moved back": [_start("one")],
    "plugin registered, drained node off, pod moved there": [
        _controller(ON),
        _kubelet("one", OFF),
        _start("one"),
    ],
    "all nodes off, controller off": [_kubelet("other", OFF), _controller(OFF)],
    "pod started anew on the node that is on": [_start("one")],
    "pod deleted": [lambda story: story.end()],
}


def play(steps: list[str]) -> list[Seen]:
    """Take the steps of a recorded story; what is seen after each."""
    story, known, seen = Story(), FIRST, []
    for step in steps:
        for do in known[step]:
            do(story)
        seen.append({"step": step, **story.look()})
        known = THEN
    return seen


# Rows


def attach_row(version: str, row: Mapping[str, Any]) -> Seen:
    """A pod on such a node, with such a controller: what is seen of it after a while."""
    cluster = new_cluster(version, gates=row["kcmGates"])
    cluster.run_driver(DRIVER, provisioner=False, resizer=False)
    drivers = [DRIVER] if row["driverListed"] else []
    # The kubelet is an old one: a new one has no way to be not annotated.
    kubelet = {GATE: row["annotated"]}
    cluster.add_node("node", kubelet, version="1.24.17", drivers=drivers, csi_node=row["csiNode"])
    disk = "vol-0trial"
    bound_volume(cluster, "trial", disk)
    cluster.store.create(PODS, pod_object("trial", "trial", "node"))
    cluster.run_for(A_LOOK)
    return {
        "ec2Calls": [
            f"{it.action} by {'in-tree' if it.side is Side.IN_TREE else 'CSI'}"
            for it in cluster.cloud.calls(disk)
        ],
        "volumeAttachments": [f"{who}: {how}" for who, how in attachments(cluster, "trial")],
        "volumesAttached": [it.replace(disk, "DISK") for it in names_attached(cluster, "node")],
        "pod": phase(cluster, PODS, "trial"),
        "events": reasons(cluster, "trial"),
    }


def dangling_row(version: str, row: Mapping[str, Any]) -> Seen:
    """A pod that takes its time to end, and a successor on another node: who detaches its disk."""
    ends_after, disk = 45, "vol-0dangling"
    gates = {"csi": ON, "in-tree": OFF}
    cluster = new_cluster(version, gates=ON)
    cluster.run_driver(DRIVER, provisioner=False, resizer=False)
    bound_volume(cluster, "claim", disk)
    nodes = {"first": gates[row["node"]], "second": gates[row["successorsNode"]]}
    for node, given in nodes.items():
        cluster.add_node(node, given, drivers=[DRIVER])

    def start(name: str) -> None:
        pod = pod_object(name, "claim", name)
        pod["metadata"]["annotations"] = {"sandbox.replant.dev/ends-after": str(ends_after)}
        pod["spec"]["terminationGracePeriodSeconds"] = ends_after
        cluster.store.create(PODS, pod)

    start("first")
    assert cluster.run_until(lambda: phase(cluster, PODS, "first") == "Running", 30)
    cluster.store.delete(PODS, "first", "default")
    start("second")
    cluster.run_for(ends_after - 1)
    assert phase(cluster, PODS, "first") == "Running"
    found = _detached_by(cluster.cloud.calls(disk))
    return {**row, "detachedWhileThePodRuns": found or "no"}


def claim_row(version: str, row: Mapping[str, Any]) -> Seen:
    """One operation on a claim or its volume, with such a controller: what is seen of it."""
    cluster = new_cluster(version, gates=row["kcmGates"])
    cluster.run_driver(DRIVER, provisioner=False, resizer=False)
    about, annotations = _OPERATIONS[row["operation"], row["volume"]](cluster)
    cluster.run_for(A_LOOK)
    namespace = "default" if about is PERSISTENT_VOLUME_CLAIMS else ""
    found = cluster.store.find(about, "trial", namespace)
    said = (found.value()["metadata"].get("annotations") or {}) if found else {}
    made = cluster.cloud.kept_calls or {}
    calls = {
        it.action
        for disk in made
        for it in made[disk]
        if it.side is Side.IN_TREE and (disk == "vol-0trial" or it.action == CREATE)
    }
    return {
        "ec2Calls": sorted(calls),
        "annotations": {key: said[key] for key in annotations if key in said},
        "phase": phase(cluster, about, "trial"),
        "events": reasons(cluster, "trial"),
    }


About = tuple[Any, tuple[str, ...]]
"""What is looked at in the end, and which of its annotations."""


def storage_class(**more: object) -> Object:
    return {"metadata": {"name": "trial"}, "provisioner": PLUGIN, **more}


def _provision(cluster: Cluster) -> About:
    cluster.store.create(STORAGE_CLASSES, storage_class())
    cluster.store.create(PERSISTENT_VOLUME_CLAIMS, claim_object("trial", storageClassName="trial"))
    return PERSISTENT_VOLUME_CLAIMS, TOLD


def _delete(annotations: dict[str, str]) -> Callable[[Cluster], About]:
    def do(cluster: Cluster) -> About:
        bound_volume(
            cluster,
            "trial",
            "vol-0trial",
            annotations,
            persistentVolumeReclaimPolicy="Delete",
        )
        cluster.store.delete(PERSISTENT_VOLUME_CLAIMS, "trial", "default")
        return PERSISTENT_VOLUMES, (MIGRATED_TO,)

    return do


def _expand(cluster: Cluster) -> About:
    cluster.store.create(STORAGE_CLASSES, storage_class(allowVolumeExpansion=True))
    made = {PROVISIONED_BY: PLUGIN}
    bound_volume(cluster, "trial", "vol-0trial", made, storageClassName="trial")
    claim = cluster.store.get(PERSISTENT_VOLUME_CLAIMS, "trial", "default")
    claim["spec"]["resources"]["requests"]["storage"] = "2Gi"
    cluster.store.update(PERSISTENT_VOLUME_CLAIMS, claim)
    return PERSISTENT_VOLUME_CLAIMS, TOLD


def _mark(cluster: Cluster) -> About:
    bound_volume(cluster, "trial", "vol-0trial", {PROVISIONED_BY: PLUGIN})
    return PERSISTENT_VOLUMES, (MIGRATED_TO,)


_OPERATIONS: dict[tuple[str, str], Callable[[Cluster], About]] = {
    ("provision", "none yet"): _provision,
    ("delete", "provisioned in-tree"): _delete({PROVISIONED_BY: PLUGIN}),
    ("delete", "made by hand"): _delete({}),
    ("expand", "provisioned in-tree"): _expand,
    ("mark", "provisioned in-tree"): _mark,
}
