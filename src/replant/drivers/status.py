"""A CR's status: what its conditions come to, and whether it has to be written."""

from __future__ import annotations

import re
from collections.abc import Sequence

from replant import __version__
from replant.drivers import rollout
from replant.drivers.conditions import (
    DEGRADED,
    PREREQS,
    TRUE,
    TYPES,
    UNKNOWN,
    Condition,
    conditions_of,
    dated,
    union,
    written,
)
from replant.drivers.seen import Decision, Seen
from replant.drivers.settings import State
from replant.drivers.writes import Annotate, Finalizers, Status, Write
from replant.objects import Object

SYNC, SYNC_ERROR = f"Sync{DEGRADED}", "SyncError"
"""Something could not be seen or written, so that a driver is not kept as it should be."""


def said(
    seen: Seen,
    told: Sequence[Condition],
    again: float | None = None,
    writes: tuple[Write, ...] = (),
    why: str = "",
) -> Decision:
    """Writes, and then the CR's status, if it is not as it should be."""
    cr = seen.cr
    # Whoever changes the CR itself looks at it anew before its status is written.
    if cr is None or any(
        isinstance(it, Annotate | Finalizers) and it.object is cr for it in writes
    ):
        return Decision(writes, again=again, why=why)
    trouble = _trouble(cr)
    if trouble is not None and writes:
        told = _troubled(told, trouble)  # until it is seen that all has been written
    before = cr.get("status") or {}
    status = {
        **before,
        "observedGeneration": cr["metadata"].get("generation", 0),
        "version": __version__,
        "readyReplicas": rollout.ready_replicas(seen.controller),
        "generations": rollout.generations(
            seen.controller, seen.node, before.get("generations") or []
        ),
        "conditions": written(dated(told, conditions_of(cr), seen.now)),
    }
    if status != before:
        writes = (*writes, Status(cr, status))
    return Decision(writes, again=again, why=why)


def failed(cr: Object, decision: Decision, message: str, now: float) -> Status | None:
    """The status of a CR that could not be attended to; None if it says so already.

    What was decided holds, as far as it got; without a decision, what was said before.
    """
    if (cr.get("spec") or {}).get("managementState") == State.UNMANAGED:
        return None
    before = cr.get("status") or {}
    version = cr["metadata"]["resourceVersion"]
    decided = [
        it.status
        for it in decision.writes
        if isinstance(it, Status) and it.object["metadata"]["resourceVersion"] == version
    ]
    status = decided[0] if decided else before
    was = _trouble(cr)
    if was is not None and _numberless(was.message) == _numberless(message):
        message = was.message
    told = _troubled(conditions_of({"status": status}), Condition(SYNC, TRUE, SYNC_ERROR, message))
    new = {**status, "conditions": written(dated(told, conditions_of(cr), now))}
    return None if new == before else Status(cr, new)


def _numberless(message: str) -> str:
    """A port, or a count, is another at each try; to write it anew would have it tried at once."""
    return re.sub(r"\d+", "0", message)


def _trouble(cr: Object) -> Condition | None:
    return next((it for it in conditions_of(cr) if (it.type, it.status) == (SYNC, TRUE)), None)


def _troubled(told: Sequence[Condition], trouble: Condition) -> list[Condition]:
    """Conditions with a trouble among them, which counts for what they come to."""
    rest = {it.type: it for it in told if it.type != SYNC}
    own = rest.pop(DEGRADED, None)
    degraded = [it for it in rest.values() if it.type.endswith(DEGRADED)]
    only_this = union(DEGRADED, [trouble])
    # One cause for all of a driver has no parts, and stays what it is.
    if degraded or own is None or own.status != TRUE or own.reason == only_this.reason:
        own = union(DEGRADED, [*degraded, trouble])
    missing = [it for it in TYPES if it != DEGRADED and it not in rest]
    nothing = [Condition(it, UNKNOWN, "NoData") for it in missing]
    return [*rest.values(), *nothing, trouble, own]


def parts(seen: Seen) -> list[Condition]:
    """Conditions of a driver's Deployment and DaemonSet."""
    before = ((seen.cr or {}).get("status") or {}).get("generations") or []
    done = rollout.generations(seen.controller, seen.node, before)
    return rollout.parts(seen.controller, seen.node, done)


def whole(told: Sequence[Condition]) -> list[Condition]:
    """A driver's conditions: those of its parts, and what they come to."""
    return [
        *told,
        *(union(it, told) for it in ("Available", "Progressing", "Degraded")),
        Condition("Upgradeable", TRUE, "AsExpected", "All is well"),
        Condition(PREREQS, TRUE),
    ]
