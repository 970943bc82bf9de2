"""The columns of volumes, claims, classes, drivers and attachments."""

from __future__ import annotations

from collections.abc import Callable

from replant.objects import Object
from replant.sandbox.api.columns.cells import AGE, UNSET, Cell, Column, count, phase, text, truth
from replant.sandbox.validation import at

_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _modes(*path: str) -> Callable[[Object], Cell]:
    return lambda obj: ",".join(_MODES.get(it, it) for it in at(obj, path) or ())


def _claim(obj: Object) -> str:
    ref = at(obj, ("spec", "claimRef")) or {}
    return f"{ref.get('namespace', '')}/{ref.get('name', '')}" if ref else ""


def _class(obj: Object) -> str:
    old = at(obj, ("metadata", "annotations")) or {}
    named = at(obj, ("spec", "storageClassName"))
    return str(old.get("volume.beta.kubernetes.io/storage-class") or named or "")


def _class_name(obj: Object) -> Cell:
    annotations = at(obj, ("metadata", "annotations")) or {}
    default = annotations.get("storageclass.kubernetes.io/is-default-class") == "true"
    name = str(at(obj, ("metadata", "name")))
    return f"{name} (default)" if default else name


CLASS_NAME = Column("Name", _class_name)
"""That of a StorageClass, which tells besides whether it is the default."""

COLUMNS: dict[str, tuple[Column, ...]] = {
    "PersistentVolume": (
        Column("Capacity", text("spec", "capacity", "storage")),
        Column("Access Modes", _modes("spec", "accessModes")),
        Column("Reclaim Policy", text("spec", "persistentVolumeReclaimPolicy")),
        Column("Status", phase),
        Column("Claim", _claim),
        Column("StorageClass", _class),
        Column("Reason", text("status", "reason")),
        AGE,
        Column("VolumeMode", text("spec", "volumeMode", otherwise=UNSET), wide=True),
    ),
    "PersistentVolumeClaim": (
        Column("Status", phase),
        Column("Volume", text("spec", "volumeName")),
        Column("Capacity", text("status", "capacity", "storage")),
        Column("Access Modes", _modes("status", "accessModes")),
        Column("StorageClass", _class),
        AGE,
        Column("VolumeMode", text("spec", "volumeMode", otherwise=UNSET), wide=True),
    ),
    "StorageClass": (
        Column("Provisioner", text("provisioner")),
        Column("ReclaimPolicy", text("reclaimPolicy", otherwise="Delete")),
        Column("VolumeBindingMode", text("volumeBindingMode", otherwise="Immediate")),
        Column(
            "AllowVolumeExpansion",
            truth("allowVolumeExpansion", otherwise=False),
        ),
        AGE,
    ),
    "CSINode": (Column("Drivers", count("spec", "drivers"), "integer"), AGE),
    "CSIDriver": (
        Column("AttachRequired", truth("spec", "attachRequired", otherwise=True), "boolean"),
        Column("PodInfoOnMount", truth("spec", "podInfoOnMount", otherwise=False), "boolean"),
        Column("StorageCapacity", truth("spec", "storageCapacity", otherwise=False)),
        Column(
            "TokenRequests",
            lambda obj: (
                ",".join(it.get("audience", "") for it in at(obj, ("spec", "tokenRequests")) or ())
                or UNSET
            ),
        ),
        Column("RequiresRepublish", truth("spec", "requiresRepublish", otherwise=False)),
        Column("Modes", lambda obj: ",".join(at(obj, ("spec", "volumeLifecycleModes")) or ())),
        AGE,
    ),
    "VolumeAttachment": (
        Column("Attacher", text("spec", "attacher")),
        Column("PV", text("spec", "source", "persistentVolumeName")),
        Column("Node", text("spec", "nodeName")),
        Column("Attached", truth("status", "attached", otherwise=False), "boolean"),
        AGE,
    ),
}
