"""Pods and budgets: whether every node can be drained."""

from __future__ import annotations

from replant.inventory.findings import ObjectRef
from replant.inventory.workload_records import PodDisruptionBudget
from replant.plan.model import Goal
from replant.plan.preflight.results import Results, blocked_by, blocker, listed, warning
from replant.plan.situation import Situation


def drain(goal: Goal, situation: Situation) -> Results:  # noqa: ARG001
    """Whether there are pods that a drain does not move, or that nobody would make again."""
    if unread := situation.unread("Pod"):
        yield blocker(f"What a drain would meet would be said by Pods, {unread}")
    yield from blocked_by(
        [_name(pod.owner) for pod in situation.pods if pod.top.kind == "DaemonSet"],
        "uses a volume of the plugin and belongs to a DaemonSet, which a drain leaves in place",
        "Take the DaemonSet away for the time of the switch.",
        noun="Pod",
    )
    yield from blocked_by(
        [_name(pod.owner) for pod in situation.pods if pod.top.kind == "Node"],
        "uses a volume of the plugin and is static: its kubelet runs it, whatever is drained",
        "Take its manifest off the node for the time of the switch.",
        noun="Pod",
    )
    yield from blocked_by(
        [_name(pod.owner) for pod in situation.pods if pod.top in situation.inventory.pinned],
        "uses a volume of the plugin and is bound to its node by name: evicted, it comes back to "
        "the node while that is drained",
        "Let the scheduler choose: a nodeSelector in the template in place of nodeName.",
        noun="Pod",
    )
    yield from blocked_by(
        [_name(pod.owner) for pod in situation.pods if pod.top == pod.owner],
        "belongs to no controller: a drain deletes it, and nobody makes it again",
        "Delete it yourself, or put it under a Deployment or StatefulSet.",
        noun="Pod",
    )


def budgets(goal: Goal, situation: Situation) -> Results:  # noqa: ARG001
    """Whether a PodDisruptionBudget would keep a drain from ending."""
    if situation.empty:
        return
    inventory = situation.inventory
    if unread := situation.unread("PodDisruptionBudget"):
        yield warning(
            f"What keeps a drain from ending would be said by PodDisruptionBudgets, {unread}"
        )
    never, not_now = [], []
    for budget in inventory.budgets:
        name = f"{budget.metadata.namespace or 'default'}/{budget.metadata.name}"
        if _never_allows(budget):
            never.append(name)
        elif budget.status and budget.status.expectedPods and not budget.status.disruptionsAllowed:
            not_now.append(name)
    yield from blocked_by(
        never,
        "allows no eviction at all: a drain waits for ever",
        "Let one pod be missing, for the time of the switch: kubectl edit pdb",
        noun="PodDisruptionBudget",
    )
    if not_now:
        yield warning(
            f"PodDisruptionBudget {listed(not_now)} allows no eviction now, since pods are missing "
            "already; a drain waits for them.",
            "kubectl get pdb -A",
        )


def _never_allows(budget: PodDisruptionBudget) -> bool:
    spec, status = budget.spec, budget.status
    if status is None:
        return spec.maxUnavailable in (0, "0", "0%") or spec.minAvailable == "100%"
    # What is desired, Kubernetes has reckoned: of one pod, any percentage that must be there is it.
    return 0 < status.expectedPods <= status.desiredHealthy


def _name(pod: ObjectRef) -> str:
    return f"{pod.namespace or 'default'}/{pod.name}"
