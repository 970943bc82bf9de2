"""Objects as they are stored: without what their schema does not know, with its defaults."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from replant.objects import Object

PRESERVE = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
_TYPE = {"apiVersion", "kind", "metadata"}
_METADATA = {
    "name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation",
    "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "labels",
    "annotations", "ownerReferences", "finalizers", "managedFields",
}  # fmt: skip


def complete(schema: Object, obj: Object) -> None:
    """Drop from an object what is unknown or null without leave, and write what is unsaid."""
    _complete_map(schema, obj, resource=True)


def part(schema: Object, name: str) -> Object:
    """A part of a schema that is a map, or an empty one."""
    found = schema.get(name)
    return found if isinstance(found, dict) else {}


def _complete(schema: Object, value: Any) -> Any:
    if isinstance(value, dict):
        _complete_map(schema, value, resource=bool(schema.get(EMBEDDED)))
    elif isinstance(value, list):
        items = part(schema, "items")
        value[:] = [_complete(items, it) for it in value] if items else value
    elif isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _complete_map(schema: Object, value: Object, *, resource: bool) -> None:
    properties, others = part(schema, "properties"), schema.get("additionalProperties")
    kept = _TYPE if resource else set()
    for name in list(value):
        if name in kept:
            continue
        below = properties.get(name, others)
        if isinstance(below, dict):
            if value[name] is None and not below.get("nullable"):
                del value[name]
            else:
                value[name] = _complete(below, value[name])
        elif not (below or schema.get(PRESERVE)):
            del value[name]
    if resource and isinstance(metadata := value.get("metadata"), dict):
        for name in metadata.keys() - _METADATA:
            del metadata[name]
    _write_defaults(properties, value)


def _write_defaults(properties: Object, value: Object) -> None:
    for name, below in properties.items():
        if name not in value and isinstance(below, dict) and "default" in below:
            value[name] = _complete(below, deepcopy(below["default"]))
