"""The columns in which ``kubectl get`` shows each kind, and the cells of an object in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from jsonpath import JSONPathError, findall

from replant.objects import Object
from replant.sandbox.resources import Resource
from replant.sandbox.validation import at

NONE, UNSET, UNKNOWN = "<none>", "<unset>", "<unknown>"


class Since(NamedTuple):
    """A time span: until now, unless it is over."""

    start: str | None
    end: str | None = None
    otherwise: str = UNKNOWN


Cell = str | int | bool | Since | None


class Column(NamedTuple):
    """A column, and what stands in it."""

    name: str
    cell: Callable[[Object], Cell]
    type: str = "string"
    wide: bool = False


def columns_of(resource: Resource) -> tuple[Column, ...]:
    """The columns of a kind."""
    if resource.custom:
        said = [
            Column(it.name, _at_path(it.json_path, it.type), it.type, it.priority > 0)
            for it in resource.columns
        ]
        return (NAME, *(said or [AGE]))
    if resource.kind == "Event":
        return _EVENT
    name = Column("Name", _class_name) if resource.kind == "StorageClass" else NAME
    return (name, *_COLUMNS.get(resource.kind, (CREATED,)))


def _at_path(path: str, kind: str) -> Callable[[Object], Cell]:
    def cell(obj: Object) -> Cell:
        try:
            found = findall(f"${path}" if path.startswith((".", "[")) else f"$.{path}", obj)
        except JSONPathError:
            found = []
        if not found:
            return None
        if kind == "date":
            return Since(str(found[0]))
        value: Any = found[0]
        return value if kind in {"integer", "number", "boolean"} else _shown(value)

    return cell


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def _path(*path: str, otherwise: Cell = "") -> Callable[[Object], Cell]:
    def cell(obj: Object) -> Cell:
        found = at(obj, path)
        return otherwise if found is None else _shown(found)

    return cell


def _truth(*path: str, otherwise: bool) -> Callable[[Object], Cell]:
    return lambda obj: otherwise if (found := at(obj, path)) is None else bool(found)


def _number(*path: str) -> Callable[[Object], Cell]:
    return lambda obj: at(obj, path) or 0


def _count(*path: str) -> Callable[[Object], Cell]:
    return lambda obj: len(at(obj, path) or ())


def _created(obj: Object) -> Cell:
    return Since(at(obj, ("metadata", "creationTimestamp")))


NAME = Column("Name", _path("metadata", "name"))
AGE = Column("Age", _created)
CREATED = Column("Created At", _path("metadata", "creationTimestamp"))

_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _modes(*path: str) -> Callable[[Object], Cell]:
    return lambda obj: ",".join(_MODES.get(it, it) for it in at(obj, path) or ())


def _phase(obj: Object) -> str:
    if at(obj, ("metadata", "deletionTimestamp")):
        return "Terminating"
    return str(at(obj, ("status", "phase")) or "")


def _claim(obj: Object) -> str:
    ref = at(obj, ("spec", "claimRef")) or {}
    return f"{ref.get('namespace', '')}/{ref.get('name', '')}" if ref else ""


def _class(obj: Object) -> str:
    old = at(obj, ("metadata", "annotations")) or {}
    named = at(obj, ("spec", "storageClassName"))
    return str(old.get("volume.beta.kubernetes.io/storage-class") or named or "")


def _pod_ready(obj: Object) -> str:
    statuses = at(obj, ("status", "containerStatuses")) or ()
    ready = sum(1 for it in statuses if it.get("ready"))
    return f"{ready}/{len(at(obj, ('spec', 'containers')) or ())}"


def _pod_status(obj: Object) -> str:
    status = obj.get("status") or {}
    said = str(status.get("reason") or status.get("phase") or "")
    for container in status.get("containerStatuses") or ():
        state = container.get("state") or {}
        why = (state.get("waiting") or state.get("terminated") or {}).get("reason")
        said = why or said
    if at(obj, ("metadata", "deletionTimestamp")):
        return UNKNOWN if status.get("reason") == "NodeLost" else "Terminating"
    return said


def _restarts(obj: Object) -> Cell:
    statuses = at(obj, ("status", "containerStatuses")) or ()
    return str(sum(it.get("restartCount", 0) for it in statuses))


def _gates(obj: Object) -> str:
    gates = at(obj, ("spec", "readinessGates")) or ()
    if not gates:
        return NONE
    true = {
        it["type"] for it in at(obj, ("status", "conditions")) or () if it.get("status") == "True"
    }
    return f"{sum(1 for it in gates if it.get('conditionType') in true)}/{len(gates)}"


def _node_status(obj: Object) -> str:
    conditions = at(obj, ("status", "conditions")) or ()
    ready = next((it.get("status") for it in conditions if it.get("type") == "Ready"), None)
    said = {"True": "Ready", None: "Unknown"}.get(ready, "NotReady")
    return f"{said},SchedulingDisabled" if at(obj, ("spec", "unschedulable")) else said


def _roles(obj: Object) -> str:
    labels = at(obj, ("metadata", "labels")) or {}
    prefix = "node-role.kubernetes.io/"
    roles = {key.removeprefix(prefix) for key in labels if key.startswith(prefix)}
    if "kubernetes.io/role" in labels:
        roles.add(labels["kubernetes.io/role"])
    return ",".join(sorted(roles)) or NONE


def _address(kind: str) -> Callable[[Object], Cell]:
    def cell(obj: Object) -> str:
        addresses = at(obj, ("status", "addresses")) or ()
        return str(next((it["address"] for it in addresses if it["type"] == kind), NONE))

    return cell


def _selector(*path: str) -> Callable[[Object], Cell]:
    return lambda obj: selector_text(at(obj, path)) or NONE


def selector_text(selector: Object | None) -> str:
    """A selector as kubectl takes it."""
    if not selector:
        return ""
    if "matchLabels" not in selector and "matchExpressions" not in selector:
        return ",".join(f"{key}={value}" for key, value in selector.items())
    parts = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for it in selector.get("matchExpressions") or ():
        values = ",".join(it.get("values") or ())
        match it.get("operator"):
            case "In":
                parts.append(f"{it['key']} in ({values})")
            case "NotIn":
                parts.append(f"{it['key']} notin ({values})")
            case "Exists":
                parts.append(it["key"])
            case _:
                parts.append(f"!{it['key']}")
    return ",".join(parts)


def _ready_of(obj: Object) -> str:
    return f"{at(obj, ('status', 'readyReplicas')) or 0}/{at(obj, ('spec', 'replicas')) or 0}"


def _completions(obj: Object) -> str:
    wanted = at(obj, ("spec", "completions"))
    if wanted is None:
        wanted = f"1 of {at(obj, ('spec', 'parallelism')) or 0}"
    return f"{at(obj, ('status', 'succeeded')) or 0}/{wanted}"


def _job_duration(obj: Object) -> Cell:
    started, ended = (at(obj, ("status", it)) for it in ("startTime", "completionTime"))
    return Since(started, ended, otherwise="")


def _containers(field: str, *path: str) -> Callable[[Object], Cell]:
    return lambda obj: ",".join(str(it.get(field, "")) for it in at(obj, path) or ())


def _class_name(obj: Object) -> Cell:
    annotations = at(obj, ("metadata", "annotations")) or {}
    default = annotations.get("storageclass.kubernetes.io/is-default-class") == "true"
    name = str(at(obj, ("metadata", "name")))
    return f"{name} (default)" if default else name


def _ports(obj: Object) -> str:
    said = []
    for port in at(obj, ("spec", "ports")) or ():
        opened = f":{port['nodePort']}" if port.get("nodePort") else ""
        said.append(f"{port.get('port')}{opened}/{port.get('protocol')}")
    return ",".join(said) or NONE


def _event_object(obj: Object) -> str:
    about = obj.get("involvedObject") or {}
    return f"{str(about.get('kind', '')).lower()}/{about.get('name', '')}"


def _last_seen(obj: Object) -> Cell:
    return Since(obj.get("lastTimestamp") or obj.get("eventTime") or obj.get("firstTimestamp"))


def _controller(obj: Object) -> Cell:
    for owner in at(obj, ("metadata", "ownerReferences")) or ():
        if owner.get("controller"):
            group = str(owner["apiVersion"]).rpartition("/")[0]
            return f"{owner['kind'].lower()}{f'.{group}' if group else ''}/{owner['name']}"
    return NONE


def _holder(obj: Object) -> Cell:
    return _path("spec", "holderIdentity")(obj)


def _wide(*spec: str) -> tuple[Column, ...]:
    """What more is said of a workload whose template is in there."""
    containers = (*spec, "template", "spec", "containers")
    return (
        Column("Containers", _containers("name", *containers), wide=True),
        Column("Images", _containers("image", *containers), wide=True),
        Column("Selector", _selector(*spec, "selector"), wide=True),
    )


def _subjects(kind: str) -> Callable[[Object], Cell]:
    def cell(obj: Object) -> str:
        found = (it for it in obj.get("subjects") or () if it.get("kind") == kind)
        return ", ".join(
            f"{it['namespace']}/{it['name']}" if it.get("namespace") else it["name"] for it in found
        )

    return cell


_SUBJECTS = (
    Column("Users", _subjects("User"), wide=True),
    Column("Groups", _subjects("Group"), wide=True),
    Column("ServiceAccounts", _subjects("ServiceAccount"), wide=True),
)
_EVENT = (
    Column("Last Seen", _last_seen),
    Column("Type", _path("type")),
    Column("Reason", _path("reason")),
    Column("Object", _event_object),
    Column("Subobject", _path("involvedObject", "fieldPath"), wide=True),
    Column("Source", _path("source", "component"), wide=True),
    Column("Message", _path("message")),
    Column("First Seen", lambda obj: Since(obj.get("firstTimestamp")), wide=True),
    Column("Count", lambda obj: obj.get("count") or 1, "integer", wide=True),
    NAME._replace(wide=True),
)
_WIDE_WORKLOAD = _wide("spec")
_REPLICAS = (
    Column("Desired", _number("spec", "replicas"), "integer"),
    Column("Current", _number("status", "replicas"), "integer"),
    Column("Ready", _number("status", "readyReplicas"), "integer"),
    AGE,
    *_WIDE_WORKLOAD,
)

_COLUMNS: dict[str, tuple[Column, ...]] = {
    "Namespace": (Column("Status", _phase), AGE),
    "Node": (
        Column("Status", _node_status),
        Column("Roles", _roles),
        AGE,
        Column("Version", _path("status", "nodeInfo", "kubeletVersion")),
        Column("Internal-IP", _address("InternalIP"), wide=True),
        Column("External-IP", _address("ExternalIP"), wide=True),
        Column("OS-Image", _path("status", "nodeInfo", "osImage", otherwise=UNKNOWN), wide=True),
        Column(
            "Kernel-Version",
            _path("status", "nodeInfo", "kernelVersion", otherwise=UNKNOWN),
            wide=True,
        ),
        Column(
            "Container-Runtime",
            _path("status", "nodeInfo", "containerRuntimeVersion", otherwise=UNKNOWN),
            wide=True,
        ),
    ),
    "Pod": (
        Column("Ready", _pod_ready),
        Column("Status", _pod_status),
        Column("Restarts", _restarts),
        AGE,
        Column("IP", _path("status", "podIP", otherwise=NONE), wide=True),
        Column("Node", _path("spec", "nodeName", otherwise=NONE), wide=True),
        Column("Nominated Node", _path("status", "nominatedNodeName", otherwise=NONE), wide=True),
        Column("Readiness Gates", _gates, wide=True),
    ),
    "PersistentVolume": (
        Column("Capacity", _path("spec", "capacity", "storage")),
        Column("Access Modes", _modes("spec", "accessModes")),
        Column("Reclaim Policy", _path("spec", "persistentVolumeReclaimPolicy")),
        Column("Status", _phase),
        Column("Claim", _claim),
        Column("StorageClass", _class),
        Column("Reason", _path("status", "reason")),
        AGE,
        Column("VolumeMode", _path("spec", "volumeMode", otherwise=UNSET), wide=True),
    ),
    "PersistentVolumeClaim": (
        Column("Status", _phase),
        Column("Volume", _path("spec", "volumeName")),
        Column("Capacity", _path("status", "capacity", "storage")),
        Column("Access Modes", _modes("status", "accessModes")),
        Column("StorageClass", _class),
        AGE,
        Column("VolumeMode", _path("spec", "volumeMode", otherwise=UNSET), wide=True),
    ),
    "ConfigMap": (Column("Data", _count("data")), AGE),
    "Secret": (Column("Type", _path("type")), Column("Data", _count("data")), AGE),
    "ServiceAccount": (Column("Secrets", _count("secrets")), AGE),
    "Service": (
        Column("Type", _path("spec", "type")),
        Column("Cluster-IP", _path("spec", "clusterIP", otherwise=NONE)),
        Column("External-IP", _path("spec", "externalName", otherwise=NONE)),
        Column("Port(s)", _ports),
        AGE,
        Column("Selector", _selector("spec", "selector"), wide=True),
    ),
    "ReplicationController": _REPLICAS,
    "ReplicaSet": _REPLICAS,
    "ControllerRevision": (
        Column("Controller", _controller),
        Column("Revision", _number("revision"), "integer"),
        AGE,
    ),
    "Deployment": (
        Column("Ready", _ready_of),
        Column("Up-to-date", _number("status", "updatedReplicas"), "integer"),
        Column("Available", _number("status", "availableReplicas"), "integer"),
        AGE,
        *_WIDE_WORKLOAD,
    ),
    "StatefulSet": (Column("Ready", _ready_of), AGE, *_WIDE_WORKLOAD[:2]),
    "DaemonSet": (
        Column("Desired", _number("status", "desiredNumberScheduled"), "integer"),
        Column("Current", _number("status", "currentNumberScheduled"), "integer"),
        Column("Ready", _number("status", "numberReady"), "integer"),
        Column("Up-to-date", _number("status", "updatedNumberScheduled"), "integer"),
        Column("Available", _number("status", "numberAvailable"), "integer"),
        Column("Node Selector", _selector("spec", "template", "spec", "nodeSelector")),
        AGE,
        *_WIDE_WORKLOAD,
    ),
    "Job": (
        Column("Completions", _completions),
        Column("Duration", _job_duration),
        AGE,
        *_WIDE_WORKLOAD,
    ),
    "CronJob": (
        Column("Schedule", _path("spec", "schedule")),
        Column("Suspend", lambda obj: str(bool(at(obj, ("spec", "suspend"))))),
        Column("Active", _count("status", "active"), "integer"),
        Column(
            "Last Schedule",
            lambda obj: Since(at(obj, ("status", "lastScheduleTime")), otherwise=NONE),
        ),
        AGE,
        *_wide("spec", "jobTemplate", "spec"),
    ),
    "StorageClass": (
        Column("Provisioner", _path("provisioner")),
        Column("ReclaimPolicy", _path("reclaimPolicy", otherwise="Delete")),
        Column("VolumeBindingMode", _path("volumeBindingMode", otherwise="Immediate")),
        Column(
            "AllowVolumeExpansion",
            _truth("allowVolumeExpansion", otherwise=False),
        ),
        AGE,
    ),
    "CSINode": (Column("Drivers", _count("spec", "drivers"), "integer"), AGE),
    "CSIDriver": (
        Column("AttachRequired", _truth("spec", "attachRequired", otherwise=True), "boolean"),
        Column("PodInfoOnMount", _truth("spec", "podInfoOnMount", otherwise=False), "boolean"),
        Column("StorageCapacity", _truth("spec", "storageCapacity", otherwise=False)),
        Column(
            "TokenRequests",
            lambda obj: (
                ",".join(it.get("audience", "") for it in at(obj, ("spec", "tokenRequests")) or ())
                or UNSET
            ),
        ),
        Column("RequiresRepublish", _truth("spec", "requiresRepublish", otherwise=False)),
        Column("Modes", lambda obj: ",".join(at(obj, ("spec", "volumeLifecycleModes")) or ())),
        AGE,
    ),
    "VolumeAttachment": (
        Column("Attacher", _path("spec", "attacher")),
        Column("PV", _path("spec", "source", "persistentVolumeName")),
        Column("Node", _path("spec", "nodeName")),
        Column("Attached", _truth("status", "attached", otherwise=False), "boolean"),
        AGE,
    ),
    "PodDisruptionBudget": (
        Column("Min Available", _path("spec", "minAvailable", otherwise="N/A")),
        Column("Max Unavailable", _path("spec", "maxUnavailable", otherwise="N/A")),
        Column("Allowed Disruptions", _number("status", "disruptionsAllowed"), "integer"),
        AGE,
    ),
    "Lease": (Column("Holder", _holder), AGE),
    "ClusterRoleBinding": (
        Column("Role", lambda obj: f"ClusterRole/{at(obj, ('roleRef', 'name'))}"),
        AGE,
        *_SUBJECTS,
    ),
    "RoleBinding": (
        Column(
            "Role",
            lambda obj: f"{at(obj, ('roleRef', 'kind'))}/{at(obj, ('roleRef', 'name'))}",
        ),
        AGE,
        *_SUBJECTS,
    ),
}
