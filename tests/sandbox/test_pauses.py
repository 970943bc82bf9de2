"""How long the sandbox's controllers wait before they try again."""

from __future__ import annotations

import pytest

from replant.sandbox.controllers.attachdetach.decisions import retry_pause
from replant.sandbox.controllers.base import doubling


@pytest.mark.parametrize(("failures", "seconds"), [(1, 0.5), (2, 1), (3, 2), (8, 64), (9, 122)])
def test_pauses_double_up_to_two_minutes(failures: int, seconds: float) -> None:
    assert retry_pause(failures) == seconds


def test_what_fails_for_weeks_is_still_tried_again() -> None:
    assert retry_pause(100_000) == 122
    assert doubling(1, 100_000, 64) == 64
