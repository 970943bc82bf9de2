"""How pods of a workload are replaced: step by step as real Kubernetes does it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import httpx
import msgspec
import pytest

from replant.objects import Object
from replant.sandbox.changes import Deletion
from replant.sandbox.cluster import Cluster
from replant.sandbox.resources import (
    CONTROLLER_REVISIONS,
    DAEMON_SETS,
    DEPLOYMENTS,
    ORPHAN,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    Resource,
)
from replant.sandbox.scenario import Pool, Scenario
from replant.sandbox.server import Sandbox, open_port, serving
from tests.real import records
from tests.sandbox import rollouts
from tests.sandbox.playing import DRIVER, ON, claim_object, new_cluster, phase, storage_class
from tests.sandbox.rollouts import ROLLOUTS

SEEN = records.read("rollouts-1.24.17")
SCENARIO = Scenario(
    api_version="replant.dev/v1alpha1", kind="Scenario", pools=(Pool(name="none", count=0),)
)


@pytest.fixture(scope="module")
def told() -> Iterator[Any]:
    """What is seen of all rollouts, which happen side by side."""
    with (
        closing(open_port(0)) as listening,
        serving(Sandbox.of(SCENARIO, by_hand=True), listening) as address,
        httpx.Client(base_url=address, trust_env=False, timeout=30) as http,
    ):

        def pause() -> None:
            http.post("/sandbox/clock", json={"runFor": 1}).raise_for_status()

        yield rollouts.told(http, ROLLOUTS, pause)


@pytest.mark.parametrize("rollout", [it.name for it in ROLLOUTS])
def test_every_step_is_that_of_real_kubernetes(rollout: str, told: Any) -> None:
    assert told[rollout] == SEEN[rollout]


# Beside rollouts


def web(**spec: Any) -> Object:
    labels = {"app": "web"}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "c", "image": "1"}]},
    }
    whole: Object = {
        "selector": {"matchLabels": labels},
        "template": template,
        "serviceName": "web",
    }
    return {"metadata": {"name": "web"}, "spec": {**whole, **spec}}


def cluster_with(resource: Resource, **spec: Any) -> Cluster:
    cluster = new_cluster()
    for name in ("one", "two"):
        cluster.add_node(name)
    cluster.store.create(resource, web(**spec))
    cluster.run_for(60)
    return cluster


def pods(cluster: Cluster) -> dict[str, str]:
    """The uid of each pod, by its name."""
    return {it.name: it.uid for it in cluster.store.entries(PODS, "default")}


def change(cluster: Cluster, resource: Resource, image: str) -> None:
    obj = cluster.store.get(resource, "web", "default")
    obj["spec"]["template"]["spec"]["containers"][0]["image"] = image
    cluster.store.update(resource, obj)


@pytest.mark.parametrize("resource", [STATEFUL_SETS, DAEMON_SETS, REPLICA_SETS, DEPLOYMENTS],
                         ids=lambda it: it.kind)  # fmt: skip
def test_what_was_left_behind_is_taken_over_by_the_next_of_that_name(resource: Resource) -> None:
    cluster = cluster_with(resource, **({} if resource is DAEMON_SETS else {"replicas": 2}))
    before = pods(cluster)
    assert len(before) == 2
    cluster.store.delete(resource, "web", "default", Deletion(propagation=ORPHAN))
    cluster.run_for(60)
    assert not cluster.store.find(resource, "web", "default")
    assert pods(cluster) == before

    cluster.store.create(resource, web(**({} if resource is DAEMON_SETS else {"replicas": 2})))
    cluster.run_for(60)

    assert pods(cluster) == before
    status = cluster.store.get(resource, "web", "default")["status"]
    assert status.get("numberReady", status.get("readyReplicas")) == 2
    cluster.store.delete(resource, "web", "default")
    cluster.run_for(60)
    assert pods(cluster) == {}


@pytest.mark.parametrize("resource", [STATEFUL_SETS, DAEMON_SETS], ids=lambda it: it.kind)
def test_pods_that_were_loaded_without_their_history_are_left_alone(resource: Resource) -> None:
    """As they are in a dump of a cluster whose controllers have other names for templates."""
    first = cluster_with(resource)
    other = new_cluster()
    for name in ("one", "two"):
        other.add_node(name)
    loaded = [first.store.get(resource, "web", "default"), *first.store.list(PODS, "default")]
    for obj in loaded:
        text = msgspec.json.encode(obj).replace(b"-4000-8000-", b"-4000-9000-")
        name = first.store.entries(CONTROLLER_REVISIONS)[0].name.rpartition("-")[2]
        renamed = msgspec.json.decode(text.replace(name.encode(), b"5d8c9f"))
        kind = resource if obj["kind"] == resource.kind else PODS
        other.store.create(kind, renamed, as_it_was=True)
    before = pods(other)

    other.run_for(60)

    assert pods(other) == before
    change(other, resource, "2")
    other.run_for(120)
    assert set(pods(other).values()).isdisjoint(before.values())


def test_old_templates_are_forgotten_beyond_the_limit() -> None:
    cluster = cluster_with(STATEFUL_SETS, revisionHistoryLimit=2)
    for image in "23456":
        change(cluster, STATEFUL_SETS, image)
        cluster.run_for(60)

    kept = [it["revision"] for it in cluster.store.list(CONTROLLER_REVISIONS)]
    assert sorted(kept) == [4, 5, 6]


def test_a_deployment_keeps_as_many_old_replica_sets_as_it_says() -> None:
    cluster = cluster_with(DEPLOYMENTS, replicas=1, revisionHistoryLimit=2)
    for image in "23456":
        change(cluster, DEPLOYMENTS, image)
        cluster.run_for(60)

    sets = cluster.store.list(REPLICA_SETS)
    said = {it["metadata"]["annotations"]["deployment.kubernetes.io/revision"] for it in sets}
    assert said == {"4", "5", "6"}


def test_a_pod_counts_once_it_has_been_ready_for_long_enough() -> None:
    cluster = cluster_with(DEPLOYMENTS, replicas=2, minReadySeconds=90)

    def status() -> Object:
        found: Object = cluster.store.get(DEPLOYMENTS, "web", "default")["status"]
        return found

    assert (status()["readyReplicas"], status().get("availableReplicas")) == (2, None)
    cluster.run_for(60)
    assert status()["availableReplicas"] == 2


def test_a_deployment_says_when_it_does_not_get_on() -> None:
    cluster = new_cluster()
    cluster.store.create(DEPLOYMENTS, web(replicas=1, progressDeadlineSeconds=100))

    def reason() -> str:
        conditions = cluster.store.get(DEPLOYMENTS, "web", "default")["status"]["conditions"]
        return next(str(it["reason"]) for it in conditions if it["type"] == "Progressing")

    cluster.run_for(90)
    assert reason() == "ReplicaSetUpdated"
    cluster.run_for(20)
    assert reason() == "ProgressDeadlineExceeded"
    cluster.add_node("one")
    cluster.run_for(20)
    assert reason() == "NewReplicaSetAvailable"


def test_volumes_follow_the_pods_of_a_set_that_is_rolled() -> None:
    cluster = new_cluster(gates=ON)
    cluster.run_driver(DRIVER)
    for name in ("one", "two"):
        cluster.add_node(name, ON, drivers=[DRIVER])
    cluster.store.create(STORAGE_CLASSES, storage_class())
    claims = [
        {"metadata": {"name": "data"}, "spec": claim_object("", storageClassName="trial")["spec"]}
    ]
    cluster.store.create(STATEFUL_SETS, web(replicas=2, volumeClaimTemplates=claims))
    cluster.run_for(120)
    disks = {it["spec"]["volumeName"] for it in cluster.store.list(PERSISTENT_VOLUME_CLAIMS)}
    before = pods(cluster)
    change(cluster, STATEFUL_SETS, "2")
    cluster.run_for(120)

    assert set(pods(cluster)) == set(before)
    assert set(pods(cluster).values()).isdisjoint(before.values())
    assert all(phase(cluster, PODS, it) == "Running" for it in before)
    after = {it["spec"]["volumeName"] for it in cluster.store.list(PERSISTENT_VOLUME_CLAIMS)}
    assert after == disks
    assert cluster.writes.yanked() == []


def test_every_rollout_is_on_record() -> None:
    assert [it.name for it in ROLLOUTS] == list(SEEN)
