"""The proof and the sandbox, two models of one Kubernetes, must not contradict each other.

A course is any order of switches. What the proof calls safe is lived through in the sandbox, with
controllers that restart and pods that change at bad moments: no disk may be taken from a pod that
runs, and in the end every pod runs.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from replant.proof import BadState, verify
from replant.sandbox.cluster import Cluster
from replant.sandbox.resources import PODS
from tests.proof.making import Making
from tests.sandbox.playing import OFF, ON, UNREGISTERED
from tests.sandbox.test_disks import (
    NODE_NAMES,
    all_run,
    drain,
    running_database,
    switch_controllers,
)
from tests.sandbox.test_disks import cordon as cordon_node

AWS = Making()
GATES = {"off": OFF, "on": ON, "unregistered": UNREGISTERED}
Move = tuple[str, str]

MOVES = st.one_of(
    st.tuples(st.just("controllers"), st.sampled_from(sorted(GATES))),
    st.tuples(st.sampled_from(["drained", "in place"]), st.sampled_from(["off", "on"])),
)


def proved(moves: list[Move]) -> StrEnum | None:
    made: list[Any] = []
    for what, gates in moves:
        if what == "controllers":
            made.append(AWS.switch(GATES[gates]))
        else:
            made.append(AWS.nodes(GATES[gates], "n", drain=what == "drained"))
    return verify(AWS.course(OFF, (AWS.group("n", OFF),), *made)).bad_state


def live(moves: list[Move]) -> Cluster:
    cluster = running_database()
    for what, gates in moves:
        if what == "controllers":
            switch_controllers(cluster, GATES[gates])
            continue
        for name in NODE_NAMES:
            if what == "drained":
                drain(cluster, name)
            cluster.restart_kubelet(name, GATES[gates])
            cluster.run_for(5)
            cordon_node(cluster, name, cordoned=False)
            cluster.run_for(30)
        if what == "drained":
            switch_controllers(cluster, gates_of_leader(cluster))
    happen(cluster)
    return cluster


def gates_of_leader(cluster: Cluster) -> dict[str, bool]:
    leader = cluster.control_plane.leader
    assert leader is not None
    return dict(leader.process.gates)


def happen(cluster: Cluster) -> None:
    """What happens in any cluster sooner or later: controllers restart, pods change."""
    for name in ("db-0", "db-1"):
        if cluster.store.find(PODS, name, "default"):
            pod = cluster.store.get(PODS, name, "default")
            pod["metadata"]["labels"]["touched"] = "true"
            cluster.store.update(PODS, pod)
    cluster.run_for(200)
    switch_controllers(cluster, gates_of_leader(cluster))
    cluster.run_for(60)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(moves=st.lists(MOVES, max_size=4))
def test_what_is_proved_safe_is_safe_to_live_through(moves: list[Move]) -> None:
    bad_state = proved(moves)
    cluster = live(moves)

    # The proof does not go on from within a bad state, so what it tells may come before a yank.
    if cluster.writes.yanked() or not all_run(cluster):
        assert bad_state is not None


def test_what_is_lived_through_badly_is_proved_bad() -> None:
    moves = [("controllers", "on"), ("in place", "on")]

    assert proved(moves) is BadState.YANKED
    assert live(moves).writes.yanked()
