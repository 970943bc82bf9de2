"""The controllers of claims and volumes: who provisions, deletes and expands, and what they write.

The persistentvolume controller asks whether the plugin is redirected, then looks it up by name; a
name that it does not find is somebody else's, unless it begins as those of in-tree plugins do.
"""

from __future__ import annotations

from typing import Final

from replant.gates.versions import Version
from replant.sandbox.sides.gates import has_gates
from replant.sandbox.sides.model import Process, Side, VolumeView
from replant.translate import driver_of

STORAGE_PROVISIONER: Final = "volume.kubernetes.io/storage-provisioner"
BETA_STORAGE_PROVISIONER: Final = "volume.beta.kubernetes.io/storage-provisioner"
STORAGE_RESIZER: Final = "volume.kubernetes.io/storage-resizer"

_BOTH_ANNOTATIONS_SINCE: Final = Version(1, 23)
_IN_TREE: Final = "kubernetes.io/"
_WITHOUT_DRIVER: Final = {
    "kubernetes.io/scaleio": Version(1, 22),
    "kubernetes.io/flocker": Version(1, 25),
    "kubernetes.io/quobyte": Version(1, 25),
    "kubernetes.io/storageos": Version(1, 25),
    "kubernetes.io/glusterfs": Version(1, 26),
}
"""Plugins that provision and that no driver took over from, and the first minor without them."""
_CANNOT_EXPAND: Final = frozenset({"kubernetes.io/vsphere-volume"})


def provision_side(provisioner: str, controller: Process) -> Side:
    """Who provisions for a class with this provisioner."""
    if controller.migrates(provisioner):
        return Side.CSI
    return _by_name(provisioner, controller)


def _by_name(provisioner: str, controller: Process) -> Side:
    left = _WITHOUT_DRIVER.get(provisioner)
    if controller.registered(provisioner) or (left is not None and controller.version < left):
        return Side.IN_TREE
    return Side.NOBODY if provisioner.startswith(_IN_TREE) else Side.CSI


def provisioner_annotations(provisioner: str, controller: Process) -> dict[str, str]:
    """What is written on a claim of a class with this provisioner: nothing where nobody serves."""
    if provision_side(provisioner, controller) is Side.NOBODY:
        return {}
    name = driver_of(provisioner) if controller.migrates(provisioner) else provisioner
    written = {BETA_STORAGE_PROVISIONER: name}
    if controller.version >= _BOTH_ANNOTATIONS_SINCE:
        written[STORAGE_PROVISIONER] = name
    return written


def migrated_to(provisioner: str, mark: str, controller: Process) -> str:
    """The driver that a volume or claim is marked with, once the controller has seen it.

    It follows from who provisioned it. Where nothing says who did, a mark that is there stays.
    """
    if not provisioner:
        return mark
    return driver_of(provisioner) if controller.migrates(provisioner) else ""


def delete_side(volume: VolumeView, controller: Process) -> Side:
    """Who deletes a released volume whose reclaim policy is Delete."""
    provisioner = volume.provisioner
    if migrated_to(provisioner, volume.migrated_to, controller):
        return Side.CSI
    if provisioner:
        return _delete_by_name(volume, controller)
    # A native one is left to its driver's provisioner; for the others the plugin is looked up by
    # what the volume is.
    if volume.native:
        return Side.CSI
    return Side.IN_TREE if controller.registered(volume.plugin) else Side.NOBODY


def _delete_by_name(volume: VolumeView, controller: Process) -> Side:
    side = _by_name(volume.provisioner, controller)
    # The plugin is found, and cannot delete a volume of another kind.
    mismatch = has_gates(volume.provisioner) and volume.native
    return Side.NOBODY if side is Side.IN_TREE and mismatch else side


def expand_side(volume: VolumeView, controller: Process) -> Side:
    """Who makes a volume larger."""
    if volume.native or controller.migrates(volume.plugin):
        return Side.CSI
    able = controller.registered(volume.plugin) and volume.plugin not in _CANNOT_EXPAND
    return Side.IN_TREE if able else Side.NOBODY


def resizer(volume: VolumeView, controller: Process) -> str:
    """The resizer that is written on the claim: nothing where it is left as it is."""
    if volume.native:
        return ""
    named = {Side.CSI: volume.driver, Side.IN_TREE: volume.plugin, Side.NOBODY: ""}
    return named[expand_side(volume, controller)]
