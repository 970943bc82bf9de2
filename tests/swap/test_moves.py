"""The next move, from every state in which a volume and its claim can be seen."""

from __future__ import annotations

from typing import Any

import pytest

from replant.core.convert.conditions import Conditions
from replant.objects import Object
from replant.swap import moves, twin
from replant.swap.moves import Swap, next_move
from tests.swap.test_twin import STORED

BEFORE = twin.backup_of(STORED)
AFTER = twin.native(STORED)
SWAP = Swap(BEFORE, AFTER, {"says": "so"}, saved=frozenset({"old"}))
UNWRITTEN = Swap(BEFORE, AFTER)
BACK = Swap(
    {**AFTER, "metadata": {**AFTER["metadata"], "uid": "new"}},
    twin.pristine(STORED),
    {"says": None},
    back=True,
    saved=frozenset({"old", "new"}),
)


def volume(of: Object, uid: str, *, phase: str = "Bound", **metadata: Any) -> Object:
    return {
        **of,
        "metadata": {**of["metadata"], "uid": uid, "resourceVersion": "9", **metadata},
        "status": {"phase": phase},
    }


def claim(phase: str = "Bound", uid: str = "claim", **annotations: str) -> Object:
    metadata = {"name": "data", "namespace": "shop", "uid": uid, "annotations": annotations}
    return {"metadata": metadata, "status": {"phase": phase}}


STORED_HELD, NEW = twin.held(STORED), twin.held(AFTER)
LEAVING = {"deletionTimestamp": "2022-01-01T00:00:00Z"}
MARKED = {twin.SWAPPED: "new"}
KNOWN = {"uid": "old", "resourceVersion": "9"}

MOVES: dict[str, tuple[Swap, Object | None, Object | None, moves.Move]] = {
    "nobody deletes the disk": (
        SWAP, volume(STORED, "old"), claim(),
        moves.Patch({"metadata": KNOWN, "spec": {"persistentVolumeReclaimPolicy": "Retain"}}),
    ),
    "it is deleted as it was seen": (
        SWAP, volume(STORED_HELD, "old"), claim(), moves.Delete("old", "9"),
    ),
    "never without the journal": (
        UNWRITTEN, volume(STORED_HELD, "old"), claim(), moves.Outdated(),
    ),
    "never as another than the journal has": (
        SWAP, volume(STORED_HELD, "old", labels={"app": "other"}), claim(), moves.Outdated(),
    ),
    "its provisioner may have taken its finalizer away": (
        SWAP,
        volume(STORED_HELD, "old", finalizers=[*STORED["metadata"]["finalizers"],
                                               twin.PROVISIONER_FINALIZER]),
        claim(),
        moves.Delete("old", "9"),
    ),
    "what holds it lets go": (
        SWAP, volume(STORED_HELD, "old", **LEAVING), claim(),
        moves.Patch({"metadata": {**KNOWN, "finalizers": None}}),
    ),
    "what somebody else deletes is not ours": (
        UNWRITTEN, volume(STORED_HELD, "old", **LEAVING), claim(),
        moves.Stuck("PersistentVolume data was replaced, and somebody has deleted it since."),
    ),
    "the other comes, and nobody deletes the disk": (
        SWAP, None, claim("Lost"), moves.Create(NEW),
    ),
    "also without its claim": (SWAP, None, None, moves.Create(NEW)),
    "the controllers have to see it first": (
        SWAP, volume(NEW, "new", phase="Available"), claim("Lost"),
        moves.Await("PersistentVolume data to be Bound again"),
    ),
    "then they are told to look at the claim": (
        SWAP, volume(NEW, "new"), claim("Lost"),
        moves.Nudge(
            {"metadata": {"uid": "claim", "annotations": {"says": "so", twin.SWAPPED: "new"}}}
        ),
    ),
    "also if it was never seen to be lost": (
        SWAP, volume(NEW, "new"), claim(),
        moves.Nudge(
            {"metadata": {"uid": "claim", "annotations": {"says": "so", twin.SWAPPED: "new"}}}
        ),
    ),
    "and do so": (
        SWAP, volume(NEW, "new"), claim("Lost", **MARKED),
        moves.Await(
            "PersistentVolumeClaim shop/data to be Bound again",
            moves.Nudge({"metadata": {"uid": "claim", "annotations": {twin.SWAPPED: None}}}),
        ),
    ),
    "its policy is what it was": (
        SWAP, volume(NEW, "new"), claim(**MARKED),
        moves.Patch(
            {"metadata": {"uid": "new"}, "spec": {"persistentVolumeReclaimPolicy": "Delete"}}
        ),
    ),
    "and that is all": (SWAP, volume(AFTER, "new"), claim(**MARKED), moves.Done()),
    "a claim that is gone keeps the disk": (
        SWAP, volume(NEW, "new", phase="Released"), None,
        moves.Done(
            "PersistentVolume data: its claim shop/data was deleted meanwhile. Its disk is kept; "
            "the volume's policy was Delete: set it again to have the disk deleted"
        ),
    ),
    "another claim of the name is not its claim": (
        SWAP, volume(AFTER, "new"), claim(uid="another"), moves.Done(),
    ),
    "back: it is deleted": (BACK, volume(NEW, "new"), claim(**MARKED), moves.Delete("new", "9")),
    "back: it comes": (
        BACK, None, claim("Lost", **MARKED), moves.Create(twin.held(twin.pristine(STORED))),
    ),
    "back: the claim forgets": (
        BACK, volume(STORED_HELD, "third"), claim(**MARKED),
        moves.Nudge({"metadata": {"uid": "claim", "annotations": {"says": None,
                                                                  twin.SWAPPED: None}}}),
    ),
    "back: one that was only held": (
        BACK, volume(STORED_HELD, "old"), claim(),
        moves.Patch(
            {"metadata": {"uid": "old"}, "spec": {"persistentVolumeReclaimPolicy": "Delete"}}
        ),
    ),
    "back: one that was just deleted": (
        BACK, volume(STORED_HELD, "old", **LEAVING), claim(),
        moves.Patch({"metadata": {**KNOWN, "finalizers": None}}),
    ),
}  # fmt: skip


