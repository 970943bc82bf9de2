"""The columns of what makes pods, and of the budgets that keep them."""

from __future__ import annotations

from collections.abc import Callable

from replant.objects import Object
from replant.sandbox.api.columns.cells import (
    AGE,
    NONE,
    Cell,
    Column,
    Since,
    count,
    number,
    selector,
    text,
)
from replant.sandbox.validation import at


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


def _controller(obj: Object) -> Cell:
    for owner in at(obj, ("metadata", "ownerReferences")) or ():
        if owner.get("controller"):
            group = str(owner["apiVersion"]).rpartition("/")[0]
            return f"{owner['kind'].lower()}{f'.{group}' if group else ''}/{owner['name']}"
    return NONE


def _wide(*spec: str) -> tuple[Column, ...]:
    """What more is said of a workload whose template is in there."""
    containers = (*spec, "template", "spec", "containers")
    return (
        Column("Containers", _containers("name", *containers), wide=True),
        Column("Images", _containers("image", *containers), wide=True),
        Column("Selector", selector(*spec, "selector"), wide=True),
    )


_WIDE_WORKLOAD = _wide("spec")
_REPLICAS = (
    Column("Desired", number("spec", "replicas"), "integer"),
    Column("Current", number("status", "replicas"), "integer"),
    Column("Ready", number("status", "readyReplicas"), "integer"),
    AGE,
    *_WIDE_WORKLOAD,
)

COLUMNS: dict[str, tuple[Column, ...]] = {
    "ReplicationController": _REPLICAS,
    "ReplicaSet": _REPLICAS,
    "ControllerRevision": (
        Column("Controller", _controller),
        Column("Revision", number("revision"), "integer"),
        AGE,
    ),
    "Deployment": (
        Column("Ready", _ready_of),
        Column("Up-to-date", number("status", "updatedReplicas"), "integer"),
        Column("Available", number("status", "availableReplicas"), "integer"),
        AGE,
        *_WIDE_WORKLOAD,
    ),
    "StatefulSet": (Column("Ready", _ready_of), AGE, *_WIDE_WORKLOAD[:2]),
    "DaemonSet": (
        Column("Desired", number("status", "desiredNumberScheduled"), "integer"),
        Column("Current", number("status", "currentNumberScheduled"), "integer"),
        Column("Ready", number("status", "numberReady"), "integer"),
        Column("Up-to-date", number("status", "updatedNumberScheduled"), "integer"),
        Column("Available", number("status", "numberAvailable"), "integer"),
        Column("Node Selector", selector("spec", "template", "spec", "nodeSelector")),
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
        Column("Schedule", text("spec", "schedule")),
        Column("Suspend", lambda obj: str(bool(at(obj, ("spec", "suspend"))))),
        Column("Active", count("status", "active"), "integer"),
        Column(
            "Last Schedule",
            lambda obj: Since(at(obj, ("status", "lastScheduleTime")), otherwise=NONE),
        ),
        AGE,
        *_wide("spec", "jobTemplate", "spec"),
    ),
    "PodDisruptionBudget": (
        Column("Min Available", text("spec", "minAvailable", otherwise="N/A")),
        Column("Max Unavailable", text("spec", "maxUnavailable", otherwise="N/A")),
        Column("Allowed Disruptions", number("status", "disruptionsAllowed"), "integer"),
        AGE,
    ),
}
