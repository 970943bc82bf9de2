"""What the journal keeps of a volume that is written down once more."""

from __future__ import annotations

import pytest

from replant.objects import Object
from replant.swap import moves, twin
from replant.swap.world import Case, Volume, volume_object

CASE = Case(back=False, deletes=True, claimed=True, redirected=False)
PROTECTED, OTHERS = "kubernetes.io/pv-protection", "example.com/somebody-s"


def volume(*finalizers: str, deletes: bool, going: bool = False) -> Object:
    made = volume_object(Volume(native=False, uid=0, deletes=deletes), CASE)
    metadata = {**made["metadata"], "finalizers": list(finalizers)}
    if going:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {**made, "metadata": metadata}


@pytest.mark.parametrize("gone", [twin.IN_TREE_FINALIZER, twin.PROVISIONER_FINALIZER, OTHERS])
def test_a_finalizer_that_somebody_takes_off_does_not_hold_a_volume_up(gone: str) -> None:
    before = volume(PROTECTED, gone, deletes=True)
    now = volume(PROTECTED, deletes=False)
    backup = twin.backup_of(now, before)
    swap = moves.Swap(
        before=backup, after=twin.native(backup), saved=frozenset({backup["metadata"]["uid"]})
    )
    assert isinstance(moves.next_move(swap, now, None), moves.Delete)
    assert twin.policy(backup) == "Delete"


def test_the_finalizers_that_we_take_off_ourselves_are_kept() -> None:
    before = volume(PROTECTED, OTHERS, deletes=True)
    backup = twin.backup_of(volume(OTHERS, deletes=False, going=True), before)
    assert set(backup["metadata"]["finalizers"]) == {PROTECTED, OTHERS}
