"""OpenShift's operators beside those of gates: credentials, and what comes from a catalogue."""

from __future__ import annotations

from replant.objects import Object
from replant.sandbox.cluster import Cluster
from replant.sandbox.controllers.openshift import Asked
from replant.sandbox.controllers.openshift.objects import CONFIG, CREDENTIALS, LIFECYCLE
from replant.sandbox.resources import DEPLOYMENTS, NAMESPACES, SECRETS, Resource
from tests.sandbox.playing import new_cluster


def openshift(platform: str = "") -> Cluster:
    cluster = new_cluster(replicas=3)
    cluster.add_node("n", labels={"node-role.kubernetes.io/worker": ""})
    cluster.be_openshift(Asked((), {}, ("worker",), platform))
    cluster.run_for(10)
    return cluster


def served(cluster: Cluster, api_version: str, kind: str) -> Resource:
    found = cluster.registry.of_kind(api_version, kind)
    assert found
    return found


def test_an_infrastructure_may_say_where_it_is() -> None:
    for platform, said in (("AWS", {"platformStatus": {"type": "AWS"}}), ("", None)):
        cluster = openshift(platform)
        found = cluster.store.get(served(cluster, CONFIG, "Infrastructure"), "cluster")
        assert (found.get("status") or None) == said


def test_credentials_are_given_once_there_is_a_place_for_them_and_again_when_lost() -> None:
    cluster = openshift()
    requests = served(cluster, CREDENTIALS, "CredentialsRequest")
    spec = {"secretRef": {"name": "s", "namespace": "drivers"}}
    cluster.store.create(NAMESPACES, {"metadata": {"name": "asking"}})
    metadata = {"name": "r", "namespace": "asking"}
    cluster.store.create(requests, {"metadata": metadata, "spec": spec})
    cluster.run_for(30)
    assert "status" not in cluster.store.get(requests, "r", "asking")
    cluster.store.create(NAMESPACES, {"metadata": {"name": "drivers"}})
    cluster.run_for(30)
    assert cluster.store.get(requests, "r", "asking")["status"]["provisioned"] is True
    assert cluster.store.get(SECRETS, "s", "drivers")["data"]
    cluster.store.delete(SECRETS, "s", "drivers")
    cluster.run_for(30)
    assert cluster.store.find(SECRETS, "s", "drivers")


def test_credentials_that_are_there_already_will_do() -> None:
    cluster = openshift()
    requests = served(cluster, CREDENTIALS, "CredentialsRequest")
    metadata = {"name": "s", "namespace": "default"}
    cluster.store.create(SECRETS, {"metadata": metadata, "data": {"mine": "eA=="}})
    spec = {"secretRef": metadata}
    cluster.store.create(requests, {"metadata": {**metadata, "name": "r"}, "spec": spec})
    cluster.run_for(30)
    assert cluster.store.get(requests, "r", "default")["status"]["provisioned"] is True
    assert cluster.store.get(SECRETS, "s", "default")["data"] == {"mine": "eA=="}


def operator(cluster: Cluster) -> tuple[Resource, Resource]:
    """One that was subscribed to, and runs."""
    subscriptions = served(cluster, LIFECYCLE, "Subscription")
    versions = served(cluster, LIFECYCLE, "ClusterServiceVersion")
    labels = {"name": "o"}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "c", "image": "o"}]},
    }
    deployment = {"selector": {"matchLabels": labels}, "template": template}
    install: Object = {"spec": {"deployments": [{"name": "o", "spec": deployment}]}}
    cluster.store.create(
        versions,
        {"metadata": {"name": "o.v1", "namespace": "default"}, "spec": {"install": install}},
    )
    metadata = {"name": "o", "namespace": "default"}
    status = {"currentCSV": "o.v1"}
    cluster.store.create(
        subscriptions,
        {"metadata": metadata, "spec": {"name": "o"}, "status": status},
        as_it_was=True,
    )
    cluster.run_for(30)
    assert cluster.store.find(DEPLOYMENTS, "o", "default")
    return subscriptions, versions


def test_an_operator_that_is_subscribed_to_comes_back() -> None:
    cluster = openshift()
    _, versions = operator(cluster)
    cluster.store.delete(DEPLOYMENTS, "o", "default")
    cluster.run_for(30)
    assert cluster.store.find(DEPLOYMENTS, "o", "default")
    cluster.store.delete(versions, "o.v1", "default")
    cluster.run_for(30)
    assert cluster.store.find(versions, "o.v1", "default")
    assert cluster.store.find(DEPLOYMENTS, "o", "default")


def test_without_a_subscription_it_stays_until_its_version_goes() -> None:
    cluster = openshift()
    subscriptions, versions = operator(cluster)
    cluster.store.delete(subscriptions, "o", "default")
    cluster.run_for(30)
    assert cluster.store.find(DEPLOYMENTS, "o", "default")
    cluster.store.delete(versions, "o.v1", "default")
    assert cluster.store.find(DEPLOYMENTS, "o", "default")
    cluster.run_for(30)
    assert not cluster.store.find(versions, "o.v1", "default")
    assert not cluster.store.find(DEPLOYMENTS, "o", "default")
