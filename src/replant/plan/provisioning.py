"""Which claims are being given a volume of a StorageClass at this moment."""

from __future__ import annotations

from collections.abc import Iterable

from replant.inventory.storage_records import PersistentVolumeClaim
from replant.objects import DEFAULT_CLASS, Object

SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""On a claim: where the scheduler wants it. From then on a volume is being made for it."""
_OLD_CLASS = "volume.beta.kubernetes.io/storage-class"
"""On a claim: its class, which counts before that of its spec."""


def provisioning(storage_class: Object, claims: Iterable[PersistentVolumeClaim]) -> list[str]:
    """The claims for which a volume of this class may be in the making, by their names.

    A claim that waits for its first pod is none of them: nobody has been asked for a volume yet.
    """
    name = storage_class["metadata"]["name"]
    default = is_default(storage_class)
    waits = storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"
    return [
        f"{it.metadata.namespace or 'default'}/{it.metadata.name}"
        for it in claims
        if _asks_for_one(it, waits=waits)
        and (_class_of(it) == name or (default and _class_of(it) is None))
    ]


def is_default(storage_class: Object) -> bool:
    """Whether it serves the claims that name no class."""
    annotations = storage_class["metadata"].get("annotations") or {}
    return any(annotations.get(key) == "true" for key in DEFAULT_CLASS)


def _asks_for_one(claim: PersistentVolumeClaim, *, waits: bool) -> bool:
    if not claim.is_pending or claim.spec.volumeName:
        return False
    return not waits or SELECTED_NODE in (claim.metadata.annotations or {})


def _class_of(claim: PersistentVolumeClaim) -> str | None:
    said = (claim.metadata.annotations or {}).get(_OLD_CLASS)
    return claim.spec.storageClassName if said is None else said
