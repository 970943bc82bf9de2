"""Pods and budgets: whether every node can be drained."""

from __future__ import annotations

from collections.abc import Iterator

from replant.inventory.findings import ObjectRef
from replant.inventory.workload_records import PodDisruptionBudget
from replant.plan.model import ChangeVersion, Check, Goal, NodeMethod, RollNodes, Step
from replant.plan.preflight.results import Result, Results, blocked_by, blocker, listed, warning
from replant.plan.situation import Situation, disks_may_be_taken


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


def successors(
    situation: Situation, steps: tuple[Step, ...], *, one_pod_per_volume: bool
) -> Iterator[Check]:
    """Whether a pod can be kept from nodes of the other kind than those that hold its volumes."""
    moving = [it for it in steps if isinstance(it, RollNodes | ChangeVersion)]
    if situation.empty or not moving or not disks_may_be_taken(situation):
        return
    found: list[Result] = []
    if one_pod_per_volume:
        found.append(
            warning(
                "The proof relies on your word that no pod is started for a volume while another "
                "pod uses it: no rollout, eviction or forced deletion while the pod before it has "
                "not ended. If one is, its disk may be detached under it.",
            )
        )
    elif any(isinstance(it, RollNodes) and it.method is NodeMethod.REPLACE for it in moving):
        found.append(
            blocker(
                "Machines that join have no taint, so the successor of a pod may go to a node of "
                "the other kind before the pod has ended, and take its disk.",
                "Switch kubelets in place (--nodes in-place), or vouch that no pod is started for "
                "a volume while another pod uses it (--one-pod-per-volume).",
            )
        )
    elif any(it.restrict_scheduling for it in moving):
        found += blocked_by(
            [_name(it.owner) for it in situation.pods if it.top in situation.inventory.tolerant],
            "uses a volume of the plugin and tolerates every taint, so its successor may go to a "
            "node of the other kind before it has ended, and take its disk",
            "Have its workload tolerate only the taints that it must, or vouch that no pod is "
            "started for a volume while another pod uses it (--one-pod-per-volume).",
            noun="Pod",
        )
    for it in found:
        yield Check(check="successors", result=it.weight, message=it.message, fix=it.fix)


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
