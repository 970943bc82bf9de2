"""Everything that may happen next while a volume is swapped, one function for each who acts.

Nothing here says when: whatever may happen may happen at any time, in any order, or never.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from replant.swap import moves
from replant.swap.conduct import Mind, changing, done
from replant.swap.world import (
    OTHER,
    PROTECTION,
    Case,
    Claim,
    Going,
    Held,
    Phase,
    Reacts,
    Replant,
    Stage,
    World,
    is_found,
)

_STARTED = Replant()


class Act(Enum):
    """The kinds of things that happen; ``story`` has a sentence for each."""

    LOOK = "look"
    WRITE = "write"
    CHANGE = "change"
    REFUSED = "refused"
    BEGIN_ANEW = "begin anew"
    RESUME = "resume"
    UNDO = "undo"
    SAY_VOLUME = "say volume"
    SAY_CLAIM = "say claim"
    MISS_CLAIM = "miss claim"
    UNPROTECT = "unprotect"
    LET_GO = "let go"
    DESTROY = "destroy"
    DELETE_CLAIM = "delete claim"
    DELETE_USED_CLAIM = "delete used claim"
    CLAIM_GOES = "claim goes"
    NEW_CLAIM = "new claim"
    DELETE_VOLUME = "delete volume"
    LABEL = "label"
    ADD_FINALIZER = "add finalizer"
    RECLAIM = "reclaim"
    LOOK_AGAIN = "look again"
    SWITCH = "switch"
    RESTART_KUBELET = "restart kubelet"
    RESTART_CONTROLLERS = "restart controllers"
    POD_ENDS = "pod ends"
    DETACH = "detach"


class Event(NamedTuple):
    """One thing that happens, and the world after it."""

    act: Act
    world: World
    by_itself: bool = True
    """Whether it comes sooner or later, when nobody disturbs anything."""
    unanswered: bool = False
    """Whether Replant does not hear what has come of its change."""


def may_happen(mind: Mind, world: World) -> Iterator[Event]:
    """All that may happen next; nothing once the disk is gone."""
    if not world.disk:
        return
    for actor in _ACTORS:
        for event in actor(mind, world):
            after = mind.tidied(event.world, world)
            yield event if after is event.world else event._replace(world=after)


def _nodes(mind: Mind, world: World) -> Iterator[Event]:
    """Kubelets and controllers that are restarted while the volume is away, and what follows."""
    held, case = world.held, mind.case
    if held is Held.DETACHING:
        yield Event(Act.POD_ENDS, world._replace(held=Held.LET_GO), by_itself=False)
        if world.volume:
            yield Event(Act.DETACH, world._replace(held=Held.MOUNTED))
    # The last look counts: nobody can look and create in one act.
    if world.volume or not case.claimed or world.replant.checked:
        return
    if _kinds(case, world) and not case.all_at_once:
        return
    if held in (Held.MOUNTED, Held.FORGOTTEN):
        after = Held.UNMOUNTED if held is Held.MOUNTED else Held.DETACHING
        yield Event(Act.RESTART_KUBELET, world._replace(held=after), by_itself=False)
    if held in (Held.MOUNTED, Held.UNMOUNTED):
        after = Held.FORGOTTEN if held is Held.MOUNTED else Held.DETACHING
        yield Event(Act.RESTART_CONTROLLERS, world._replace(held=after), by_itself=False)


def _kinds(case: Case, world: World) -> int:
    """How many kinds of things persons have done."""
    unclaimed = case.claimed and not (world.claim and world.claim.own and not world.claim.going)
    return unclaimed + world.meddled + world.labelled + (not world.redirects)


def _replant(mind: Mind, world: World) -> Iterator[Event]:
    replant = world.replant
    if replant.stage in (Stage.DONE, Stage.STUCK):
        return
    if replant.stage is Stage.INTENT:
        yield Event(Act.WRITE, mind.written(world))
        return
    if replant.owed and (world.volume is None or world.volume.going):
        yield Event(Act.WRITE, mind.written(world))
    if replant.look is None:
        yield Event(Act.LOOK, mind.seeing(world))
        if replant.stage is Stage.ACT:
            # Whoever has waited long enough begins with what the journal has by then.
            yield Event(Act.BEGIN_ANEW, world.with_replant(_STARTED))
        return
    if mind.is_to_look_again(world):
        yield Event(Act.LOOK_AGAIN, mind.looking_again(world))
        return
    blind = replant.blind
    move = mind.move(world)
    if isinstance(move, moves.Await):
        yield Event(Act.LOOK, mind.seeing(world.with_replant(blind)))
    after = done(world, changing(move) or move)
    if after is None:
        yield Event(Act.REFUSED, world.with_replant(blind))
        return
    yield Event(Act.CHANGE, mind.concluded(after))
    yield Event(Act.CHANGE, after.with_replant(blind), by_itself=False, unanswered=True)


def _fate(mind: Mind, world: World) -> Iterator[Event]:
    """Replant is killed, and started again to go on or to go back."""
    if world.replant != _STARTED:
        yield Event(Act.RESUME, world.with_replant(_STARTED), by_itself=False)
    if not world.turned:
        journal = world.journal
        if mind.case.back:
            # The volume of the run before is part of the plan, and not of its undoing.
            journal = journal._replace(in_tree=None)
        after = world._replace(replant=_STARTED, turned=True, journal=journal)
        yield Event(Act.UNDO, after, by_itself=False)


def _volume_controller(mind: Mind, world: World) -> Iterator[Event]:
    """Says of volumes and claims what has become of them, and protects volumes in use."""
    volume, claim = world.volume, world.claim
    if claim and claim.own:
        # It looks at a claim when it hears of it, and at its next round anyway; nobody should have
        # to wait for that.
        phase = Phase.BOUND if is_found(volume) else Phase.LOST
        if claim.heard or claim.phase is not phase:
            after = claim._replace(phase=phase, heard=False)
            yield Event(Act.SAY_CLAIM, world.with_claim(after), by_itself=claim.heard)
        if claim.heard and claim.phase is not phase:
            # What it remembers of the volume is older than what it has said of it: the API server
            # refuses what it writes, and it does not try again.
            missed = claim._replace(heard=False)
            yield Event(Act.MISS_CLAIM, world.with_claim(missed), by_itself=False)
    if volume is None:
        return
    phase = Phase.AVAILABLE
    if mind.case.claimed:
        phase = Phase.BOUND if claim and claim.own else Phase.RELEASED
    if volume.phase is not phase:
        yield Event(Act.SAY_VOLUME, world.with_volume(volume._replace(phase=phase)))
    if volume.going and volume.finalizers & PROTECTION and volume.phase is not Phase.BOUND:
        after_it = volume._replace(finalizers=volume.finalizers & ~PROTECTION)
        yield Event(Act.UNPROTECT, world.with_volume(after_it))


def _deleter(mind: Mind, world: World) -> Iterator[Event]:
    """The driver's provisioner, or the in-tree plugin: whoever deletes the disk of this volume."""
    volume = world.volume
    if volume is None:
        return
    its_own = mind.case.deleter(volume)
    if not its_own:
        return
    has = volume.finalizers & its_own
    if has and not volume.deletes:
        freed = volume._replace(finalizers=volume.finalizers & ~its_own)
        yield Event(Act.LET_GO, world.with_volume(freed))
    if volume.deletes and volume.phase is Phase.RELEASED and (has or not volume.going):
        yield Event(Act.DESTROY, world._replace(volume=None, disk=False))


