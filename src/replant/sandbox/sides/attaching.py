"""The attach/detach controller: which side it asks, and what an attach does to other nodes."""

from __future__ import annotations

from typing import Final

from replant.gates.versions import Version
from replant.sandbox.sides.model import AttachController, NodeView, Process, Side, VolumeView

_ASKS_FOR_DRIVER_UP_TO: Final = {24: 11, 25: 7, 26: 2}
"""The last patch of these minors in which a missing driver is an error; all older minors, and no
later one (kubernetes#115297)."""

_SPARES_HEALTHY_NODES_SINCE: Final = Version(1, 24, 9)

_NAMES_THE_NODE_SINCE: Final = {
    "kubernetes.io/aws-ebs": Version(1, 17),
    "kubernetes.io/azure-disk": Version(1, 17),
    "kubernetes.io/cinder": Version(1, 17),
    "kubernetes.io/vsphere-volume": Version(1, 19, 16),
}
"""The plugins that return a DanglingAttachError for a disk that another node has."""
_DETACHES_FIRST: Final = frozenset({"disk.csi.azure.com"})


def attach_side(
    volume: VolumeView,
    controller: Process,
    node: NodeView,
    kind: AttachController = AttachController.UPSTREAM,
) -> Side:
    """Which side attaches a volume to a node; nobody, also where it needs no attach."""
    if not volume.attachable:
        return Side.NOBODY
    if volume.native:
        return Side.CSI
    plugin = volume.plugin
    if kind is AttachController.UPSTREAM:
        redirects, complete = controller.migrates(plugin), controller.complete(plugin)
    else:
        redirects = controller.could_migrate(plugin)
        complete = Process(controller.version, {}).complete(plugin)
    if redirects and complete:
        return Side.CSI
    if redirects and not node.csi_node:
        return Side.NOBODY
    if redirects and plugin in node.migrated:
        missing = volume.driver not in node.drivers
        return Side.NOBODY if missing and asks_for_driver(controller.version) else Side.CSI
    return Side.IN_TREE if controller.registered(plugin) else Side.NOBODY


def asks_for_driver(version: Version) -> bool:
    """Whether a node that redirects a plugin, but does not have its driver, is an error."""
    minor = version.first_patch
    last = next((it for it in _ASKS_FOR_DRIVER_UP_TO if minor == Version(1, it)), None)
    if last is None:
        return version < Version(1, 24)
    return version <= Version(1, last, _ASKS_FOR_DRIVER_UP_TO[last])


def detaches_from_healthy_nodes(version: Version) -> bool:
    """Whether 6 minutes are enough to detach a volume that its node still reports as in use.

    Later versions do that to nodes alone that are not ready.
    """
    return version < _SPARES_HEALTHY_NODES_SINCE


def can_detach(side: Side, plugin: str, controller: Process) -> bool:
    """Whether the side that attached a volume is still there to detach it."""
    return side is Side.CSI or (side is Side.IN_TREE and controller.registered(plugin))


def blames_the_other_node(plugin: str, controller: Version) -> bool:
    """Whether the error of an in-tree attach names the node that has the disk.

    The controller then takes the disk for attached there under its in-tree name.
    """
    since = _NAMES_THE_NODE_SINCE.get(plugin)
    return since is not None and controller >= since


def driver_detaches_first(driver: str) -> bool:
    """Whether the driver detaches a disk from another node before it attaches it."""
    return driver in _DETACHES_FIRST
