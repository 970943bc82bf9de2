"""The attach/detach controller: whom it has attach a volume, and who can detach it again."""

from __future__ import annotations

from replant.routing.model import (
    AttachController,
    NodeView,
    Operation,
    Process,
    Route,
    Side,
    VolumeView,
)
from replant.routing.restarts import needs_driver
from replant.routing.rules import DRIVER_ABSENT, in_tree_route, route


def attach(
    volume: VolumeView,
    controller: Process,
    node: NodeView,
    adc: AttachController = AttachController.UPSTREAM,
) -> Route:
    """Who attaches a volume to a node. Not to be asked of one that needs no attach."""
    _refuse_unattachable(volume)
    chosen = "native" if volume.native else _chosen(volume, controller, node, adc)
    if chosen in ("not-redirected", "node-not-migrated"):
        return in_tree_route(Operation.ATTACH, chosen, volume, controller)
    if chosen in ("native", "complete", "node-migrated") and volume.driver not in node.drivers:
        chosen += DRIVER_ABSENT
    return route(Operation.ATTACH, chosen, volume, controller)


def detach(volume: VolumeView, controller: Process, attached_by: Side) -> Route:
    """Who detaches a volume: the side under whose name it was attached, if it is still there."""
    _refuse_unattachable(volume)
    if attached_by is Side.IN_TREE:
        return in_tree_route(Operation.DETACH, "in-tree", volume, controller)
    name = "csi" if attached_by is Side.CSI else "not-attached"
    return route(Operation.DETACH, name, volume, controller)


def _refuse_unattachable(volume: VolumeView) -> None:
    if not volume.attachable:
        raise ValueError(f"volumes of {volume.plugin} need no attach")


def _chosen(volume: VolumeView, controller: Process, node: NodeView, adc: AttachController) -> str:
    """The rule that decides, before any plugin is looked up: the first that applies."""
    plugin = volume.plugin
    if adc is AttachController.UPSTREAM:
        redirects, complete = controller.migrates(plugin), controller.complete(plugin)
    else:
        without_gates = Process(controller.version, {})
        redirects = controller.could_migrate(plugin)
        complete = without_gates.complete(plugin)
    if not redirects:
        return "not-redirected"
    if complete:
        return "complete"
    if not node.csi_node:
        return "no-csi-node"
    if plugin not in node.migrated:
        return "node-not-migrated"
    if volume.driver not in node.drivers and needs_driver(controller.version):
        return "driver-check"
    return "node-migrated"
