"""What is joined and counted, what is narrowed down, and what is passed over."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replant.cluster.files import FileReader
from replant.inventory.build import Builder
from replant.inventory.findings import PluginCounts, ReadCount, Severity, Verdict
from replant.inventory.quantities import amount
from replant.inventory.scan import scan
from replant.inventory.selectors import Selector
from replant.manifests.sources import Source
from tests.inventory.clusters import (
    AWS,
    EBS,
    budget,
    claim_ref,
    component,
    driver,
    found,
    inventory_of,
    node,
    obj,
    pod,
    pv,
    pvc,
    scanned,
    storage_class,
)


def owned(kind: str, name: str) -> dict[str, Any]:
    return {"ownerReferences": [{"kind": kind, "name": name, "controller": True}]}


def test_a_plugin_is_counted_with_all_that_uses_it() -> None:
    result = scanned(
        pv("a", capacity={"storage": "10Gi"}, claimRef=claim_ref("a")),
        pv("b", capacity={"storage": "1Ti"}, claimRef=claim_ref("b")),
        pv("c", csi={"driver": EBS}),
        pvc("a"),
        pvc("b"),
        storage_class(),
        storage_class("gp3", EBS),
        pod("a-1", claim="a", nodeName="n1", metadata=owned("ReplicaSet", "a-5d4f8c7b9")),
        pod("a-2", claim="a", nodeName="n2", metadata=owned("ReplicaSet", "a-5d4f8c7b9")),
        pod("b-0", claim="b", nodeName="n1", metadata=owned("StatefulSet", "b")),
        node("n1"),
        driver(),
    )
    assert result.plugins == {
        AWS: PluginCounts(
            EBS, volumes=2, bytes=10 * 2**30 + 2**40, claims=2, classes=1, workloads=2, nodes=2
        )
    }
    assert result.read["Pod"] == ReadCount(3, 3, 0)


@pytest.mark.parametrize(
    ("objects", "options", "verdict"),
    [
        ([], {}, Verdict.NOTHING_TO_DO),
        ([pv(csi={"driver": EBS})], {}, Verdict.NOTHING_TO_DO),
        ([pv(), driver()], {}, Verdict.READY),
        ([pv()], {}, Verdict.NOT_READY),
        ([pv(glusterfs={})], {}, Verdict.NOT_READY),
    ],
)
def test_the_verdict(objects: list[Any], options: dict[str, Any], verdict: Verdict) -> None:
    assert scanned(*objects, **options).verdict is verdict


def test_what_may_not_be_read_makes_nobody_ready() -> None:
    inventory = inventory_of([])
    inventory.unknown = {"PersistentVolume": "you may not list it"}
    result = scan(inventory)
    assert result.verdict is Verdict.NOT_READY
    (finding,) = found(result, "RP002")
    assert finding.severity is Severity.WARNING
    assert "you may not list it" in finding.reason


def test_a_namespace_limits_claims_workloads_and_their_volumes() -> None:
    objects = [
        pv("here", claimRef=claim_ref("a", "shop")),
        pv("there", claimRef=claim_ref("a", "test")),
        pv("free"),
        pvc("a", "shop"),
        pvc("a", "test"),
        pod("p", "test", volumes=[{"name": "d", "cinder": {"volumeID": "x"}}]),
        storage_class(),
    ]
    result = scanned(*objects, namespace="shop")
    names = {str(it.object) for it in result.findings}
    assert "PersistentVolume here" in names
    assert not names & {"PersistentVolume there", "PersistentVolume free", "Pod test/p"}
    assert result.plugins[AWS].claims == 1


def test_a_selector_limits_volumes_and_claims() -> None:
    objects = [
        pv("a", metadata={"labels": {"app": "db"}}),
        pv("b", metadata={"labels": {"app": "web"}}),
        pv("c", claimRef=claim_ref("c")),
        pvc("c", metadata={"labels": {"app": "db"}}),
    ]
    result = scanned(*objects, selector="app=db")
    names = {it.object.name for it in found(result, "RP101")}
    assert names == {"a", "c"}


@pytest.mark.parametrize(
    ("text", "labels", "matches"),
    [
        ("app=db", {"app": "db"}, True),
        ("app==db", {"app": "web"}, False),
        ("app!=db", {}, True),
        ("app!=db, tier = x", {"tier": "x"}, True),
        ("env in (a, b)", {"env": "b"}, True),
        ("env notin (a,b)", {"env": "b"}, False),
        ("env notin (a,b)", {}, True),
        ("example.com/x", {"example.com/x": ""}, True),
        ("!old", {"old": "1"}, False),
        ("app=", {"app": ""}, True),
    ],
)
def test_selectors(text: str, labels: dict[str, str], matches: bool) -> None:
    assert Selector.parse(text).matches(labels) is matches


@pytest.mark.parametrize("text", ["", "=", "a=b,", "a in b", "a=b c=d", "!", "a=(b)", ","])
def test_other_texts_are_no_selectors(text: str) -> None:
    with pytest.raises(ValueError, match="is not a label selector"):
        Selector.parse(text)


@pytest.mark.parametrize(
    ("quantity", "number"),
    [
        ("10Gi", 10 * 2**30), ("1.5Ti", 3 * 2**39), ("500M", 5 * 10**8), ("12e6", 12 * 10**6),
        ("1E", 10**18), ("1000m", 1), (7, 7), ("", 0), (None, 0), ("x", 0), ("1.2.3", 0), (True, 0),
        ("1" * 400 + ".0", 0), ("1" * 400 + "m", 0),
    ],
)  # fmt: skip
def test_quantities(quantity: object, number: int) -> None:
    assert amount(quantity) == number


@given(st.one_of(st.text(), st.integers(), st.none()))
def test_no_quantity_is_too_odd(quantity: object) -> None:
    assert isinstance(amount(quantity), int)


def read(*texts: str) -> tuple[Builder, FileReader, list[str], list[str]]:
    builder = Builder()
    problems: list[str] = []
    notes: list[str] = []
    reader = FileReader(
        builder,
        problem=lambda it: problems.append(str(it)),
        note=lambda it: notes.append(str(it)),
    )
    for text in texts:
        reader.read(Source("dump", text.encode()))
    return builder, reader, problems, notes


def test_nothing_is_dropped_in_silence() -> None:
    odd = {**pv("odd"), "spec": []}
    old = {**pv("old"), "apiVersion": "v9"}
    items = [pv("a"), pv("a"), odd, old, {"kind": "ConfigMap"}, 3, pv("b")]
    builder, _, problems, notes = read(json.dumps({"kind": "List", "items": items}))
    assert builder.counts("PersistentVolume") == ReadCount(seen=5, used=2, passed_over=3)
    assert builder.counts("other") == ReadCount(seen=2, used=0, passed_over=2)
    assert [it.split(":")[0] for it in problems] == [
        "dump, document 1, item 2 is passed over",
        "dump, document 1, item 5 is passed over",
    ]
    assert notes == [
        "dump, document 1, item 1 is passed over: PersistentVolume a was there already",
        "dump, document 1, item 3 is passed over: PersistentVolume of the unknown version v9",
    ]


def test_a_list_inside_a_list_is_said() -> None:
    inner = {"apiVersion": "v1", "kind": "List", "items": [pv()]}
    _, _, problems, notes = read(json.dumps({"kind": "List", "items": [inner]}))
    assert problems == []
    assert notes == ["dump, document 1, item 0 is passed over: it is a list inside a list"]


def test_a_truncated_dump_is_said() -> None:
    _, _, problems, _ = read(json.dumps({"kind": "List", "items": [pv()]})[:-9])
    assert problems == ["dump, document 1: is not valid JSON: Input data was truncated"]


def test_a_kind_that_is_absent_is_unknown_and_an_empty_list_is_not() -> None:
    _, reader, _, _ = read(json.dumps(pv()), json.dumps({"kind": "CSIDriverList", "items": []}))
    assert {"PersistentVolume", "CSIDriver"}.isdisjoint(reader.unknown())
    assert "Pod" in reader.unknown()


def test_another_groups_word_is_not_ours() -> None:
    foreign = {"apiVersion": "example.com/v1", "kind": "StorageClass", "spec": 3}
    builder, reader, problems, notes = read(json.dumps(foreign))
    assert (problems, notes) == ([], [])
    assert "StorageClass" in reader.unknown()
    assert builder.counts("other").passed_over == 1


def test_yaml_and_json_give_the_same_inventory() -> None:
    import yaml

    objects = [pv(claimRef=claim_ref()), pod(claim="data", nodeName="n1"), storage_class()]
    whole = {"kind": "List", "items": objects}
    as_json, as_yaml = read(json.dumps(whole))[0], read(yaml.safe_dump(whole))[0]
    one, other = (it.finish(server=None, unknown={}) for it in (as_json, as_yaml))
    assert [it.as_object() for it in one.volumes] == [it.as_object() for it in other.volumes]
    assert (one.pods, one.classes) == (other.pods, other.classes)


def test_a_list_that_begins_again_is_counted_once() -> None:
    builder, _, _, _ = read(json.dumps({"kind": "List", "items": [pv("a"), pv("b"), pod()]}))
    builder.forget("PersistentVolume")
    assert builder.counts("PersistentVolume").seen == 0
    assert builder.counts("Pod").seen == 1
    complaints: list[object] = []
    reader = FileReader(builder, problem=complaints.append, note=complaints.append)
    reader.read(Source("dump", json.dumps(pv("a")).encode()))
    assert complaints == []
    inventory = builder.finish(server=None, unknown={})
    assert [it.name for it in inventory.volumes] == ["a"]


@pytest.mark.parametrize(
    ("given", "kept_in"),
    [
        (pv(), "volumes"),
        (pvc(), "claims"),
        (pod(claim="data"), "pods"),
        (component(), "control_plane"),
        (node(), "nodes"),
        (budget(), "budgets"),
    ],
)
def test_what_is_read_again_is_kept_once(given: dict[str, Any], kept_in: str) -> None:
    builder, reader, problems, notes = read(json.dumps(given))
    builder.forget(given["kind"])
    reader.read(Source("dump", json.dumps(given).encode()))
    assert (problems, notes) == ([], [])
    assert len(getattr(builder.finish(server=None, unknown={}), kept_in)) == 1


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob"])
def test_templates_of_every_kind_are_seen(kind: str) -> None:
    inner: Any = {"template": {"spec": {"volumes": [{"name": "d", "rbd": {"image": "a"}}]}}}
    spec = {"jobTemplate": {"spec": inner}} if kind == "CronJob" else inner
    inventory = inventory_of([obj(kind, "w", "shop", spec=spec)])
    assert [str(it.owner) for it in inventory.templates] == [f"{kind} shop/w"]


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "CronJob"])
def test_templates_that_name_their_node_are_known(kind: str) -> None:
    inner: Any = {"template": {"spec": {"nodeName": "n1"}}}
    spec = {"jobTemplate": {"spec": inner}} if kind == "CronJob" else inner
    given = obj(kind, "w", "shop", spec=spec)
    assert [str(it) for it in inventory_of([given]).pinned] == [f"{kind} shop/w"]
    builder, *_ = read(json.dumps(given))
    builder.forget(kind)
    assert builder.finish(server=None, unknown={}).pinned == set()
