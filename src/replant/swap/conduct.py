"""How Replant goes about a swap, as the search plays it: by the rules of the real thing.

What comes next is asked of ``moves``, and what is written down of ``twin``. What is said here once
more, in small, is what ``execute`` does with their answers; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from replant.core.convert.conditions import MET, Conditions
from replant.objects import Object
from replant.swap import moves, twin
from replant.swap.world import (
    DELETE,
    FRESH,
    OTHER,
    PROTECTION,
    Case,
    Claim,
    Going,
    Held,
    Journal,
    Look,
    Phase,
    Replant,
    Stage,
    Volume,
    World,
    backup,
    bits,
    claim_object,
    claim_uid,
    guarded,
    is_found,
    renumbered,
    volume_number,
    volume_object,
    volume_of,
    volume_uid,
    without_the_gone,
)

Decide = Callable[[moves.Swap, Object | None, Object | None, Conditions], moves.Move]
SWITCHED = Conditions(broken="A node or the controllers do not redirect its plugin.")
DETACHING = Conditions(detaching="the pod to end, under which the disk would be detached")


@dataclass(frozen=True, slots=True)
class Conduct:
    """What makes up Replant's conduct; tests give it a wrong one."""

    decide: Decide = moves.next_move
    journal_first: bool = True
    """Whether a volume is written down before anything is done to it."""
    looks_again: bool = True
    """Whether it looks right before a delete at what it relies on."""


def noted(case: Case, journal: Journal, seen: Volume | None, *, back: bool) -> Journal | None:
    """The journal as it must be before anything is done; None where nothing is to be done."""
    in_tree, native = journal.in_tree, journal.native
    if back and in_tree is None:
        return None  # it was never taken on its way
    if seen and seen.native == back:
        saved = backup(seen, native if back else in_tree, case)
        if back != case.back:
            # It is never made again, so only its uid matters, and whether it was changed since.
            kept = saved.finalizers & (PROTECTION | OTHER)
            saved = saved._replace(deletes=False, finalizers=kept)
        in_tree, native = (in_tree, saved) if back else (saved, native)
    if in_tree is None and native is None:
        return None
    going = (native if back else in_tree) or in_tree or native
    return Journal(in_tree, native, journal.uids | ({going.uid} if going else set()))


def swap_of(case: Case, journal: Journal, *, back: bool) -> moves.Swap:
    """What is to become of the volume, by a journal in which all is noted."""
    in_tree = volume_object(journal.in_tree, case) if journal.in_tree else None
    native = volume_object(journal.native, case) if journal.native else None
    before, after = native or in_tree, in_tree
    if not back:
        # One that is there already was taken away by the plan that is being undone.
        before = in_tree or native
        after = native or (in_tree and _native(case, in_tree))
    if before is None or after is None:
        raise AssertionError("there is nothing to be done")
    after = twin.pristine(after)
    uids = frozenset(map(volume_uid, journal.uids))
    return moves.Swap(before=before, after=after, back=back, saved=uids)


def _native(case: Case, in_tree: Object) -> Object:
    made = twin.native(in_tree)
    return twin.held(made) if case.by_hand else made


