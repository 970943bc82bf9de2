"""Nodes that join with old gates, in the middle of `replant apply` and after it.

Deployments whose pods take their time to end are restarted all the while, so that their successors
may come to a node as soon as it has joined.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real import applying
from tests.real.applying import OFF, PLUGIN, REPLANT, Cluster
from tests.real.attaching import GATE
from tests.real.ground.cloud import Cloud
from tests.real.ground.processes import wait_for
from tests.real.test_mixed import let_rollouts_end, rollouts
from tests.real.vigil import yanked

ON = {GATE: True}
ENDS_AFTER = 25


@pytest.fixture(scope="module")
def cluster(cloud: Cloud, ground: Path) -> Iterator[Cluster]:
    with applying.cluster(cloud, ground / "joined", ends_after=ENDS_AFTER) as cluster:
        yield cluster


def status(cluster: Cluster, *more: str) -> str:
    command = [str(REPLANT), "status", "--kubeconfig", str(cluster.role), *more]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_one_that_joins_in_the_middle_is_tainted_and_switched(cluster: Cluster) -> None:
    with rollouts(cluster) as restarted:
        run = cluster.apply(cluster.plan("enable"))
        wait_for(lambda: any(it.gates == ON for it in cluster.nodes), "a node to be switched", 240)
        joined = cluster.join(OFF)
        wait_for(lambda: _taints(cluster, joined.name), "the node that has joined to be tainted")
        assert _taints(cluster, joined.name) == {"replant.dev/aws-ebs": "in-tree"}
        wait_for(lambda: "roll-nodes is done" in run.said, "all nodes to be switched", 500)
    # A pod of a rollout may wait for ever for one on another node, and the run waits for it.
    let_rollouts_end(cluster)
    code, _report = run.ended(400)
    assert code == 0, run.said
    assert f"node {joined.name} has joined with old gates and is switched too" in run.said
    assert joined.gates == ON
    assert yanked(cluster.cloud, cluster.nodes) == []
    assert cluster.vigil.on_two_nodes == []
    assert restarted
    assert cluster.sides() == {"csi"}
    assert [_taints(cluster, it.name) for it in cluster.nodes] == [{}] * len(cluster.nodes)


def test_status_names_one_that_joins_afterwards(cluster: Cluster) -> None:
    assert "Joined" not in status(cluster)
    joined = cluster.join(OFF)
    said = status(cluster)
    assert said.startswith("Joined with other gates since run enable-")
    assert f"  1. kubectl cordon {joined.name}\n" in said
    (found,) = json.loads(status(cluster, "-o", "json"))["joined"]
    assert (found["node"], found["missing"]) == (joined.name, [PLUGIN])


def _taints(cluster: Cluster, node: str) -> dict[str, str]:
    taints = cluster.api.get("Node", node)["spec"].get("taints") or []
    return {it["key"]: it["value"] for it in taints if it["key"].startswith("replant.dev/")}
