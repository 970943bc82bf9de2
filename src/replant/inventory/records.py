"""The fields of Kubernetes objects that an inventory needs, and no others.

Whoever reads decodes straight into these: what a scan does not need is never built up. A field
whose name is not here is skipped; a field of the wrong type makes the object unusable, and the
reader says so.
"""

from __future__ import annotations

from msgspec import Struct

from replant.inventory.node_records import CSINode, Node
from replant.inventory.platform_records import Cluster, FeatureGate, Shoot
from replant.inventory.pod_records import Pod
from replant.inventory.storage_records import (
    CSIDriver,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from replant.inventory.workload_records import PodDisruptionBudget, Workload

TYPES: dict[str, type[Struct]] = {
    "PersistentVolume": PersistentVolume,
    "PersistentVolumeClaim": PersistentVolumeClaim,
    "StorageClass": StorageClass,
    "Pod": Pod,
    "Deployment": Workload,
    "StatefulSet": Workload,
    "DaemonSet": Workload,
    "ReplicaSet": Workload,
    "ReplicationController": Workload,
    "Job": Workload,
    "CronJob": Workload,
    "Node": Node,
    "CSINode": CSINode,
    "CSIDriver": CSIDriver,
    "VolumeAttachment": VolumeAttachment,
    "PodDisruptionBudget": PodDisruptionBudget,
    "FeatureGate": FeatureGate,
    "Shoot": Shoot,
    "Cluster": Cluster,
}
"""How each kind that an inventory needs is read."""

OF_PLATFORMS = frozenset({"FeatureGate", "Shoot", "Cluster"})
"""Kinds that most clusters do not have: nobody misses them."""
