"""The truth tables of the attach/detach controller, seen on the real one."""

from __future__ import annotations

from itertools import product

from tests.real import attaching, records
from tests.real.ground.cloud import Cloud
from tests.real.ground.controlplane import ControlPlane

UNREGISTER = "InTreePluginAWSUnregister"
GATES = [
    *(
        {attaching.GATE: migrated, UNREGISTER: unregistered}
        for migrated, unregistered in product((False, True), repeat=2)
    ),
    {"CSIMigration": False, attaching.GATE: True, UNREGISTER: False},
]


def test_while_the_gates_can_be_switched(old: ControlPlane, cloud: Cloud) -> None:
    rows = []
    for gates in GATES:
        old.start_controller_manager(gates, cloud)
        rows += attaching.rows(old, cloud, gates)
    records.check(f"attach-{old.version}", {"kubernetesVersion": old.version, "rows": rows})


def test_when_the_gates_are_gone(new: ControlPlane, cloud: Cloud) -> None:
    new.start_controller_manager()
    rows = attaching.rows(new, cloud, {})
    records.check(f"attach-{new.version}", {"kubernetesVersion": new.version, "rows": rows})
