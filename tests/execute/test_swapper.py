"""A volume whose claim the controllers do not look at when they are told to."""

from __future__ import annotations

import asyncio

import pytest

from replant.cluster.ports import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from replant.execute.runtime.late_look import LateLook
from replant.execute.swapper import Swapper
from replant.execute.swapping import ReplaceVolume
from replant.execute.world import World
from replant.objects import Object
from replant.plan.model import SavedVolume
from replant.swap import moves, twin
from tests.execute.memory import Api, Clock
from tests.execute.steps.test_conditions import EBS
from tests.swap.test_moves import BACK, NEW, STORED_HELD, SWAP, claim, volume

VOLUME = PERSISTENT_VOLUMES.plural, "", "data"
CLAIM = PERSISTENT_VOLUME_CLAIMS.plural, "shop", "data"


class Controllers:
    """They look at a claim that has changed, but for the first times, which they miss."""

    def __init__(self, api: Api, missed: int, lost: int) -> None:
        """The answer to one write is lost, if it is to be."""
        self._api = api
        self._missed = missed
        self._lost = lost
        self._known: object = api.objects[CLAIM]["metadata"].get("annotations")

    def hear(self) -> None:
        self._lost -= 1
        self._api.lose_answers = int(self._lost == 0)
        said = self._api.objects[CLAIM]["metadata"].get("annotations")
        if said == self._known:
            return
        self._known = said
        self._missed -= 1
        if self._missed < 0:
            self._api.objects[CLAIM] |= {"status": {"phase": "Bound"}}


def replaced(
    swap: moves.Swap, there: Object, missed: int, lost: int = 0
) -> tuple[moves.Move, Api, Clock]:
    """The last move for a volume that is there already, and whose claim is Lost."""
    api, clock = Api(), Clock()
    api.objects = {VOLUME: there, CLAIM: claim("Lost")}
    api.on_write = Controllers(api, missed, lost).hear
    act = ReplaceVolume(
        why="", swap=swap, volume=there, claim=claim("Lost"),
        saved=SavedVolume(volume=swap.before), written=True, disk=EBS,
    )  # fmt: skip
    last = asyncio.run(Swapper(api, api, LateLook(api, World()), clock.sleep).replace(act))
    return last, api, clock


@pytest.mark.parametrize("lost", range(4))
@pytest.mark.parametrize("missed", range(3))
@pytest.mark.parametrize(
    ("swap", "there"),
    [(SWAP, volume(NEW, "new")), (BACK, volume(STORED_HELD, "third"))],
    ids=["convert", "back"],
)
def test_they_are_told_until_they_have_heard(
    swap: moves.Swap, there: Object, missed: int, lost: int
) -> None:
    last, api, clock = replaced(swap, there, missed, lost)
    assert last == moves.Done()
    found, its_claim = api.objects[VOLUME], api.objects[CLAIM]
    assert its_claim["status"]["phase"] == "Bound"
    said = its_claim["metadata"]["annotations"].get(twin.SWAPPED)
    assert said == (None if swap.back else "new")
    assert found["spec"]["persistentVolumeReclaimPolicy"] == "Delete"
    assert sum(clock.slept) < 15, "it should not wait for their next round"


def test_who_never_hears_is_left_for_later() -> None:
    last, api, clock = replaced(SWAP, volume(NEW, "new"), missed=1000)
    assert isinstance(last, moves.Await | moves.Nudge)
    assert api.objects[VOLUME]["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert sum(clock.slept) < 15
