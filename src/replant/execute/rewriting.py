"""Objects that a step changes: annotations of volumes, and classes that are made again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from replant.errors import Missing
from replant.execute.acts import (
    Act,
    Annotate,
    CreateClass,
    Decision,
    DeleteClass,
    LookAtObjects,
    Progress,
    Wait,
)
from replant.execute.world import World
from replant.inventory.storage_records import PersistentVolumeClaim
from replant.objects import PERSISTENT_VOLUME, STORAGE_CLASS, Object
from replant.plan.model import AnnotateVolumes, ClassChange, ReplaceClasses
from replant.plan.provisioning import provisioning

AT_ONCE = 16
"""So many objects are written at a time."""
AGAIN = 5.0
"""So many seconds later claims are looked at again that are being given a volume."""

_CLASS_DEFAULTS = {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}
_CLASS_FIELDS = (
    "provisioner",
    "parameters",
    "reclaimPolicy",
    "mountOptions",
    "allowVolumeExpansion",
    "volumeBindingMode",
    "allowedTopologies",
)
_BY_OTHERS = "kubectl.kubernetes.io/last-applied-configuration"

Seen = Mapping[str, Object]
"""Objects by name, as they were at one moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookAtPendingClaims(Act):
    """See the claims that have no volume yet; the outcome is a tuple of them."""

    changes: ClassVar[bool] = False

    @property
    def target(self) -> str:
        """What it is done to."""
        return "all pending claims"


class _Rewriting:
    """What both have: a look at all, then acts on those that differ, then another look."""

    kind: str

    def __init__(self) -> None:
        self._seen: Seen | None = None

    def learn(self, act: Act, outcome: object, _now: float) -> None:
        """Take what was seen; after a write it must be seen anew."""
        if isinstance(act, LookAtObjects):
            if isinstance(outcome, Mapping):
                self._seen = outcome
        else:
            self._seen = None

    def _look(self) -> Decision:
        look = LookAtObjects(why=f"to see every {self.kind} of the step", kind=self.kind)
        return Decision(acts=[look])


class Annotating(_Rewriting):
    """An AnnotateVolumes step under way."""

    kind = PERSISTENT_VOLUME

    def __init__(self, step: AnnotateVolumes) -> None:
        super().__init__()
        self._step = step
        self._written: set[str] = set()

    def decide(self, _world: World, _now: float) -> Decision:
        """Annotate the volumes that have not got all of it. One that is gone needs nothing."""
        if self._seen is None:
            return self._look()
        decision = Decision()
        left = 0
        for volume in self._step.volumes:
            found = self._seen.get(volume.name)
            if found is None or volume.name in self._written:
                continue
            have = found["metadata"].get("annotations") or {}
            if all(have.get(name) == value for name, value in volume.annotations.items()):
                continue
            left += 1
            if len(decision.acts) < AT_ONCE:
                decision.acts.append(
                    Annotate(
                        why=self._step.title,
                        volume=volume.name,
                        uid=found["metadata"]["uid"],
                        version=found["metadata"]["resourceVersion"],
                        annotations=volume.annotations,
                    )
                )
        if not left and self._written:
            # What was written is seen once more: then only does it count.
            self._written.clear()
            return self._look()
        total = len(self._step.volumes)
        decision.done = not left
        decision.progress = Progress(total - left, total, "volumes")
        return decision

    def learn(self, act: Act, outcome: object, now: float) -> None:
        """Count what was written; what failed is seen anew."""
        if isinstance(act, Annotate) and not isinstance(outcome, Exception):
            self._written.add(act.volume)
            return
        self._written.clear()
        super().learn(act, outcome, now)


class Replacing(_Rewriting):
    """A ReplaceClasses step under way."""

    kind = STORAGE_CLASS

    def __init__(self, step: ReplaceClasses, *, timeout: float) -> None:
        super().__init__()
        self._step = step
        self._timeout = timeout
        self._pending: tuple[PersistentVolumeClaim, ...] | None = None
        """The claims without a volume, until a class was to be deleted because of them."""
        self._looked = 0.0

    def decide(self, _world: World, now: float) -> Decision:
        """One class after the other, so that at most one is away at any time."""
        if self._seen is None:
            return self._look()
        decision = Decision()
        for number, change in enumerate(self._step.classes):
            decision.progress = Progress(number, len(self._step.classes), "classes")
            if not self._is_done(change, self._seen, decision, now):
                return decision
        total = len(self._step.classes)
        decision.done, decision.progress = True, Progress(total, total, "classes")
        return decision

    def _is_done(self, change: ClassChange, seen: Seen, decision: Decision, now: float) -> bool:
        name = change.after["metadata"]["name"]
        found = seen.get(name)
        if found is None:
            decision.acts.append(CreateClass(why=self._step.title, after=change.after))
        elif is_same_class(found, change.after):
            return True
        elif is_same_class(found, change.before):
            self._delete(found, decision, now)
        else:
            decision.failed = (
                f"StorageClass {name} is neither what the plan was made from nor what it is to "
                "become: somebody has changed it. Make the plan anew."
            )
        return False

    def _delete(self, found: Object, decision: Decision, now: float) -> None:
        """Delete a class, unless a volume of it is in the making: its maker may ask for it again.

        Somebody may have made a claim since the plan was made, so that claims are looked at right
        before each delete.
        """
        pending, self._pending = self._pending, None
        if pending is None:
            look = LookAtPendingClaims(why="to see whether a volume is being made of a class")
            decision.acts.append(look)
            return
        waiting = provisioning(found, pending)
        if not waiting:
            decision.acts.append(DeleteClass(why=self._step.title, before=found))
            return
        name = found["metadata"]["name"]
        more = f" and {len(waiting) - 1:,} more" if len(waiting) > 1 else ""
        what = f"PersistentVolumeClaim {waiting[0]}{more} to get its volume of StorageClass {name}"
        decision.waits.append(Wait(what, f"class {name}", self._timeout, "its provisioner"))
        if now < self._looked + AGAIN:
            self._pending, decision.wake = pending, AGAIN

    def learn(self, act: Act, outcome: object, now: float) -> None:
        """After any write all are seen anew; one that was gone already is no error."""
        if isinstance(act, LookAtPendingClaims):
            if isinstance(outcome, tuple):
                self._pending, self._looked = outcome, now
            return
        self._pending = None
        if isinstance(outcome, Missing):
            outcome = None
        super().learn(act, outcome, now)


def is_same_class(one: Object, other: Object) -> bool:
    """Whether two classes are the same but for what the API server adds."""
    return _essence(one) == _essence(other)


def _essence(obj: Object) -> Object:
    metadata = obj.get("metadata") or {}
    annotations = {
        name: value
        for name, value in (metadata.get("annotations") or {}).items()
        if name != _BY_OTHERS
    }
    fields = {name: obj.get(name) or _CLASS_DEFAULTS.get(name) or None for name in _CLASS_FIELDS}
    return {**fields, "labels": metadata.get("labels") or {}, "annotations": annotations}
