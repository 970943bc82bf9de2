"""How far a driver's Deployment and DaemonSet are, as conditions of their parts."""

from __future__ import annotations

from replant.drivers.conditions import FALSE, TRUE, Condition
from replant.drivers.sameness import HASH, annotations_of
from replant.objects import Object

CONTROLLER, NODE = "DriverController", "DriverNode"
DEPLOYING = "Deploying"


def generations(
    controller: Object | None, node: Object | None, before: list[Object]
) -> list[Object]:
    """Which generation of each has been rolled out, as a CR's status keeps it.

    Nodes that come and go afterwards make nothing progress, so a rollout that has been finished
    has to be remembered.
    """
    kept = {(it.get("resource"), it.get("namespace"), it.get("name")): it for it in before}
    found = []
    for resource, obj in (("deployments", controller), ("daemonsets", node)):
        if obj is None:
            continue
        metadata = obj["metadata"]
        done = _deployed(obj) if resource == "deployments" else _spread(obj)
        key = (resource, metadata["namespace"], metadata["name"])
        if done:
            found.append(
                {
                    "group": "apps",
                    "resource": resource,
                    "namespace": metadata["namespace"],
                    "name": metadata["name"],
                    "lastGeneration": metadata.get("generation", 0),
                    "hash": annotations_of(obj).get(HASH, ""),
                }
            )
        elif key in kept:
            found.append(kept[key])
    return found


def parts(
    controller: Object | None, node: Object | None, rolled_out: list[Object]
) -> list[Condition]:
    """What both come to."""
    return [
        *_part(CONTROLLER, "Deployment", controller, rolled_out),
        *_part(NODE, "DaemonSet", node, rolled_out),
    ]


def _part(prefix: str, kind: str, obj: Object | None, rolled_out: list[Object]) -> list[Condition]:
    if obj is None:
        message = f"waiting for the {kind} to be made"
        return [
            Condition(f"{prefix}Available", FALSE, DEPLOYING, message),
            Condition(f"{prefix}Progressing", TRUE, DEPLOYING, message),
            Condition(f"{prefix}Degraded", FALSE),
        ]
    metadata = obj["metadata"]
    place = f"{kind} {metadata['namespace']}/{metadata['name']}"
    serves = _serves(obj)
    known = {(it.get("namespace"), it.get("name"), it.get("lastGeneration")) for it in rolled_out}
    here = (metadata["namespace"], metadata["name"], metadata.get("generation", 0))
    progressing = here not in known
    stuck = _stuck(obj)
    return [
        Condition(f"{prefix}Available", TRUE)
        if serves
        else Condition(f"{prefix}Available", FALSE, DEPLOYING, f"no pod of {place} is available"),
        Condition(f"{prefix}Progressing", TRUE, DEPLOYING, f"{place} is being rolled out")
        if progressing
        else Condition(f"{prefix}Progressing", FALSE),
        Condition(f"{prefix}Degraded", TRUE, "ProgressDeadlineExceeded", f"{place}: {stuck}")
        if stuck
        else Condition(f"{prefix}Degraded", FALSE),
    ]


def ready_replicas(controller: Object | None) -> int:
    """How many controllers are ready."""
    return int(((controller or {}).get("status") or {}).get("readyReplicas") or 0)


def _serves(obj: Object) -> bool:
    status = obj.get("status") or {}
    if obj.get("kind") == "DaemonSet":
        # Where no node is to have it, none is missing.
        nowhere = _seen(obj) and not status.get("desiredNumberScheduled")
        return bool(status.get("numberAvailable")) or nowhere
    return bool(status.get("availableReplicas"))


def _seen(obj: Object) -> bool:
    """Whether its status is about its latest generation."""
    status = obj.get("status") or {}
    generation: int = obj["metadata"].get("generation", 0)
    return bool(status) and int(status.get("observedGeneration") or 0) >= generation


def _deployed(obj: Object) -> bool:
    status = obj.get("status") or {}
    wanted = (obj.get("spec") or {}).get("replicas", 1)
    counts = (status.get(it) or 0 for it in ("updatedReplicas", "availableReplicas"))
    return _seen(obj) and all(it >= wanted for it in counts)


def _spread(obj: Object) -> bool:
    """Whether a DaemonSet is on all nodes, but for as many as a rollout may take away itself."""
    status = obj.get("status") or {}
    desired = status.get("desiredNumberScheduled") or 0
    least = desired - desired // 10
    counts = (status.get(it) or 0 for it in ("updatedNumberScheduled", "numberAvailable"))
    return _seen(obj) and all(it >= least for it in counts)


def _stuck(obj: Object) -> str:
    for it in (obj.get("status") or {}).get("conditions") or ():
        if it.get("type") == "Progressing" and it.get("reason") == "ProgressDeadlineExceeded":
            return str(it.get("message") or "it does not get on")
    return ""
