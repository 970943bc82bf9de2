"""What becomes of a pod's disk when its successor is bound before the pod has ended.

The pod takes a minute to end after it was deleted, and its successor is on another node. Whether
each node's kubelet redirects the plugin makes the difference. The case that harms is shown on a
real kubelet and a container too.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.real import records, stories
from tests.real.ground.cloud import Cloud, by_plugin
from tests.real.ground.controlplane import ControlPlane
from tests.real.ground.drivers import NodeDriver
from tests.real.ground.nodes import DRIVER, IGNORES_SIGTERM, LightNode
from tests.real.ground.processes import wait_for
from tests.real.ground.volumes import Volume, new_volume, pod_object
from tests.real.stories import OFF, ON, Stage
from tests.real.test_node import WRITES, real_node, registered

STAGES = itertools.count()
ENDS_AFTER = 45
"""Seconds. In 1.24 the attach/detach controller asks to attach within the first 20 of them."""
KINDS = {"csi": ON, "in-tree": OFF}


@pytest.fixture
def stage(old: ControlPlane, cloud: Cloud, ground: Path) -> Iterator[Stage]:
    with stories.stage(old, cloud, ground / f"dangling-{next(STAGES)}") as stage:
        yield stage


class Case:
    """A pod that takes its time to end, and its successor."""

    def __init__(self, stage: Stage, kind: str, successors: str) -> None:
        self.kind, self.successors = kind, successors
        self._api = stage.plane.api
        self.volume: Volume = new_volume(self._api, stage.cloud, f"{kind}-to-{successors}")
        self.node, self.other = stage.node(KINDS[kind]), stage.node(KINDS[successors])
        self._start("first", self.node)

    def _start(self, name: str, node: LightNode) -> None:
        pod = pod_object(f"{self.volume.name}-{name}", node.name, self.volume.name)
        pod["metadata"]["annotations"] = {IGNORES_SIGTERM: "true"}
        pod["spec"]["terminationGracePeriodSeconds"] = ENDS_AFTER
        self._api.create(pod)

    def phase(self, name: str) -> str:
        found = self._api.find("Pod", f"{self.volume.name}-{name}", "default")
        return found["status"]["phase"] if found else "gone"

    def until(self, phase: str, timeout: float) -> None:
        """Wait for the first pod."""
        what = f"{self.volume.name}-first to be {phase}"
        wait_for(lambda: self.phase("first") == phase, what, timeout)

    def succeed(self) -> None:
        """Delete the pod, and make its successor, as the controller of a Deployment does."""
        self.deleted = time.time()
        self._api.delete("Pod", f"{self.volume.name}-first", "default")
        self._start("second", self.other)

    def detaches(self) -> list[dict[str, Any]]:
        """Those that EC2 was asked for, and did, while the pod still ran."""
        mount = self.node.mounts[0]
        return [
            call
            for call in self.volume.cloud.calls(self.volume.disk)
            if call["action"] == "DetachVolume"
            and not call["refused"]
            and call["time"] < mount.until
        ]

    def look(self) -> None:
        """What the pod's node is told while the pod still runs."""
        status = self._api.get("Node", self.node.name)["status"]
        names = [it["name"] for it in status.get("volumesAttached", [])]
        self.attached = sorted(
            "csi" if "/csi/" in name else "in-tree" for name in names if self.volume.disk in name
        )

    def row(self) -> dict[str, Any]:
        found = self.detaches()
        for it in found:
            print(f"{self.volume.name}: detached after {it['time'] - self.deleted:.1f} s")  # noqa: T201
        sides = {"in-tree" if by_plugin(it) else "CSI" for it in found}
        return {
            "node": self.kind,
            "successorsNode": self.successors,
            "detachedWhileThePodRuns": " and ".join(sorted(sides)) or "no",
            "volumesAttached": self.attached,
        }

    def end(self) -> None:
        for name in ("first", "second"):
            if self.phase(name) != "gone":
                pod = f"{self.volume.name}-{name}"
                self._api.delete("Pod", pod, "default", gracePeriodSeconds=0)


def test_a_successor_on_another_node(stage: Stage) -> None:
    stage.controller(ON)
    cases = [Case(stage, kind, successors) for kind, successors in product(KINDS, KINDS)]
    for case in cases:
        case.until("Running", 60)
    for case in cases:
        case.succeed()
    time.sleep(ENDS_AFTER - 10)
    for case in cases:
        case.look()
    for case in cases:
        case.until("gone", ENDS_AFTER + 30)
    rows = [case.row() for case in cases]
    for case in cases:
        case.end()
    version = stage.plane.version
    records.check(f"dangling/{version}", {"kubernetesVersion": version, "rows": rows})


def test_the_real_kubelet(stage: Stage, cloud: Cloud, ground: Path) -> None:
    """The container goes on writing to a disk that EC2 says is attached to another instance."""
    stage.controller(ON)
    api, plane = stage.plane.api, stage.plane
    other = stage.node(OFF)
    with real_node(plane, cloud, ground, ON) as (machine, instance):
        driver = NodeDriver(machine, instance)
        wait_for(lambda: DRIVER in registered(plane, machine), "the driver to be registered")
        volume = new_volume(api, cloud, "real-kubelet")
        # The first process of a container ignores SIGTERM, so it ends by SIGKILL.
        first = pod_object("first", machine.name, volume.name, WRITES)
        first["spec"]["terminationGracePeriodSeconds"] = ENDS_AFTER
        api.create(first)
        lines = driver.disks / volume.disk / "lines"
        wait_for(lines.exists, "the container to write", 60)

        deleted = time.time()
        api.delete("Pod", "first", "default")
        api.create(pod_object("second", other.name, volume.name))
        wait_for(lambda: volume.attached_to == other.instance.id, "the detach", ENDS_AFTER)
        written = lines.read_text()
        wait_for(lambda: lines.read_text() != written, "the container to write on", 5)
        pod = api.get("Pod", "first", "default")
        assert pod["status"]["containerStatuses"][0]["state"].keys() == {"running"}
        calls = [it for it in cloud.calls(volume.disk) if it["time"] > deleted]
        for it in calls:
            print(f"{it['action']} {it['time'] - deleted:.1f} s after the deletion")  # noqa: T201
        detaches = [it for it in calls if it["action"] == "DetachVolume"]
        assert [by_plugin(it) for it in detaches] == [True]
        for name in ("first", "second"):
            api.delete("Pod", name, "default", gracePeriodSeconds=0)
        wait_for(lambda: not api.list("Pod", "default"), "the pods to go", ENDS_AFTER + 30)
