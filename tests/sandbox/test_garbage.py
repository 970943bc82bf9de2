"""What becomes of objects whose owners go: the same that became of them on real Kubernetes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import httpx
import pytest

from replant.objects import Object
from replant.sandbox.resources import CONFIG_MAPS, DEFINITIONS, defined_resources
from replant.sandbox.scenario import Pool, Scenario
from replant.sandbox.server import Sandbox, open_port, serving
from replant.sandbox.shelves import Entry
from tests.real import records
from tests.sandbox import families
from tests.sandbox.families import FAMILIES
from tests.sandbox.playing import new_cluster

SEEN = records.read("garbage-1.24.17")
SCENARIO = Scenario(
    api_version="replant.dev/v1alpha1", kind="Scenario", pools=(Pool(name="workers"),)
)


@pytest.fixture(scope="module")
def left() -> Iterator[Any]:
    """What is left of all families, which live side by side."""
    with (
        closing(open_port(0)) as listening,
        serving(Sandbox.of(SCENARIO, by_hand=True), listening) as address,
        httpx.Client(base_url=address, trust_env=False, timeout=30) as http,
    ):
        definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        http.post(definitions, json=families.DEFINITION).raise_for_status()

        def pause() -> None:
            http.post("/sandbox/clock", json={"runFor": 1}).raise_for_status()

        yield families.left(http, FAMILIES, pause)


@pytest.mark.parametrize("family", [it.name for it in FAMILIES])
def test_what_is_left_is_what_real_kubernetes_leaves(family: str, left: Any) -> None:
    assert left[family] == SEEN[family]


def belonging(owner: Entry, kind: str, api_version: str) -> Object:
    reference = {"apiVersion": api_version, "kind": kind, "name": owner.name, "uid": owner.uid}
    return {"metadata": {"name": "child", "ownerReferences": [reference]}}


def test_what_belongs_to_a_kind_that_is_no_longer_served_goes_too() -> None:
    cluster = new_cluster()
    cluster.store.create(DEFINITIONS, dict(families.DEFINITION))
    (kin,) = defined_resources(families.DEFINITION)
    owner = cluster.store.create(kin, {"metadata": {"name": "a"}})
    cluster.store.create(CONFIG_MAPS, belonging(owner, "Kin", kin.api_version))
    cluster.run_for(1)
    assert cluster.store.find(CONFIG_MAPS, "child", "default")

    cluster.store.delete(DEFINITIONS, f"kins.{families.GROUP}")
    cluster.run_for(1)

    assert not cluster.store.find(CONFIG_MAPS, "child", "default")


def test_what_belongs_to_a_kind_that_is_not_yet_served_is_looked_at_once_it_is() -> None:
    cluster = new_cluster()
    (kin,) = defined_resources(families.DEFINITION)
    nobody = Entry(kin, "default", "a", families.NOBODY, 0, {}, {}, b"")
    cluster.store.create(CONFIG_MAPS, belonging(nobody, "Kin", kin.api_version))
    cluster.run_for(1)
    assert cluster.store.find(CONFIG_MAPS, "child", "default")

    cluster.store.create(DEFINITIONS, dict(families.DEFINITION))
    cluster.run_for(1)

    assert not cluster.store.find(CONFIG_MAPS, "child", "default")


def test_nothing_is_collected_while_nobody_leads() -> None:
    cluster = new_cluster()
    owner = cluster.store.create(CONFIG_MAPS, {"metadata": {"name": "a"}})
    cluster.store.create(CONFIG_MAPS, belonging(owner, "ConfigMap", "v1"))
    cluster.run_for(1)
    cluster.switch_controller(0, {})
    assert cluster.control_plane.leader is None
    cluster.store.delete(CONFIG_MAPS, "a", "default")
    cluster.settle()
    assert cluster.store.find(CONFIG_MAPS, "child", "default")

    cluster.run_for(60)

    assert not cluster.store.find(CONFIG_MAPS, "child", "default")


def test_every_family_is_on_record() -> None:
    assert [it.name for it in FAMILIES] == list(SEEN)
