"""What must hold before anything is touched: one file for each family of checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from replant.plan.model import Check, Goal, Weight
from replant.plan.preflight import controlplane, creators, nodes, volumes, workloads
from replant.plan.preflight.results import Results
from replant.plan.situation import Situation

_SWITCHING = (Goal.ENABLE, Goal.DISABLE, Goal.DOWNGRADE)
_TO_DRIVERS = (Goal.ENABLE, Goal.COMPLETE, Goal.DOWNGRADE)
_ALL = (Goal.ENABLE, Goal.DISABLE, Goal.COMPLETE, Goal.DOWNGRADE)


class _Look(NamedTuple):
    look: Callable[[Goal, Situation], Results]
    passed: str
    """What it says if all is well."""
    goals: tuple[Goal, ...] = _ALL
    """What it matters for."""


_CHECKS = {
    "versions": _Look(nodes.versions, "No kubelet is newer than the API server, or too old."),
    "control-plane": _Look(
        controlplane.replicas, "All replicas of the control plane are given the same gates."
    ),
    "base-gate": _Look(controlplane.base_gate, "CSIMigration is off nowhere."),
    "taken-away": _Look(
        controlplane.taken_away,
        "The controllers have given up no plugin that is still needed.",
        goals=_SWITCHING,
    ),
    "restarts": _Look(
        controlplane.restarts,
        "A controller that starts keeps disks attached, also while a driver is missing.",
    ),
    "drivers": _Look(
        nodes.drivers, "The drivers are installed, and on every node.", goals=_TO_DRIVERS
    ),
    "nodes": _Look(nodes.ready, "Every node is ready."),
    "kubelets": _Look(nodes.bereft, "Every kubelet serves the plugins, one way or the other."),
    "announced": _Look(
        nodes.announced, "Every node says what it redirects, and the controllers follow."
    ),
    "new-nodes": _Look(creators.templates, "Nothing was found that creates nodes."),
    "drain": _Look(workloads.drain, "No pod is in the way of a drain.", goals=_SWITCHING),
    "budgets": _Look(
        workloads.budgets, "No PodDisruptionBudget keeps a drain from ending.", goals=_SWITCHING
    ),
    "volumes": _Look(volumes.scanned, "No volume, class or workload is in the way."),
    "secrets": _Look(
        volumes.secrets,
        "Every volume that needs a secret names it, or will.",
        goals=(Goal.ENABLE,),
    ),
    "classes": _Look(volumes.classes, "Every StorageClass was read.", goals=(Goal.COMPLETE,)),
    "cloud": _Look(
        controlplane.cloud_reached,
        "The in-tree plugins are told how to reach their cloud, where that can be seen.",
        goals=(Goal.DISABLE,),
    ),
    "cloud-flags": _Look(
        controlplane.cloud,
        "No flag of a cloud is needed by anybody else.",
        goals=(Goal.COMPLETE,),
    ),
}
"""Each check, in the order in which to look at them."""


def preflight(goal: Goal, situation: Situation) -> tuple[Check, ...]:
    """What every check found that matters for the goal."""
    found = []
    for name, (look, passed, goals) in _CHECKS.items():
        if goal in goals:
            results = [
                Check(check=name, result=weight, message=message, fix=fix)
                for weight, message, fix in look(goal, situation)
            ]
            found += results or [Check(check=name, result=Weight.PASSED, message=passed)]
    return tuple(found)
