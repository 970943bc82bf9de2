"""What the real attach/detach controller does with an in-tree EBS volume, as rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import product
from typing import Any

from tests.real.ground.cloud import Cloud, by_plugin
from tests.real.ground.controlplane import ControlPlane
from tests.real.ground.nodes import DRIVER, LightNode
from tests.real.ground.processes import settled, wait_for
from tests.real.ground.programs import OLD
from tests.real.ground.volumes import Volume, attachment_state, end_pod, new_volume, pod_object

Row = dict[str, Any]
GATE = "CSIMigrationAWS"


@dataclass(frozen=True)
class Case:
    """One kind of node that a volume may be wanted on."""

    csi_node: bool
    annotated: bool
    driver_listed: bool


CASES = (
    Case(csi_node=False, annotated=False, driver_listed=False),
    *(Case(True, annotated, listed) for annotated, listed in product((False, True), repeat=2)),
)


def rows(plane: ControlPlane, cloud: Cloud, gates: Mapping[str, bool]) -> list[Row]:
    """One row for each kind of node, seen with the controller manager that runs now."""
    with ExitStack() as stack:
        canary = stack.enter_context(_trial(plane, cloud, CASES[-1], native=True))
        # That nobody acts means something only if the controller does act where it should.
        wait_for(lambda: canary.volume.attached_to, "a native volume to be attached", 60)
        trials = [(case, stack.enter_context(_trial(plane, cloud, case))) for case in CASES]
        seen = settled(lambda: [trial.seen() for _case, trial in trials])
    return [
        {
            "kcmGates": dict(gates),
            "annotated": case.annotated,
            "driverListed": case.driver_listed,
            "csiNode": case.csi_node,
            "servedBy": served_by(what),
            "seen": what,
        }
        for (case, _trial), what in zip(trials, seen, strict=True)
    ]


@dataclass(frozen=True)
class Trial:
    """A pod on a light node that wants a volume."""

    plane: ControlPlane
    node: LightNode
    volume: Volume

    def seen(self) -> dict[str, Any]:
        """What anyone can see of it from outside; disks are called DISK."""
        name = self.volume.name
        status = self.plane.api.get("Node", self.node.name)["status"]
        events = self.plane.api.list("Event", fieldSelector=f"involvedObject.name={name}")
        return {
            "ec2Calls": [
                f"{call['action']} by {'in-tree' if by_plugin(call) else 'CSI'}"
                for call in self.volume.cloud.calls(self.volume.disk)
            ],
            "volumeAttachments": [
                f"{found['spec']['attacher']}: {attachment_state(found)}"
                for found in self.volume.attachments
            ],
            "volumesAttached": [
                entry["name"].replace(self.volume.disk, "DISK")
                for entry in status.get("volumesAttached", [])
            ],
            "pod": self.plane.api.get("Pod", name, "default")["status"]["phase"],
            "events": sorted({event["reason"] for event in events}),
        }


def served_by(seen: Mapping[str, Any]) -> str:
    in_tree = "AttachVolume by in-tree" in seen["ec2Calls"]
    assert not (in_tree and seen["volumeAttachments"]), f"both sides have acted: {seen}"
    if seen["volumeAttachments"]:
        return "csi"
    return "in-tree" if in_tree else "nobody"


@contextmanager
def _trial(
    plane: ControlPlane, cloud: Cloud, case: Case, *, native: bool = False
) -> Iterator[Trial]:
    instance = cloud.instance()
    # The kubelet is an old one: a new one has no way to be not annotated.
    gates, drivers = {GATE: case.annotated}, [DRIVER] if case.driver_listed else []
    with LightNode(plane.api, instance, OLD, gates, drivers, csi_node=case.csi_node) as node:
        volume = new_volume(plane.api, cloud, f"trial-{instance.id}", native=native)
        plane.api.create(pod_object(volume.name, node.name, volume.name))
        try:
            yield Trial(plane, node, volume)
        finally:
            end_pod(plane.api, volume.name)
            wait_for(lambda: not volume.attached_to, "the disk to be freed")
            for left in volume.attachments:
                # What was never attached has nobody who detaches it.
                plane.api.delete("VolumeAttachment", left["metadata"]["name"])
