"""What must hold before anything is touched: one file for each family of checks."""

from __future__ import annotations

from collections.abc import Callable

from replant.plan.model import Check, Goal, Weight
from replant.plan.preflight import controlplane, nodes, volumes, workloads
from replant.plan.preflight.results import Results
from replant.plan.situation import Situation

_CHECKS: dict[str, tuple[Callable[[Goal, Situation], Results], str]] = {
    "versions": (nodes.versions, "No kubelet is newer than the API server, or too old for it."),
    "control-plane": (
        controlplane.replicas,
        "All replicas of the control plane are given the same gates.",
    ),
    "base-gate": (controlplane.base_gate, "CSIMigration is off nowhere."),
    "drivers": (nodes.drivers, "The drivers are installed, and on every node."),
    "nodes": (nodes.ready, "Every node is ready."),
    "announced": (
        nodes.announced,
        "Every node says what it redirects, and the controllers follow.",
    ),
    "drain": (workloads.drain, "No pod is in the way of a drain."),
    "budgets": (workloads.budgets, "No PodDisruptionBudget keeps a drain from ending."),
    "volumes": (volumes.scanned, "No volume, class or workload is in the way."),
    "secrets": (volumes.secrets, "Every volume that needs a secret names it, or will."),
    "cloud-flags": (controlplane.cloud, "No flag of a cloud is needed by anybody else."),
}
"""Each check, in the order in which to look at them, and what it says if all is well."""


def preflight(goal: Goal, situation: Situation) -> tuple[Check, ...]:
    """What every check found."""
    found = []
    for name, (look, passed) in _CHECKS.items():
        results = [
            Check(check=name, result=weight, message=message, fix=fix)
            for weight, message, fix in look(goal, situation)
        ]
        found += results or [Check(check=name, result=Weight.PASSED, message=passed)]
    return tuple(found)