class Mind:
    """Replant's decisions in one case: each is asked for once, and looked up ever after."""

    def __init__(self, case: Case, conduct: Conduct) -> None:
        self.case = case
        self.conduct = conduct
        self._known: dict[tuple[bool, Journal, Look, Conditions | None], moves.Move] = {}

    def move(self, world: World) -> moves.Move:
        """What it does next, with what it has seen."""
        look = world.replant.seen
        back = self.case.back != world.turned
        journal = world.replant.owed or world.journal
        key = back, journal, look, world.replant.checked
        if key not in self._known:
            volume = volume_object(look.volume, self.case) if look.volume else None
            claim = claim_object(look.claim) if look.claim else None
            swap = swap_of(self.case, journal, back=back)
            conditions = world.replant.checked or MET
            self._known[key] = self.conduct.decide(swap, volume, claim, conditions)
        return self._known[key]

    def seeing(self, world: World) -> World:
        """The world once Replant has looked at it, or begins with what it has seen."""
        claim = world.claim._replace(heard=False) if world.claim else None
        replant = world.replant._replace(look=Look(world.volume, claim))
        if replant.stage is Stage.FRESH:
            back = self.case.back != world.turned
            owed = noted(self.case, world.journal, world.volume, back=back)
            if owed is None:
                return world.with_replant(replant._replace(stage=Stage.DONE, look=None))
            if owed != world.journal:
                stage = Stage.INTENT if self.conduct.journal_first else Stage.ACT
                return self.concluded(world.with_replant(replant._replace(stage=stage, owed=owed)))
            replant = replant._replace(stage=Stage.ACT)
        return self.concluded(world.with_replant(replant))

    def is_to_look_again(self, world: World) -> bool:
        """Whether it is about to delete or create the volume, and has not seen what matters."""
        return (
            self.conduct.looks_again
            and world.replant.checked is None
            and isinstance(self.move(world), moves.Delete | moves.Create)
        )

    def looking_again(self, world: World) -> World:
        """The world once Replant has looked at nodes, controllers and attachments, right before a
        delete or a create."""
        seen = MET
        if isinstance(self.move(world), moves.Delete):
            seen = MET if world.redirects else SWITCHED
        elif world.held is Held.DETACHING:
            seen = DETACHING
        return self.concluded(world.with_replant(world.replant._replace(checked=seen)))

    def written(self, world: World) -> World:
        """The world once the journal has what was owed."""
        replant = world.replant
        after = world._replace(
            journal=replant.owed or world.journal,
            replant=replant._replace(stage=Stage.ACT, owed=None),
        )
        return self.concluded(after) if replant.look else after

    def concluded(self, world: World) -> World:
        """The world with all that follows from a look alone: only changes are left pending."""
        replant = world.replant
        if replant.stage is not Stage.ACT:
            return world
        match self.move(world):
            case moves.Done():
                replant = Replant(Stage.DONE)
            case moves.Stuck():
                replant = Replant(Stage.STUCK)
            case moves.Outdated():
                replant = Replant(Stage.FRESH)
            case moves.Await(otherwise=None):
                replant = replant.blind
        return world.with_replant(replant)

    def tidied(self, world: World, before: World) -> World:
        """The same world, without what makes no difference any more."""
        if world.volume is not before.volume:
            if world.volume:
                world = world.with_volume(guarded(self.case, world.volume))
            world = without_the_gone(world)
            if world.volume and world.held is not Held.DETACHING:
                world = world._replace(held=Held.MOUNTED)
        claim = world.claim
        if claim and claim.heard and claim.phase is Phase.BOUND and is_found(world.volume):
            world = world.with_claim(claim._replace(heard=False))  # they would change nothing
        touched = world.volume is not before.volume or world.claim is not before.claim
        if touched and world.replant.look and self._is_refused(world):
            # Whatever else happens, it is refused by now; then Replant looks again.
            world = world.with_replant(world.replant.blind)
        if world.journal is before.journal and _same_uid(world.volume, before.volume):
            return world
        return renumbered(world)

    def _is_refused(self, world: World) -> bool:
        move = self.move(world)
        change = changing(move)
        # Without a change, what is seen is to be written down first.
        return change is not None and done(world, change) is None

    def gives_back(self, world: World) -> bool:
        """Whether Replant has looked for the last time, and is about to give back the policy."""
        if world.replant.look is None:
            return False
        move = self.move(world)
        return isinstance(move, moves.Patch) and _policy(move) == DELETE


def _same_uid(one: Volume | None, other: Volume | None) -> bool:
    return one is other or bool(one and other and one.uid == other.uid)


def changing(move: moves.Move) -> moves.Move | None:
    """The change that a move is, or comes to when it waits in vain; None where it is none."""
    if isinstance(move, moves.Await):
        return move.otherwise
    return None if isinstance(move, moves.Done | moves.Stuck | moves.Outdated) else move


def done(world: World, move: moves.Move) -> World | None:
    """The world after a change, with its answer seen; None where the API server refuses it."""
    replant, look, volume = world.replant, world.replant.seen, world.volume
    match move:
        case moves.Nudge(patch):
            changed = _nudged(world.claim, patch)
            if changed is None:
                return None
            seen = look._replace(claim=changed._replace(heard=False))
            return world._replace(claim=changed, replant=replant._replace(look=seen))
        case moves.Create(wanted):
            if volume is not None:
                return None
            after: Volume | None = volume_of(wanted, FRESH)
        case moves.Patch(patch):
            after = _patched(volume, patch, look)
            if after is None:
                return None
        case moves.Delete(uid, version):
            after = _deleted(volume, uid, version, look)
            if after is None:
                return None
        case _:
            raise AssertionError(f"{move} changes nothing")
    gone = after is not None and after.going and not after.finalizers
    seen = look._replace(volume=None if gone else after)
    return world._replace(volume=after, replant=replant._replace(look=seen, checked=None))


def _nudged(claim: Claim | None, patch: Object) -> Claim | None:
    metadata = patch["metadata"]
    if claim is None or metadata.get("uid") not in (None, claim_uid(own=claim.own)):
        return None
    mark = metadata["annotations"].get(twin.SWAPPED)
    return claim._replace(mark=None if mark is None else volume_number(mark), heard=True)


def _patched(volume: Volume | None, patch: Object, look: Look) -> Volume | None:
    metadata = patch.get("metadata") or {}
    if volume is None or not _as_meant(volume, metadata.get("uid"), look, metadata):
        return None
    if "finalizers" in metadata:
        volume = volume._replace(finalizers=bits(metadata["finalizers"]))
    if policy := _policy(moves.Patch(patch)):
        volume = volume._replace(deletes=policy == DELETE)
    return volume


def _deleted(volume: Volume | None, uid: str, version: str, look: Look) -> Volume | None:
    preconditions = {"resourceVersion": version} if version else {}
    if volume is None or not _as_meant(volume, uid, look, preconditions):
        return None
    return volume if volume.going else volume._replace(going=Going.BY_REPLANT)


def _as_meant(volume: Volume, uid: str | None, look: Look, preconditions: Object) -> bool:
    """Whether preconditions hold. A version does while the volume is equal to what was seen."""
    same = not uid or uid == volume_uid(volume.uid)
    return same and ("resourceVersion" not in preconditions or volume == look.volume)


def _policy(move: moves.Patch) -> str:
    policy: str = (move.patch.get("spec") or {}).get("persistentVolumeReclaimPolicy") or ""
    return policy
