"""Deployments whose pods take time to end, while nodes of both kinds are there.

The successor of a pod is there before the pod has ended. On a node of the other kind the
attach/detach controller wants the same disk under its other name (docs/observed.md). Meanwhile
somebody restarts the Deployments, one after the other.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.real import applying
from tests.real.applying import REPLICAS, Cluster
from tests.real.attaching import GATE
from tests.real.ground.api import Refused
from tests.real.ground.cloud import Cloud
from tests.real.ground.processes import wait_for
from tests.real.vigil import yanked

ON, OFF = {GATE: True}, {GATE: False}
ROLLOUT = 20.0
"""Seconds from one restart of a Deployment to the next."""
AT_LAST = 180
"""Seconds for the last rollouts to end."""


@pytest.fixture(
    scope="module",
    params=[25, *(pytest.param(it, marks=pytest.mark.long) for it in (5, 60))],
    ids=lambda it: f"{it}s",
)
def cluster(request: pytest.FixtureRequest, cloud: Cloud, ground: Path) -> Iterator[Cluster]:
    ends_after: int = request.param
    folder = ground / f"mixed-{ends_after}"
    with applying.cluster(cloud, folder, gates=OFF, ends_after=ends_after) as cluster:
        yield cluster


@contextmanager
def rollouts(cluster: Cluster) -> Iterator[list[str]]:
    """Restart one Deployment after the other, as kubectl rollout restart does."""
    stopped, restarted = threading.Event(), []

    def restart() -> None:
        for number in itertools.count():
            if stopped.wait(ROLLOUT):
                return
            name = f"web-{number % REPLICAS}"
            at = {"kubectl.kubernetes.io/restartedAt": f"{time.time():.0f}"}
            change = {"spec": {"template": {"metadata": {"annotations": at}}}}
            try:
                cluster.api.patch("Deployment", name, change, "default")
            except (httpx.TransportError, Refused):
                continue
            restarted.append(name)

    thread = threading.Thread(target=restart, daemon=True)
    thread.start()
    try:
        yield restarted
    finally:
        stopped.set()
        thread.join()


def let_rollouts_end(cluster: Cluster) -> None:
    """A rollout of one pod waits for ever if the new pod is on another node: then the old one goes.

    Kubernetes has it so by default, with one kind of node too.
    """
    for strategy in ({"type": "Recreate", "rollingUpdate": None}, {"type": "RollingUpdate"}):
        for number in range(REPLICAS):
            change = {"spec": {"strategy": strategy}}
            cluster.api.patch("Deployment", f"web-{number}", change, "default")
        wait_for(cluster.serves, "every pod to run with its disk", AT_LAST)


@pytest.mark.parametrize("goal", ["enable", "disable"])
def test_no_disk_is_detached_under_a_pod(cluster: Cluster, goal: str) -> None:
    """Each goal goes on from where the one before it has come to."""
    with rollouts(cluster) as restarted:
        run = cluster.apply(cluster.plan(goal))
        wait_for(lambda: "roll-nodes is done" in run.said, "all nodes to be switched", 500)
    # A pod of a rollout may wait for ever for one on another node, and the run waits for it.
    let_rollouts_end(cluster)
    code, _report = run.ended(300)
    assert code == 0, run.said
    assert yanked(cluster.cloud, cluster.nodes) == []
    assert cluster.vigil.on_two_nodes == []
    assert len(restarted) > REPLICAS
    assert cluster.sides() == {"csi" if goal == "enable" else "in-tree"}
    assert [node["spec"].get("taints") for node in cluster.api.list("Node")] == [None] * REPLICAS