def _other_controller(mind: Mind, world: World) -> Iterator[Event]:
    """A controller of somebody's that deletes disks, whatever the policy of their volumes."""
    volume, reacts = world.volume, mind.case.other_controller
    if reacts is Reacts.FINALIZER:
        yield from _finalizing(world)
    begun = bool(world.journal.uids)  # else it is none of Replant's doing
    if (
        (reacts is Reacts.DELETION and volume and volume.going is Going.BY_REPLANT)
        or (reacts is Reacts.ABSENCE and begun and volume is None)
        or (reacts is Reacts.POLICY and begun and volume and volume.deletes != mind.case.deletes)
    ):
        yield Event(Act.RECLAIM, world._replace(disk=False), by_itself=False)


def _finalizing(world: World) -> Iterator[Event]:
    volume = world.volume
    if volume is None:
        return
    has = volume.finalizers & OTHER
    if volume.going and has:
        freed = volume._replace(finalizers=volume.finalizers & ~OTHER)
        after = world.with_volume(freed)._replace(disk=False)
        yield Event(Act.RECLAIM, after, by_itself=False)
    elif not volume.going and not has:
        # The API server refuses a new finalizer on an object that is being deleted.
        marked = volume._replace(finalizers=volume.finalizers | OTHER)
        yield Event(Act.ADD_FINALIZER, world.with_volume(marked), by_itself=False)


def _person(mind: Mind, world: World) -> Iterator[Event]:
    case, volume, claim = mind.case, world.volume, world.claim
    kinds = _kinds(case, world) + (world.held is not Held.MOUNTED)
    if claim and claim.going:
        yield Event(Act.CLAIM_GOES, world.with_claim(None), by_itself=False)
    if claim is None and case.claimed:
        another = Claim(own=False, phase=Phase.PENDING)
        yield Event(Act.NEW_CLAIM, world.with_claim(another), by_itself=False)
    if kinds and not case.all_at_once:
        return
    if claim and claim.own and not claim.going:
        fair = volume is not None and volume.deletes and volume.going is not Going.BY_REPLANT
        fair = not case.by_hand and (fair or mind.gives_back(world))
        after = world._replace(claim=None, fair=fair)
        yield Event(Act.DELETE_CLAIM, after, by_itself=False)
        going = after.with_claim(claim._replace(going=True))
        yield Event(Act.DELETE_USED_CLAIM, going, by_itself=False)
    if world.redirects and world.replant.checked is None:
        # The last look counts: nobody can look and delete in one act.
        yield Event(Act.SWITCH, world._replace(redirects=False), by_itself=False)
    if volume is None or volume.going:
        return
    if not world.meddled:
        after = world._replace(volume=volume._replace(going=Going.BY_A_PERSON), meddled=True)
        yield Event(Act.DELETE_VOLUME, after, by_itself=False)
    if not world.labelled:
        # What is written on a volume that is being deleted goes with it, here as anywhere.
        after = world._replace(volume=volume._replace(labelled=True), labelled=True)
        yield Event(Act.LABEL, after, by_itself=False)


_ACTORS = (
    _replant, _fate, _volume_controller, _deleter, _other_controller, _nodes, _person,
)  # fmt: skip
