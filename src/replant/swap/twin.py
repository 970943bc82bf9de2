"""What a volume is replaced by, and what is needed to make it again.

A volume is the same disk under the same name for the same claim on both sides. What the API server
and the controllers write by themselves is not carried over: they write it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from replant.objects import Object
from replant.translate import driver_of, plugin_of, pv_to_csi
from replant.translate.workloads import storable

PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
MIGRATED_TO = "pv.kubernetes.io/migrated-to"
STORAGE_PROVISIONERS = (
    "volume.kubernetes.io/storage-provisioner",
    "volume.beta.kubernetes.io/storage-provisioner",
)
"""On a claim: who was asked to make its volume. The older name is written by older versions."""
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
SWAPPED = "replant.dev/swapped-for"
"""On a claim: the uid of the native volume that took its place. Writing it has the controllers look
at the claim at once instead of at their next round."""

IN_TREE_FINALIZER = "kubernetes.io/pv-controller"
"""Of the in-tree plugins alone: nobody would ever take it off a native volume."""
PROVISIONER_FINALIZER = "external-provisioner.volume.kubernetes.io/finalizer"
"""A driver's provisioner gives it to every volume whose disk it is to delete."""
DELETERS_FINALIZERS = frozenset({IN_TREE_FINALIZER, PROVISIONER_FINALIZER})
"""Whoever would delete the disk takes its own away as soon as it may not: when we say Retain."""

RETAIN = "Retain"

_KEPT = ("name", "labels", "annotations", "finalizers", "ownerReferences")


def native(pv: Object, more: Mapping[str, str] | None = None) -> Object:
    """The native volume that takes the place of an in-tree one; TranslationError if none can.

    ``more`` are annotations that it has besides.
    """
    made = pristine(storable(pv_to_csi(pv)))
    annotations = {**made["metadata"].get("annotations", {}), **(more or {})}
    if PROVISIONED_BY in annotations:
        annotations[PROVISIONED_BY] = driver_of(plugin_of(pv) or "")
    for gone in (MIGRATED_TO, LAST_APPLIED):
        annotations.pop(gone, None)
    made["metadata"].pop("annotations", None)
    if annotations:
        made["metadata"]["annotations"] = annotations
    finalizers = [it for it in made["metadata"].get("finalizers", ()) if it != IN_TREE_FINALIZER]
    return _with(made, finalizers=finalizers)


def pristine(pv: Object) -> Object:
    """A volume as it can be made again under its name: its claim's uid stays."""
    metadata = pv["metadata"]
    spec = dict(pv["spec"])
    if claim := spec.get("claimRef"):
        spec["claimRef"] = {key: it for key, it in claim.items() if key != "resourceVersion"}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {key: metadata[key] for key in _KEPT if metadata.get(key)},
        "spec": spec,
    }


def backup_of(pv: Object, earlier: Object | None = None) -> Object:
    """A volume as the journal keeps it: all but the list of who wrote what.

    Where it was written down before, as the same volume, what has changed since by our doing is as
    it was then: the policy, the finalizers that go with it, and all of them once we take them off.
    """
    metadata = {key: it for key, it in pv["metadata"].items() if key != "managedFields"}
    made = {"apiVersion": "v1", "kind": "PersistentVolume", **pv, "metadata": metadata}
    if earlier is None or earlier["metadata"]["uid"] != metadata["uid"]:
        return made
    had, has = (it.get("finalizers") or [] for it in (earlier["metadata"], metadata))
    kept = had if metadata.get("deletionTimestamp") else {*has, *DELETERS_FINALIZERS}
    finalizers = dict.fromkeys([it for it in had if it in kept] + has)
    spec = {**made["spec"], "persistentVolumeReclaimPolicy": policy(earlier)}
    return {**_with(made, finalizers=list(finalizers)), "spec": spec}


def restored(saved: Object, native_now: Object | None, *, was_retained: bool = False) -> Object:
    """The volume that comes back: the one that was saved, with what its owner has changed since.

    Somebody may have bound the native one to another claim, expanded it or labelled it. A disk that
    either of the two keeps is kept, unless the native one was given Retain by its conversion.
    """
    made = pristine(saved)
    if native_now is None:
        return made
    now = pristine(native_now)
    spec = dict(made["spec"])
    for field in ("capacity", "mountOptions", "claimRef", "storageClassName"):
        spec.pop(field, None)
        if field in now["spec"]:
            spec[field] = now["spec"][field]
    if RETAIN in (policy(saved), policy(native_now)) and not was_retained:
        spec["persistentVolumeReclaimPolicy"] = RETAIN
    metadata = {key: it for key, it in made["metadata"].items() if key != "labels"}
    if labels := now["metadata"].get("labels"):
        metadata["labels"] = labels
    return {**made, "metadata": metadata, "spec": spec}


def held(pv: Object) -> Object:
    """The same volume, whose disk nobody deletes whatever becomes of its claim."""
    return {**pv, "spec": {**pv["spec"], "persistentVolumeReclaimPolicy": RETAIN}}


def policy(pv: Object) -> str:
    """What becomes of the disk when the claim is deleted; the API's default where it says none."""
    said: str = pv["spec"].get("persistentVolumeReclaimPolicy") or RETAIN
    return said


def is_native(pv: Object) -> bool:
    """Whether a driver serves it by itself."""
    return pv["spec"].get("csi") is not None


def source(pv: Object) -> Mapping[str, Any]:
    """What names the disk: the one part of a volume that no two different disks share."""
    spec = pv["spec"]
    if csi := spec.get("csi"):
        return {"driver": csi.get("driver"), "handle": csi.get("volumeHandle")}
    plugin = plugin_of(pv)
    return {"plugin": plugin, **{key: it for key, it in spec.items() if _is_source(key, it)}}


def _is_source(key: str, value: Any) -> bool:
    return isinstance(value, dict) and key not in ("capacity", "claimRef", "nodeAffinity")


def claim_annotations(claim: Object, driver: str) -> dict[str, str | None]:
    """What a claim says when its volume is native: who provides it, and that nobody is asked to.

    Only what is there is changed; None is an annotation that goes.
    """
    have = claim["metadata"].get("annotations") or {}
    changed: dict[str, str | None] = {it: driver for it in STORAGE_PROVISIONERS if it in have}
    if MIGRATED_TO in have:
        changed[MIGRATED_TO] = None
    return changed


def annotations_again(backup: Object) -> dict[str, str | None]:
    """What a claim said before, of what ``claim_annotations`` changes."""
    had = backup["metadata"].get("annotations") or {}
    again: dict[str, str | None] = {it: had[it] for it in STORAGE_PROVISIONERS if it in had}
    if MIGRATED_TO in had:
        again[MIGRATED_TO] = had[MIGRATED_TO]
    return again


def _with(pv: Object, *, finalizers: list[str]) -> Object:
    metadata = {key: it for key, it in pv["metadata"].items() if key != "finalizers"}
    if finalizers:
        metadata["finalizers"] = finalizers
    return {**pv, "metadata": metadata}
