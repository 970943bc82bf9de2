"""What the search plays is what is carried out: the same acts, from the same journal and look."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.json import encode

from replant.execute.swapping import Backups, ReplaceVolume, Seen, Swapping
from replant.execute.world import World as SeenCluster
from replant.plan.model import RestoreVolumes, SavedVolume, SwapVolumes, VolumeSwap
from replant.swap import moves
from replant.swap.actors import may_happen
from replant.swap.conduct import Conduct, Mind, noted, swap_of
from replant.swap.world import (
    CLAIM,
    DRIVER,
    NAME,
    NAMESPACE,
    Case,
    Claim,
    Journal,
    Stage,
    Volume,
    World,
    claim_object,
    start,
    volume_object,
    volume_uid,
)

Situation = tuple[Journal, Volume | None, Claim | None, bool]


def situations(case: Case) -> Iterator[Situation]:
    """Whatever Replant can find when it begins with a volume."""
    mind, worlds = Mind(case, Conduct()), [start(case)]
    known, told = set(worlds), set[Situation]()
    for world in worlds:
        for event in may_happen(mind, world):
            if event.world not in known:
                known.add(event.world)
                worlds.append(event.world)
        if world.replant.stage is Stage.FRESH:
            told.add(_situation(world))
    yield from sorted(told, key=repr)


def _situation(world: World) -> Situation:
    claim = world.claim._replace(heard=False) if world.claim else None
    return world.journal, world.volume, claim, world.turned


def carried_out(case: Case, situation: Situation) -> ReplaceVolume | None:
    """What the step would begin with."""
    journal, volume, claim, turned = situation
    step = VolumeSwap(name=NAME, driver=DRIVER, handle="vol-1", claim=f"{NAMESPACE}/{CLAIM}")
    kind = RestoreVolumes if case.back != turned else SwapVolumes
    backups = Backups(uids={NAME: frozenset(map(volume_uid, journal.uids))})
    for saved, form in ((journal.in_tree, backups.in_tree), (journal.native, backups.native)):
        if saved:
            form[NAME] = SavedVolume(volume=volume_object(saved, case), claim=None)
    stage = Swapping(
        kind(id="swap", title="Swap", why="", done_when="", undo="", volumes=(step,)),
        backups,
        at_once=1,
        timeout=1,
    )
    (look,) = stage.decide(SeenCluster(), 0).acts
    seen = Seen(
        encode(volume_object(volume, case)) if volume else None,
        encode(claim_object(claim)) if claim else None,
    )
    stage.learn(look, {NAME: seen}, 0)
    decision = stage.decide(SeenCluster(), 0)
    if decision.done:
        return None
    (act,) = decision.acts
    assert isinstance(act, ReplaceVolume)
    return act


@pytest.mark.parametrize("redirected", [False, True], ids=["in-tree", "redirected"])
@pytest.mark.parametrize("back", [False, True], ids=["convert", "back"])
def test_the_same_is_written_down_and_done(back: bool, redirected: bool) -> None:
    case = Case(back=back, deletes=True, claimed=True, redirected=redirected)
    found = list(situations(case))
    for it in found:
        journal, volume, claim, turned = it
        owed = noted(case, journal, volume, back=back != turned)
        act = carried_out(case, it)
        if owed is None or act is None:
            assert (owed, act) == (None, None), it
            continue
        assert owed == journal or not act.written, it
        seen = volume_object(volume, case) if volume else None, claim and claim_object(claim)
        played = moves.next_move(swap_of(case, owed, back=back != turned), *seen)
        assert moves.next_move(act.swap, *seen) == played, it
    assert len(found) > 100
