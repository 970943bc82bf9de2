"""The CSI driver of the proving ground and its attacher, run as a driver's controller would be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.real.ground import programs
from tests.real.ground.cloud import Cloud, Instance
from tests.real.ground.controlplane import ControlPlane
from tests.real.ground.machine import Machine
from tests.real.ground.nodes import DRIVER
from tests.real.ground.processes import Process, Stoppable


class ControllerDriver(Stoppable):
    """The driver's controller service, and an attacher that obeys VolumeAttachments with it.

    With ``provisions``, also the provisioner that makes and deletes volumes.
    """

    def __init__(
        self, plane: ControlPlane, cloud: Cloud, folder: Path, *, provisions: bool = False
    ) -> None:
        folder.mkdir()
        recipe = programs.csi()
        socket = folder / "csi.sock"
        self._calls = folder / "driver.calls"
        self._driver = Process(
            "driver",
            [
                str(recipe.program("driver")),
                f"--endpoint=unix://{socket}",
                f"--ec2={cloud.url}",
                f"--calls={self._calls}",
            ],
            folder,
        )
        self._driver.wait_until(socket.exists)
        self._attacher = Process(
            "attacher",
            [
                str(recipe.program("attacher")),
                f"--kubeconfig={plane.kubeconfig('csi-attacher')}",
                f"--csi-address={socket}",
            ],
            folder,
        )

        self._parts = [self._attacher, self._driver]
        if provisions:
            provisioner = Process(
                "csi-provisioner",
                [
                    str(programs.provisioner().program("csi-provisioner")),
                    f"--kubeconfig={plane.kubeconfig('csi-provisioner')}",
                    f"--csi-address={socket}",
                ],
                folder,
            )
            self._parts.insert(0, provisioner)

    def calls(self) -> list[dict[str, Any]]:
        """What it was asked so far, oldest first."""
        return read_calls(self._calls)

    def stop(self) -> None:
        for part in self._parts:
            part.kill()


def read_calls(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


class NodeDriver:
    """The driver's node service on the real node, registered with its kubelet."""

    def __init__(self, machine: Machine, instance: Instance) -> None:
        folder = machine.kubelet_folder / "plugins" / DRIVER
        folder.mkdir(parents=True)
        self.disks = machine.folder / "disks"
        self._calls = machine.folder / "driver.calls"
        self.process = machine.run(
            "driver",
            [
                str(programs.csi().program("driver")),
                f"--endpoint=unix://{folder / 'csi.sock'}",
                f"--node-id={instance.id}",
                f"--state={self.disks}",
                f"--registration={machine.kubelet_folder / 'plugins_registry'}",
                f"--calls={self._calls}",
            ],
        )
        self.process.wait_until((folder / "csi.sock").exists)

    def calls(self) -> list[dict[str, Any]]:
        """What it was asked so far, oldest first."""
        return read_calls(self._calls)
