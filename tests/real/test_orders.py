"""What becomes of disks in right and wrong orders of the switch, seen on the real controller.

The nodes are light ones, the pods' owner is the test; the controller manager, its in-tree EBS
plugin, the cloud, the CSI driver and its attacher are real processes that act on their own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.real import records
from tests.real.attaching import GATE
from tests.real.ground.cloud import Cloud, by_plugin
from tests.real.ground.controlplane import ControlPlane
from tests.real.ground.drivers import ControllerDriver
from tests.real.ground.nodes import DRIVER, LightNode
from tests.real.ground.processes import settled
from tests.real.ground.volumes import attachment_state, end_pod, new_volume, pod_object

ON, OFF = {GATE: True}, {GATE: False}
SAMPLES, PAUSE = 12, 0.05
UNREGISTERED = {GATE: True, "InTreePluginAWSUnregister": True}


class Story:
    """One disk, the pod that wants it, and what is seen of them step by step."""

    def __init__(self, order: str, stage: Stage) -> None:
        self.order = order
        self.volume = new_volume(stage.plane.api, stage.cloud, f"disk-{len(stage.stories)}")
        self.steps: list[dict[str, Any]] = []
        self._stage = stage
        self._api = stage.plane.api
        self._calls = 0
        self._pod_was, self._raced = "gone", False

    def start(self, node: LightNode) -> None:
        """Start the pod there; if it runs somewhere, that one goes first."""
        self.end()
        self.node = node
        self._api.create(pod_object(self.volume.name, node.name, self.volume.name))

    def end(self) -> None:
        end_pod(self._api, self.volume.name)
        self._pod_was, self._raced = "gone", False

    @property
    def pod(self) -> str:
        found = self._api.find("Pod", self.volume.name, "default")
        return found["status"]["phase"] if found else "gone"

    def write_down(self, step: str, seen: dict[str, Any]) -> None:
        calls = self.volume.cloud.calls(self.volume.disk)
        new, self._calls = calls[self._calls :], len(calls)
        if self._pod_was != "gone" and (sides := detached_by(new)):
            seen["detachedBy"] = f"{sides}, while the pod is {self._pod_was}"
            self._raced = True
        if self._raced:
            # Which comes last, one side's detach or the other's attach, differs from run to run.
            del seen["disk"]
        self._pod_was = seen["pod"]
        self.steps.append({"step": step, **seen})

    def seen(self) -> dict[str, Any]:
        return {
            "pod": self.pod,
            "disk": "attached" if self.volume.attached_to else "free",
            "volumeAttachments": [attachment_state(found) for found in self.volume.attachments],
        }

    def sides(self) -> set[str]:
        """Under whose names the node is told now that the disk is attached."""
        status = self._api.get("Node", self.node.name)["status"]
        names = [entry["name"] for entry in status.get("volumesAttached", [])]
        return {
            "csi" if "/csi/" in name else "in-tree" for name in names if self.volume.disk in name
        }


def detached_by(calls: list[dict[str, Any]]) -> str:
    """Which sides have detached, if any."""
    detached = [call for call in calls if call["action"] == "DetachVolume" and not call["refused"]]
    return " and ".join(sorted({"in-tree" if by_plugin(call) else "CSI" for call in detached}))


class Stage:
    """Where stories are played, one after the other or side by side."""

    def __init__(self, plane: ControlPlane, cloud: Cloud, stack: ExitStack) -> None:
        self.plane = plane
        self.cloud = cloud
        self.stories: list[Story] = []
        self._stack = stack

    def controller(self, gates: Mapping[str, bool]) -> None:
        self.plane.start_controller_manager(gates, self.cloud)

    def node(self, gates: Mapping[str, bool]) -> LightNode:
        """Another node, with the driver on it."""
        version = self.plane.version
        node = LightNode(self.plane.api, self.cloud.instance(), version, gates, [DRIVER])
        return self._stack.enter_context(node)

    def story(self, order: str) -> Story:
        self.stories.append(Story(order, self))
        return self.stories[-1]


def look(step: str, *stories: Story) -> None:
    """Wait until nothing changes any more, and write down what is seen."""
    seen = settled(lambda: [story.seen() for story in stories], 4)
    if any(now["pod"] == "Pending" for now in seen):
        # A pod that waits may only have to wait for a detach, which takes some seconds.
        seen = settled(lambda: [story.seen() for story in stories], 15)
    names = []
    for _sample in range(SAMPLES):
        # A detach that fails takes the name away and puts it back, ten times a second.
        names.append([story.sides() for story in stories])
        time.sleep(PAUSE)
    for story, now, sides in zip(stories, seen, zip(*names, strict=True), strict=True):
        story.write_down(step, {**now, "volumesAttached": sorted(set().union(*sides))})


@pytest.fixture
def stage(old: ControlPlane, cloud: Cloud, ground: Path) -> Iterator[Stage]:
    with ExitStack() as stack:
        stack.enter_context(ControllerDriver(old, cloud, ground / "orders"))
        stage = Stage(old, cloud, stack)
        yield stage
        for story in stage.stories:
            story.end()


def test_orders(stage: Stage) -> None:
    # Each leaves the controller as the next one wants to find it.
    stage.controller(OFF)
    right_order_there_and_back(stage)
    without_a_drain(stage)
    stage.controller(OFF)
    nodes_on_first(stage)
    controller_off_first(stage)
    unregistered_first(stage)
    orders = [{"order": story.order, "steps": story.steps} for story in stage.stories]
    version = stage.plane.version
    records.check(f"orders/{version}", {"kubernetesVersion": version, "orders": orders})


def right_order_there_and_back(stage: Stage) -> None:
    one, other = stage.node(OFF), stage.node(OFF)
    story = stage.story("right order: controller on, nodes drained and on, and all the way back")
    story.start(one)
    look("all off", story)
    stage.controller(ON)
    look("controller on", story)
    story.start(other)
    look("pod moved; its node is off", story)
    one.restart(ON)
    story.start(one)
    look("drained node on, pod moved there", story)
    other.restart(ON)
    stage.controller(UNREGISTERED)
    look("all nodes on, plugin unregistered in the controller", story)
    story.start(other)
    look("pod moved", story)
    stage.controller(ON)
    one.restart(OFF)
    story.start(one)
    look("plugin registered, drained node off, pod moved there", story)
    other.restart(OFF)
    stage.controller(OFF)
    look("all nodes off, controller off", story)
    story.end()
    look("pod deleted", story)


def without_a_drain(stage: Stage) -> None:
    """All ways at once: for each node, another thing comes first."""
    node_first = stage.story("no drain: node on in place, then controller on")
    controller_first = stage.story("no drain: controller on, then node on in place")
    untouched = stage.story("no drain: controller on, node left off")
    back = stage.story("no drain: all on, then node off in place")
    stories = (node_first, controller_first, untouched)
    for story in stories:
        story.start(stage.node(OFF))
    look("all off", *stories)
    node_first.node.restart(ON)
    look("node on, pod still there", node_first)
    stage.controller(ON)
    look("controller on", *stories)
    back.start(stage.node(ON))
    look("all on", back)
    controller_first.node.restart(ON)
    back.node.restart(OFF)
    look("node switched, pod still there", controller_first, back)
    stage.controller(ON)
    look("controller restarted", *stories, back)
    for story in (*stories, back):
        story.end()
    look("pod deleted", *stories, back)


def nodes_on_first(stage: Stage) -> None:
    flipped, other = stage.node(ON), stage.node(OFF)
    story = stage.story("wrong order: drained node on, controller off")
    story.start(flipped)
    look("pod started on the node that is on", story)
    story.start(other)
    look("pod moved to a node that is off", story)
    story.start(flipped)
    look("pod moved back", story)
    stage.controller(ON)
    look("controller on", story)


def controller_off_first(stage: Stage) -> None:
    node = stage.node(ON)
    story = stage.story("wrong order: controller off, nodes still on")
    story.start(node)
    look("all on", story)
    stage.controller(OFF)
    look("controller off", story)
    story.start(node)
    look("pod started anew on the node that is on", story)
    node.restart(OFF)
    look("node off", story)


def unregistered_first(stage: Stage) -> None:
    node = stage.node(OFF)
    running = stage.story("wrong order: plugin unregistered in the controller, node still off")
    running.start(node)
    look("all off", running)
    stage.controller(UNREGISTERED)
    look("controller on, plugin unregistered", running)
    running.end()
    look("pod deleted", running)
    fresh = stage.story("wrong order: plugin unregistered in the controller, then a new pod")
    fresh.start(node)
    look("pod started on the node that is off", fresh)
    node.restart(ON)
    look("node on", fresh)
