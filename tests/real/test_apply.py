"""`replant apply` on the real thing: there and back, stopped, and with parts that die meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from tests.real import applying
from tests.real.applying import CONTROLLER, SCHEDULER, Cluster
from tests.real.attaching import GATE
from tests.real.ground.api import Object
from tests.real.ground.cloud import Cloud
from tests.real.ground.controlplane import ROLES
from tests.real.ground.nodes import DRIVER
from tests.real.ground.processes import wait_for
from tests.real.vigil import longest_detach, yanked

A_DETACH = 30
"""Seconds: in practice it takes one or two, but the machine may be busy with something else."""
AWAY = 10
"""Seconds that a part is away."""
OUTAGE = 2 * AWAY
"""Seconds that the API server is away: longer than Replant's lease, and than a controller's."""
ONE_DONE = "1 of 3 nodes"
RESUMABLE = 4
FORBIDDEN = 403
WHOLE = ("enable", "disable", "enable", "complete")
IN_THE_MIDDLE = {
    "enable": ONE_DONE,
    "disable": ONE_DONE,
    "complete": "complete-control-plane is done",
}
"""What is said when a goal is half reached."""


@pytest.fixture(scope="module")
def cluster(cloud: Cloud, ground: Path) -> Iterator[Cluster]:
    with applying.cluster(cloud, ground / "apply") as cluster:
        yield cluster


@contextmanager
def watched(cluster: Cluster, longest: float = A_DETACH) -> Iterator[None]:
    """Whatever is done meanwhile: the database survives, and no disk was where its pod was not."""
    specs, began = cluster.specs(), time.time()
    cluster.vigil.worst()
    yield
    wait_for(cluster.serves, "every pod to run with its disk", 60)
    alone, detach = cluster.vigil.worst(), longest_detach(cluster.cloud, cluster.nodes, began)
    assert yanked(cluster.cloud, cluster.nodes) == []
    assert cluster.vigil.on_two_nodes == []
    assert alone.seconds < longest
    assert detach < longest
    assert cluster.specs() == specs


def test_enable_disable_enable_complete(cluster: Cluster) -> None:
    led = cluster.leader
    for goal in WHOLE:
        with watched(cluster):
            cluster.apply(cluster.plan(goal)).done()
        has_come_to(cluster, goal)
        if led:
            # Once with other gates, and once because of what it may still have waited for.
            assert cluster.plane.starts(CONTROLLER) == 1 + 1
            assert cluster.leader not in ("replant-apply", led)
            led = ""
    with watched(cluster):
        cluster.api.delete("Pod", "db-0", "default")


def test_the_api_server_is_away_while_nodes_are_rolled(cluster: Cluster) -> None:
    """On the way back from a plugin that was taken away."""
    with watched(cluster, A_DETACH + 2 * OUTAGE):  # all have to start, and to be elected
        run = cluster.apply(cluster.plan("disable"))
        run.until_said(ONE_DONE)
        cluster.plane.kill_part("kube-apiserver")
        # Who is elected ends when it cannot say that it still is, and is started anew.
        cluster.plane.kill_part(CONTROLLER)
        cluster.plane.kill_part(SCHEDULER)
        time.sleep(OUTAGE)
        cluster.plane.restart_api_server()
        cluster.start(CONTROLLER)
        cluster.start(SCHEDULER)
        run.done()
        assert "the connection failed: Connection refused" in run.said
    is_switched(cluster, on=False)


def test_an_enable_that_was_stopped_is_undone(cluster: Cluster) -> None:
    """A pod that has to move when it is stopped waits until it is undone: docs/apply.md."""
    with watched(cluster, A_DETACH + 2 * OUTAGE):
        run = cluster.apply(cluster.plan("enable"))
        run.until_said(ONE_DONE)
        run.interrupt()
        code, _report = run.ended()
        assert code == RESUMABLE, run.said
        assert "Go back with: replant apply --undo" in run.said
        assert cluster.gates_of(CONTROLLER)[GATE] is True
        assert cluster.undo().done()["state"] == "undone"
    is_switched(cluster, on=False)


@pytest.mark.parametrize(
    "goal",
    [
        "enable",
        # The same again with other gates: make test-real-long.
        *(pytest.param(it, marks=pytest.mark.long) for it in ("disable", "enable", "complete")),
    ],
)
def test_all_of_it_with_the_controller_manager_killed_in_the_middle(
    cluster: Cluster, goal: str
) -> None:
    """Each goes on from what the one before it has come to."""
    with watched(cluster, A_DETACH + AWAY):
        run = cluster.apply(cluster.plan(goal))
        run.until_said(IN_THE_MIDDLE[goal])
        cluster.plane.kill_part(CONTROLLER)
        time.sleep(AWAY)
        cluster.start(CONTROLLER)
        run.done()
    has_come_to(cluster, goal)


def has_come_to(cluster: Cluster, goal: str) -> None:
    """Whether a cluster is what a goal is about."""
    is_switched(cluster, on=goal != "disable")
    complete = goal == "complete"
    assert cluster.gates_of(CONTROLLER).get("InTreePluginAWSUnregister", False) is complete
    if complete:
        assert cluster.api.get("StorageClass", "gp2")["provisioner"] == DRIVER


def is_switched(cluster: Cluster, *, on: bool) -> None:
    """Whether everybody redirects, or nobody does, as seen from outside."""
    everybody = [CONTROLLER, SCHEDULER, *(node.name for node in cluster.nodes)]
    assert {name: cluster.gates_of(name)[GATE] for name in everybody} == dict.fromkeys(
        everybody, on
    )
    assert cluster.sides() == {"csi" if on else "in-tree"}


def test_the_role_is_what_it_takes_and_no_more(cluster: Cluster) -> None:
    """Comes last: by now everything has been asked for."""
    asked = cluster.plane.asked_by_roles()
    granted = [it for it in asked if it["responseStatus"]["code"] != FORBIDDEN]
    refused = [it for it in asked if it["responseStatus"]["code"] == FORBIDDEN]
    # An API server that has just started refuses what it allows a moment later.
    assert set(map(place, refused)) <= set(map(place, granted))
    used = {right(it) for it in granted if "objectRef" in it}
    allowed = {
        f"{verb} {resource}"
        for obj in yaml.safe_load_all((ROLES / "apply.yaml").read_text())
        for rule in obj.get("rules", [])
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    # Only volumes of Portworx are annotated; what was written is read where an answer was lost.
    # Only the attachment of an inline volume may be forgotten (test_forgotten.py).
    assert allowed - used <= {
        "patch persistentvolumes",
        "get configmaps",
        "get volumeattachments",
        "delete volumeattachments",
    }
    asked_there = [it for it in granted if it.get("objectRef", {}).get("name") == CONTROLLER]
    assert {right(it) for it in asked_there} == {"get leases", "patch leases"}


def place(asked: Object) -> tuple[str, str]:
    return asked["verb"], urlsplit(asked["requestURI"]).path


def right(asked: Object) -> str:
    about = asked["objectRef"]
    parts = (about["resource"], about.get("subresource"))
    return f"{asked['verb']} {'/'.join(filter(None, parts))}"
