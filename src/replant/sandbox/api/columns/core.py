"""The columns of nodes, pods and what else lies beside them in the core API, and of Leases."""

from __future__ import annotations

from collections.abc import Callable

from replant.objects import Object
from replant.sandbox.api.columns.cells import (
    AGE,
    NAME,
    NONE,
    UNKNOWN,
    Cell,
    Column,
    Since,
    count,
    phase,
    selector,
    text,
)
from replant.sandbox.validation import at


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


EVENT: tuple[Column, ...] = (
    Column("Last Seen", _last_seen),
    Column("Type", text("type")),
    Column("Reason", text("reason")),
    Column("Object", _event_object),
    Column("Subobject", text("involvedObject", "fieldPath"), wide=True),
    Column("Source", text("source", "component"), wide=True),
    Column("Message", text("message")),
    Column("First Seen", lambda obj: Since(obj.get("firstTimestamp")), wide=True),
    Column("Count", lambda obj: obj.get("count") or 1, "integer", wide=True),
    NAME._replace(wide=True),
)
"""All of them: the name is not the first here."""

COLUMNS: dict[str, tuple[Column, ...]] = {
    "Namespace": (Column("Status", phase), AGE),
    "Node": (
        Column("Status", _node_status),
        Column("Roles", _roles),
        AGE,
        Column("Version", text("status", "nodeInfo", "kubeletVersion")),
        Column("Internal-IP", _address("InternalIP"), wide=True),
        Column("External-IP", _address("ExternalIP"), wide=True),
        Column("OS-Image", text("status", "nodeInfo", "osImage", otherwise=UNKNOWN), wide=True),
        Column(
            "Kernel-Version",
            text("status", "nodeInfo", "kernelVersion", otherwise=UNKNOWN),
            wide=True,
        ),
        Column(
            "Container-Runtime",
            text("status", "nodeInfo", "containerRuntimeVersion", otherwise=UNKNOWN),
            wide=True,
        ),
    ),
    "ResourceQuota": (AGE,),
    "Pod": (
        Column("Ready", _pod_ready),
        Column("Status", _pod_status),
        Column("Restarts", _restarts),
        AGE,
        Column("IP", text("status", "podIP", otherwise=NONE), wide=True),
        Column("Node", text("spec", "nodeName", otherwise=NONE), wide=True),
        Column("Nominated Node", text("status", "nominatedNodeName", otherwise=NONE), wide=True),
        Column("Readiness Gates", _gates, wide=True),
    ),
    "ConfigMap": (Column("Data", count("data")), AGE),
    "Secret": (Column("Type", text("type")), Column("Data", count("data")), AGE),
    "Service": (
        Column("Type", text("spec", "type")),
        Column("Cluster-IP", text("spec", "clusterIP", otherwise=NONE)),
        Column("External-IP", text("spec", "externalName", otherwise=NONE)),
        Column("Port(s)", _ports),
        AGE,
        Column("Selector", selector("spec", "selector"), wide=True),
    ),
    "Lease": (Column("Holder", text("spec", "holderIdentity")), AGE),
}
