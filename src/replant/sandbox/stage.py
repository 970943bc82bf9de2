"""A scenario becomes a cluster: its nodes join, its objects are there, and its pods come to run."""

from __future__ import annotations

from collections.abc import Iterator

from replant.sandbox.clock import Clock
from replant.sandbox.cluster import Cluster
from replant.sandbox.controllers.openshift import Asked
from replant.sandbox.controllers.openshift.objects import role
from replant.sandbox.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, Registry
from replant.sandbox.scenario import Pool, Scenario, objects
from replant.sandbox.store import Store


def set_up(scenario: Scenario, store: Store, registry: Registry, clock: Clock) -> Cluster:
    """The cluster that a scenario describes; nothing in it has moved yet."""
    cluster = Cluster(
        store,
        registry,
        clock,
        version=scenario.kubernetes_version,
        gates=scenario.control_plane.gates,
        flags=scenario.control_plane.flags,
        replicas=scenario.control_plane.replicas,
        attach_controller=scenario.adc,
        provider=scenario.cloud,
    )
    for driver in scenario.drivers:
        cluster.run_driver(driver)
    for pool in scenario.pools:
        for name, zone in _names(pool):
            cluster.add_node(
                name,
                pool.gates,
                version=pool.version,
                zone=zone,
                drivers=pool.drivers,
                labels=pool.labels | ({role(pool.name): ""} if scenario.openshift else {}),
            )
    if scenario.openshift:
        cluster.be_openshift(
            Asked(
                scenario.openshift.feature_sets,
                scenario.control_plane.gates,
                tuple(it.name for it in scenario.pools),
                scenario.openshift.platform,
            )
        )
    claim_uid = ""
    for obj in objects(scenario):
        resource = registry.of_kind(obj["apiVersion"], obj["kind"])
        assert resource is not None  # noqa: S101 - a scenario makes only what is served
        if resource is PERSISTENT_VOLUMES:
            # A volume knows its claim by the uid, which the claim has only now.
            obj["spec"]["claimRef"]["uid"] = claim_uid
        entry = store.create(resource, obj, as_it_was=True)
        if resource is PERSISTENT_VOLUME_CLAIMS:
            claim_uid = entry.uid
    return cluster


def _names(pool: Pool) -> Iterator[tuple[str, str]]:
    for number in range(pool.count):
        yield f"{pool.name}-{number}", pool.zones[number % len(pool.zones)]
