"""What code that reads or writes a cluster is given. There is no way to write through a Reader.

A page is the raw body of one LIST answer: whoever asked decodes only the fields that it needs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from replant.objects import Object


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
SHOOTS = Resource("Shoot", "shoots", "core.gardener.cloud", "v1beta1", namespaced=True)
CLUSTERS = Resource("Cluster", "clusters", "extensions.gardener.cloud", "v1alpha1")
CONTROL_PLANES = Resource(
    "ControlPlane", "controlplanes", "extensions.gardener.cloud", "v1alpha1", namespaced=True
)
NAMESPACES = Resource("Namespace", "namespaces")
CONFIG_MAPS = Resource("ConfigMap", "configmaps", namespaced=True)
EVENTS = Resource("Event", "events", namespaced=True)
SECRETS = Resource("Secret", "secrets", namespaced=True)
LEASES = Resource("Lease", "leases", "coordination.k8s.io", namespaced=True)
FEATURE_GATES = Resource("FeatureGate", "featuregates", "config.openshift.io")
"""OpenShift's; one of them, ``cluster``, is read where there is one."""

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

SCANNED_WHERE_SERVED = (SHOOTS, CLUSTERS)
"""And these, where a cluster has their group: in a garden of Gardener and in its seeds."""


@dataclass(frozen=True, slots=True)
class Page:
    """One answer to LIST, as the server sent it."""

    body: bytes
    first: bool
    """Whether the list begins here: at its start, and again where it had to be restarted."""


@dataclass(frozen=True, slots=True)
class Selected:
    """Which objects of a list are wanted, in the API's own words."""

    fields: str = ""
    labels: str = ""


EVERYTHING = Selected()


@dataclass(frozen=True, slots=True)
class Change:
    """What a watch tells: ADDED, MODIFIED, DELETED or BOOKMARK, and the object as it was sent."""

    type: str
    body: bytes


class Reader(Protocol):
    """Reads a cluster. Errors: Forbidden, NotServed, Unreachable."""

    async def get(self, resource: Resource, name: str, *, namespace: str = "") -> bytes:
        """One object as the server sent it; Missing if there is none of a kind that is served."""
        ...

    def watch(self, resource: Resource, version: str) -> AsyncIterator[Change]:
        """What changes behind a version, until the server ends it.

        Expired if the version lies too far back, Unreachable if the connection breaks.
        """
        ...

    def list_pages(
        self, resource: Resource, *, namespace: str = "", selected: Selected = EVERYTHING
    ) -> AsyncIterator[Page]:
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


class LogReader(Reader, Protocol):
    """Also reads what pods have said."""

    async def log(self, pod: str, *, namespace: str) -> bytes:
        """All that a pod's container has written so far; Missing if there is no such pod."""
        ...


class Writer(Protocol):
    """Writes to a cluster, each time once: whoever asked looks before asking again.

    Errors: Conflict, Missing, Uncertain (it may have been done or not), Forbidden, Final.
    """

    async def create(self, resource: Resource, obj: Object, *, namespace: str = "") -> Object:
        """Make an object; Conflict if there is one of this name."""
        ...

    async def rehearse(self, resource: Resource, obj: Object) -> None:
        """See whether an object could be made, but for one that has its name; Final if not."""
        ...

    async def patch(
        self, resource: Resource, name: str, patch: Mapping[str, object], *, namespace: str = ""
    ) -> Object:
        """Merge a patch; a uid or resourceVersion in its metadata is a precondition."""
        ...

    async def delete(
        self, resource: Resource, name: str, *, uid: str, version: str, namespace: str = ""
    ) -> Object:
        """Delete this very object, as it was in this version.

        Given back is the object while something holds it, or a Status once it is gone.
        """
        ...

    async def evict(self, pod: str, *, namespace: str, uid: str) -> None:
        """Have this very pod leave its node; EvictionBlocked if a budget does not let it."""
        ...


class Nudger(Writer, Protocol):
    """Also has webhooks look at an object once more."""

    async def nudge(self, resource: Resource, name: str, *, namespace: str) -> Object:
        """Send an object an empty patch, which nothing but webhooks can make anything of."""
        ...


class Applier(Writer, Protocol):
    """Also keeps objects as they are wanted, under the name that their fields are then managed by.

    What is created or patched is managed by that name as well.
    """

    async def apply(
        self, resource: Resource, obj: Object, *, namespace: str = "", rehearsed: bool = False
    ) -> Object:
        """Make an object, or have it say what this one says.

        A field that this one names is taken from whoever managed it; one that an earlier one named
        and this one does not is given up. All others are left as they are. A uid or
        resourceVersion in its metadata is a precondition. Rehearsed, nothing becomes of it, and a
        field that the server does not know is refused.
        """
        ...

    async def replace(self, resource: Resource, obj: Object, *, namespace: str = "") -> Object:
        """Put an object in the place of the one that has its uid and resourceVersion."""
        ...

    async def put_status(
        self,
        resource: Resource,
        name: str,
        status: Mapping[str, object],
        *,
        version: str,
        namespace: str = "",
    ) -> Object:
        """Merge what is said of an object into its status, if it is still of this version."""
        ...
