"""The search over everything that may happen to a volume while it is swapped.

Each wrong conduct is the real one with one thing left out: the search must find out what that
is there for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from replant.core.convert.conditions import MET, Conditions
from replant.objects import Object
from replant.swap import moves, twin
from replant.swap.conduct import Conduct, Decide
from replant.swap.moves import Move, Swap, next_move
from replant.swap.search import verify_cases, verify_swap
from replant.swap.story import Harm
from replant.swap.world import Case, Reacts

Seen = Object | None
CONVERT = Case(back=False, deletes=True, claimed=True, redirected=True)
BACK = CONVERT._replace(back=True)
KEPT = CONVERT._replace(deletes=False)
"""One whose disk stays when its claim is deleted."""


def differing(change: Callable[[Swap, Seen, Seen, Move], Move]) -> Conduct:
    """The real conduct, with each of its moves as ``change`` would have it."""

    def decide(swap: Swap, volume: Seen, claim: Seen, conditions: Conditions) -> Move:
        return change(swap, volume, claim, next_move(swap, volume, claim, conditions))

    return Conduct(decide)


def mistaken(change: Callable[[Swap], Swap]) -> Conduct:
    """The real conduct, mistaken about what is to be done."""
    decide: Decide = lambda swap, *seen: next_move(change(swap), *seen)  # noqa: E731
    return Conduct(decide)


def _sets_policy(move: Move, policy: str) -> bool:
    if not isinstance(move, moves.Patch):
        return False
    wanted: str = move.patch.get("spec", {}).get("persistentVolumeReclaimPolicy", "")
    return wanted == policy


def _told(swap: Swap, volume: Object, claim: Object) -> Object:
    """A claim as if it had been written to."""
    says = {twin.SWAPPED: None if swap.back else volume["metadata"]["uid"]}
    return {**claim, "metadata": {**claim["metadata"], "annotations": says}}


def delete_without_retain(swap: Swap, volume: Seen, claim: Seen, conditions: Conditions) -> Move:
    move = next_move(swap, volume, claim, conditions)
    if volume and _sets_policy(move, twin.RETAIN):
        return next_move(swap, twin.held(volume), claim, conditions)
    return move


def create_without_holding(swap: Swap, _volume: Seen, _claim: Seen, move: Move) -> Move:
    return moves.Create(swap.after) if isinstance(move, moves.Create) else move


def delete_without_precondition(_swap: Swap, _volume: Seen, _claim: Seen, move: Move) -> Move:
    return moves.Delete("", "") if isinstance(move, moves.Delete) else move


def never_outdated(_swap: Swap, volume: Seen, _claim: Seen, move: Move) -> Move:
    if volume and isinstance(move, moves.Outdated):
        metadata = volume["metadata"]
        return moves.Delete(metadata["uid"], metadata["resourceVersion"])
    return move


def no_nudge(swap: Swap, volume: Seen, claim: Seen, move: Move) -> Move:
    if volume and claim and isinstance(move, moves.Nudge):
        move = next_move(swap, volume, _told(swap, volume, claim))
    return told_once(swap, volume, claim, move)


def told_once(_swap: Swap, _volume: Seen, _claim: Seen, move: Move) -> Move:
    """As it was once: whoever has missed it is not told again."""
    return replace(move, otherwise=None) if isinstance(move, moves.Await) else move


def no_nudge_back(swap: Swap, _volume: Seen, _claim: Seen, move: Move) -> Move:
    """As it was once: where a claim was told nothing, there was nothing to take back."""
    if not swap.back or not isinstance(move, moves.Nudge):
        return move
    tells = move.patch["metadata"]["annotations"][twin.SWAPPED]
    return moves.Await("the claim to be Bound again") if tells else move


def early_nudge(swap: Swap, volume: Seen, claim: Seen, move: Move) -> Move:
    """As it was once: the controllers are told before they know the volume."""
    if volume and claim and isinstance(move, moves.Await):
        return next_move(swap, {**volume, "status": {"phase": "Bound"}}, claim)
    return move


def bound_for_granted(swap: Swap, volume: Seen, claim: Seen, move: Move) -> Move:
    if volume and claim and isinstance(move, moves.Await | moves.Nudge):
        bound = {"phase": "Bound"}
        claim = {**claim, "status": bound}
        return next_move(swap, {**volume, "status": bound}, _told(swap, volume, claim))
    return move


def policy_forgotten(_swap: Swap, _volume: Seen, _claim: Seen, move: Move) -> Move:
    return moves.Done() if _sets_policy(move, "Delete") else move


def policy_whatever_the_claim(swap: Swap, volume: Seen, _claim: Seen, move: Move) -> Move:
    if volume and isinstance(move, moves.Done) and twin.policy(volume) != twin.policy(swap.after):
        wanted = {"persistentVolumeReclaimPolicy": twin.policy(swap.after)}
        return moves.Patch({"metadata": {"uid": volume["metadata"]["uid"]}, "spec": wanted})
    return move


def finalizers_left(_swap: Swap, _volume: Seen, _claim: Seen, move: Move) -> Move:
    strips = isinstance(move, moves.Patch) and "finalizers" in move.patch["metadata"]
    return moves.Await("somebody else to take them off") if strips else move


def undo_knows_no_uid(swap: Swap) -> Swap:
    return replace(swap, saved=frozenset()) if swap.back else swap


def finalizers_count(swap: Swap) -> Swap:
    """As it was once: what had lost a finalizer since counted as changed for ever."""
    before = swap.before
    had = [*before["metadata"].get("finalizers", ()), "example.com/gone-meanwhile"]
    return replace(swap, before={**before, "metadata": {**before["metadata"], "finalizers": had}})


def conditions_passed_over(swap: Swap, volume: Seen, claim: Seen, _seen: Conditions) -> Move:
    return next_move(swap, volume, claim, MET)


def created_whatever_happens(swap: Swap, volume: Seen, claim: Seen, conditions: Conditions) -> Move:
    return next_move(swap, volume, claim, conditions if volume else MET)


def claim_never_goes(swap: Swap, volume: Seen, claim: Seen, conditions: Conditions) -> Move:
    """As if a claim that is being deleted were any other."""
    if claim:
        metadata = {k: it for k, it in claim["metadata"].items() if k != "deletionTimestamp"}
        claim = {**claim, "metadata": metadata}
    return next_move(swap, volume, claim, conditions)


def all_finalizers_accepted(swap: Swap) -> Swap:
    return replace(swap, accept_finalizers=frozenset({"reclaim.example.com/storage"}))


def policy_of_in_tree(swap: Swap) -> Swap:
    """The native volume says Delete as the in-tree one does, which nobody would delete."""
    if swap.back:
        return swap
    spec = {**swap.after["spec"], "persistentVolumeReclaimPolicy": "Delete"}
    return replace(swap, after={**swap.after, "spec": spec})


WRONG: dict[str, tuple[Case, Conduct, Harm, str]] = {
    "deleted without Retain": (
        CONVERT, Conduct(delete_without_retain), Harm.DELETED, "Replant deletes the volume.",
    ),
    "created without holding": (
        CONVERT, differing(create_without_holding), Harm.DELETED,
        "Replant creates the native volume with policy Delete.",
    ),
    "put back without holding": (
        BACK, differing(create_without_holding), Harm.DELETED,
        "Replant creates the in-tree volume with policy Delete.",
    ),
    "deleted without precondition": (
        CONVERT, differing(delete_without_precondition), Harm.CHANGED,
        "Somebody gives the volume a label.",
    ),
    "deleted as it is not in the journal": (
        CONVERT, differing(never_outdated), Harm.CHANGED, "Somebody gives the volume a label.",
    ),
    "written down too late": (
        CONVERT, Conduct(journal_first=False), Harm.LOST, "off the volume; it is gone",
    ),
    "put back, written down too late": (
        BACK, Conduct(journal_first=False), Harm.LOST, "off the volume; it is gone",
    ),
    "claim not told": (CONVERT, differing(no_nudge), Harm.STUCK, "it knows no volume of that name"),
    "claim told once": (
        CONVERT, differing(told_once), Harm.STUCK, "fails, and leaves it for its next round",
    ),
    "put back, claim told once": (
        BACK, differing(told_once), Harm.STUCK, "fails, and leaves it for its next round",
    ),
    "claim not told on the way back": (
        CONVERT, differing(no_nudge_back), Harm.STUCK, "it knows no volume of that name",
    ),
    "claim told too early": (
        KEPT, differing(early_nudge), Harm.UNBOUND, "it knows no volume of that name",
    ),
    "claim not waited for": (
        KEPT, differing(bound_for_granted), Harm.UNBOUND, "it knows no volume of that name",
    ),
    "policy forgotten": (
        CONVERT, differing(policy_forgotten), Harm.CHANGED,
        "Replant gives the volume the policy Retain",
    ),
    "policy given back to a volume without its claim": (
        CONVERT, differing(policy_whatever_the_claim), Harm.DELETED, "Somebody deletes the claim",
    ),
    "finalizers left to others": (
        CONVERT, differing(finalizers_left), Harm.STUCK, "Replant deletes the volume.",
    ),
    "undo does not know what was being deleted": (
        CONVERT, mistaken(undo_knows_no_uid), Harm.STUCK, "Replant sees no way on",
    ),
    "policy given back while the claim is being deleted": (
        CONVERT, Conduct(claim_never_goes), Harm.DELETED, "a pod uses it, and it stays for now",
    ),
    "finalizer of another controller removed": (
        KEPT._replace(other_controller=Reacts.FINALIZER), mistaken(all_finalizers_accepted),
        Harm.DELETED,
        "Replant deletes the volume.",
    ),
    "put back, finalizer of another controller removed": (
        KEPT._replace(other_controller=Reacts.FINALIZER, back=True),
        mistaken(all_finalizers_accepted),
        Harm.DELETED, "Replant deletes the volume.",
    ),
    "made by hand, policy as it was": (
        CONVERT._replace(by_hand=True), mistaken(policy_of_in_tree), Harm.CHANGED,
        "Replant gives the volume the policy Delete",
    ),
    "nodes not looked at again": (
        CONVERT, Conduct(looks_again=False), Harm.SWITCHED, "which no longer redirect",
    ),
    "put back, nodes not looked at again": (
        BACK, Conduct(looks_again=False), Harm.SWITCHED, "which no longer redirect",
    ),
    "created while the disk is being detached": (
        CONVERT, Conduct(created_whatever_happens), Harm.DETACHED,
        "the attach/detach controller deletes the VolumeAttachment",
    ),
    "put back while the disk is being detached": (
        BACK, Conduct(created_whatever_happens), Harm.DETACHED, "The kubelet is restarted",
    ),
    "deleted whatever the nodes do": (
        KEPT, Conduct(conditions_passed_over), Harm.SWITCHED,
        "right before it deletes.",
    ),
    "whose finalizer is gone was changed": (
        CONVERT, mistaken(finalizers_count), Harm.STUCK, "The journal has the whole of the volume",
    ),
}  # fmt: skip


@pytest.mark.parametrize("back", [False, True], ids=["convert", "back"])
def test_nothing_that_may_happen_harms_a_volume(back: bool) -> None:
    verdict = verify_swap(back=back)
    assert verdict.safe, verdict.story
    assert verdict.states > 5_000


def test_on_the_way_back_it_is_all_one_who_deletes_disks() -> None:
    verdict = verify_cases([BACK._replace(redirected=False)])
    assert verdict == verify_cases([BACK])


@pytest.mark.parametrize("back", [False, True], ids=["convert", "back"])
@pytest.mark.exhaustive
def test_nor_does_all_that_persons_do_at_once(back: bool) -> None:
    case = CONVERT._replace(back=back, all_at_once=True)
    verdict = verify_cases([case])
    assert verdict.safe, verdict.story
    assert verdict.states > verify_cases([case._replace(all_at_once=False)]).states


@pytest.mark.parametrize(("case", "conduct", "harm", "told"), WRONG.values(), ids=WRONG)
def test_a_wrong_conduct_is_found_out(case: Case, conduct: Conduct, harm: Harm, told: str) -> None:
    verdict = verify_cases([case], conduct)
    assert verdict.bad_state is harm
    *events, end = verdict.story
    assert any(told in it for it in events)
    assert end.startswith(f"{harm.value.capitalize()}: ")


@pytest.mark.parametrize("back", [False, True], ids=["convert", "back"])
@pytest.mark.parametrize("reacts", [Reacts.DELETION, Reacts.ABSENCE, Reacts.POLICY])
def test_controllers_that_must_not_run_are_told(reacts: Reacts, back: bool) -> None:
    """No move of Replant avoids the harm that they do: docs/proof.md lists them."""
    case = CONVERT._replace(back=back, other_controller=reacts)
    verdict = verify_cases([case])
    assert verdict.bad_state is Harm.DELETED
    assert verdict.story[-2].startswith("The other controller sees that the volume ")
