"""One disk, one name of a volume, one claim, the journal and Replant: all that a swap is about.

A world is small and hashable, since a search looks at very many. What Replant decides from are the
plain objects that a world's volumes and claims stand for.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from functools import cache
from typing import NamedTuple

from replant.core.convert.conditions import Conditions
from replant.objects import Object
from replant.swap import twin

NAME, NAMESPACE, CLAIM = "data", "shop", "data"
PLUGIN, DRIVER = "kubernetes.io/aws-ebs", "ebs.csi.aws.com"
DELETE = "Delete"

PROTECTION, PROVISIONER, IN_TREE, OTHER = 1, 2, 4, 8
"""Finalizers, as bits: of the protection of volumes, of the driver's provisioner, of the in-tree
plugin, and of a controller that Replant does not know."""
_FINALIZERS = {
    PROTECTION: "kubernetes.io/pv-protection",
    PROVISIONER: twin.PROVISIONER_FINALIZER,
    IN_TREE: twin.IN_TREE_FINALIZER,
    OTHER: "reclaim.example.com/storage",
}
_LABEL = "team"
GONE, FRESH = -1, 99
"""The uid of a volume that is no more, and of one that was made just now."""


class Phase(StrEnum):
    """Of a volume or a claim."""

    PENDING = "Pending"
    """The controllers have not seen it yet."""
    AVAILABLE = "Available"
    BOUND = "Bound"
    RELEASED = "Released"
    LOST = "Lost"


class Going(IntEnum):
    """Whether a volume is being deleted, and by whom."""

    NO = 0
    BY_A_PERSON = 1
    BY_REPLANT = 2


class Held(IntEnum):
    """What becomes of a disk under its pod while the volume is away."""

    MOUNTED = 0
    """Attached to the node, and mounted there; so it is as long as the volume is there."""
    UNMOUNTED = 1
    """A kubelet was restarted, found no volume for the pod, and has unmounted it."""
    FORGOTTEN = 2
    """A kube-controller-manager was restarted, and knows of no pod that needs the disk."""
    DETACHING = 3
    """The VolumeAttachment is being deleted; the disk is detached once the volume is there."""
    LET_GO = 4
    """The pod has ended."""


class Reacts(StrEnum):
    """To what a controller of somebody's reacts by deleting the disk of a volume."""

    NOTHING = ""
    FINALIZER = "finalizer"
    """The volume is being deleted, and has its finalizer, which it gives to volumes at any time."""
    DELETION = "deletion"
    """The volume is being deleted."""
    ABSENCE = "absence"
    """The volume is gone."""
    POLICY = "policy"
    """The volume's policy is not what it was."""


class Case(NamedTuple):
    """What stays as it is all the while."""

    back: bool
    """Whether the plan puts an in-tree volume back; else it makes a native one."""
    deletes: bool
    """Whether the volume's policy is Delete when the plan begins."""
    claimed: bool
    redirected: bool
    """Whether the driver's provisioner deletes an in-tree volume's disk, and not the plugin."""
    all_at_once: bool = False
    """Whether a person does all that persons do, and not only one kind of it."""
    by_hand: bool = False
    """Whether the volume names no provisioner, and the in-tree plugin is gone: then nobody deletes
    the disk of the in-tree volume, whatever its policy."""
    other_controller: Reacts = Reacts.NOTHING

    def deleter(self, volume: Volume) -> int:
        """The finalizer of whoever deletes the disk of this volume."""
        if volume.native or (self.redirected and not self.by_hand):
            return PROVISIONER
        return 0 if self.by_hand else IN_TREE


class Volume(NamedTuple):
    """A PersistentVolume of the name; it names the disk, whatever its form."""

    native: bool
    uid: int
    deletes: bool
    finalizers: int = PROTECTION
    phase: Phase = Phase.BOUND
    going: Going = Going.NO
    labelled: bool = False
    """Whether it has the label that a person has given it meanwhile."""


class Claim(NamedTuple):
    """The claim of the name: the volume's own, or another that somebody made afterwards."""

    own: bool = True
    phase: Phase = Phase.BOUND
    mark: int | None = None
    """The uid of the volume that it says was put in its place."""
    heard: bool = False
    """Whether the controllers have something to look at since they looked last."""
    going: bool = False
    """Whether it is being deleted, and a pod that uses it keeps it."""


