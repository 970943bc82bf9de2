"""What a Deployment says of how it gets on: whether enough pods are there, and whether it moves."""

from __future__ import annotations

from datetime import datetime

from replant.objects import Object
from replant.sandbox.controllers.workloads.rollout import Rollout

_AT_REST = ("NewReplicaSetAvailable", "DeploymentPaused")
"""Why a Deployment was not moving."""
_COUNTS = ("updatedReplicas", "replicas", "availableReplicas")


def conditions(rollout: Rollout, status: Object, now: datetime) -> tuple[list[Object], float]:
    """Its conditions, and in how many seconds they may be others without anything happening."""
    moving, pause = _moving(rollout, status, now)
    return [_enough(rollout, status, now), moving], pause


def _enough(rollout: Rollout, status: Object, now: datetime) -> Object:
    if status["availableReplicas"] >= rollout.replicas - rollout.missing:
        why = "Deployment has minimum availability."
        return _condition(rollout, now, "Available", "True", "MinimumReplicasAvailable", why)
    why = "Deployment does not have minimum availability."
    return _condition(rollout, now, "Available", "False", "MinimumReplicasUnavailable", why)


def _moving(rollout: Rollout, status: Object, now: datetime) -> tuple[Object, float]:
    def moving(*said: str) -> Object:
        return _condition(rollout, now, "Progressing", *said)

    if rollout.spec.get("paused"):
        return moving("Unknown", "DeploymentPaused", "Deployment is paused"), 0
    name = rollout.new.entry.name if rollout.new else ""
    if rollout.new and all(status[it] == rollout.replicas for it in _COUNTS):
        why = f'ReplicaSet "{name}" has successfully progressed.'
        return moving("True", "NewReplicaSetAvailable", why), 0
    limit = rollout.spec.get("progressDeadlineSeconds", 600)
    old = _said(rollout, "Progressing")
    if old is None or old["reason"] in _AT_REST or _has_moved(rollout, status):
        said = moving("True", "ReplicaSetUpdated", f'ReplicaSet "{name}" is progressing.')
        return {**said, "lastUpdateTime": _written(now)}, limit
    waited = (now - datetime.fromisoformat(old["lastUpdateTime"])).total_seconds()
    if old["status"] == "False" or waited < limit:
        return old, 0
    why = f'ReplicaSet "{name}" has timed out progressing.'
    return moving("False", "ProgressDeadlineExceeded", why), 0


def _has_moved(rollout: Rollout, status: Object) -> bool:
    before = rollout.obj.get("status") or {}
    return any(status[it] != before.get(it, 0) for it in _COUNTS)


def _said(rollout: Rollout, kind: str) -> Object | None:
    said = (rollout.obj.get("status") or {}).get("conditions") or ()
    return next((it for it in said if it["type"] == kind), None)


def _condition(
    rollout: Rollout, now: datetime, kind: str, status: str, reason: str, message: str
) -> Object:
    """As it was, if it says the same."""
    old = _said(rollout, kind)
    if old and (old["status"], old["reason"], old["message"]) == (status, reason, message):
        return old
    since = old["lastTransitionTime"] if old and old["status"] == status else _written(now)
    return {
        "type": kind,
        "status": status,
        "lastUpdateTime": _written(now),
        "lastTransitionTime": since,
        "reason": reason,
        "message": message,
    }


def _written(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
