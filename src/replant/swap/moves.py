"""What comes next on a volume's way to its twin, from what is seen and what the journal has.

There is no other memory: whoever is killed between any two moves goes on from what is seen. The
volume is deleted only while the journal has the whole of it, only as it was then, and only while
nobody would delete its disk.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from replant.core.convert.conditions import MET, Conditions
from replant.core.convert.finalizers import unknown_finalizers
from replant.objects import Object, name_of
from replant.swap import twin


@dataclass(frozen=True, slots=True)
class Swap:
    """What is to become of one volume."""

    before: Object
    """The volume that goes, whole, as the journal has it."""
    after: Object
    """The volume that comes, as it is to be in the end."""
    claim_says: Mapping[str, str | None] = field(default_factory=dict)
    """Annotations that the claim is given; None is one that goes."""
    back: bool = False
    """Whether it takes a swap back: then the claim no longer says that there was one."""
    saved: frozenset[str] = frozenset()
    """The uids of all volumes that the journal has whole, under this name."""
    accept_finalizers: frozenset[str] = frozenset()
    """Finalizers that may be removed although it is not known what their controllers do."""

    @property
    def name(self) -> str:
        """Of both."""
        name: str = self.before["metadata"]["name"]
        return name

    @property
    def claim_uid(self) -> str:
        """Of the claim that has the volume; nothing where none has."""
        uid: str = (self.after["spec"].get("claimRef") or {}).get("uid") or ""
        return uid

    @property
    def claim(self) -> tuple[str, str]:
        """Namespace and name of that claim."""
        said = self.after["spec"].get("claimRef") or {}
        return said.get("namespace") or "", said.get("name") or ""


@dataclass(frozen=True, slots=True)
class Patch:
    """Change the volume as it was seen; a version in the patch is a precondition."""

    patch: Object


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete this very volume, as it was in this version."""

    uid: str
    version: str


@dataclass(frozen=True, slots=True)
class Create:
    """Make the volume."""

    volume: Object


@dataclass(frozen=True, slots=True)
class Nudge:
    """Change the claim, so that the controllers look at it now."""

    patch: Object


@dataclass(frozen=True, slots=True)
class Await:
    """Nothing is to be done until others have done their part."""

    what: str
    otherwise: Nudge | None = None
    """What is done if they do not: then they are told once more."""


@dataclass(frozen=True, slots=True)
class Outdated:
    """The volume is not what the journal has: it must be written down anew first."""


@dataclass(frozen=True, slots=True)
class Done:
    """The volume is what it is to be."""

    note: str = ""
    """What a person should know about it."""


@dataclass(frozen=True, slots=True)
class Stuck:
    """There is no way on, until a person does something about it."""

    why: str


Move = Patch | Delete | Create | Nudge | Await | Outdated | Done | Stuck


def next_move(
    swap: Swap, volume: Object | None, claim: Object | None, conditions: Conditions = MET
) -> Move:
    """The next move, from the volume and the claim as they are; None is one that is not there.

    A Delete or a Create counts only with the conditions as they were seen right before it.
    """
    if volume is None:
        if conditions.detaching:
            # Without the volume the external-attacher cannot detach the disk: it tries again later.
            return Await(conditions.detaching)
        return Create(twin.held(swap.after))
    uid = volume["metadata"]["uid"]
    if volume["metadata"].get("deletionTimestamp"):
        return _let_go(swap, volume)
    if twin.source(volume) == twin.source(swap.after):
        return _settle(swap, volume, claim)
    if uid == swap.before["metadata"]["uid"]:
        return _take_away(swap, volume, conditions)
    return Stuck(
        f"{name_of(volume)} is neither the volume that was to be replaced nor the one that "
        "replaces it: somebody has made another under its name. Both are in the journal."
    )


def _let_go(swap: Swap, volume: Object) -> Move:
    if volume["metadata"]["uid"] not in swap.saved:
        return Stuck(f"{name_of(volume)} was replaced, and somebody has deleted it since.")
    if stuck := _unknown_finalizers(swap, volume):
        return stuck
    if not volume["metadata"].get("finalizers"):
        return Await(f"{name_of(volume)} to be gone")
    # Each of them is given to the one that comes, or is of no use there.
    return Patch(_patch(volume, metadata={"finalizers": None}))


