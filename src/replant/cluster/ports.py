"""What reading code is given. There is no way to write through a Reader.

A page is the raw body of one LIST answer: whoever asked decodes only the fields that it needs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind as the API serves it."""

    kind: str
    plural: str
    group: str = ""
    version: str = "v1"
    namespaced: bool = False
    older: str = ""
    """The version with the same fields that a server has which does not serve the other yet."""


PERSISTENT_VOLUMES = Resource("PersistentVolume", "persistentvolumes")
PERSISTENT_VOLUME_CLAIMS = Resource(
    "PersistentVolumeClaim", "persistentvolumeclaims", namespaced=True
)
STORAGE_CLASSES = Resource("StorageClass", "storageclasses", "storage.k8s.io")
PODS = Resource("Pod", "pods", namespaced=True)
DEPLOYMENTS = Resource("Deployment", "deployments", "apps", namespaced=True)
STATEFUL_SETS = Resource("StatefulSet", "statefulsets", "apps", namespaced=True)
DAEMON_SETS = Resource("DaemonSet", "daemonsets", "apps", namespaced=True)
REPLICA_SETS = Resource("ReplicaSet", "replicasets", "apps", namespaced=True)
REPLICATION_CONTROLLERS = Resource(
    "ReplicationController", "replicationcontrollers", namespaced=True
)
JOBS = Resource("Job", "jobs", "batch", namespaced=True)
CRON_JOBS = Resource("CronJob", "cronjobs", "batch", namespaced=True)
NODES = Resource("Node", "nodes")
CSI_NODES = Resource("CSINode", "csinodes", "storage.k8s.io")
CSI_DRIVERS = Resource("CSIDriver", "csidrivers", "storage.k8s.io")
VOLUME_ATTACHMENTS = Resource("VolumeAttachment", "volumeattachments", "storage.k8s.io")
POD_DISRUPTION_BUDGETS = Resource(
    "PodDisruptionBudget", "poddisruptionbudgets", "policy", namespaced=True, older="v1beta1"
)

SCANNED = (
    PERSISTENT_VOLUMES,
    PERSISTENT_VOLUME_CLAIMS,
    STORAGE_CLASSES,
    PODS,
    DEPLOYMENTS,
    STATEFUL_SETS,
    DAEMON_SETS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    JOBS,
    CRON_JOBS,
    NODES,
    CSI_NODES,
    CSI_DRIVERS,
    VOLUME_ATTACHMENTS,
    POD_DISRUPTION_BUDGETS,
)
"""All that a scan reads, each list once."""


@dataclass(frozen=True, slots=True)
class Page:
    """One answer to LIST, as the server sent it."""

    body: bytes
    first: bool
    """Whether the list begins here: at its start, and again where it had to be restarted."""


class Reader(Protocol):
    """Reads a cluster. Errors: Forbidden, NotServed, Unreachable."""

    def list_pages(self, resource: Resource, *, namespace: str = "") -> AsyncIterator[Page]:
        """The pages of one list, in all namespaces unless one is named.

        Where a page says that it is the first, whatever came before it no longer counts.
        """
        ...

    async def server_version(self) -> str:
        """Such as 1.24.17."""
        ...

    async def node_config(self, node: str) -> bytes:
        """The configuration of a node's kubelet, for which nodes/proxy is needed."""
        ...
