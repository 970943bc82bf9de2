"""The secret with which a driver deletes the disk of a volume, where it needs one."""

from __future__ import annotations

from dataclasses import dataclass, field

from msgspec import to_builtins

from replant.errors import TranslationError
from replant.inventory.model import Inventory, Volume
from replant.translate import storage_class_to_csi

DELETION_SECRET = (
    "volume.kubernetes.io/provisioner-deletion-secret-name",
    "volume.kubernetes.io/provisioner-deletion-secret-namespace",
)
"""By these annotations a volume names the secret with which its driver deletes it."""
_RBD = "kubernetes.io/rbd"
_DELETED_WITH_A_SECRET = (_RBD, "kubernetes.io/portworx-volume")


@dataclass(frozen=True, slots=True)
class DeletionSecret:
    """What names it; or why nobody could know it, and what to do about that."""

    annotations: dict[str, str] = field(default_factory=dict)
    unknown: str = ""
    fix: str = ""


def deletion_secret(volume: Volume, inventory: Inventory) -> DeletionSecret:
    """What a volume has to say of it once it is native.

    Of a volume that is redirected the provisioner reads the class as if it were translated, of a
    native one as it is: so the volume says it from here on.
    """
    plugin = volume.plugin or ""
    if plugin not in _DELETED_WITH_A_SECRET or not volume.deletes:
        return DeletionSecret()
    if any(it in volume.annotations for it in DELETION_SECRET):
        return DeletionSecret()
    name = volume.as_object()["spec"].get("storageClassName") or ""
    storage_class = inventory.class_by_name.get(name)
    needed = (
        f"Its disk is to be deleted with its claim, and {volume.driver} needs a secret for that"
    )
    if storage_class is None:
        if plugin != _RBD:
            return DeletionSecret()
        why = f"{needed} which only its StorageClass names: that is not there."
        return DeletionSecret(unknown=why, fix="Make the class again")
    if storage_class.provisioner != plugin:
        return DeletionSecret()
    try:
        translated = storage_class_to_csi(plugin, to_builtins(storage_class))
    except TranslationError as error:
        why = (
            f"{needed}: StorageClass {name}, which names it, cannot be translated "
            f"({error.field} {error.reason})."
        )
        fix = "Make the class again with what is missing, or set the volume's policy to Retain"
        return DeletionSecret(unknown=why, fix=fix)
    parameters = translated.get("parameters") or {}
    said = {
        key: parameters[f"csi.storage.k8s.io/provisioner-secret-{part}"]
        for key, part in zip(DELETION_SECRET, ("name", "namespace"), strict=True)
        if parameters.get(f"csi.storage.k8s.io/provisioner-secret-{part}")
    }
    return DeletionSecret(said if len(said) == len(DELETION_SECRET) else {})
