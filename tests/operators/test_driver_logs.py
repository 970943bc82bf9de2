"""What the operator of drivers says while it works."""

from __future__ import annotations

import pytest

from replant.drivers.catalog import DRIVERS
from replant.drivers.preview import supposed
from tests.operators.driving import EBS, Operator, World, cloud, run


@pytest.mark.parametrize(
    ("level", "says"), [("Normal", False), ("Debug", True), ("TraceAll", True)]
)
def test_from_debug_on_it_says_why(level: str, says: bool) -> None:
    world = World(cloud())
    operator = Operator(world, keys=(EBS,))
    spec = {"credentials": "Node", "operatorLogLevel": level}
    world.create(supposed(DRIVERS[EBS], None, spec))
    run(operator.live(30))
    operator.notes.clear()
    run(operator.once())
    assert (f"{EBS}: 0 writes: all is as it should be" in operator.notes) is says
