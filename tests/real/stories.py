"""Stories of disks on the real controller: what is done, and what is seen after each step.

The nodes are light ones, the pods' owner is the test; the controller manager, its in-tree EBS
plugin, the cloud, the CSI driver and its attacher are real processes that act on their own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.real.attaching import GATE
from tests.real.ground.cloud import Cloud, by_plugin
from tests.real.ground.controlplane import ControlPlane
from tests.real.ground.drivers import ControllerDriver
from tests.real.ground.nodes import DRIVER, LightNode
from tests.real.ground.processes import settled
from tests.real.ground.volumes import attachment_state, end_pod, new_volume, pod_object

ON, OFF = {GATE: True}, {GATE: False}
Recorded = Mapping[str, Sequence[dict[str, Any]]]
"""By story, what earlier runs have seen of its steps."""
NOTHING: Recorded = {}
SAMPLES, PAUSE = 12, 0.05
LOOKS = 6
"""So often it is looked before what is seen is held to be what it comes to."""
SEEN_BY_NOW = 1.0
"""So many seconds after a CSINode is written its watchers know of it; a pod may well be quicker."""


class Story:
    """One disk, the pod that wants it, and what is seen of them step by step."""

    def __init__(self, order: str, stage: Stage) -> None:
        self.order = order
        self.volume = new_volume(stage.plane.api, stage.cloud, f"{stage.name}-{len(stage.stories)}")
        self.steps: list[dict[str, Any]] = []
        self._stage = stage
        self._api = stage.plane.api
        self._calls = self._calls_seen = 0
        self._pod_was, self._raced = "gone", False

    def start(self, node: LightNode, **owner: object) -> None:
        """Start the pod there; if it runs somewhere, that one goes first."""
        self.end()
        self.node = node
        pod = pod_object(self.volume.name, node.name, self.volume.name)
        pod["metadata"] |= owner
        self._api.create(pod)

    def start_owned(self, node: LightNode) -> None:
        """The same for a pod that somebody would make again; nobody does, but for the test."""
        name = self.volume.name
        if not self._api.find("ConfigMap", name, "default"):
            meta = {"name": name, "namespace": "default"}
            self._api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})
        uid = self._api.get("ConfigMap", name, "default")["metadata"]["uid"]
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid}
        self.start(node, ownerReferences=[{**owner, "controller": True}])

    def end(self) -> None:
        end_pod(self._api, self.volume.name)
        self._pod_was, self._raced = "gone", False

    def touch(self) -> None:
        """Change the pod, as anybody may at any time: the controller is told of it."""
        label = {"metadata": {"labels": {"touched": "true"}}}
        self._api.patch("Pod", self.volume.name, label, "default")

    @property
    def pod(self) -> str:
        found = self._api.find("Pod", self.volume.name, "default")
        return found["status"]["phase"] if found else "gone"

    def is_as_recorded(self, step: dict[str, Any]) -> bool:
        """Whether earlier runs have seen the same of this step, if they have seen any."""
        recorded = self._stage.recorded.get(self.order)
        return recorded is None or recorded[len(self.steps) :][:1] == [step]

    def step(self, name: str, seen: dict[str, Any]) -> dict[str, Any]:
        """All that is to be written down of a step, by what is seen now."""
        calls = self.volume.cloud.calls(self.volume.disk)
        new, self._calls_seen = calls[self._calls :], len(calls)
        step = {"step": name, **seen}
        if self._pod_was != "gone" and (sides := detached_by(new)):
            step["detachedBy"] = f"{sides}, while the pod is {self._pod_was}"
        if self._raced or "detachedBy" in step:
            # Which comes last, one side's detach or the other's attach, differs from run to run.
            del step["disk"]
        return step

    def write_down(self, step: dict[str, Any]) -> None:
        self._calls = self._calls_seen
        self._raced |= "detachedBy" in step
        self._pod_was = step["pod"]
        self.steps.append(step)

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

    def __init__(
        self, name: str, plane: ControlPlane, cloud: Cloud, recorded: Recorded, stack: ExitStack
    ) -> None:
        self.name = name
        self.plane = plane
        self.cloud = cloud
        self.recorded = recorded
        self.stories: list[Story] = []
        self.nodes: list[LightNode] = []
        self._stack = stack

    def controller(self, gates: Mapping[str, bool]) -> None:
        self.plane.start_controller_manager(gates, self.cloud)

    def node(self, gates: Mapping[str, bool]) -> LightNode:
        """Another node, with the driver on it."""
        version = self.plane.version
        node = LightNode(self.plane.api, self.cloud.instance(), version, gates, [DRIVER])
        self.nodes.append(self._stack.enter_context(node))
        time.sleep(SEEN_BY_NOW)
        return node

    def switch(self, node: LightNode, gates: Mapping[str, bool]) -> None:
        """Restart a node's kubelet with other gates."""
        node.restart(gates)
        time.sleep(SEEN_BY_NOW)

    def story(self, order: str) -> Story:
        self.stories.append(Story(order, self))
        return self.stories[-1]


def look(step: str, *stories: Story) -> None:
    """Wait until nothing changes any more, and write down what is seen.

    What an earlier run has seen may take longer to come now, so it is waited for.
    """
    seen = _at_rest(step, stories)
    looks = 1
    while looks < LOOKS and not all(story.is_as_recorded(it) for story, it in seen):
        seen = _at_rest(step, stories)
        looks += 1
    for story, it in seen:
        story.write_down(it)


def _at_rest(step: str, stories: Sequence[Story]) -> list[tuple[Story, dict[str, Any]]]:
    """What is seen of each once nothing changes any more."""
    seen = settled(lambda: [story.seen() for story in stories], 4)
    if any(now["pod"] == "Pending" for now in seen):
        # A pod that waits may only have to wait for a detach, which takes some seconds.
        seen = settled(lambda: [story.seen() for story in stories], 15)
    names = []
    for _sample in range(SAMPLES):
        # A detach that fails takes the name away and puts it back, ten times a second.
        names.append([story.sides() for story in stories])
        time.sleep(PAUSE)
    return [
        (story, story.step(step, {**now, "volumesAttached": sorted(set().union(*sides))}))
        for story, now, sides in zip(stories, seen, zip(*names, strict=True), strict=True)
    ]


@contextmanager
def stage(
    plane: ControlPlane, cloud: Cloud, folder: Path, recorded: Recorded = NOTHING
) -> Iterator[Stage]:
    """A stage with the driver's controllers; what is left on it is cleared away."""
    with ExitStack() as stack:
        stack.enter_context(ControllerDriver(plane, cloud, folder))
        stage = Stage(folder.name, plane, cloud, recorded, stack)
        yield stage
        for story in stage.stories:
            story.end()
