"""Volumes are begun several at a time, for one write to the journal, but none waits for long."""

from __future__ import annotations

import msgspec
import pytest

from replant.execute.acts import Decision
from replant.execute.swapping import AT_LAST, TOGETHER, Backups, LookAtVolumes, Seen, Swapping
from replant.objects import Object
from replant.plan.model import RestoreVolumes, SavedVolume, SwapVolumes, VolumeSwap
from replant.swap import moves, twin
from tests.execute.nodes import Nodes, only
from tests.execute.test_settling import WORDS
from tests.swap.test_twin import STORED

AT_ONCE, VOLUMES = 8, 20


class Step:
    """A step with many volumes, all of them seen."""

    def __init__(self) -> None:
        self.world = Nodes("n1").world
        source = twin.native(STORED)["spec"]["csi"]
        volumes = tuple(
            VolumeSwap(name=f"pv-{n}", driver=source["driver"], handle=source["volumeHandle"])
            for n in range(VOLUMES)
        )
        self.stage = Swapping(
            SwapVolumes(volumes=volumes, **WORDS), Backups(), at_once=AT_ONCE, timeout=60
        )
        look = only(self.stage.decide(self.world, 0))
        self.stage.learn(look, {it.name: Seen(_named(it.name), None) for it in volumes}, 0)

    def decide(self, now: float) -> Decision:
        return self.stage.decide(self.world, now)

    def end(self, outcome: moves.Move, count: int = 1) -> None:
        for act in self.decide(0).acts[:count]:
            self.stage.learn(act, outcome, 0)


def _named(name: str) -> bytes:
    found: Object = {**STORED, "metadata": {**STORED["metadata"], "name": name}}
    return msgspec.json.encode(found)


def test_others_are_begun_once_some_have_ended() -> None:
    step = Step()
    assert len(step.decide(0).acts) == AT_ONCE
    share = AT_ONCE // TOGETHER
    step.end(moves.Done(), share - 1)
    held_back = step.decide(0)
    assert len(held_back.acts) == AT_ONCE - share + 1
    assert held_back.wake <= AT_LAST
    step.end(moves.Done())
    assert len(step.decide(0).acts) == AT_ONCE


def test_and_anyway_after_a_moment() -> None:
    step = Step()
    step.end(moves.Done())
    assert len(step.decide(0).acts) == AT_ONCE - 1
    assert len(step.decide(AT_LAST).acts) == AT_ONCE


def test_who_was_left_with_its_claim_lost_comes_first() -> None:
    step = Step()
    (left, *_) = step.decide(0).acts
    step.end(moves.Nudge({}))
    step.decide(0)
    begun = step.decide(AT_LAST).acts[-1]
    assert isinstance(begun, LookAtVolumes)
    assert begun.target == left.target


@pytest.mark.parametrize("known", [False, True], ids=["first", "again"])
def test_who_takes_a_run_back_is_told_once_what_is_lost(known: bool) -> None:
    """Only CSI volumes can have a VolumeAttributesClass; the owner has given it one since."""
    native = twin.native(STORED)
    native["metadata"] = {**native["metadata"], "uid": "new", "resourceVersion": "9"}
    native["spec"] = {**native["spec"], "volumeAttributesClassName": "gold"}
    source = native["spec"]["csi"]
    volume = VolumeSwap(name="data", driver=source["driver"], handle=source["volumeHandle"])
    backups = Backups()
    backups.add(SavedVolume(volume=STORED))
    if known:
        backups.add(SavedVolume(volume=native))
    stage = Swapping(RestoreVolumes(volumes=(volume,), **WORDS), backups, at_once=1, timeout=60)
    world = Nodes("n1").world
    look = only(stage.decide(world, 0))
    stage.learn(look, {"data": Seen(msgspec.json.encode(native), None)}, 0)
    told = stage.decide(world, 0)
    notes = told.notes or stage.decide(world, 1).notes
    assert [it.partition(":")[0] for it in notes] == (
        [] if known else ["PersistentVolume data loses its VolumeAttributesClass gold"]
    )
