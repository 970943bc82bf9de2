"""The kubelet: which side mounts a volume."""

from __future__ import annotations

from replant.sandbox.sides.model import NodeView, Process, Side, VolumeView


def mount_side(volume: VolumeView, kubelet: Process, node: NodeView) -> Side:
    """A kubelet follows its own gates alone, and needs the driver or the plugin for it."""
    if volume.native or kubelet.migrates(volume.plugin):
        return Side.CSI if volume.driver in node.drivers else Side.NOBODY
    return Side.IN_TREE if kubelet.registered(volume.plugin) else Side.NOBODY
