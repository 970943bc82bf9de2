"""The controllers of claims and volumes: provisioning, deleting, expanding, and their marks."""

from __future__ import annotations

from dataclasses import replace

from replant.gates.plugins import LIVES, REMOVED_WITHOUT_DRIVER
from replant.gates.versions import Version
from replant.routing.model import MIGRATED_TO, Operation, Process, Route, Side, VolumeView
from replant.routing.rules import in_tree_route, route
from replant.translate import driver_of

STORAGE_PROVISIONER = "volume.kubernetes.io/storage-provisioner"
BETA_STORAGE_PROVISIONER = "volume.beta.kubernetes.io/storage-provisioner"
STORAGE_RESIZER = "volume.kubernetes.io/storage-resizer"

_STORAGE_PROVISIONER_SINCE = Version(1, 23)
_IN_TREE_PREFIX = "kubernetes.io/"
_PROVISIONED_WITHOUT_DRIVER = {
    plugin: left for plugin, left in REMOVED_WITHOUT_DRIVER.items() if plugin != "cephfs"
}
"""cephfs could only ever be mounted."""
_NOT_EXPANDABLE = frozenset({"kubernetes.io/vsphere-volume"})


def provision(plugin: str, controller: Process) -> Route:
    """Who provisions for a class whose provisioner this is: a plugin, or any other name."""
    if plugin not in LIVES:
        asked = VolumeView("", driver=plugin, native=True, provisioned=True)
        return route(Operation.PROVISION, _outside(plugin, controller), asked, controller)
    asked = VolumeView(plugin, driver_of(plugin), native=False, provisioned=False)
    if controller.migrates(plugin):
        return route(Operation.PROVISION, "redirected", asked, controller)
    return in_tree_route(Operation.PROVISION, "in-tree", asked, controller)


def delete(volume: VolumeView, controller: Process) -> Route:
    """Who deletes a released volume whose reclaim policy is Delete."""
    provisioner = volume.provisioner
    if mark := migrated_to(volume, controller):
        return route(Operation.DELETE, "marked", volume, controller, driver=mark)
    if provisioner and not provisioner.startswith(_IN_TREE_PREFIX):
        return route(Operation.DELETE, "external", volume, controller)
    if volume.native:
        name = "native-by-plugin" if provisioner else "native-by-hand"
        return route(Operation.DELETE, name, volume, controller)
    if provisioner:
        # It is looked up by that name, and not by what the volume is.
        volume = replace(volume, plugin=provisioner)
        return in_tree_route(Operation.DELETE, "in-tree", volume, controller)
    return in_tree_route(Operation.DELETE, "by-hand", volume, controller)


def expand(volume: VolumeView, controller: Process) -> Route:
    """Who expands a volume."""
    plugin = volume.plugin
    if volume.native:
        return route(Operation.EXPAND, "native", volume, controller)
    if controller.migrates(plugin):
        return route(Operation.EXPAND, "redirected", volume, controller)
    if plugin in _NOT_EXPANDABLE and controller.registered(plugin):
        return route(Operation.EXPAND, "not-expandable", volume, controller)
    return in_tree_route(Operation.EXPAND, "in-tree", volume, controller)


def _outside(provisioner: str, controller: Process) -> str:
    """The rule for a provisioner that is no plugin of the migration."""
    if not provisioner.startswith(_IN_TREE_PREFIX):
        return "external"
    left = _PROVISIONED_WITHOUT_DRIVER.get(provisioner.removeprefix(_IN_TREE_PREFIX))
    return "without-driver" if left and controller.version < left else "no-such-plugin"


def provisioner_annotations(plugin: str, controller: Process) -> dict[str, str]:
    """What is written on a claim of a class with this provisioner: nothing where nobody serves."""
    side = provision(plugin, controller).served_by
    if side is Side.NOBODY:
        return {}
    redirected = side is Side.CSI and plugin in LIVES
    keys = [BETA_STORAGE_PROVISIONER]
    if controller.version >= _STORAGE_PROVISIONER_SINCE:
        keys.append(STORAGE_PROVISIONER)
    return dict.fromkeys(keys, driver_of(plugin) if redirected else plugin)


def migrated_to(volume: VolumeView, controller: Process) -> str | None:
    """The driver that the volume is marked with, once the controller has seen it."""
    provisioner = volume.provisioner
    if not provisioner:
        # What nobody provisioned is left as it is: a mark that a person made stays.
        return volume.migrated_to or None
    return driver_of(provisioner) if controller.migrates(provisioner) else None


def resizer(volume: VolumeView, controller: Process) -> str:
    """The resizer that is written on the claim: empty where it is left as it is."""
    side = expand(volume, controller).served_by
    if volume.native or side is Side.NOBODY:
        return ""
    return volume.driver if side is Side.CSI else volume.plugin


def marks(volume: VolumeView, controller: Process) -> dict[str, str]:
    """All that the controllers write on a volume and its claim."""
    found = provisioner_annotations(volume.provisioner, controller) if volume.provisioned else {}
    if driver := migrated_to(volume, controller):
        found[MIGRATED_TO] = driver
    if name := resizer(volume, controller):
        found[STORAGE_RESIZER] = name
    return found
