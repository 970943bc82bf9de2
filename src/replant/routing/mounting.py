"""The kubelet: who mounts a volume on a node, and who can unmount it again."""

from __future__ import annotations

from replant.routing.model import NodeView, Operation, Process, Route, Side, VolumeView
from replant.routing.rules import DRIVER_ABSENT, in_tree_route, route


def mount(volume: VolumeView, kubelet: Process, node: NodeView) -> Route:
    """Who mounts a volume: the kubelet follows its own gates, and nothing else."""
    if not volume.native and not kubelet.migrates(volume.plugin):
        return in_tree_route(Operation.MOUNT, "in-tree", volume, kubelet)
    name = "native" if volume.native else "redirected"
    return _by_driver(Operation.MOUNT, name, volume, kubelet, node)


def unmount(volume: VolumeView, kubelet: Process, node: NodeView, mounted_by: Side) -> Route:
    """Who unmounts a volume: the side that mounted it, if it is still there."""
    if mounted_by is Side.IN_TREE:
        return in_tree_route(Operation.UNMOUNT, "in-tree", volume, kubelet)
    if mounted_by is Side.NOBODY:
        return route(Operation.UNMOUNT, "not-mounted", volume, kubelet)
    return _by_driver(Operation.UNMOUNT, "csi", volume, kubelet, node)


def _by_driver(
    operation: Operation, name: str, volume: VolumeView, kubelet: Process, node: NodeView
) -> Route:
    here = volume.driver in node.drivers
    return route(operation, name if here else name + DRIVER_ABSENT, volume, kubelet)
