"""Light nodes: what a kubelet writes to the API server, without the kubelet.

Each follows its own gates: they decide which plugins its CSINode lists as migrated, and under
which name it expects a volume to be attached, as in a real kubelet. A pod ends as soon as it is
deleted, or at the end of its grace period if its annotation says that it ignores SIGTERM.
"""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import httpx

from replant.gates.plugins import BASE_GATE, LIVES, migrated
from replant.gates.versions import Version
from replant.routing import Process
from replant.translate import api as translate
from tests.real.ground.api import Api, Object, Refused
from tests.real.ground.cloud import REGION, ZONE, Instance
from tests.real.ground.processes import Stoppable

EBS = "kubernetes.io/aws-ebs"
MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"
DRIVER = "ebs.csi.aws.com"
TOPOLOGY = f"topology.{DRIVER}/zone"
"""The label by which the driver tells where a node is; kubelet writes it when that registers."""
IGNORES_SIGTERM = "ignores-sigterm"
"""The annotation of a pod that ends when its grace period does."""
PERIOD = 0.5
HEARTBEAT = 10.0
"""Seconds between two updates of a Node's status. Each of them has the attach/detach controller
look at the volumes in use again."""
SAID_OF_RUNNING_PODS = ("Initialized", "Ready", "ContainersReady", "PodScheduled")


def unique_name(pv: Object, *, by_csi: bool) -> str:
    """The name under which a component knows an EBS volume, by the side that it takes."""
    if by_csi or "csi" in pv["spec"]:
        csi = (pv if "csi" in pv["spec"] else _translated(pv))["spec"]["csi"]
        return f"kubernetes.io/csi/{csi['driver']}^{csi['volumeHandle']}"
    return f"kubernetes.io/aws-ebs/{pv['spec']['awsElasticBlockStore']['volumeID']}"


def _translated(pv: Object) -> Object:
    return (
        translate.pv_to_csi(pv) if "capacity" in pv["spec"] else translate.inline_to_csi(pv["spec"])
    )


@dataclass
class Mount:
    """A disk that a pod had on a node, and from when to when, in seconds since 1970."""

    disk: str
    pod: str
    uid: str
    since: float
    until: float = math.inf


