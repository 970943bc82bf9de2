"""Evictions: a pod is deleted if its disruption budget has room for that."""

from __future__ import annotations

import msgspec

from replant.inventory.metadata import LabelSelector
from replant.inventory.selectors import Selector
from replant.objects import Object
from replant.sandbox.changes import Deletion
from replant.sandbox.refusals import ApiError
from replant.sandbox.resources import POD_DISRUPTION_BUDGETS, PODS
from replant.sandbox.store import Store
from replant.sandbox.validation import at

_OVER = {"Succeeded", "Failed"}


def evict(store: Store, name: str, namespace: str, deletion: Deletion) -> None:
    """Delete a pod; ApiError if a budget does not let it go."""
    pod = store.get(PODS, name, namespace)
    if _counts(pod):
        _use_budget(store, pod, dry_run=deletion.dry_run)
        if not deletion.dry_run:
            _mark(store, pod)
    store.delete(PODS, name, namespace, deletion)


def _counts(pod: Object) -> bool:
    """Whether a budget would miss the pod."""
    if at(pod, ("metadata", "deletionTimestamp")):
        return False
    return at(pod, ("status", "phase")) not in {*_OVER, "Pending"}


def _is_ready(pod: Object) -> bool:
    conditions = at(pod, ("status", "conditions")) or ()
    return any(it.get("type") == "Ready" and it.get("status") == "True" for it in conditions)


def _use_budget(store: Store, pod: Object, *, dry_run: bool) -> None:
    metadata = pod["metadata"]
    labels = metadata.get("labels") or {}
    budgets = [
        it
        for it in store.list(POD_DISRUPTION_BUDGETS, metadata["namespace"])
        if _selects(it, labels)
    ]
    if not budgets:
        return
    if len(budgets) > 1:
        said = "This pod has more than one PodDisruptionBudget, which the eviction subresource "
        raise ApiError(500, "", said + "does not support.")
    budget = budgets[0]
    status = budget.setdefault("status", {})
    if not _is_ready(pod) and _ignores_unready(budget):
        return
    _check_budget(budget)
    status["disruptionsAllowed"] -= 1
    status.setdefault("disruptedPods", {})[metadata["name"]] = store.time()
    store.update(POD_DISRUPTION_BUDGETS, budget, "status", dry_run=dry_run)


def _ignores_unready(budget: Object) -> bool:
    """Whether a pod that is not ready may go: always if asked, else while enough others are."""
    if at(budget, ("spec", "unhealthyPodEvictionPolicy")) == "AlwaysAllow":
        return True
    status = budget["status"]
    desired = status.get("desiredHealthy", 0)
    return bool(desired > 0 and status.get("currentHealthy", 0) >= desired)


def _check_budget(budget: Object) -> None:
    name, status = budget["metadata"]["name"], budget["status"]
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        raise _too_many(f"The disruption budget {name} is still being processed by the server.", 10)
    if status.get("disruptionsAllowed", 0) <= 0:
        raise _too_many(
            f"The disruption budget {name} needs {status.get('desiredHealthy', 0)} healthy pods "
            f"and has {status.get('currentHealthy', 0)} currently"
        )


def _too_many(why: str, retry_after: int = 0) -> ApiError:
    details: Object = {"causes": [{"reason": "DisruptionBudget", "message": why}]}
    if retry_after:
        details["retryAfterSeconds"] = retry_after
    said = "Cannot evict pod as it would violate the pod's disruption budget."
    return ApiError(429, "TooManyRequests", said, details)


def _selects(budget: Object, labels: dict[str, str]) -> bool:
    selector = at(budget, ("spec", "selector"))
    if selector is None:
        return False
    return Selector.of(msgspec.convert(selector, LabelSelector)).matches(labels)


def _mark(store: Store, pod: Object) -> None:
    conditions = pod.setdefault("status", {}).setdefault("conditions", [])
    conditions.append(
        {
            "type": "DisruptionTarget",
            "status": "True",
            "lastTransitionTime": store.time(),
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
        }
    )
    store.update(PODS, pod, "status")
