"""The scheduler: towards which limit of a node a volume counts."""

from __future__ import annotations

from replant.gates.versions import Version
from replant.routing.model import (
    NodeView,
    Operation,
    Process,
    Route,
    Side,
    VolumeView,
    gate_is_asked,
)
from replant.routing.rules import RULES, route

_COUNTED_BY_CSI = frozenset(
    f"kubernetes.io/{name}"
    for name in ("aws-ebs", "gce-pd", "azure-disk", "cinder", "portworx-volume", "rbd")
)
_IN_TREE_FILTERS = {
    "kubernetes.io/aws-ebs": "EBSLimits",
    "kubernetes.io/gce-pd": "GCEPDLimits",
    "kubernetes.io/azure-disk": "AzureDiskLimits",
    "kubernetes.io/cinder": "CinderLimits, where the scheduler is set up to have it,",
}
_FILTERS_GONE = Version(1, 31)
"""The scheduler's profile is without the in-tree filters from here on."""


def count(volume: VolumeView, scheduler: Process, node: NodeView) -> Route:
    """Who counts a volume towards a node's limit."""
    name = "native" if volume.native else _chosen(volume.plugin, scheduler, node)
    in_tree = RULES[f"count.{name}"].served_by is Side.IN_TREE
    words = {}
    if in_tree:
        if volume.plugin not in _IN_TREE_FILTERS or scheduler.version >= _FILTERS_GONE:
            name = "no-filter"
        else:
            words["filter"] = _IN_TREE_FILTERS[volume.plugin]
    return route(Operation.COUNT, name, volume, scheduler, **words)


def _chosen(plugin: str, scheduler: Process, node: NodeView) -> str:
    if not scheduler.migrates(plugin):
        return "not-redirected"
    if plugin not in _COUNTED_BY_CSI:
        return "no-filter"
    if not node.csi_node:
        return "no-csi-node"
    if not gate_is_asked(plugin, scheduler.version):
        return "always"
    return "node-migrated" if plugin in node.migrated else "node-not-migrated"
