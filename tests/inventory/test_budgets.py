"""Which budgets have a say when a pod is evicted."""

from __future__ import annotations

from typing import Any

import pytest

from replant.inventory.model import Inventory
from tests.inventory.clusters import Object, budget, inventory_of, pod

LABELS = {"app": "web", "tier": "front"}


def of_the_pod(inventory: Inventory) -> list[str]:
    (user,) = inventory.pods
    return [it.metadata.name for it in inventory.budgets_of(user)]


def protected(selector: Any, namespace: str = "shop") -> bool:
    objects = [
        pod(claim="data", metadata={"labels": LABELS}),
        budget(namespace=namespace, spec={"selector": selector}),
    ]
    return of_the_pod(inventory_of(objects)) == ["web"]


def expressed(operator: str, *values: str, key: str = "app") -> Object:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("selector", "meant"),
    [
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "web", "tier": "back"}}, False),
        ({"matchLabels": {"other": "web"}}, False),
        (expressed("In", "db", "web"), True),
        (expressed("In", "db"), False),
        (expressed("NotIn", "db"), True),
        (expressed("NotIn", "web"), False),
        (expressed("NotIn", "web", key="other"), True),
        (expressed("Exists"), True),
        (expressed("Exists", key="other"), False),
        (expressed("DoesNotExist", key="other"), True),
        (expressed("DoesNotExist"), False),
        ({"matchLabels": {"app": "web"}, **expressed("NotIn", "front", key="tier")}, False),
        ({}, True),
        (None, False),
    ],
)
def test_a_budget_protects_whom_its_selector_means(selector: Any, meant: bool) -> None:
    assert protected(selector) is meant


def test_a_budget_protects_its_own_namespace_alone() -> None:
    assert not protected({"matchLabels": {"app": "web"}}, namespace="test")


def test_pods_without_labels_are_of_no_named_budget() -> None:
    objects = [pod(claim="data"), budget(spec={"selector": {"matchLabels": {"app": "web"}}})]
    assert of_the_pod(inventory_of(objects)) == []


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_a_budget_says_how_many_may_go(version: str) -> None:
    status = {
        "disruptionsAllowed": 1, "currentHealthy": 3, "desiredHealthy": 2, "expectedPods": 3,
        "conditions": [], "observedGeneration": 1,
    }  # fmt: skip
    given = budget(spec={"minAvailable": "50%", "maxUnavailable": 1}, status=status)
    given["apiVersion"] = f"policy/{version}"
    inventory = inventory_of([given])
    (found,) = inventory.budgets
    assert (found.spec.minAvailable, found.spec.maxUnavailable) == ("50%", 1)
    assert found.status is not None
    assert found.status.disruptionsAllowed == 1
    assert (found.status.currentHealthy, found.status.desiredHealthy) == (3, 2)
    assert found.status.expectedPods == 3
    assert inventory.read["PodDisruptionBudget"].used == 1


def test_a_namespace_limits_budgets() -> None:
    both = [budget("here", "shop"), budget("there", "test")]
    inventory = inventory_of(both, namespace="shop")
    assert [it.metadata.name for it in inventory.budgets] == ["here"]
