"""Budgets of the sandbox, where an eviction comes to nothing."""

from __future__ import annotations

import msgspec

from replant.sandbox.resources import POD_DISRUPTION_BUDGETS, PODS
from replant.sandbox.scenario import Scenario
from replant.sandbox.server import Sandbox
from tests.execute.living import small


def test_a_pod_that_was_let_go_and_stays_counts_again_after_two_minutes() -> None:
    """As on real Kubernetes: its eviction took the budget, and then failed for another uid."""
    sandbox = Sandbox.of(msgspec.convert(small(), Scenario), by_hand=True)
    cluster, store = sandbox.cluster, sandbox.store
    assert cluster is not None
    budget = store.get(POD_DISRUPTION_BUDGETS, "db", "default")
    budget["status"]["disruptionsAllowed"] -= 1
    budget["status"]["disruptedPods"] = {"db-0": store.time()}
    store.update(POD_DISRUPTION_BUDGETS, budget, "status")

    def allowed() -> int:
        found = store.get(POD_DISRUPTION_BUDGETS, "db", "default")
        return int(found["status"]["disruptionsAllowed"])

    cluster.run_for(100)
    assert allowed() == 0
    cluster.run_for(30)
    assert store.find(PODS, "db-0", "default")
    assert allowed() == 1
