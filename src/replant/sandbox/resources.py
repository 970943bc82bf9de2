"""The table of the resources that are served, and those that definitions add while it runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from replant.objects import Object

Path = tuple[str, ...]

BACKGROUND, FOREGROUND, ORPHAN = "Background", "Foreground", "Orphan"
"""Dependents go after their owner, before it, or not at all."""


@dataclass(frozen=True)
class PrinterColumn:
    """A column that a definition wants ``kubectl get`` to show."""

    name: str
    type: str
    json_path: str
    priority: int = 0


@dataclass(frozen=True, eq=False)
class Resource:
    """One resource, as one API version serves it; equal only to itself."""

    kind: str
    plural: str
    group: str = ""
    version: str = "v1"
    namespaced: bool = False
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    status: bool = False
    """Whether the status is written through a subresource of its own."""
    status_on_create: bool = False
    """Whether whoever creates an object may say its status, as a kubelet does for its node."""
    scale: bool = False
    generation: bool = False
    """Whether objects count the changes of what is wanted of them."""
    more_subresources: tuple[str, ...] = ()
    fields: Mapping[str, Path] = field(default_factory=dict)
    """Where the fields are, besides name and namespace, that a list may be asked for by."""
    custom: bool = False
    stored: bool = True
    """False for reviews, which are answered and forgotten."""
    columns: tuple[PrinterColumn, ...] = ()
    schema: Object | None = None
    storage_version: str = ""
    propagation: str = BACKGROUND
    """What becomes of dependents unless whoever deletes an object says; empty if nothing does."""

    @property
    def singular(self) -> str:
        """What one object is called."""
        return self.kind.lower()

    @cached_property
    def api_version(self) -> str:
        """As objects have it."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @cached_property
    def qualified(self) -> str:
        """The plural with its group: one name for all versions of it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def subresources(self) -> tuple[str, ...]:
        """All that can be asked for below an object."""
        own = (("status",) if self.status else ()) + (("scale",) if self.scale else ())
        return own + self.more_subresources


def _paths(*names: str) -> dict[str, Path]:
    return {name: tuple(name.split(".")) for name in names}


_ALL = ("all",)
_POD_FIELDS = _paths(
    "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
    "spec.hostNetwork", "status.phase", "status.podIP", "status.nominatedNodeName",
)  # fmt: skip
_EVENT_FIELDS = _paths(
    "involvedObject.kind", "involvedObject.namespace", "involvedObject.name",
    "involvedObject.uid", "involvedObject.apiVersion", "involvedObject.resourceVersion",
    "involvedObject.fieldPath", "reason", "reportingComponent", "source", "type",
)  # fmt: skip

NAMESPACES = Resource(
    "Namespace", "namespaces", short_names=("ns",), status=True, more_subresources=("finalize",),
    fields=_paths("status.phase"),
)  # fmt: skip
NODES = Resource(
    "Node", "nodes", short_names=("no",), status=True, status_on_create=True,
    fields=_paths("spec.unschedulable"),
)  # fmt: skip
PODS = Resource(
    "Pod", "pods", namespaced=True, short_names=("po",), categories=_ALL, status=True,
    more_subresources=("eviction", "binding"), fields=_POD_FIELDS,
)  # fmt: skip
PERSISTENT_VOLUMES = Resource(
    "PersistentVolume", "persistentvolumes", short_names=("pv",), status=True
)
PERSISTENT_VOLUME_CLAIMS = Resource(
    "PersistentVolumeClaim", "persistentvolumeclaims", namespaced=True, short_names=("pvc",),
    status=True,
)  # fmt: skip
LIMIT_RANGES = Resource("LimitRange", "limitranges", namespaced=True, short_names=("limits",))
RESOURCE_QUOTAS = Resource(
    "ResourceQuota", "resourcequotas", namespaced=True, short_names=("quota",), status=True
)
CONFIG_MAPS = Resource("ConfigMap", "configmaps", namespaced=True, short_names=("cm",))
SECRETS = Resource("Secret", "secrets", namespaced=True, fields=_paths("type"))
EVENTS = Resource(
    "Event", "events", namespaced=True, short_names=("ev",), fields=_EVENT_FIELDS, propagation=""
)
SERVICE_ACCOUNTS = Resource(
    "ServiceAccount", "serviceaccounts", namespaced=True, short_names=("sa",)
)
SERVICES = Resource(
    "Service", "services", namespaced=True, short_names=("svc",), categories=_ALL, status=True
)
REPLICATION_CONTROLLERS = Resource(
    "ReplicationController", "replicationcontrollers", namespaced=True, short_names=("rc",),
    categories=_ALL, status=True, scale=True, generation=True,
    fields=_paths("status.replicas"), propagation=ORPHAN,
)  # fmt: skip
DEPLOYMENTS = Resource(
    "Deployment", "deployments", "apps", namespaced=True, short_names=("deploy",),
    categories=_ALL, status=True, scale=True, generation=True,
)  # fmt: skip
STATEFUL_SETS = Resource(
    "StatefulSet", "statefulsets", "apps", namespaced=True, short_names=("sts",),
    categories=_ALL, status=True, scale=True, generation=True,
)  # fmt: skip
DAEMON_SETS = Resource(
    "DaemonSet", "daemonsets", "apps", namespaced=True, short_names=("ds",), categories=_ALL,
    status=True, generation=True,
)  # fmt: skip
REPLICA_SETS = Resource(
    "ReplicaSet", "replicasets", "apps", namespaced=True, short_names=("rs",),
    categories=_ALL, status=True, scale=True, generation=True,
    fields=_paths("status.replicas"),
)  # fmt: skip
CONTROLLER_REVISIONS = Resource(
    "ControllerRevision", "controllerrevisions", "apps", namespaced=True
)
JOBS = Resource(
    "Job", "jobs", "batch", namespaced=True, categories=_ALL, status=True, generation=True,
    fields=_paths("status.successful"), propagation=ORPHAN,
)  # fmt: skip
CRON_JOBS = Resource(
    "CronJob", "cronjobs", "batch", namespaced=True, short_names=("cj",), categories=_ALL,
    status=True, generation=True,
)  # fmt: skip
STORAGE_CLASSES = Resource("StorageClass", "storageclasses", "storage.k8s.io", short_names=("sc",))
CSI_NODES = Resource("CSINode", "csinodes", "storage.k8s.io")
CSI_DRIVERS = Resource("CSIDriver", "csidrivers", "storage.k8s.io")
VOLUME_ATTACHMENTS = Resource(
    "VolumeAttachment", "volumeattachments", "storage.k8s.io", status=True
)
POD_DISRUPTION_BUDGETS = Resource(
    "PodDisruptionBudget", "poddisruptionbudgets", "policy", namespaced=True,
    short_names=("pdb",), status=True, generation=True,
)  # fmt: skip
LEASES = Resource("Lease", "leases", "coordination.k8s.io", namespaced=True)
DEFINITIONS = Resource(
    "CustomResourceDefinition", "customresourcedefinitions", "apiextensions.k8s.io",
    short_names=("crd", "crds"), categories=("api-extensions",), status=True, generation=True,
)  # fmt: skip
_RBAC = "rbac.authorization.k8s.io"
_AUTHORIZATION = "authorization.k8s.io"
ACCESS_REVIEWS = Resource(
    "SelfSubjectAccessReview", "selfsubjectaccessreviews", _AUTHORIZATION, stored=False
)
RULES_REVIEWS = Resource(
    "SelfSubjectRulesReview", "selfsubjectrulesreviews", _AUTHORIZATION, stored=False
)

BUILT_IN = (
    NAMESPACES,
    NODES,
    PODS,
    PERSISTENT_VOLUMES,
    PERSISTENT_VOLUME_CLAIMS,
    LIMIT_RANGES,
    RESOURCE_QUOTAS,
    CONFIG_MAPS,
    SECRETS,
    EVENTS,
    SERVICE_ACCOUNTS,
    SERVICES,
    REPLICATION_CONTROLLERS,
    DEPLOYMENTS,
    STATEFUL_SETS,
    DAEMON_SETS,
    REPLICA_SETS,
    CONTROLLER_REVISIONS,
    JOBS,
    CRON_JOBS,
    STORAGE_CLASSES,
    CSI_NODES,
    CSI_DRIVERS,
    VOLUME_ATTACHMENTS,
    POD_DISRUPTION_BUDGETS,
    LEASES,
    Resource("Role", "roles", _RBAC, namespaced=True),
    Resource("RoleBinding", "rolebindings", _RBAC, namespaced=True),
    Resource("ClusterRole", "clusterroles", _RBAC),
    Resource("ClusterRoleBinding", "clusterrolebindings", _RBAC),
    DEFINITIONS,
    ACCESS_REVIEWS,
    RULES_REVIEWS,
)


class Registry:
    """What is served at this moment: the table, and what definitions have added to it."""

    def __init__(self, table: Iterable[Resource] = BUILT_IN) -> None:
        self._served: dict[tuple[str, str, str], Resource] = {}
        self._kinds: dict[tuple[str, str], Resource] = {}
        self._defined: dict[str, list[Resource]] = {}
        for resource in table:
            self._serve(resource)

    def __iter__(self) -> Iterator[Resource]:
        return iter(self._served.values())

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        """The resource at a place of the API, if there is one."""
        return self._served.get((group, version, plural))

    def of_kind(self, api_version: str, kind: str) -> Resource | None:
        """The resource that objects of a kind belong to."""
        return self._kinds.get((api_version, kind))

    def versions(self, group: str) -> list[str]:
        """The versions of a group, in the order in which they came."""
        return list(dict.fromkeys(it.version for it in self if it.group == group))

    def groups(self) -> list[str]:
        """All groups but the core's."""
        return list(dict.fromkeys(it.group for it in self if it.group))

    def define(self, definition: Object) -> list[Resource]:
        """Serve what a CustomResourceDefinition says, in place of what it said before."""
        name = definition["metadata"]["name"]
        self.forget(name)
        self._defined[name] = list(defined_resources(definition))
        for resource in self._defined[name]:
            self._serve(resource)
        return self._defined[name]

    def forget(self, name: str) -> list[Resource]:
        """Serve no longer what the definition of that name said."""
        gone = self._defined.pop(name, [])
        for resource in gone:
            del self._served[resource.group, resource.version, resource.plural]
        if gone:
            self._kinds.clear()
            for resource in self:
                self._note_kind(resource)
        return gone

    def _serve(self, resource: Resource) -> None:
        self._served[resource.group, resource.version, resource.plural] = resource
        self._note_kind(resource)

    def _note_kind(self, resource: Resource) -> None:
        # Of two that call their objects alike, the one that came first is meant.
        self._kinds.setdefault((resource.api_version, resource.kind), resource)


def defined_resources(definition: Object) -> Iterator[Resource]:
    """What a CustomResourceDefinition adds: a resource for each version that it serves."""
    spec = definition["spec"]
    names = spec["names"]
    stored = next((it["name"] for it in spec["versions"] if it.get("storage")), "")
    for version in spec["versions"]:
        if not version.get("served", True):
            continue
        subresources = version.get("subresources") or {}
        yield Resource(
            str(names["kind"]),
            str(names["plural"]),
            str(spec["group"]),
            str(version["name"]),
            namespaced=spec.get("scope") == "Namespaced",
            short_names=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
            status="status" in subresources,
            scale="scale" in subresources,
            generation=True,
            custom=True,
            columns=tuple(map(_column, version.get("additionalPrinterColumns") or ())),
            schema=(version.get("schema") or {}).get("openAPIV3Schema"),
            storage_version=stored,
        )


def _column(said: Object) -> PrinterColumn:
    name, path = str(said["name"]), str(said["jsonPath"])
    return PrinterColumn(name, str(said.get("type", "string")), path, int(said.get("priority", 0)))
