"""A CR's status: what its conditions come to, and whether it has to be written."""

from __future__ import annotations

from collections.abc import Sequence

from replant import __version__
from replant.drivers import rollout
from replant.drivers.conditions import (
    PREREQS,
    TRUE,
    Condition,
    conditions_of,
    dated,
    union,
    written,
)
from replant.drivers.seen import Decision, Seen
from replant.drivers.writes import Annotate, Finalizers, Status, Write


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
