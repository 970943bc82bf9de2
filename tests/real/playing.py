"""Plays counter-examples of the model checker on real components, event by event.

What Replant and people do in a story is done; what a controller, a kubelet or the cloud does in it
is waited for. At the end it is looked whether the bad state of the story is there. Nodes are light
ones. Pods are bound to their nodes by the test, so taints and tolerations have no part in it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from replant.proof.badness import Bad, Cause
from replant.proof.events import Act, Event
from replant.proof.world import BOTH, CSI, IN_TREE, NONE, Node, Presence, World
from tests.proof.playable import CLAIM, INLINE, Story
from tests.real.claiming import storage_class
from tests.real.ground.cloud import Cloud
from tests.real.ground.controlplane import ControlPlane
from tests.real.ground.drivers import ControllerDriver
from tests.real.ground.nodes import DRIVER, LightNode
from tests.real.ground.processes import wait_for
from tests.real.ground.volumes import (
    claim_object,
    end_pod,
    inline_volume,
    new_volume,
    pod_object,
    pv_object,
)
from tests.real.stories import SEEN_BY_NOW

EVENT_TAKES = 40.0
"""Seconds that the real components have for one event."""
NEVER = 15.0
"""Seconds for which a pod or a claim waits in vain before it is held to wait for ever. It takes a
tenth of that where it does not."""
PAUSE = 0.02
LAST = 20
"""So many last looks at what a controller takes away and puts back."""
NOTHING_REAL = {
    Act.GIVE,  # its replicas are restarted when another one leads
    Act.SEE_EMPTY,
    Act.TAINT,
    Act.TAINT_JOINED,
    Act.UNTAINT,
    Act.TOLERATE,
    Act.TOLERATING_POD_GOES,
    Act.TURN_BACK,
    Act.GO_ON,
    Act.UNMOUNT,  # a light node unmounts before it lets a pod go
}


class Otherwise(Exception):
    """The real components did something else than the story tells."""


class Play:
    """One story, on nodes and with a disk of its own."""

    def __init__(
        self, name: str, kind: str, story: Story, plane: ControlPlane, cloud: Cloud
    ) -> None:
        self._name, self._kind, self._story = name, kind, story
        self._plane, self._cloud, self._api = plane, cloud, plane.api
        self._pods: dict[int, str] = {}
        self._count = 0
        self.nodes: dict[int, LightNode] = {}

    # Before the first event

    def set_up(self, stack: ExitStack, folder: Path) -> None:
        rules, start = self._story.rules, self._story.rules.start
        if rules.course.driver:
            unserved = self._story.problem.cause is Cause.NO_PROVISIONER
            driver = ControllerDriver(self._plane, self._cloud, folder, provisions=unserved)
            stack.enter_context(driver)
        self._lead(start.leader)
        self._stack = stack
        for number, node in enumerate(start.nodes):
            if node.presence is Presence.MEMBER:
                self._join(number, node)
        if self._kind == CLAIM:
            self._disk = new_volume(self._api, self._cloud, self._name).disk
        else:
            self._disk = self._cloud.disk()
        time.sleep(SEEN_BY_NOW)

    def _join(self, number: int, node: Node) -> None:
        rules = self._story.rules
        light = LightNode(
            self._api,
            self._cloud.instance(),
            self._plane.version,
            rules.processes[node.kubelet].gates,
            [DRIVER] if rules.driver_on(node) else [],
        )
        self.nodes[number] = self._stack.enter_context(light)

    def clear(self) -> None:
        for name in list(self._pods.values()):
            end_pod(self._api, name)

    # The events

    def play(self) -> None:
        before = self._story.rules.start
        for number, event in enumerate(self._story.events, 1):
            try:
                self._act(before, event)
            except AssertionError as problem:
                raise Otherwise(f"event {number}, {event.act.value}: {problem}") from None
            before = event.world

    def _act(self, before: World, event: Event) -> None:
        if event.act in NOTHING_REAL:
            return
        if event.act in (Act.CONFIRM, Act.TAKE_OVER, Act.RESTART):
            if event.act is not Act.CONFIRM or event.world.leader != before.leader:
                self._lead(event.world.leader)
            return
        if event.act is Act.JOIN:
            self._join(event.node, event.world.nodes[event.node])
            time.sleep(SEEN_BY_NOW)
            return
        self._on_node(event)

    def _on_node(self, event: Event) -> None:
        number, side = event.node, event.side
        node = self.nodes[number]
        match event.act:
            case Act.CORDON | Act.UNCORDON:
                change: dict[str, Any] = {"spec": {"unschedulable": event.act is Act.CORDON}}
                self._api.patch("Node", node.name, change)
            case Act.SWITCH | Act.SWITCH_IN_PLACE:
                kubelet = event.world.nodes[number].kubelet
                node.restart(self._story.rules.processes[kubelet].gates)
                time.sleep(SEEN_BY_NOW)
            case Act.BIND:
                self._bind(number)
            case Act.DELETE:
                end_pod(self._api, self._pods.pop(number))
            case Act.LOOK:
                change = {"metadata": {"labels": {"touched": "true"}}}
                self._api.patch("Pod", self._pods[number], change, "default")
            case Act.MOUNT:
                self._wait(lambda: self._phase(number) == "Running", "the pod to run")
            case Act.ATTACH:
                self._wait(lambda: side & self.sides(number), "the node to be told of the disk")
            case Act.ATTACH_FAILS:
                # The plugin asks first who has the disk; so the cloud is not asked to attach it.
                self._wait(lambda: self._attach_failed(number), "an attach that fails")
            case Act.DETACH | Act.DETACHED:
                self._wait(
                    lambda: self._calls("DetachVolume", number, side),
                    "the cloud to detach the disk",
                )
            case _:
                raise Otherwise(f"nobody knows how to play {event.act.value}")

    def _lead(self, process: int) -> None:
        gates = self._story.rules.processes[process].gates
        self._plane.start_controller_manager(gates, self._cloud)

    def _bind(self, number: int) -> None:
        self._count += 1
        name = self._pods[number] = f"{self._name}-{self._count}"
        node = self.nodes[number].name
        self._api.create(self._pod(name, node))

    def _pod(self, name: str, node: str) -> dict[str, Any]:
        pod = pod_object(name, node, self._name)
        if self._kind == CLAIM:
            return pod
        if self._kind == INLINE:
            pod["spec"]["volumes"] = [inline_volume(self._name, self._disk)]
            return pod
        claim = f"{name}-{self._name}"
        reference = {"name": claim, "namespace": "default"}
        self._api.create(pv_object(self._name, self._disk, claimRef=reference))
        spec = claim_object(claim, volumeName=self._name, storageClassName="")["spec"]
        ephemeral = {"volumeClaimTemplate": {"spec": spec}}
        pod["spec"]["volumes"] = [{"name": self._name, "ephemeral": ephemeral}]
        return pod

    # What is seen

    def sides(self, number: int) -> int:
        """By which names the node is told that it has the disk."""
        status = self._api.get("Node", self.nodes[number].name)["status"]
        found = 0
        for entry in status.get("volumesAttached", []):
            if self._disk in entry["name"]:
                found |= CSI if "/csi/" in entry["name"] else IN_TREE
        return found

    def _phase(self, number: int) -> str:
        found = self._api.find("Pod", self._pods[number], "default")
        return found["status"]["phase"] if found else "gone"

    def _attach_failed(self, number: int) -> bool:
        about = f"involvedObject.name={self._pods[number]}"
        events = self._api.list("Event", "default", fieldSelector=about)
        return any(it["reason"] == "FailedAttachVolume" for it in events)

    def _calls(self, action: str, number: int, side: int) -> list[dict[str, Any]]:
        """What a side asked the cloud for, and the cloud did."""
        instance = self.nodes[number].instance.id
        return [
            call
            for call in self._cloud.calls(self._disk)
            if call["action"] == action
            and call["instance"] == instance
            and not call["refused"]
            and (call["caller"].startswith("kubernetes/")) is (side == IN_TREE)
        ]

    def _yanks(self, number: int, side: int) -> bool:
        """Whether the cloud detached the disk while a pod had it mounted there."""
        return any(
            mount.since <= call["time"] < mount.until
            for call in self._calls("DetachVolume", number, side)
            for mount in self.nodes[number].mounts
            if mount.disk == self._disk
        )

    @staticmethod
    def _wait(look: Callable[[], object], what: str) -> None:
        wait_for(look, what, EVENT_TAKES, PAUSE)

    # After the last event

    def end(self) -> str:
        """What is seen of the bad state; Otherwise says what is there instead of it."""
        problem = self._story.problem
        match problem.cause:
            case Cause.DETACHED_UNDER_POD:
                return self._yanked(problem)
            case Cause.BOTH_SIDES:
                return self._both(problem)
            case Cause.NO_PLUGIN_TO_DETACH:
                return self._stranded(problem)
            case Cause.NO_PROVISIONER:
                return self._unprovisioned()
            case _:
                return self._pending(problem)

    def _yanked(self, problem: Bad) -> str:
        if not self._yanks(problem.node, problem.side):
            raise Otherwise("the disk was detached, but no pod had it mounted then")
        return f"{_by(problem.side)} detached the disk while the pod was Running"

    def _both(self, problem: Bad) -> str:
        if self._calls("AttachVolume", problem.node, CSI):
            raise Otherwise("the in-tree plugin had detached the disk when the driver attached it")
        return "the driver took the disk for attached while the in-tree plugin had it"

    def _stranded(self, problem: Bad) -> str:
        told: list[bool] = []

        def check() -> None:
            # A detach that fails takes the name away and puts it back, ten times a second.
            told.append(bool(problem.side & self.sides(problem.node)))
            if self._calls("DetachVolume", problem.node, problem.side):
                raise Otherwise(f"{_by(problem.side)} detached the disk")

        if problem.node in self._pods:
            end_pod(self._api, self._pods.pop(problem.node))
        self._watch(check)
        if not any(told[-LAST:]):
            raise Otherwise("the node is no longer told that it has the disk")
        return "the pod is gone, and the node is told that it has the disk under the plugin's name"

    def _unprovisioned(self) -> str:
        name = f"{self._name}-new"
        self._api.create(storage_class(name))
        self._api.create(claim_object(name, storageClassName=name))

        def check() -> None:
            claim = self._api.get("PersistentVolumeClaim", name, "default")
            if claim["spec"].get("volumeName"):
                raise Otherwise("a volume was provisioned")

        self._watch(check)
        self._api.delete("PersistentVolumeClaim", name, "default")
        self._api.delete("StorageClass", name)
        return "a new claim waits for its volume"

    def _pending(self, problem: Bad) -> str:
        number = problem.node
        if number not in self._pods:
            # Its node is cordoned for ever; a pod that is there anyway shows why.
            self._bind(number)
        attached = 0

        def check() -> None:
            nonlocal attached
            attached |= self.sides(number)
            if self._phase(number) != "Pending":
                raise Otherwise(f"the pod is {self._phase(number)}")

        self._watch(check)
        names = {NONE: "nobody", IN_TREE: "the in-tree plugin", CSI: "the driver", BOTH: "both"}
        expected = {
            Cause.OTHER_SIDE_ATTACHES: BOTH & ~problem.side,
            Cause.NOBODY_ATTACHES: NONE,
        }
        if attached != expected.get(problem.cause, attached):
            raise Otherwise(f"the pod waits, and {names[attached]} attached its disk")
        return f"the pod stays Pending, and {names[attached]} attached its disk"

    @staticmethod
    def _watch(check: Callable[[], None]) -> None:
        """Look for as long as nothing may change."""
        until = time.monotonic() + NEVER
        while time.monotonic() < until:
            check()
            time.sleep(0.2)


def _by(side: int) -> str:
    return "the driver" if side == CSI else "the in-tree plugin"


def played(
    name: str, kind: str, story: Story, plane: ControlPlane, cloud: Cloud, folder: Path
) -> dict[str, Any]:
    """What becomes of a story, as a row of the record."""
    play = Play(name, kind, story, plane, cloud)
    problem = story.problem
    row: dict[str, Any] = {"told": problem.state.value, "cause": problem.cause.value}
    with ExitStack() as stack:
        play.set_up(stack, folder)
        try:
            play.play()
            return row | {"happens": True, "seen": play.end()}
        except Otherwise as instead:
            return row | {"happens": False, "seen": str(instead)}
        finally:
            play.clear()
