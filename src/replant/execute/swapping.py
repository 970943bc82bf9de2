"""Volumes that are replaced by their twins, or by what they were before: many at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from msgspec import to_builtins
from msgspec.json import decode

from replant.core.convert.conditions import Disk
from replant.errors import TranslationError
from replant.execute.acts import (
    Act,
    Decision,
    LookAtLeader,
    Progress,
    RestartLeader,
    Wait,
)
from replant.execute.bystanders import Bystanders
from replant.execute.journal.model import Entry, Mark
from replant.execute.leading import Leading, new_leader
from replant.execute.steps.conditions import disk_of
from replant.execute.world import World
from replant.objects import Object
from replant.plan.model import RestoreVolumes, SavedVolume, SwapVolumes, VolumeSwap
from replant.swap import moves, twin

AT_ONCE = 16
"""So many volumes are on their way at a time, unless somebody says otherwise."""
TOGETHER, AT_LAST = 4, 0.1
"""Once one in so many of these has come to its end, or so many seconds later, others are begun with
one write to the journal: one for each would be one in ten of all that the API server is asked."""
AGAIN = 5.0
"""So many seconds later a volume is looked at again that others have to do something about."""

_OVER = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Seen:
    """A volume and its claim as they were at one moment, as JSON: there may be many."""

    volume: bytes | None
    claim: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LookAtVolumes(Act):
    """See volumes and their claims; the outcome is a Seen for each by name."""

    changes: ClassVar[bool] = False

    volumes: tuple[VolumeSwap, ...]

    @property
    def target(self) -> str:
        """What it is done to."""
        return "volumes" if len(self.volumes) > 1 else f"volume {self.volumes[0].name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceVolume(Act):
    """Take a volume to its twin, from wherever it is on its way; the outcome is the last move."""

    swap: moves.Swap
    volume: Object | None
    claim: Object | None
    saved: SavedVolume
    written: bool
    """Whether the journal has that already."""
    disk: Disk

    @property
    def target(self) -> str:
        """What it is done to."""
        return f"volume {self.swap.name}"

    @property
    def backup(self) -> Object | None:
        """The volume that goes, and its claim: nothing else names the disk for a moment."""
        made: Object = to_builtins(self.saved)
        return None if self.written else made


@dataclass(slots=True)
class Backups:
    """What journals have of volumes, by name: of each form the one that was written down last."""

    in_tree: dict[str, SavedVolume] = field(default_factory=dict)
    native: dict[str, SavedVolume] = field(default_factory=dict)
    uids: dict[str, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, entries: Iterable[Entry], saved: Sequence[SavedVolume] = ()) -> Backups:
        """Those of a run, and what its plan has from earlier ones."""
        found = cls()
        for one in saved:
            found.add(one)
        for entry in entries:
            if entry.mark is Mark.ACT and entry.act == ReplaceVolume.__name__ and entry.backup:
                found.add(SavedVolume(**entry.backup))
        return found

    def add(self, saved: SavedVolume) -> None:
        """One more."""
        name, uid = saved.volume["metadata"]["name"], saved.volume["metadata"]["uid"]
        (self.native if twin.is_native(saved.volume) else self.in_tree)[name] = saved
        self.uids[name] = self.uids.get(name, frozenset()) | {uid}


class Swapping:
    """A SwapVolumes or RestoreVolumes step under way."""

    def __init__(
        self,
        step: SwapVolumes | RestoreVolumes,
        backups: Backups,
        *,
        at_once: int,
        timeout: float,
        settled: bool = False,
        sees_controllers: bool = False,
    ) -> None:
        """``settled`` is whether the conversion had come to its end that is taken back,
        ``sees_controllers`` whether the plan has seen the pods of kube-controller-manager."""
        self._sees_controllers = sees_controllers
        self._settled = settled
        self._step = step
        self._back = isinstance(step, RestoreVolumes)
        self._backups = backups
        self._at_once = at_once
        self._timeout = timeout
        self._volumes = {it.name: it for it in step.volumes}
        self._queue = deque(step.volumes)
        self._under_way: dict[str, Act] = {}
        self._later: dict[str, float] = {}
        """When to look again at a volume that others have to do something about first."""
        self._waits: dict[str, str] = {}
        """What a volume waits for, also while it is looked at again."""
        self._looked = False
        self._room_since: float | None = None
        """Since when another could be on its way."""
        self._seen: dict[str, Seen] = {}
        self._free_since: dict[str, float] = {}
        """Since when a volume that must be free is seen to be so."""
        self._leading = new_leader(step.id, timeout) if step.restart_controllers else None
        self._notes: list[str] = []
        self._bystanders: Bystanders | None = None
        self._failed = ""

    def decide(self, world: World, now: float) -> Decision:
        """Look at what was not seen, and take on its way what was."""
        if self._bystanders is None:
            self._bystanders = Bystanders.of(self._step.volumes, world)
        if not self._looked and self._queue:
            return Decision(acts=[self._look(self._step.volumes)])
        for name, due in list(self._later.items()):
            if due <= now:
                del self._later[name]
                self._queue.append(self._volumes[name])
        if self._leading and (held_up := self._held_up(self._leading, world, now)):
            return held_up
        held_back = not self._take_on_their_way(world, now)
        waits = [self._wait(name, what) for name, what in self._waits.items()]
        total = len(self._volumes)
        left = len(self._queue) + len(self._under_way) + len(self._later)
        notes, self._notes = self._notes, []
        if not left:
            now_there = Bystanders.of(self._step.volumes, world)
            notes += self._bystanders.touched(now_there, self._step.volumes)
        return Decision(
            acts=list(self._under_way.values()),
            waits=waits,
            done=not left,
            failed=self._failed,
            wake=AT_LAST if held_back else AGAIN,
            progress=Progress(total - left, total, "volumes"),
            notes=notes,
        )

    def _take_on_their_way(self, world: World, now: float) -> bool:
        """Begin as many as may be under way; False where others are to begin with them."""
        room = self._at_once - len(self._under_way)
        if not room or not self._queue:
            self._room_since = None
            return True
        if self._room_since is None:
            self._room_since = now
        if room < self._at_once / TOGETHER and now < self._room_since + AT_LAST:
            return False
        self._room_since = None
        while self._queue and len(self._under_way) < self._at_once and not self._failed:
            volume = self._queue.popleft()
            if volume.free_of and (why := self._not_free(volume, world, now)):
                self._later[volume.name], self._waits[volume.name] = now + 1.0, why
                continue
            if volume.free_of:
                self._waits.pop(volume.name, None)
            if act := self._next(volume):
                self._under_way[volume.name] = act
        return True

    def _held_up(self, leading: Leading, world: World, now: float) -> Decision | None:
        """What is waited for until all are free, and another leads than while they were detached.

        Whoever leads then has never heard of a detach that the driver might overtake.
        """
        decision = Decision(wake=1.0, progress=Progress(0, len(self._volumes), "volumes"))
        decision.waits = [
            self._wait(it.name, why)
            for it in self._step.volumes
            if (why := self._not_free(it, world, now))
        ]
        if decision.waits or leading.holds_up(now, decision, world):
            return decision
        self._notes += decision.notes
        self._leading = None
        return None

    def _wait(self, volume: str, what: str) -> Wait:
        # A detach takes that long at least, whatever a person's patience.
        return Wait(what, f"volume {volume}", self._timeout + self._step.settle_seconds)

    def _not_free(self, volume: VolumeSwap, world: World, now: float) -> str:
        """What a volume that must be free has to wait for, if anything."""
        # A pod that waits for a volume which is away waits for us.
        seen = self._seen.get(volume.name)
        if held := _held(volume, world, away=seen is not None and seen.volume is None):
            self._free_since.pop(volume.name, None)
            return f"PersistentVolume {volume.name} to be let go by {held}"
        since = self._free_since.setdefault(volume.name, now)
        left = since + self._step.settle_seconds - now
        return f"the detach of PersistentVolume {volume.name} to have ended" if left > 0 else ""

    def _look(self, volumes: tuple[VolumeSwap, ...]) -> LookAtVolumes:
        return LookAtVolumes(why="to see the volumes of the step", volumes=volumes)

    def _next(self, volume: VolumeSwap) -> Act | None:
        """What to do for a volume: look at it, take it on, or nothing where it is done."""
        seen = self._seen.pop(volume.name, None)
        if seen is None:
            return self._look((volume,))
        try:
            return self.replacement(volume, seen)
        except TranslationError as error:
            self._failed = str(error)
            return None

    def replacement(self, volume: VolumeSwap, seen: Seen) -> ReplaceVolume | None:
        """What is to be done about a volume as it was seen; None where it needs nothing."""
        found = decode(seen.volume, type=dict) if seen.volume else None
        claim = decode(seen.claim, type=dict) if seen.claim else None
        return (self._restoring if self._back else self._swapping)(volume, found, claim)

    def _swapping(
        self, volume: VolumeSwap, found: Object | None, claim: Object | None
    ) -> ReplaceVolume | None:
        earlier = self._backups.in_tree.get(volume.name)
        if found and not twin.is_native(found):
            backup = twin.backup_of(found, earlier.volume if earlier else None)
            earlier = SavedVolume(volume=backup, claim=earlier.claim if earlier else _bare(claim))
        wanted = self._backups.native.get(volume.name)  # where a RestoreVolumes is taken back
        earlier = earlier or wanted
        if earlier is None:
            if found is None:
                self._notes.append(f"PersistentVolume {volume.name} is gone: it needs nothing")
            return None
        after = twin.pristine(wanted.volume) if wanted else _native(volume, earlier.volume)
        if twin.source(after) != {"driver": volume.driver, "handle": volume.handle}:
            self._failed = (
                f"PersistentVolume {volume.name} is another disk than the plan was made for. "
                "Make the plan anew."
            )
            return None
        says = twin.claim_annotations(earlier.claim, volume.driver) if earlier.claim else {}
        if wanted and wanted.claim:
            says |= twin.annotations_again(wanted.claim)
        return self._act(volume, earlier, after, says, found, claim)

    def _restoring(
        self, volume: VolumeSwap, found: Object | None, claim: Object | None
    ) -> ReplaceVolume | None:
        wanted = self._backups.in_tree.get(volume.name)
        if wanted is None:
            return None  # it was never taken on its way
        earlier = self._backups.native.get(volume.name)
        if found and twin.is_native(found):
            backup = twin.backup_of(found, earlier.volume if earlier else None)
            if earlier is None and (attributes := found["spec"].get("volumeAttributesClassName")):
                self._notes.append(
                    f"PersistentVolume {volume.name} loses its VolumeAttributesClass {attributes}: "
                    "only CSI volumes can have one. The journal keeps it"
                )
            earlier = SavedVolume(volume=backup, claim=_bare(claim))
        # Only where the conversion had ended is what the native one says its owner's will.
        now = earlier.volume if earlier and self._settled else None
        after = twin.restored(wanted.volume, now, was_retained=volume.retain)
        claimed_by = (after["spec"].get("claimRef") or {}).get("uid")
        says: dict[str, str | None] = {}
        if wanted.claim and wanted.claim["metadata"].get("uid") == claimed_by:
            says = twin.annotations_again(wanted.claim)
        return self._act(volume, earlier or wanted, after, says, found, claim)

    def _act(
        self, volume: VolumeSwap, saved: SavedVolume, after: Object,
        says: Mapping[str, str | None], found: Object | None, claim: Object | None,
    ) -> ReplaceVolume:  # fmt: skip
        uids = self._backups.uids.get(volume.name, frozenset())
        known = (self._backups.in_tree.get(volume.name), self._backups.native.get(volume.name))
        swap = moves.Swap(
            before=saved.volume,
            after=after,
            claim_says=says,
            back=self._back,
            saved=uids | {saved.volume["metadata"]["uid"]},
            accept_finalizers=frozenset(volume.accept_finalizers),
        )
        return ReplaceVolume(
            why=self._step.title, swap=swap, volume=found, claim=claim, saved=saved,
            written=saved in known, disk=disk_of(volume, swap, self._sees_controllers),
        )  # fmt: skip

    def learn(self, act: Act, outcome: object, now: float) -> None:
        """Take what was seen; whatever has not come to its end is looked at once more."""
        match act:
            case LookAtLeader() | RestartLeader() if self._leading:
                self._leading.learn(outcome, now)
            case LookAtVolumes() if isinstance(outcome, Mapping):
                self._looked = True
                self._seen |= outcome
                for it in act.volumes:
                    if self._under_way.pop(it.name, None):
                        self._queue.appendleft(it)
            case ReplaceVolume():
                self._replaced(act, outcome, now)

    def _replaced(self, act: ReplaceVolume, outcome: object, now: float) -> None:
        name = act.swap.name
        self._backups.add(act.saved)
        del self._under_way[name]
        self._waits.pop(name, None)
        match outcome:
            case moves.Done(note):
                self._notes += [note] if note else []
            case moves.Stuck(why):
                self._failed = why
            case moves.Await(what):
                self._later[name], self._waits[name] = now + AGAIN, what
            case moves.Nudge():
                self._queue.appendleft(self._volumes[name])  # its claim waits for us
            case _:
                self._queue.append(self._volumes[name])


def _native(volume: VolumeSwap, before: Object) -> Object:
    made = twin.native(before, volume.annotations)
    return twin.held(made) if volume.retain else made


def _bare(obj: Object | None) -> Object | None:
    """An object without the list of who wrote what."""
    if obj is None:
        return None
    metadata = {key: it for key, it in obj["metadata"].items() if key != "managedFields"}
    return {**obj, "metadata": metadata}


def _held(volume: VolumeSwap, world: World, *, away: bool) -> str:
    """Who still has a volume that must be free: a pod, or a node."""
    for pod in () if away else world.pods():
        if volume.claim in pod.claims and pod.status.phase not in _OVER:
            return f"pod {pod.name}"
    for node in world.nodes():
        if node.volumes & set(volume.free_of):
            return node.metadata.name
        if any(
            it.spec.source.persistent_volume_name == volume.name
            for it in world.attachments_on(node.metadata.name)
        ):
            return node.metadata.name
    return ""
