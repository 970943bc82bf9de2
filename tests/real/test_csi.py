"""The CSI driver of the proving ground keeps to the specification."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.real.ground import programs
from tests.real.ground.cloud import Cloud
from tests.real.ground.processes import Process


def test_the_driver_passes_csi_sanity(ground: Path, cloud: Cloud) -> None:
    folder = ground / "sanity"
    folder.mkdir()
    recipe, socket = programs.csi(), folder / "csi.sock"
    driver = Process(
        "driver",
        [
            str(recipe.program("driver")),
            f"--endpoint=unix://{socket}",
            f"--ec2={cloud.url}",
            f"--node-id={cloud.instance().id}",
            f"--state={folder / 'state'}",
        ],
        folder,
    )
    try:
        driver.wait_until(socket.exists)
        done = subprocess.run(
            [
                recipe.program("csi-sanity"),
                f"--csi.endpoint={socket}",
                f"--csi.mountdir={folder / 'mount'}",
                f"--csi.stagingdir={folder / 'staging'}",
                "--csi.testnodevolumeattachlimit",
                "--ginkgo.no-color",
            ],
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        driver.stop()
    assert done.returncode == 0, done.stdout
    passed = re.search(r"(\d+) Passed \| 0 Failed", done.stdout)
    assert passed, done.stdout
    # What the driver claims is what is tried: fewer would mean that it claims less.
    assert int(passed[1]) >= 45, done.stdout
