"""Every fault of the table can be planted, and names tests that are there."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.mutations.faults import FAULTS, Fault, find_problems

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda it: it.id)
def test_a_fault_fits_the_source(fault: Fault) -> None:
    assert find_problems(fault, ROOT) == []


def test_ids_are_unique() -> None:
    counts = Counter(it.id for it in FAULTS)
    assert [it for it, count in counts.items() if count > 1] == []
