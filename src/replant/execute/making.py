"""Objects that a step makes, and those that its undoing deletes again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from replant.execute.acts import Act, Decision, Progress, Wait
from replant.execute.rewriting import is_same_class
from replant.execute.world import OVER, World
from replant.objects import (
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS,
    Object,
    name_of,
)
from replant.plan.model import CreateObjects, RemoveObjects

MADE_BY = "replant.dev/made-by"
"""On an object: the run that made it, and that alone may delete it again."""

AGAIN = 2.0
"""So many seconds later objects are looked at again that others have to do something about."""

DOUBT = 90.0
"""So many seconds a pod must be seen to use a claim before that is left alone for it: what watches
tell may be old, and the engine doubts them after a minute."""

Seen = Mapping[str, Object]
"""The objects that are there, by what a person calls them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookAtThese(Act):
    """See objects; the outcome has those that are there, by what a person calls them."""

    changes: ClassVar[bool] = False

    objects: tuple[Object, ...]

    @property
    def target(self) -> str:
        """What it is done to."""
        return "objects of the step"


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeObject(Act):
    """Make an object that is not there."""

    obj: Object

    @property
    def target(self) -> str:
        """What it is done to."""
        return name_of(self.obj)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveObject(Act):
    """Delete this very object, as it was seen."""

    obj: Object

    @property
    def target(self) -> str:
        """What it is done to."""
        return name_of(self.obj)

    @property
    def backup(self) -> Object | None:
        """The object as it is."""
        return self.obj


class _Stage:
    """What both have: a look at all of the step's objects, and another after each write."""

    def __init__(self, step: CreateObjects | RemoveObjects, run: str, *, timeout: float) -> None:
        self._objects = step.objects
        self._title = step.title
        self._run = run
        self._timeout = timeout
        self._seen: Seen | None = None
        self._looked = 0.0

    def learn(self, act: Act, outcome: object, now: float) -> None:
        """Take what was seen; after a write it must be seen anew."""
        if not isinstance(act, LookAtThese):
            self._seen = None
        elif isinstance(outcome, Mapping):
            self._seen, self._looked = outcome, now

    def _look(self) -> Decision:
        look = LookAtThese(why="to see which objects are there", objects=self._objects)
        return Decision(acts=[look])

    def _wait(self, what: str, key: str, now: float) -> Decision:
        decision = self._look() if now >= self._looked + AGAIN else Decision()
        decision.waits.append(Wait(what, key, self._timeout))
        decision.wake = AGAIN
        return decision


class Making(_Stage):
    """A CreateObjects step under way: one after the other, in their order."""

    def decide(self, _world: World, now: float) -> Decision:
        """Make the first that is not there; wait for a claim until it has its volume."""
        if self._seen is None:
            return self._look()
        for number, wanted in enumerate(self._objects):
            decision = self._of_one(wanted, self._seen.get(name_of(wanted)), now)
            if decision is not None:
                decision.progress = Progress(number, len(self._objects), "objects")
                return decision
        # A claim gets its volume only once both are there.
        for number, wanted in enumerate(self._objects):
            found = self._seen[name_of(wanted)]
            if wanted["kind"] == PERSISTENT_VOLUME_CLAIM and _phase(found) != "Bound":
                name = name_of(wanted)
                decision = self._wait(f"{name} to be Bound to its volume", name, now)
                decision.progress = Progress(number, len(self._objects), "objects")
                return decision
        total = len(self._objects)
        return Decision(done=True, progress=Progress(total, total, "objects"))

    def _of_one(self, wanted: Object, found: Object | None, now: float) -> Decision | None:
        if found is None:
            return Decision(acts=[MakeObject(why=self._title, obj=marked(wanted, self._run))])
        name = name_of(wanted)
        if found["metadata"].get("deletionTimestamp"):
            return self._wait(f"{name} to be gone, which is being deleted", name, now)
        if not is_made_of(found, wanted):
            return Decision(
                failed=f"{name} is there and is not what the plan makes: somebody else has made "
                "it. Delete or rename it if nobody needs it, and go on."
            )
        return None


class Removing(_Stage):
    """A RemoveObjects step under way: the last that was made goes first."""

    def __init__(self, step: RemoveObjects, run: str, *, timeout: float) -> None:
        super().__init__(step, run, timeout=timeout)
        self._left: dict[str, str] = {}
        """What is left alone, by what a person calls it, and why."""
        self._used_since: dict[str, float] = {}

    def decide(self, world: World, now: float) -> Decision:
        """Delete the last that is there, that this run has made and that no pod uses."""
        if self._seen is None:
            return self._look()
        total = len(self._objects)
        for number, wanted in enumerate(reversed(self._objects)):
            name = name_of(wanted)
            found = self._seen.get(name)
            if found is None or name in self._left:
                continue
            decision = self._of_one(name, found, world, now)
            if decision is not None:
                decision.progress = Progress(number, total, "objects")
                return decision
        notes = [f"{name} is left alone: {why}" for name, why in self._left.items()]
        return Decision(done=True, notes=notes, progress=Progress(total, total, "objects"))

    def _of_one(self, name: str, found: Object, world: World, now: float) -> Decision | None:
        if found["metadata"].get("deletionTimestamp"):
            return self._wait(f"{name} to be gone", name, now)
        if (found["metadata"].get("annotations") or {}).get(MADE_BY) != self._run:
            self._left[name] = "this run has not made it"
            return None
        claim = _claim_of(found)
        if f"{PERSISTENT_VOLUME_CLAIM} {claim}" in self._left:
            self._left[name] = "its claim is"
            return None
        for pod in world.pods() if claim else ():
            if claim in pod.claims and pod.status.phase not in OVER:
                since = self._used_since.setdefault(name, now)
                if pod.metadata.deletion_timestamp or now < since + DOUBT:
                    return self._wait(f"pod {pod.name} to use {name} no more", name, now)
                self._left[name] = f"pod {pod.name} uses it"
                return None
        return Decision(acts=[RemoveObject(why=self._title, obj=found)])


def marked(obj: Object, run: str) -> Object:
    """An object that says which run has made it."""
    metadata = obj["metadata"]
    annotations = {**(metadata.get("annotations") or {}), MADE_BY: run}
    return {**obj, "metadata": {**metadata, "annotations": annotations}}


def is_made_of(found: Object, wanted: Object) -> bool:
    """Whether an object is the one that is wanted, with what the API server adds to it."""
    if wanted["kind"] == STORAGE_CLASS:
        return is_same_class(_unmarked(found), wanted)
    return _says(found.get("spec"), wanted["spec"])


def _says(found: Any, wanted: Any) -> bool:
    """Whether all that is wanted is there; more may be."""
    if isinstance(wanted, Mapping):
        return isinstance(found, Mapping) and all(
            _says(found.get(key), it) for key, it in wanted.items()
        )
    return bool(found == wanted) or (found is None and wanted in ("", False))


def _unmarked(obj: Object) -> Object:
    annotations = {
        key: it for key, it in (obj["metadata"].get("annotations") or {}).items() if key != MADE_BY
    }
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


def _phase(obj: Object) -> str:
    phase: str = (obj.get("status") or {}).get("phase") or ""
    return phase


def _claim_of(obj: Object) -> str:
    """The claim that an object is, or that a volume is for; with its namespace."""
    if obj["kind"] == PERSISTENT_VOLUME_CLAIM:
        it = obj["metadata"]
    elif obj["kind"] == PERSISTENT_VOLUME:
        it = obj["spec"].get("claimRef") or {}
    else:
        return ""
    return f"{it.get('namespace')}/{it.get('name')}"
