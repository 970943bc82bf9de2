"""What may become of an object when it is written or deleted: rules that hold for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from replant.objects import Object
from replant.sandbox.refusals import Cause, conflict, forbidden_value
from replant.sandbox.resources import BACKGROUND, FOREGROUND, NAMESPACES, ORPHAN, PODS, Resource
from replant.sandbox.shelves import Entry

DEFAULT_GRACE = 30
FINALIZERS = {FOREGROUND: "foregroundDeletion", ORPHAN: "orphan"}
"""What keeps an object that is being deleted until its dependents are seen to."""


@dataclass(frozen=True)
class Deletion:
    """How something is to be deleted."""

    grace_period: int | None = None
    uid: str = ""
    version: str = ""
    propagation: str = ""
    orphan: bool | None = None
    """The old way to say what becomes of dependents."""
    dry_run: bool = False


def taken_over(resource: Resource, old: Object, new: Object, subresource: str) -> Object:
    """The new object, with everything of the old one that may not be said this way."""
    before, said = old["metadata"], new["metadata"]
    if subresource == "status" and resource.custom:
        said = before | {"managedFields": said.get("managedFields")}
    metadata = {
        name: value
        for name, value in said.items()
        if name not in _FIXED and value not in (None, [], {})
    }
    metadata |= {name: before[name] for name in _FIXED if name in before}
    if "managedFields" not in said and "managedFields" in before:
        metadata["managedFields"] = before["managedFields"]
    taken = new
    if subresource in {"status", "finalize"}:
        part = "status" if subresource == "status" else "spec"
        taken = {name: value for name, value in old.items() if name != part}
        if part in new:
            taken[part] = new[part]
    elif resource.status and subresource != "binding":
        taken = {name: value for name, value in new.items() if name != "status"}
        if "status" in old:
            taken["status"] = old["status"]
    own = {"kind": old["kind"], "apiVersion": old["apiVersion"]}
    return {**taken, **own, "metadata": metadata}


def bind(pod: Object, node: str, time: str) -> None:
    """Give a pod its node, and have it say that it has one: a binding does both."""
    pod.setdefault("spec", {})["nodeName"] = node
    scheduled: Object = {"type": "PodScheduled", "status": "True", "lastProbeTime": None}
    scheduled["lastTransitionTime"] = time
    conditions = pod.setdefault("status", {}).setdefault("conditions", [])
    conditions[:] = [*(it for it in conditions if it.get("type") != "PodScheduled"), scheduled]


SERVER_SAYS = (
    "uid", "generation", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink",
    "resourceVersion",
)  # fmt: skip
"""What whoever creates an object may not say of it."""
_FIXED = dict.fromkeys((
    "name", "namespace", "uid", "creationTimestamp", "generation", "generateName",
    "deletionTimestamp", "deletionGracePeriodSeconds", "resourceVersion", "selfLink",
))  # fmt: skip
"""What nobody may change of it, in the order in which it is written."""


def wanted(obj: Object) -> Object:
    """What an object asks for, beside what it is called and how it does."""
    unwanted = {"metadata", "status", "kind", "apiVersion"}
    return {name: value for name, value in obj.items() if name not in unwanted}


def new_finalizers(before: Object, after: Object) -> Iterator[Cause]:
    """Finalizers that come too late: the object is being deleted."""
    if "deletionTimestamp" not in before:
        return
    known = before.get("finalizers") or ()
    if added := [it for it in after.get("finalizers") or () if it not in known]:
        listed = ", ".join(f'"{it}"' for it in added)
        yield forbidden_value(
            "metadata.finalizers",
            "no new finalizers can be added if the object is being deleted, found new "
            f"finalizers []string{{{listed}}}",
        )


def spec_finalizers(resource: Resource, obj: Object) -> bool:
    """Whether a namespace has to be emptied first."""
    return resource is NAMESPACES and bool((obj.get("spec") or {}).get("finalizers"))


def is_gone(obj: Object) -> bool:
    """Whether nothing keeps an object any more that is being deleted."""
    metadata = obj["metadata"]
    if "deletionTimestamp" not in metadata or metadata.get("finalizers"):
        return False
    if obj.get("kind") == NAMESPACES.kind:
        return not (obj.get("spec") or {}).get("finalizers")
    return not metadata.get("deletionGracePeriodSeconds")


def grace(resource: Resource, obj: Object, asked: int | None) -> int:
    """How many seconds an object is given to end."""
    if resource.kind != "Pod" or resource.custom:
        return 0
    metadata, spec = obj["metadata"], obj.get("spec") or {}
    if "deletionTimestamp" in metadata and not metadata.get("deletionGracePeriodSeconds"):
        return 0
    if not spec.get("nodeName") or (obj.get("status") or {}).get("phase") in {
        "Succeeded",
        "Failed",
    }:
        return 0
    if asked is None:
        asked = spec.get("terminationGracePeriodSeconds", DEFAULT_GRACE)
    return max(int(asked), 0)


def pending_grace(resource: Resource, metadata: Object) -> int | None:
    """How many seconds a pod that is being deleted was given, if any; others never are."""
    if resource is not PODS or "deletionTimestamp" not in metadata:
        return None
    return metadata.get("deletionGracePeriodSeconds") or None


def finalizers_of_deletion(resource: Resource, metadata: Object, how: Deletion) -> list[str]:
    """The finalizers of an object that is deleted so."""
    finalizers = metadata.get("finalizers") or []
    wanted = FINALIZERS.get(_propagation(resource, finalizers, how))
    kept = [it for it in finalizers if it == wanted or it not in FINALIZERS.values()]
    return kept if wanted is None or wanted in kept else [*kept, wanted]


def _propagation(resource: Resource, finalizers: list[str], how: Deletion) -> str:
    """What is to become of an object's dependents: as is said now, or was before, or as ever."""
    if not resource.propagation:
        return BACKGROUND
    if how.orphan is not None:
        return ORPHAN if how.orphan else BACKGROUND
    if how.propagation:
        return how.propagation
    said = (policy for policy, finalizer in FINALIZERS.items() if finalizer in finalizers)
    return next(said, resource.propagation)


def check_preconditions(resource: Resource, entry: Entry, how: Deletion) -> None:
    """ApiError, unless the object is the one that is meant."""
    why = ""
    if how.uid and how.uid != entry.uid:
        why = (
            f"the UID in the precondition ({how.uid}) does not match the UID in record "
            f"({entry.uid}). The object might have been deleted and then recreated"
        )
    elif how.version and how.version != str(entry.version):
        why = (
            f"the ResourceVersion in the precondition ({how.version}) does not match the "
            f"ResourceVersion in record ({entry.version}). The object might have been modified"
        )
    if why:
        raise conflict(resource, entry.name, why, by_kind=True)
