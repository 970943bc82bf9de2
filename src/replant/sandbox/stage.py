"""A scenario becomes a cluster: its nodes join, its objects are there, and its pods come to run."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from replant.objects import Object
from replant.sandbox.clock import Clock
from replant.sandbox.cluster import Cluster
from replant.sandbox.scenario import Pool, Scenario, objects
from replant.sandbox.store import Store

Load = Callable[[Object], str]
"""Puts an object into the store, and gives its uid."""


def set_up(scenario: Scenario, store: Store, clock: Clock, load: Load) -> Cluster:
    """The cluster that a scenario describes; nothing in it has moved yet."""
    cluster = Cluster(
        store,
        clock,
        version=scenario.kubernetes_version,
        gates=scenario.control_plane.gates,
        replicas=scenario.control_plane.replicas,
        attach_controller=scenario.adc,
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
                labels=pool.labels,
            )
    uids: dict[tuple[str, str], str] = {}
    for obj in objects(scenario):
        if obj["kind"] == "PersistentVolume" and (claim := obj["spec"].get("claimRef")):
            # A volume knows its claim by the uid, which the claim has only now.
            claim["uid"] = uids.pop((claim["namespace"], claim["name"]), "")
        uid = load(obj)
        if obj["kind"] == "PersistentVolumeClaim":
            uids[obj["metadata"]["namespace"], obj["metadata"]["name"]] = uid
    return cluster


def _names(pool: Pool) -> Iterator[tuple[str, str]]:
    for number in range(pool.count):
        yield f"{pool.name}-{number}", pool.zones[number % len(pool.zones)]