class LightNode(Stoppable):
    """A node, with the part of a kubelet that volumes depend on."""

    def __init__(
        self,
        api: Api,
        instance: Instance,
        version: str,
        gates: Mapping[str, bool],
        drivers: Iterable[str] = (),
        *,
        csi_node: bool = True,
        reports_late: bool = False,
    ) -> None:
        """A real kubelet reports late: with its next status, up to 10 s after a pod is gone, that
        the pod's volumes are no longer in use. Others do so before they let the pod go."""
        self.name = instance.name
        self.instance = instance
        self.drivers = set(drivers)
        self._api = api
        self._version = Version.parse(version)
        self._has_csi_node = csi_node
        self._reports_late = reports_late
        self._in_use: dict[str, set[str]] = {}
        """By the uid of a pod, the names of its volumes."""
        self._heartbeat = 0.0
        self.mounts: list[Mount] = []
        """What was mounted here, as only a kubelet knows it; the oldest first."""
        self._register()
        self.restart(gates)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._live, name=self.name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """The kubelet ends, and what it registered goes with it."""
        self._stopped.set()
        self._thread.join()
        self._api.delete("CSINode", self.name)
        self._api.delete("Node", self.name)

    def silence(self) -> None:
        """The machine dies: what it has written stays, but for what the controllers say of it.

        By default they do so after 40 s without a heartbeat, and here they wait for a day.
        """
        self._stopped.set()
        self._thread.join()
        unknown = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
        self._api.patch("Node", self.name, {"status": {"conditions": [unknown]}}, "", "status")

    def restart(self, gates: Mapping[str, bool]) -> None:
        """The kubelet starts with these gates, and says so in its CSINode.

        Without the base gate it leaves the CSINode as it is, even one that lists plugins, until a
        driver registers.
        """
        self.gates = gates
        if self._has_csi_node and (gates.get(BASE_GATE, True) or self.drivers):
            self._write_csi_node()

    @property
    def migrated_plugins(self) -> list[str]:
        return sorted(plugin for plugin in LIVES if migrated(plugin, self._version, self.gates))

    def _register(self) -> None:
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": self.name,
                "labels": {
                    "topology.kubernetes.io/zone": ZONE,
                    "topology.kubernetes.io/region": REGION,
                    **({TOPOLOGY: ZONE} if DRIVER in self.drivers else {}),
                },
                "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
            },
            "spec": {"providerID": f"aws:///{ZONE}/{self.instance.id}"},
        }
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        room = {"cpu": "4", "memory": "8Gi", "pods": "110"}
        info = {"nodeInfo": {"kubeletVersion": f"v{self._version}"}}
        status = {"conditions": [ready], "capacity": room, "allocatable": room, **info}
        self._api.create_status(node, status)

    def _write_csi_node(self) -> None:
        listed = ",".join(self.migrated_plugins)
        drivers = [
            {"name": driver, "nodeID": self.instance.id, "topologyKeys": [TOPOLOGY]}
            for driver in sorted(self.drivers)
        ]
        change = {
            "metadata": {"annotations": {MIGRATED: listed or None}},
            "spec": {"drivers": drivers},
        }
        if not self._api.find("CSINode", self.name):
            named = {"name": self.name}
            csi_node = {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": named}
            self._api.create({**csi_node, "spec": {"drivers": []}})
        self._api.patch("CSINode", self.name, change)

    def _live(self) -> None:
        while not self._stopped.wait(PERIOD):
            try:
                self._sync()
            except (httpx.TransportError, Refused):
                # A pod was gone before it was looked at, or the API server is busy: next time.
                continue

    def _sync(self) -> None:
        """Report the volumes in use; run pods whose volumes are there; let deleted ones go."""
        pods = self._api.list("Pod", fieldSelector=f"spec.nodeName={self.name}")
        status = self._api.get("Node", self.name).get("status", {})
        attached = {entry["name"] for entry in status.get("volumesAttached", [])}
        ending = {pod["metadata"]["uid"] for pod in pods if _ends(pod)}
        self._in_use = {
            pod["metadata"]["uid"]: self._volumes_in_use(pod, ends=pod["metadata"]["uid"] in ending)
            for pod in pods
        }
        self._report(status)
        for pod in pods:
            volumes = self._in_use[pod["metadata"]["uid"]]
            if pod["metadata"]["uid"] in ending:
                self._end(pod)
            elif _waits(pod) and volumes <= attached and (not volumes or self._can_mount()):
                self._run(pod, volumes)

    def _report(self, status: Object) -> None:
        """Update the Node's status: when other volumes are in use, and every few seconds anyway."""
        in_use = sorted(set().union(*self._in_use.values()))
        now = time.time()
        if in_use == sorted(status.get("volumesInUse", [])) and now < self._heartbeat + HEARTBEAT:
            return
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
        ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": at}
        change = {"volumesInUse": in_use, "conditions": [ready]}
        self._api.patch("Node", self.name, {"status": change}, "", "status")
        self._heartbeat = now

    def _volumes_in_use(self, pod: Object, *, ends: bool) -> set[str]:
        known = self._in_use.get(pod["metadata"]["uid"], set())
        if ends:
            return known if self._reports_late else set()
        return known if _is_deleted(pod) else self._volumes(pod)

    def _run(self, pod: Object, volumes: set[str]) -> None:
        meta = pod["metadata"]
        for name in sorted(volumes):
            disk = re.split("[/^]", name)[-1]
            pod_name = f"{meta['namespace']}/{meta['name']}"
            self.mounts.append(Mount(disk, pod_name, meta["uid"], time.time()))
        conditions = [{"type": it, "status": "True"} for it in SAID_OF_RUNNING_PODS]
        running = {"status": {"phase": "Running", "conditions": conditions}}
        self._api.patch("Pod", meta["name"], running, meta["namespace"], "status")

    def _end(self, pod: Object) -> None:
        meta = pod["metadata"]
        for mount in self.mounts:
            if mount.uid == meta["uid"] and mount.until == math.inf:
                mount.until = time.time()
        self._api.delete(
            "Pod",
            meta["name"],
            meta["namespace"],
            gracePeriodSeconds=0,
            preconditions={"uid": meta["uid"]},
        )

    def _volumes(self, pod: Object) -> set[str]:
        """The unique names of a pod's volumes, as this node's gates have them."""
        by_csi = EBS in self.migrated_plugins
        volumes = pod["spec"].get("volumes", [])
        claims = [
            self._api.get("PersistentVolumeClaim", name, pod["metadata"]["namespace"])
            for volume in volumes
            if (name := _claim(pod, volume))
        ]
        bound = [
            self._api.get("PersistentVolume", name)
            for claim in claims
            if (name := claim["spec"].get("volumeName"))
        ]
        inline = [{"spec": volume} for volume in volumes if "awsElasticBlockStore" in volume]
        return {unique_name(it, by_csi=by_csi) for it in [*bound, *inline]}

    def _can_mount(self) -> bool:
        """Whether the kubelet has the driver or the plugin for the side that it takes."""
        process = Process(self._version, self.gates)
        return DRIVER in self.drivers if process.migrates(EBS) else process.registered(EBS)


def _claim(pod: Object, volume: Object) -> str:
    """The claim that a volume of a pod refers to, or that is made for it."""
    if "ephemeral" in volume:
        return f"{pod['metadata']['name']}-{volume['name']}"
    name: str = volume.get("persistentVolumeClaim", {}).get("claimName", "")
    return name


def _is_deleted(pod: Object) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def _waits(pod: Object) -> bool:
    return pod["status"]["phase"] == "Pending" and not _is_deleted(pod)


def _ends(pod: Object) -> bool:
    """Whether a pod has been deleted and its containers end now."""
    if not _is_deleted(pod):
        return False
    if pod["metadata"].get("annotations", {}).get(IGNORES_SIGTERM) != "true":
        return True
    until = datetime.fromisoformat(pod["metadata"]["deletionTimestamp"])
    return datetime.now(UTC) >= until
