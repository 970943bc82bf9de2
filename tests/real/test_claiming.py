"""Provisioning, deleting and expanding, seen on the real controllers."""

from __future__ import annotations

from tests.real import claiming, records
from tests.real.ground.cloud import Cloud
from tests.real.ground.controlplane import ControlPlane
from tests.real.test_attaching import GATES


def test_while_the_gates_can_be_switched(old: ControlPlane, cloud: Cloud) -> None:
    cloud.instance()  # a disk is made in a zone that has one
    rows = []
    for gates in GATES:
        old.start_controller_manager(gates, cloud)
        rows += claiming.rows(old, cloud, gates)
    records.check(f"claims/{old.version}", {"kubernetesVersion": old.version, "rows": rows})


def test_when_the_gates_are_gone(new: ControlPlane, cloud: Cloud) -> None:
    new.start_controller_manager()
    rows = claiming.rows(new, cloud, {})
    records.check(f"claims/{new.version}", {"kubernetesVersion": new.version, "rows": rows})