@pytest.mark.parametrize("story", MOVES)
def test_move(story: str) -> None:
    swap, seen, its_claim, move = MOVES[story]
    assert next_move(swap, seen, its_claim) == move


def test_a_volume_of_somebody_else_under_the_name_is_left_alone() -> None:
    other = {**STORED, "spec": {**STORED["spec"], "awsElasticBlockStore": {"volumeID": "vol-9"}}}
    found = next_move(SWAP, volume(other, "other"), claim())
    assert isinstance(found, moves.Stuck)
    assert "neither" in found.why


def test_a_volume_that_no_claim_has_needs_nobody_to_be_told() -> None:
    free = {**STORED, "spec": {k: v for k, v in STORED["spec"].items() if k != "claimRef"}}
    swap = Swap(twin.backup_of(free), twin.native(free), saved=frozenset({"old"}))
    made = volume(twin.held(twin.native(free)), "new", phase="Available")
    assert isinstance(next_move(swap, made, None), moves.Patch)


@pytest.mark.parametrize("swap", [SWAP, BACK], ids=["convert", "back"])
def test_nothing_is_deleted_that_relies_on_what_has_changed(swap: Swap) -> None:
    there = volume(twin.held(swap.before), swap.before["metadata"]["uid"])
    assert isinstance(next_move(swap, there, claim()), moves.Delete)
    switched = Conditions(broken="n1 does not redirect kubernetes.io/aws-ebs.")
    move = next_move(swap, there, claim(), switched)
    assert isinstance(move, moves.Stuck)
    assert "n1 does not redirect" in move.why
    late = Conditions(missing="ebs.csi.aws.com to be registered on n1")
    assert next_move(swap, there, claim(), late) == moves.Await(late.missing)


@pytest.mark.parametrize("swap", [SWAP, BACK], ids=["convert", "back"])
def test_nothing_is_created_while_that_would_detach_a_disk_under_a_pod(swap: Swap) -> None:
    waits = Conditions(detaching="pod shop/db-0 to end")
    assert next_move(swap, None, claim("Lost"), waits) == moves.Await("pod shop/db-0 to end")