class Journal(NamedTuple):
    """What is written down of volumes: of each form the last, and the uids of all."""

    in_tree: Volume | None = None
    native: Volume | None = None
    uids: frozenset[int] = frozenset()


class Look(NamedTuple):
    """The volume and the claim as Replant saw them last."""

    volume: Volume | None
    claim: Claim | None


class Stage(IntEnum):
    """Where Replant is with the volume."""

    FRESH = 0
    """It knows nothing, and is to look: it was started just now, or begins anew."""
    INTENT = 1
    """It has looked, and something is to be written down first."""
    ACT = 2
    """It makes moves."""
    DONE = 3
    STUCK = 4


class Replant(NamedTuple):
    """What a process of Replant has in its memory, and loses when it is killed."""

    stage: Stage = Stage.FRESH
    look: Look | None = None
    """None where it is to look before it decides."""
    owed: Journal | None = None
    """What the journal is to become, where that is not written yet."""
    checked: Conditions | None = None
    """What it saw right before a delete or a create; None where it has not looked."""

    @property
    def blind(self) -> Replant:
        """The same process, once what it has seen may no longer be so."""
        return self._replace(look=None, checked=None)

    @property
    def seen(self) -> Look:
        """What it has seen, where it cannot be without."""
        if self.look is None:
            raise AssertionError("nothing is decided before a look")
        return self.look


class World(NamedTuple):
    """Everything that matters, at one moment."""

    volume: Volume | None
    claim: Claim | None
    journal: Journal
    replant: Replant = Replant()
    turned: bool = False
    """Whether what the plan does is being undone."""
    disk: bool = True
    fair: bool = False
    """Whether somebody deleted the claim when the volume said that its disk goes with it."""
    labelled: bool = False
    """Whether a person has labelled the volume."""
    meddled: bool = False
    """Whether a person has deleted the volume."""
    redirects: bool = True
    """Whether the nodes where the disk is in use, and the controllers, redirect its plugin."""
    held: Held = Held.MOUNTED

    # Many times faster than _replace, of which a search would make hundreds of thousands.

    def with_volume(self, volume: Volume | None) -> World:
        """This world with another volume."""
        return World(volume, *self[1:])

    def with_claim(self, claim: Claim | None) -> World:
        """This world with another claim."""
        return World(self.volume, claim, *self[2:])

    def with_replant(self, replant: Replant) -> World:
        """This world with another state of Replant."""
        return World(self.volume, self.claim, self.journal, replant, *self[4:])


def start(case: Case) -> World:
    """How it begins."""
    claim = Claim(mark=1 if case.back else None) if case.claimed else None
    phase = Phase.BOUND if case.claimed else Phase.AVAILABLE
    in_tree = guarded(case, Volume(native=False, uid=0, deletes=case.deletes, phase=phase))
    if not case.back:
        return World(in_tree, claim, Journal())
    # What the plan has from the journal of the run before.
    saved = Journal(in_tree=_bare(in_tree), uids=frozenset({0}))
    deletes = case.deletes and not case.by_hand
    native = Volume(native=True, uid=1, deletes=deletes, phase=phase)
    return renumbered(World(guarded(case, native), claim, saved))


def guarded(case: Case, volume: Volume) -> Volume:
    """A volume with the finalizers that it is given: at once, since only their going matters."""
    if volume.going:
        return volume
    finalizers = volume.finalizers | PROTECTION
    if volume.deletes:
        finalizers |= case.deleter(volume)
    return volume if finalizers == volume.finalizers else volume._replace(finalizers=finalizers)


def without_the_gone(world: World) -> World:
    """The world once the API server has dropped a volume that nothing holds any more."""
    volume, claim = world.volume, world.claim
    if volume is None or not volume.going or volume.finalizers:
        return world
    if claim and claim.own:
        claim = claim._replace(heard=True)
    return World(None, claim, *world[2:])


def is_found(volume: Volume | None) -> bool:
    """Whether the controllers know a volume: then they have said something of it."""
    return volume is not None and volume.phase is not Phase.PENDING


