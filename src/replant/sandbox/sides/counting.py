"""The scheduler: towards which limit of a node a volume counts, by nodevolumelimits."""

from __future__ import annotations

from typing import Final

from replant.gates.versions import Version
from replant.sandbox.sides.model import NodeView, Process, Side, VolumeView

_GATE_NOT_ASKED_SINCE: Final = {
    "kubernetes.io/aws-ebs": Version(1, 27),
    "kubernetes.io/azure-disk": Version(1, 27),
    "kubernetes.io/cinder": Version(1, 24),
    "kubernetes.io/gce-pd": Version(1, 28),
    "kubernetes.io/portworx-volume": Version(1, 36),
}
"""From here on the CSINode's annotation is not looked at either."""
_KNOWN: Final = frozenset({*_GATE_NOT_ASKED_SINCE, "kubernetes.io/rbd"})
_WITH_FILTER: Final = frozenset(
    f"kubernetes.io/{it}" for it in ("aws-ebs", "azure-disk", "cinder", "gce-pd")
)
_FILTERS_UP_TO: Final = Version(1, 31)


def count_side(volume: VolumeView, scheduler: Process, node: NodeView) -> Side:
    """Which limit a volume counts towards: the driver's, the in-tree filter's, or none."""
    if volume.native or _is_counted_for_driver(volume.plugin, scheduler, node):
        return Side.CSI
    filtered = volume.plugin in _WITH_FILTER and scheduler.version < _FILTERS_UP_TO
    return Side.IN_TREE if filtered else Side.NOBODY


def _is_counted_for_driver(plugin: str, scheduler: Process, node: NodeView) -> bool:
    if not node.csi_node or plugin not in _KNOWN or not scheduler.migrates(plugin):
        return False
    since = _GATE_NOT_ASKED_SINCE.get(plugin)
    return (since is not None and scheduler.version >= since) or plugin in node.migrated
