"""LimitRanges and ResourceQuotas: what pods and claims are given, and what is refused."""

from __future__ import annotations

import pytest

from replant.objects import Object
from replant.sandbox.admission import Admission
from replant.sandbox.cluster import Cluster
from replant.sandbox.refusals import ApiError
from replant.sandbox.resources import (
    DEPLOYMENTS,
    LIMIT_RANGES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    RESOURCE_QUOTAS,
)
from tests.sandbox.playing import claim_object, new_cluster, pod_object, reasons


def cluster_of(
    limits: list[Object] | None = None, hard: Object | None = None, **spec: object
) -> Cluster:
    cluster = new_cluster()
    cluster.add_node("node")
    Admission(cluster.store, lambda: "1.24.17")
    if limits:
        made = {"metadata": {"name": "range"}, "spec": {"limits": limits}}
        cluster.store.create(LIMIT_RANGES, made, namespace="default")
    if hard:
        quota = {"metadata": {"name": "quota"}, "spec": {"hard": hard, **spec}}
        cluster.store.create(RESOURCE_QUOTAS, quota, namespace="default")
    return cluster


def pod(name: str = "app", requests: Object | None = None, limits: Object | None = None) -> Object:
    made = pod_object(name)
    asked = {"requests": requests, "limits": limits}
    made["spec"]["containers"][0]["resources"] = {k: v for k, v in asked.items() if v}
    return made


def refusal(cluster: Cluster, made: Object) -> str:
    resource = PODS if "containers" in made["spec"] else PERSISTENT_VOLUME_CLAIMS
    try:
        cluster.store.create(resource, made, namespace="default")
    except ApiError as error:
        return error.message.partition(" is forbidden: ")[2]
    return ""


# LimitRanges


def test_containers_that_do_not_say_are_given_limits() -> None:
    limit = {"type": "Container", "max": {"cpu": "2"}, "defaultRequest": {"memory": "1Gi"}}
    cluster = cluster_of([limit])
    assert refusal(cluster, pod(requests={"cpu": "1"})) == ""
    made = cluster.store.get(PODS, "app", "default")
    assert made["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": "1", "memory": "1Gi"},
        "limits": {"cpu": "2"},
    }
    assert made["metadata"]["annotations"]["kubernetes.io/limit-ranger"] == (
        "LimitRanger plugin set: memory request for container main; cpu limit for container main"
    )


@pytest.mark.parametrize(
    ("limit", "requests", "limits", "why"),
    [
        ({"max": {"cpu": "1"}}, {"cpu": "500m"}, {"cpu": "1"}, ""),
        (
            {"max": {"cpu": "1"}},
            {},
            {"cpu": "1500m"},
            "maximum cpu usage per Container is 1, but limit is 1500m",
        ),
        (
            {"min": {"memory": "1Gi"}},
            {"memory": "512Mi"},
            {},
            "minimum memory usage per Container is 1Gi, but request is 512Mi",
        ),
        (
            {"type": "Pod", "max": {"cpu": "1"}},
            {"cpu": "1"},
            {},
            "maximum cpu usage per Pod is 1.  No limit is specified",
        ),
        (
            {"type": "Pod", "min": {"cpu": "1"}, "max": {"memory": "1Gi"}},
            {"cpu": "500m"},
            {"memory": "2Gi"},
            (
                "[minimum cpu usage per Pod is 1, but request is 500m, "
                "maximum memory usage per Pod is 1Gi, but limit is 2Gi]"
            ),
        ),
    ],
)
def test_a_pod_that_asks_for_too_little_or_too_much(
    limit: Object, requests: Object, limits: Object, why: str
) -> None:
    assert (
        refusal(cluster_of([{"type": "Container", **limit}]), pod("app", requests, limits)) == why
    )


@pytest.mark.parametrize(
    ("limit", "why"),
    [
        ({"min": {"storage": "1Gi"}, "max": {"storage": "1Gi"}}, ""),
        (
            {"min": {"storage": "2Gi"}},
            "minimum storage usage per PersistentVolumeClaim is 2Gi, but request is 1Gi",
        ),
        (
            {"max": {"storage": "500Mi"}},
            "maximum storage usage per PersistentVolumeClaim is 500Mi, but request is 1Gi",
        ),
    ],
)
def test_a_claim_that_is_too_small_or_too_large(limit: Object, why: str) -> None:
    cluster = cluster_of([{"type": "PersistentVolumeClaim", **limit}])
    assert refusal(cluster, claim_object("data", storageClassName="")) == why


# ResourceQuotas


@pytest.mark.parametrize(
    ("hard", "why"),
    [
        ({"pods": "2"}, ""),
        ({"pods": "1"}, "exceeded quota: quota, requested: pods=1, used: pods=1, limited: pods=1"),
        (
            {"requests.cpu": "1", "count/pods": "5"},
            (
                "exceeded quota: quota, requested: requests.cpu=750m, used: requests.cpu=750m,"
                " limited: requests.cpu=1"
            ),
        ),
        (
            {"limits.memory": "1Gi"},
            "failed quota: quota: must specify limits.memory for: main",
        ),
    ],
)
def test_the_second_pod(hard: Object, why: str) -> None:
    cluster = cluster_of()
    assert refusal(cluster, pod("first", {"cpu": "750m"})) == ""
    quota = {"metadata": {"name": "quota"}, "spec": {"hard": hard}}
    cluster.store.create(RESOURCE_QUOTAS, quota, namespace="default")
    assert refusal(cluster, pod("second", {"cpu": "750m"})) == why


def test_a_claim_counts_for_its_class_too() -> None:
    of_class = "fast.storageclass.storage.k8s.io/requests.storage"
    cluster = cluster_of(hard={of_class: "1Gi"})
    assert refusal(cluster, claim_object("a", storageClassName="fast")) == ""
    assert refusal(cluster, claim_object("b", storageClassName="slow")) == ""
    assert refusal(cluster, claim_object("c", storageClassName="fast")) == (
        f"exceeded quota: quota, requested: {of_class}=1Gi,"
        f" used: {of_class}=1Gi, limited: {of_class}=1Gi"
    )


def test_a_quota_with_scopes_is_passed_over() -> None:
    cluster = cluster_of(hard={"pods": "0"}, scopes=["BestEffort"])
    assert refusal(cluster, pod()) == ""


def test_a_pod_that_ends_takes_its_room_until_its_grace_period_is_over() -> None:
    """So the successor of a pod that is evicted comes late where a quota is full."""
    cluster = cluster_of(hard={"pods": "1"})
    template = pod()
    template["metadata"] = {
        "labels": {"app": "web"},
        "annotations": {"sandbox.replant.dev/ends-after": "20"},
    }
    template["spec"]["terminationGracePeriodSeconds"] = 30
    selector = {"matchLabels": {"app": "web"}}
    spec = {"replicas": 1, "selector": selector, "template": template}
    cluster.store.create(
        DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": spec}, namespace="default"
    )
    cluster.run_for(30)
    [first] = cluster.store.list(PODS, "default")
    cluster.store.delete(PODS, first["metadata"]["name"], "default")
    cluster.run_for(15)
    assert [it["metadata"]["uid"] for it in cluster.store.list(PODS, "default")] == [
        first["metadata"]["uid"]
    ]
    owner = first["metadata"]["ownerReferences"][0]["name"]
    assert "FailedCreate" in reasons(cluster, owner)
    cluster.run_for(30)
    [second] = cluster.store.list(PODS, "default")
    assert second["status"]["phase"] == "Running"