def renumbered(world: World) -> World:
    """The same world by other numbers: of uids it only matters which are the same."""
    volume, claim, journal, replant = world.volume, world.claim, world.journal, world.replant
    numbers: dict[int, int] = {}

    def new(it: Volume | None) -> Volume | None:
        if it is None:
            return None
        number = numbers.setdefault(it.uid, len(numbers))
        return it if number == it.uid else it._replace(uid=number)

    def noted(it: Journal) -> Journal:
        known = new(it.in_tree), new(it.native)
        return Journal(*known, frozenset(numbers[uid] for uid in it.uids if uid in numbers))

    def marked(it: Claim | None) -> Claim | None:
        if it is None or it.mark is None:
            return it
        return it._replace(mark=numbers.get(it.mark, GONE))

    volume, journal = new(volume), noted(journal)
    look = replant.look and Look(new(replant.look.volume), replant.look.claim)
    owed = replant.owed and noted(replant.owed)
    if look:
        look = Look(look.volume, marked(look.claim))
    replant = Replant(replant.stage, look, owed, replant.checked)
    return World(volume, marked(claim), journal, replant, *world[4:])


# Worlds as plain objects, and back


@cache
def volume_object(volume: Volume, case: Case) -> Object:
    """The object that a volume stands for."""
    annotations = {} if case.by_hand else {twin.PROVISIONED_BY: PLUGIN}
    if case.redirected and not case.by_hand:
        annotations[twin.MIGRATED_TO] = DRIVER
    spec: Object = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "awsElasticBlockStore": {"volumeID": "aws://us-east-1a/vol-1", "fsType": "ext4"},
        "persistentVolumeReclaimPolicy": DELETE if volume.deletes else twin.RETAIN,
    }
    if case.claimed:
        own = {"kind": "PersistentVolumeClaim", "namespace": NAMESPACE, "name": CLAIM}
        spec["claimRef"] = {**own, "uid": claim_uid(own=True)}
    made: Object = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": NAME, "annotations": annotations},
        "spec": spec,
    }
    if volume.native:
        made = twin.native(made)
    metadata = {**made["metadata"], "uid": volume_uid(volume.uid), "resourceVersion": "1"}
    if volume.finalizers:
        metadata["finalizers"] = [it for bit, it in _FINALIZERS.items() if bit & volume.finalizers]
    if volume.labelled:
        metadata["labels"] = {_LABEL: "new"}
    if volume.going:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {**made, "metadata": metadata, "status": {"phase": volume.phase.value}}


@cache
def claim_object(claim: Claim) -> Object:
    """The object that a claim stands for."""
    metadata: Object = {"name": CLAIM, "namespace": NAMESPACE, "uid": claim_uid(own=claim.own)}
    if claim.going:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    if claim.mark is not None:
        metadata["annotations"] = {twin.SWAPPED: volume_uid(claim.mark)}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": {"volumeName": NAME} if claim.own else {},
        "status": {"phase": claim.phase.value},
    }


def volume_of(obj: Object, uid: int, phase: Phase = Phase.PENDING) -> Volume:
    """The volume that an object stands for, under a uid."""
    metadata = obj["metadata"]
    return Volume(
        native=twin.is_native(obj),
        uid=uid,
        deletes=twin.policy(obj) == DELETE,
        finalizers=bits(metadata.get("finalizers")),
        phase=phase,
        labelled=_LABEL in (metadata.get("labels") or {}),
    )


def bits(finalizers: list[str] | None) -> int:
    """Finalizers as bits."""
    return sum(bit for bit, name in _FINALIZERS.items() if name in (finalizers or ()))


def volume_uid(number: int) -> str:
    """A volume's uid, as objects have it."""
    return f"volume-{number}"


def volume_number(uid: str) -> int:
    """The number of a volume's uid."""
    return int(uid.removeprefix("volume-"))


def claim_uid(*, own: bool) -> str:
    """A claim's uid."""
    return "claim-0" if own else "claim-1"


def _bare(volume: Volume) -> Volume:
    """A volume as the journal has it: what others write by themselves is of no use there."""
    return volume._replace(phase=Phase.BOUND, going=Going.NO)


@cache
def backup(volume: Volume, earlier: Volume | None, case: Case) -> Volume:
    """What is written down of a volume, by the rule that Replant has for it."""
    before = volume_object(earlier, case) if earlier else None
    made = twin.backup_of(volume_object(volume, case), before)
    return _bare(volume_of(made, volume.uid))
