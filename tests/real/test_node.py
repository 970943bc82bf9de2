"""The real node: what its kubelet writes by its gates, and a container on a translated volume."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.real import records
from tests.real.attaching import GATE
from tests.real.ground.api import Object
from tests.real.ground.cloud import Cloud, Instance
from tests.real.ground.controlplane import ControlPlane
from tests.real.ground.drivers import ControllerDriver, NodeDriver
from tests.real.ground.machine import Machine
from tests.real.ground.nodes import DRIVER, MIGRATED, LightNode
from tests.real.ground.processes import settled, wait_for
from tests.real.ground.volumes import new_volume, pod_object

WRITES = "i=0; while true; do i=$((i+1)); echo $i >> /data/lines; sleep 0.05; done"


@contextmanager
def real_node(
    plane: ControlPlane, cloud: Cloud, ground: Path, gates: dict[str, bool]
) -> Iterator[tuple[Machine, Instance]]:
    instance = cloud.instance()
    with Machine(plane, ground / f"node-{instance.id}", instance.name, gates) as machine:
        yield machine, instance
    plane.api.delete("Node", instance.name)


GATES: list[dict[str, bool]] = [
    {"CSIMigration": False},
    {},
    {GATE: False},
    {"CSIMigration": False},
    {GATE: True, "InTreePluginAWSUnregister": True},
    {"CSIMigrationPortworx": True, "CSIMigrationvSphere": True, "CSIMigrationRBD": True},
]
"""With what the kubelet is started, one after the other."""
WITH_A_DRIVER: list[dict[str, bool]] = [{}, {"CSIMigration": False}, {GATE: False}]


def test_kubelet_writes_what_a_light_node_writes(
    old: ControlPlane, cloud: Cloud, ground: Path
) -> None:
    rows = []
    light = LightNode(old.api, cloud.instance(), old.version, GATES[0])
    with light, real_node(old, cloud, ground, GATES[0]) as (machine, _instance):
        for gates in GATES:
            machine.restart_kubelet(gates)
            light.restart(gates)
            rows.append({"gates": gates, **listed(old, machine.name)})
            assert listed(old, light.name) == listed(old, machine.name), gates
    record = {"kubernetesVersion": old.version, "kubeletStarts": rows}
    records.check(f"kubelet/{old.version}", record)


def test_a_driver_that_registers_has_the_csinode_written_anew(
    old: ControlPlane, cloud: Cloud, ground: Path
) -> None:
    """Also by a kubelet whose base gate is off, and which leaves its CSINode alone without one."""
    rows = []
    with real_node(old, cloud, ground, {}) as (machine, instance):
        NodeDriver(machine, instance)
        for gates in WITH_A_DRIVER:
            machine.restart_kubelet(gates)
            # It finds the driver's socket some seconds after it has started.
            seen = settled(lambda: listed(old, machine.name), 15)
            rows.append({"gates": gates, **seen})
            assert registered(old, machine) == [DRIVER]
    record = {"kubernetesVersion": old.version, "kubeletStarts": rows}
    records.check(f"kubelet/{old.version}-with-a-driver", record)


def listed(plane: ControlPlane, node: str) -> Object:
    """What a node says of itself in its CSINode, if it has one."""
    found = plane.api.find("CSINode", node)
    annotations = found["metadata"].get("annotations", {}) if found else {}
    return {"csiNode": bool(found), "migratedPlugins": annotations.get(MIGRATED, "")}


def test_a_container_writes_to_a_translated_volume_while_the_gates_can_be_switched(
    old: ControlPlane, cloud: Cloud, ground: Path
) -> None:
    old.start_controller_manager({GATE: True}, cloud)
    container_on_a_translated_volume(old, cloud, ground, {GATE: True})


def test_a_container_writes_to_a_translated_volume_when_the_gates_are_gone(
    new: ControlPlane, cloud: Cloud, ground: Path
) -> None:
    new.start_controller_manager()
    container_on_a_translated_volume(new, cloud, ground, {})


def container_on_a_translated_volume(
    plane: ControlPlane, cloud: Cloud, ground: Path, gates: dict[str, bool]
) -> None:
    with (
        ControllerDriver(plane, cloud, ground / f"driver-{plane.version}"),
        real_node(plane, cloud, ground, gates) as (machine, instance),
    ):
        driver = NodeDriver(machine, instance)
        wait_for(lambda: DRIVER in registered(plane, machine), "the driver to be registered")
        volume = new_volume(plane.api, cloud, f"written-{instance.id}")
        plane.api.create(pod_object("writer", machine.name, volume.name, WRITES))
        lines = driver.disks / volume.disk / "lines"
        wait_for(lines.exists, "the container to write", 60)
        assert "awsElasticBlockStore" in volume.pv["spec"]
        assert volume.attached_to == instance.id
        assert called(driver, volume.disk) == ["NodeStageVolume", "NodePublishVolume"]

        machine.restart_kubelet()
        before = lines.read_text()
        wait_for(lambda: lines.read_text() != before, "the container to write on")
        assert container(plane)["restartCount"] == 0

        plane.api.delete("Pod", "writer", "default")
        wait_for(lambda: not volume.attached_to, "the disk to be freed", 60)
        assert called(driver, volume.disk)[-2:] == ["NodeUnpublishVolume", "NodeUnstageVolume"]
        written = [int(line) for line in lines.read_text().split()]
        assert written == list(range(1, len(written) + 1)), "a line was lost"


def registered(plane: ControlPlane, machine: Machine) -> list[str]:
    node = plane.api.get("CSINode", machine.name)
    return [entry["name"] for entry in node["spec"]["drivers"] or []]


def called(driver: NodeDriver | ControllerDriver, disk: str) -> list[str]:
    return [call["call"] for call in driver.calls() if call.get("volume") == disk]


def container(plane: ControlPlane) -> Object:
    status: Object = plane.api.get("Pod", "writer", "default")["status"]["containerStatuses"][0]
    return status
