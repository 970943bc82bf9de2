"""The truth tables of the real controllers: who attaches, provisions, deletes and expands.

Each way to start the controller manager is tried once, on volumes and claims side by side.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

from tests.real import attaching, claiming, records
from tests.real.attaching import GATE, Row
from tests.real.ground.cloud import Cloud
from tests.real.ground.controlplane import ControlPlane
from tests.real.ground.drivers import ControllerDriver

UNREGISTER = "InTreePluginAWSUnregister"
GATES: list[dict[str, bool]] = [
    *(
        {GATE: migrated, UNREGISTER: unregistered}
        for migrated, unregistered in product((False, True), repeat=2)
    ),
    {"CSIMigration": False, GATE: True, UNREGISTER: False},
]


def test_while_the_gates_can_be_switched(old: ControlPlane, cloud: Cloud, ground: Path) -> None:
    attached: list[Row] = []
    claimed: list[Row] = []
    with ControllerDriver(old, cloud, ground / "controllers-old"):
        for gates in GATES:
            old.start_controller_manager(gates, cloud)
            for rows, seen in zip((attached, claimed), look(old, cloud, gates), strict=True):
                rows += seen
    check(old, attached, claimed)


def test_when_the_gates_are_gone(new: ControlPlane, cloud: Cloud, ground: Path) -> None:
    new.start_controller_manager()
    with ControllerDriver(new, cloud, ground / "controllers-new"):
        check(new, *look(new, cloud, {}))


def look(
    plane: ControlPlane, cloud: Cloud, gates: Mapping[str, bool]
) -> tuple[list[Row], list[Row]]:
    with ThreadPoolExecutor() as pool:
        attached = pool.submit(attaching.rows, plane, cloud, gates)
        claimed = pool.submit(claiming.rows, plane, cloud, gates)
        return attached.result(), claimed.result()


def check(plane: ControlPlane, attached: list[Row], claimed: list[Row]) -> None:
    version = plane.version
    records.check(f"attach-{version}", {"kubernetesVersion": version, "rows": attached})
    records.check(f"claims/{version}", {"kubernetesVersion": version, "rows": claimed})
