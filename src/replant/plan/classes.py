"""Legacy StorageClasses, made again under their names with the driver as provisioner."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from replant.errors import TranslationError
from replant.inventory import records
from replant.plan.model import ClassChange
from replant.plan.situation import Situation
from replant.translate import driver_of, storage_class_to_csi

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""It would bring the old provisioner back at the next ``kubectl apply``."""


def class_changes(situation: Situation) -> tuple[ClassChange, ...]:
    """The classes of the plugins, as they are and as they will be.

    One that cannot be translated is left alone; the preflight names it.
    """
    found = []
    for storage_class in situation.inventory.classes:
        if storage_class.provisioner in situation.plugins:
            before = _as_object(storage_class)
            found += [ClassChange(before=before, after=after) for after in _translated(before)]
    return tuple(found)


def _translated(before: dict[str, Any]) -> Iterator[dict[str, Any]]:
    plugin = before["provisioner"]
    try:
        after = storage_class_to_csi(plugin, before)
    except TranslationError:
        return
    metadata = dict(after["metadata"])
    annotations = {k: v for k, v in metadata.pop("annotations", {}).items() if k != _LAST_APPLIED}
    if annotations:
        metadata["annotations"] = annotations
    yield {**after, "metadata": metadata, "provisioner": driver_of(plugin)}


def _as_object(storage_class: records.StorageClass) -> dict[str, Any]:
    """The whole class, as it can be made again."""
    fields = msgspec.to_builtins(storage_class)
    metadata = {name: fields["metadata"][name] for name in ("name", "labels", "annotations")}
    fields["metadata"] = {name: value for name, value in metadata.items() if value}
    kept = {name: value for name, value in fields.items() if value is not None}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", **kept}
