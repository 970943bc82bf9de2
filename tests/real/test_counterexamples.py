"""Counter-examples of the model checker, played on the real controllers, driver and cloud.

The catalogue of orders (`tests/proof/catalogue.py`) says what the model checker tells of each. Here
it is seen whether that happens. Every run plays one order of each sort, a long one plays all.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.proof.catalogue import COUNTER_EXAMPLES
from tests.proof.playable import CLAIM, Play, plays, story
from tests.real import records
from tests.real.ground.cloud import Cloud
from tests.real.ground.controlplane import ControlPlane
from tests.real.playing import played

RECORD = "counterexamples"
IN_EVERY_RUN = {
    "wrong: enable without a drain",
    "closed: enable",
    "closed: disable",
    "wrong: disable, and pods go anywhere",
    "wrong: kubelets before the controller",
    "wrong: unregister alone, controller",
    "broken before: nodes on, mended by the controller",
    "broken before: nodes on, completed at once",
    "groups: a node with old gates joins after completion",
}
ATTEMPTS = 6
"""A story can happen, which is not to say that it does each time: some are races. In the closest
the driver sees that a disk is attached, before the in-tree plugin detaches it."""
_numbers = count()


def _params() -> Iterator[object]:
    for play in plays():
        always = play.order in IN_EVERY_RUN and play.kind == CLAIM
        yield pytest.param(play, id=play.name, marks=() if always else pytest.mark.long)


@pytest.mark.parametrize("play", list(_params()))
def test_a_counter_example(play: Play, old: ControlPlane, cloud: Cloud, ground: Path) -> None:
    told = story(COUNTER_EXAMPLES[play.order].course)
    row: dict[str, Any] = {}
    for _attempt in range(ATTEMPTS):
        name = f"play-{next(_numbers)}"
        row = played(name, play.kind, told, old, cloud, ground / name)
        if row["happens"]:
            break
    records.check_row(RECORD, play.name, row)
