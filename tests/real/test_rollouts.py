"""How the real controllers replace the pods of a workload that was changed."""

from __future__ import annotations

import time

import pytest

from tests.real import records
from tests.real.ground.controlplane import ControlPlane
from tests.sandbox import rollouts
from tests.sandbox.rollouts import ROLLOUTS

SETTLED = 1.0
"""After so many seconds without a change there will be none."""


@pytest.mark.parametrize("which", ["old", "new"])
def test_every_step_of_a_rollout(which: str, request: pytest.FixtureRequest) -> None:
    plane: ControlPlane = request.getfixturevalue(which)
    plane.start_controller_manager()
    try:
        with plane.api.client() as http:
            seen = rollouts.told(http, ROLLOUTS, lambda: time.sleep(SETTLED))
    finally:
        plane.stop_part("kube-controller-manager")
    records.check(f"rollouts-{plane.version}", seen)
