"""What becomes of a leader whose Lease is taken away, with the times that are the default."""

from __future__ import annotations

import time

import pytest

from tests.real.ground.controlplane import ControlPlane
from tests.real.ground.processes import wait_for

CONTROLLER = "kube-controller-manager"
OURS = "replant-apply"
RENEWS, EXPIRES = 10, 15
"""Seconds for which a leader tries to renew its Lease, and for which one is held."""
SLACK = 20


@pytest.mark.parametrize("version", ["old", "new"])
def test_it_ends_and_the_next_one_leads_under_another_name(
    version: str, request: pytest.FixtureRequest
) -> None:
    plane: ControlPlane = request.getfixturevalue(version)
    plane.start_controller_manager(election=["--leader-elect=true"])
    lease = plane.api.get("Lease", CONTROLLER, "kube-system")
    before, starts = lease["spec"]["holderIdentity"], plane.starts(CONTROLLER)
    began = time.monotonic()

    taken = plane.api.patch("Lease", CONTROLLER, {"spec": {"holderIdentity": OURS}}, "kube-system")
    wait_for(lambda: plane.starts(CONTROLLER) > starts, "its end", RENEWS + SLACK)
    ended = time.monotonic() - began
    holder = wait_for(lambda: other_than(plane, OURS), "another leader", EXPIRES + SLACK)
    led = time.monotonic() - began

    assert taken["spec"]["leaseDurationSeconds"] == EXPIRES
    assert holder != before
    assert RENEWS - 2 < ended < RENEWS + SLACK
    assert ended + EXPIRES - 2 < led
    assert plane.log(CONTROLLER).count("leaderelection lost") == 1
    plane.stop_part(CONTROLLER)


def other_than(plane: ControlPlane, holder: str) -> str:
    found: str = plane.api.get("Lease", CONTROLLER, "kube-system")["spec"]["holderIdentity"]
    return "" if found == holder else found
