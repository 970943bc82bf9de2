"""Which class real Kubernetes gives to claims that name none."""

from __future__ import annotations

import time

import pytest

from tests.real import records
from tests.real.ground.controlplane import ControlPlane
from tests.sandbox import default_classes


@pytest.mark.parametrize("which", ["old", "new"])
def test_which_class_a_claim_is_given(which: str, request: pytest.FixtureRequest) -> None:
    plane: ControlPlane = request.getfixturevalue(which)
    with plane.api.client() as http:
        seen = default_classes.given(http, pause=lambda: time.sleep(1.5))
    records.check(f"default-classes-{plane.version}", seen)
