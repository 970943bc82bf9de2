"""A PersistentVolume that is away while its pod runs, and kubelets and controllers restart."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from replant.swap import twin
from tests.real import converting, records
from tests.real.attaching import GATE
from tests.real.ground import programs
from tests.real.ground.api import Object, Refused
from tests.real.ground.cloud import Cloud
from tests.real.ground.controlplane import ControlPlane
from tests.real.ground.drivers import ControllerDriver, NodeDriver
from tests.real.ground.machine import Machine
from tests.real.ground.nodes import DRIVER
from tests.real.ground.processes import wait_for
from tests.real.ground.volumes import Volume, end_pod, new_volume, pod_object
from tests.real.ground.webhook import Denying
from tests.real.test_convert import installed, replant
from tests.real.test_node import WRITES, called, container, real_node, registered

QUIET = 10.0
"""So many seconds nothing may happen to a disk that must not be detached."""


@dataclass
class Away:
    """A volume that is away under a container, and whose VolumeAttachment is being deleted."""

    plane: ControlPlane
    role: Path
    volume: Volume
    before: Object
    """The volume as it was."""
    machine: Machine
    controller: ControllerDriver
    driver: NodeDriver
    lines: Path
    seen: dict[str, Any]

    @property
    def writes(self) -> bool:
        """Whether the container goes on writing."""
        before = self.lines.read_text()
        time.sleep(1)
        return self.lines.read_text() != before


@pytest.fixture(params=["old", "new"])
def plane(request: pytest.FixtureRequest, cloud: Cloud, ground: Path) -> Iterator[ControlPlane]:
    """One of its own for each test: a pod whose disk was detached may never end."""
    is_old = request.param == "old"
    version = programs.OLD if is_old else programs.newest()
    with ControlPlane(version, ground / f"away-{version}-{time.monotonic_ns()}") as made:
        made.start_controller_manager(gates(made), cloud if is_old else None)
        yield made


def gates(plane: ControlPlane) -> dict[str, bool]:
    return {GATE: True} if plane.version == programs.OLD else {}


def test_a_disk_is_detached_under_its_pod_once_the_volume_is_created(
    plane: ControlPlane, cloud: Cloud
) -> None:
    """As anybody would create it by hand, and as Replant did."""
    with away(plane, cloud) as it:
        native = twin.held(twin.native(it.before))
        wait_for(lambda: created(it, native), "the volume to be created")
        # By the driver's word: it may be attached again before anybody sees that it was not.
        detached = "ControllerUnpublishVolume"
        wait_for(lambda: detached in controller_calls(it), "the disk to be detached", 120)
        status = container(plane)
        it.seen["volume created"] = {
            "detached": True,
            "the container runs": "running" in status["state"] and status["restartCount"] == 0,
        }
        records.check(f"away/{plane.version}", it.seen)


def test_a_run_that_is_resumed_waits_for_the_pod(plane: ControlPlane, cloud: Cloud) -> None:
    """It creates the volume only once its pod has ended, and the pod's successor gets it."""
    with away(plane, cloud) as it:
        said = plane.folder / "resumed"
        with said.open("w") as file:
            process = subprocess.Popen(
                [converting.REPLANT, "apply", "--resume", "--yes", "--kubeconfig", str(it.role)],
                stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
            )  # fmt: skip
            waits = f"PersistentVolume {it.volume.name} is away, and waits for pod default/writer"
            wait_for(lambda: waits in said.read_text(), "it to say what it waits for", 60)
            time.sleep(QUIET)
            assert it.volume.attached_to
            assert it.writes
            assert plane.api.find("PersistentVolume", it.volume.name) is None
            end_pod(plane.api, "writer")
            # The attacher tries again later and later, for as long as the volume was away.
            assert process.wait(300) in (0, 4), said.read_text()
        assert "csi" in it.volume.pv["spec"]
        written = [int(line) for line in it.lines.read_text().split()]
        assert written == list(range(1, len(written) + 1)), "a line was lost"
        it.lines.unlink()
        plane.api.create(pod_object("writer", it.machine.name, it.volume.name, WRITES))
        wait_for(it.lines.exists, "the successor to write", 400)


@contextmanager
def away(plane: ControlPlane, cloud: Cloud) -> Iterator[Away]:
    """A run has stopped between a delete and a create; then kubelet and controllers restart."""
    plane.apply_role("convert")
    role = plane.role_kubeconfig("apply")
    folder = plane.folder.parent / f"away-driver-{time.monotonic_ns()}"
    with (
        installed(plane),
        ControllerDriver(plane, cloud, folder) as controller,
        real_node(plane, cloud, plane.folder.parent, gates(plane)) as (machine, instance),
    ):
        driver = NodeDriver(machine, instance)
        wait_for(lambda: DRIVER in registered(plane, machine), "the driver to be registered")
        volume = new_volume(plane.api, cloud, f"away-{instance.id}")
        plane.api.create(pod_object("writer", machine.name, volume.name, WRITES))
        lines = driver.disks / volume.disk / "lines"
        wait_for(lines.exists, "the container to write", 60)
        wait_for(lambda: volume.attachments[0]["status"]["attached"], "the attachment")
        wait_for(lambda: "containerID" in container(plane), "the kubelet to say so")
        before, seen = volume.pv, dict[str, Any]()
        it = Away(plane, role, volume, before, machine, controller, driver, lines, seen)
        with Denying(plane.api, folder / "webhook") as webhook:
            replant(role, "convert", volume.name, code=4)
            assert plane.api.find("PersistentVolume", volume.name) is None
            assert names_it(role, volume.name)
            restart(it)
            webhook.allow()
        yield it


def restart(it: Away) -> None:
    """The kubelet, and then the controllers."""
    it.machine.restart_kubelet()
    wait_for(lambda: calls(it)[-1] == "NodeUnstageVolume", "the kubelet to unmount it", 180)
    it.seen["kubelet restarted"] = {"asked of the driver": calls(it), "writes": it.writes}
    assert not going(it), "the attachment stays until a controller restarts"
    it.plane.restart_controller_manager()
    wait_for(lambda: going(it), "the VolumeAttachment to be deleted", 600)
    time.sleep(QUIET)
    it.seen["controllers restarted"] = {
        "the VolumeAttachment is being deleted": going(it),
        "attached": bool(it.volume.attached_to),
        "writes": it.writes,
    }


def names_it(role: Path, name: str) -> bool:
    """Whether `replant status` says that the volume is away, and what is urgent."""
    done = subprocess.run(
        [converting.REPLANT, "status", "--kubeconfig", str(role)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    away = f"  away      PersistentVolume {name}: deleted, and not created again"
    return away in done.stdout and "replant apply --resume" in done.stdout


def calls(it: Away) -> list[str]:
    return called(it.driver, it.volume.disk)


def controller_calls(it: Away) -> list[str]:
    return called(it.controller, it.volume.disk)


def going(it: Away) -> bool:
    return any(found["metadata"].get("deletionTimestamp") for found in it.volume.attachments)


def created(it: Away, volume: Object) -> bool:
    """Whether the webhook lets it be created by now."""
    try:
        it.plane.api.create(volume)
    except Refused:
        return False
    return True
