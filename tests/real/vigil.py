"""Keeps an eye on disks all the time, by the cloud's word: where each is, and where its pod is."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import httpx

from tests.real.ground.api import Api, Object, Refused
from tests.real.ground.cloud import Cloud
from tests.real.ground.nodes import LightNode
from tests.real.ground.processes import Stoppable

PERIOD = 0.2


@dataclass(frozen=True)
class Alone:
    """A disk that was attached to a node where no pod had it."""

    disk: str
    node: str
    seconds: float


class Vigil(Stoppable):
    """Samples EC2 and the pods until it is stopped.

    A pod counts as there from the moment when it is bound to the node until it is gone.
    """

    def __init__(
        self, api: Api, cloud: Cloud, nodes: Sequence[LightNode], disks: Mapping[str, str]
    ) -> None:
        """Disks are given by the name of their claim."""
        self.on_two_nodes: list[str] = []
        self.samples = 0
        self._api = api
        self._cloud = cloud
        self._nodes = nodes
        self._disks = disks
        self._alone_since: dict[tuple[str, str], float] = {}
        self._worst = Alone("", "", 0)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="vigil", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def worst(self) -> Alone:
        """The disk that was longest alone since this was asked before."""
        worst, self._worst = self._worst, Alone("", "", 0)
        return worst

    def _watch(self) -> None:
        while not self._stopped.wait(PERIOD):
            # Pods first: one that is bound meanwhile has no disk that was attached before.
            try:
                pods = self._api.list("Pod", "default")
            except (httpx.TransportError, Refused):
                continue  # where pods are cannot be told while the API server is away
            attached = self._cloud.attachments(self._disks.values())
            self._take(pods, attached)
            self.samples += 1

    def _take(self, pods: list[Object], attached: Mapping[str, list[str]]) -> None:
        now = time.monotonic()
        there = {
            (self._disks[claim], pod["spec"].get("nodeName", ""))
            for pod in pods
            for claim in claims(pod)
            if claim in self._disks
        }
        names = {node.instance.id: node.name for node in self._nodes}
        alone = set()
        for disk, instances in attached.items():
            if len(instances) > 1:
                self.on_two_nodes.append(disk)
            places = {(disk, names[it]) for it in instances}
            alone |= places - there
        self._alone_since = {it: self._alone_since.get(it, now) for it in alone}
        for (disk, node), since in self._alone_since.items():
            if now - since > self._worst.seconds:
                self._worst = Alone(disk, node, now - since)


def claims(pod: Object) -> list[str]:
    volumes = pod["spec"].get("volumes", [])
    return [
        it["persistentVolumeClaim"]["claimName"] for it in volumes if "persistentVolumeClaim" in it
    ]


def yanked(cloud: Cloud, nodes: Sequence[LightNode]) -> list[str]:
    """Detaches that EC2 was asked for, and did, while a pod had the disk mounted there."""
    by_instance = {node.instance.id: node for node in nodes}
    found = []
    for call in cloud.all_calls():
        node = by_instance.get(call["instance"])
        if call["action"] != "DetachVolume" or call["refused"] or node is None:
            continue
        found += [
            f"{call['volume']} from {node.name} under {mount.pod}, by {call['caller']}"
            for mount in node.mounts
            if mount.disk == call["volume"] and mount.since <= call["time"] < mount.until
        ]
    return found


def longest_detach(cloud: Cloud, nodes: Sequence[LightNode], since: float) -> float:
    """Seconds from a kubelet's unmount to EC2's detach, the longest of those since then."""
    detaches = [it for it in cloud.all_calls() if it["action"] == "DetachVolume"]
    longest = 0.0
    for node in nodes:
        for mount in node.mounts:
            if not since <= mount.until < time.time():
                continue
            freed = (
                call["time"]
                for call in detaches
                if call["volume"] == mount.disk
                and call["instance"] == node.instance.id
                and call["time"] >= mount.until
                and not call["refused"]
            )
            longest = max(longest, next(freed, mount.until) - mount.until)
    return longest