def _take_away(swap: Swap, volume: Object, conditions: Conditions) -> Move:
    metadata = volume["metadata"]
    if metadata["uid"] not in swap.saved or _essence(volume) != _essence(swap.before):
        return Outdated()
    if stuck := _unknown_finalizers(swap, volume):
        return stuck
    if twin.policy(volume) != twin.RETAIN:
        return Patch(_patch(volume, spec={"persistentVolumeReclaimPolicy": twin.RETAIN}))
    if conditions.broken:
        return Stuck(
            f"{name_of(volume)} is not deleted. {conditions.broken} That was not so when the plan "
            "was made. The volume keeps the policy Retain until the run is resumed or taken back."
        )
    if conditions.missing:
        return Await(conditions.missing)
    return Delete(metadata["uid"], metadata["resourceVersion"])


def _unknown_finalizers(swap: Swap, volume: Object) -> Stuck | None:
    finalizers = volume["metadata"].get("finalizers")
    if unknown := unknown_finalizers(finalizers, swap.accept_finalizers):
        return Stuck(
            f"{name_of(volume)} has the finalizer {unknown[0]}. The controller of that may delete "
            "the disk when the PersistentVolume is deleted. Find out what it does; then remove the "
            f"finalizer, or take the run back and say --accept-finalizer {unknown[0]}."
        )
    return None


def _settle(swap: Swap, volume: Object, claim: Object | None) -> Move:
    if swap.claim_uid:
        if claim is None or claim["metadata"]["uid"] != swap.claim_uid:
            return _left_alone(swap, volume)
        # Told too early, the controllers look for the claim's volume where it is not yet, and not
        # again before their next round. They have seen it once they have said that it is Bound.
        if not is_bound(volume):
            return Await(f"{name_of(volume)} to be Bound again")
        if nudge := _nudge(swap, volume, claim):
            return nudge
        if not is_bound(claim):
            what = f"{name_of(claim, 'PersistentVolumeClaim')} to be Bound again"
            return Await(what, _unsaid(claim))
    if twin.policy(volume) != twin.policy(swap.after):
        if claim is not None and claim["metadata"].get("deletionTimestamp"):
            return _left_alone(swap, volume)
        wanted = twin.policy(swap.after)
        # The controllers write its status at this moment, and which version it has is no matter.
        uid = volume["metadata"]["uid"]
        return Patch({"metadata": {"uid": uid}, "spec": {"persistentVolumeReclaimPolicy": wanted}})
    return Done()


def is_bound(obj: Object) -> bool:
    """Whether the controllers have said so of a volume or a claim."""
    return (obj.get("status") or {}).get("phase") == "Bound"


def _left_alone(swap: Swap, volume: Object) -> Done:
    """Somebody has deleted the claim meanwhile: the disk is kept, whatever the policy was."""
    kept = twin.policy(volume) == twin.RETAIN != twin.policy(swap.after)
    if not kept:
        return Done()
    return Done(
        f"{name_of(volume)}: its claim {'/'.join(swap.claim)} was deleted meanwhile. Its disk is "
        f"kept; the volume's policy was {twin.policy(swap.after)}: set it again to have the disk "
        "deleted"
    )


def _nudge(swap: Swap, volume: Object, claim: Object) -> Nudge | None:
    said = (claim["metadata"].get("annotations") or {}).get(twin.SWAPPED)
    mark = volume["metadata"]["uid"]
    if swap.back and (is_bound(claim) or said not in (None, mark)):
        # A claim that is Lost and says nothing is told something first: only a change is heard.
        mark = None
    if said == mark:
        return None
    says = {**swap.claim_says, twin.SWAPPED: mark}
    return Nudge({"metadata": {"uid": claim["metadata"]["uid"], "annotations": says}})


def _unsaid(claim: Object) -> Nudge:
    """Take back what the claim says, to say it again: only a change is heard.

    Whoever is told may at that moment remember the volume as it was before they called it Bound;
    then what they write is refused, and they leave the claim for their next round.
    """
    uid = claim["metadata"]["uid"]
    return Nudge({"metadata": {"uid": uid, "annotations": {twin.SWAPPED: None}}})


def _patch(volume: Object, *, metadata: Object | None = None, spec: Object | None = None) -> Object:
    known = {key: volume["metadata"][key] for key in ("uid", "resourceVersion")}
    return {"metadata": {**known, **(metadata or {})}, **({"spec": spec} if spec else {})}


def _essence(volume: Object) -> Object:
    """What must not have changed since it was written down; we ourselves change the policy."""
    pristine = twin.held(twin.pristine(volume))
    finalizers = set(pristine["metadata"].pop("finalizers", ())) - twin.DELETERS_FINALIZERS
    return {**pristine, "finalizers": finalizers}
