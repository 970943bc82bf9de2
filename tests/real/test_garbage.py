"""What the real garbage collector leaves of objects that belong to each other."""

from __future__ import annotations

import time

import pytest

from tests.real import records
from tests.real.ground.controlplane import ControlPlane
from tests.sandbox import families
from tests.sandbox.families import FAMILIES

SETTLED = 4.0
"""After so many seconds without a change there will be none."""


@pytest.mark.parametrize("which", ["old", "new"])
def test_what_is_left_of_a_family(which: str, request: pytest.FixtureRequest) -> None:
    plane: ControlPlane = request.getfixturevalue(which)
    with plane.api.client() as http:
        definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        http.post(definitions, json=families.DEFINITION).raise_for_status()
        plane.wait_served(f"/apis/{families.GROUP}/v1/kins")
        # It learns what is served when it starts, and after that only now and then.
        plane.start_controller_manager()
        try:
            seen = families.left(http, FAMILIES, lambda: time.sleep(SETTLED))
        finally:
            plane.stop_part("kube-controller-manager")
    records.check(f"garbage-{plane.version}", seen)
