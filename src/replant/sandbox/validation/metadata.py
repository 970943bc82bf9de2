"""What an object's metadata must be like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from replant.objects import Object
from replant.sandbox.refusals import Cause, invalid_value, required_value
from replant.sandbox.resources import Resource
from replant.sandbox.validation.names import (
    LABEL,
    SERVICE_LABEL,
    SUBDOMAIN,
    label_value_causes,
    name_causes,
    qualified_name_causes,
)

_ANNOTATIONS_SIZE = 256 * 1024
_STANDARD_FINALIZERS = {"kubernetes", "orphan", "foregroundDeletion"}
_ANY_NAME = {"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}
_NAMES = {"Namespace": LABEL, "Service": SERVICE_LABEL}


def metadata_causes(resource: Resource, metadata: Object) -> list[Cause]:
    """What is wrong with an object's metadata."""
    causes = _name(resource, metadata)
    for part, check in _METADATA.items():
        if said := metadata.get(part):
            causes += check(said)
    return causes


def _name(resource: Resource, metadata: Object) -> list[Cause]:
    name = metadata.get("name")
    field = "metadata.name"
    if not name:
        return [required_value(field, "name or generateName is required")]
    if resource.kind in _ANY_NAME:
        if name in {".", ".."} or "/" in name or "%" in name:
            return [invalid_value(field, name, "may not contain '/' or '%'")]
        return []
    return name_causes(field, name, _NAMES.get(resource.kind, SUBDOMAIN))


def _labels(labels: Object) -> list[Cause]:
    field = "metadata.labels"
    causes: list[Cause] = []
    for key, value in labels.items():
        causes += qualified_name_causes(field, key)
        if isinstance(value, str):
            causes += label_value_causes(field, value)
        else:
            causes.append(invalid_value(field, value, "must be a string"))
    return causes


def _annotations(annotations: Object) -> list[Cause]:
    field, size = "metadata.annotations", 0
    causes: list[Cause] = []
    for key, value in annotations.items():
        causes += qualified_name_causes(field, key.lower())
        size += len(key) + len(value)
    if size > _ANNOTATIONS_SIZE:
        why = f"Too long: may not be more than {_ANNOTATIONS_SIZE} bytes"
        causes.append(Cause(field, why, "FieldValueTooLong"))
    return causes


def _owners(owners: Any) -> list[Cause]:
    field = "metadata.ownerReferences"
    causes = []
    for owner in owners:
        missing = [part for part in ("apiVersion", "kind", "name", "uid") if not owner.get(part)]
        causes += [invalid_value(f"{field}.{part}", "", "must not be empty") for part in missing]
        if (owner.get("apiVersion"), owner.get("kind")) == ("v1", "Event"):
            why = "/v1, Kind=Event is disallowed from being an owner"
            causes.append(invalid_value(field, owner, why))
    in_charge = [str(owner.get("name")) for owner in owners if owner.get("controller")]
    for other in in_charge[1:]:
        why = (
            'Only one reference can have Controller set to true. Found "true" in references for '
            f"{in_charge[0]} and {other}"
        )
        causes.append(invalid_value(field, owners, why))
    return causes


def _finalizers(finalizers: Any) -> list[Cause]:
    field = "metadata.finalizers"
    causes: list[Cause] = []
    for place, finalizer in enumerate(finalizers):
        causes += qualified_name_causes(field, finalizer)
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            why = "name is neither a standard finalizer name nor is it fully qualified"
            causes.append(invalid_value(f"{field}[{place}]", finalizer, why))
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        why = "finalizer orphan and foregroundDeletion cannot be both set"
        causes.append(invalid_value(field, finalizers, why))
    return causes


_METADATA: dict[str, Callable[[Any], list[Cause]]] = {
    "labels": _labels,
    "annotations": _annotations,
    "ownerReferences": _owners,
    "finalizers": _finalizers,
}
