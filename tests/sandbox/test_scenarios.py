"""Scenarios: each that ships comes up with everything running, and a mistake in one is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from replant.cli.documents import Document
from replant.cli.sandbox import SCENARIOS, of_scenario
from replant.errors import InputError
from replant.sandbox.resources import CSI_NODES, NODES, PERSISTENT_VOLUMES, PODS
from replant.sandbox.server import Sandbox

SHIPPED = Path(__file__).parents[2] / "src/replant/sandbox/scenarios"
LARGE = "5000-nodes"
SMALL = """\
apiVersion: replant.dev/v1alpha1
kind: Scenario
kubernetesVersion: 1.24.17
controlPlane: {gates: {CSIMigrationAWS: false}}
pools:
- {name: workers, count: 2, gates: {CSIMigrationAWS: false}}
classes:
- {name: gp2, plugin: aws-ebs}
workloads:
- {name: db, replicas: 2, storageClass: gp2}
"""
CLASS = "- {name: gp2, plugin: aws-ebs}\n"
SET = "- {name: db, replicas: 2, storageClass: gp2}\n"
SPARE = "- {storageClass: gp2, count: 1}\n"


def read(text: str, folder: Path) -> Document:
    path = folder / "scenario.yaml"
    path.write_text(text)
    return Document.read(str(path), 1)


def test_what_ships_is_what_is_offered() -> None:
    assert {path.stem for path in SHIPPED.iterdir()} == set(SCENARIOS)


@pytest.mark.parametrize("name", [it for it in SCENARIOS if it != LARGE])
def test_everything_runs_on_a_disk_that_is_where_its_pod_is(name: str) -> None:
    scenario = Document.read(str(SHIPPED / f"{name}.yaml"), 1).scenario()
    sandbox = Sandbox.of(scenario)
    store = sandbox.store
    pods = [it for it in store.list(PODS) if it["metadata"]["namespace"] != "kube-system"]
    deployed = [it for it in scenario.objects if it["kind"] == "Deployment"]
    expected = sum(it.count * it.replicas for it in scenario.workloads)
    assert len(pods) == expected + sum(it["spec"]["replicas"] for it in deployed)
    assert {it["status"]["phase"] for it in pods} == {"Running"}
    nodes = sum(pool.count for pool in scenario.pools)
    assert len(store.entries(NODES)) == len(store.entries(CSI_NODES)) == nodes
    phases = {it["status"]["phase"] for it in store.list(PERSISTENT_VOLUMES)}
    assert phases == {"Bound"}


def test_a_large_one_is_read_as_it_is_meant() -> None:
    scenario = Document.read(str(SHIPPED / f"{LARGE}.yaml"), 1).scenario()
    pods = sum(it.count * it.replicas for it in scenario.workloads)
    spares = sum(it.count for it in scenario.spares)
    assert (scenario.pools[0].count, pods, pods + spares) == (5_000, 20_000, 50_000)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("kind: Scenario", "kind: Scenery", "line 2, kind: "),
        ("1.24.17", "newest", "line 3, kubernetesVersion: newest is not a Kubernetes version"),
        ("CSIMigrationAWS: false}}\n", "CSIMigrationAws: false}}\n", "line 4, controlPlane.gates."),
        ("{gates: {", "{flags: {feature-gates: x}, gates: {", "line 4, controlPlane.flags.feature"),
        ("{gates: {", "{flags: {--v: x}, gates: {", "line 4, controlPlane.flags.--v: is not the"),
        ("count: 2", "count: two", "line 6, pools[0].count: "),
        ("count: 2", "count: -2", "line 6, pools[0].count: "),
        ("count: 2", "cuont: 2", "line 6, pools[0].cuont: "),
        ("name: workers", "name: Workers!", "line 6, pools[0].name: "),
        ("name: workers", "version: x, name: workers", "line 6, pools[0].version: x is not"),
        ("plugin: aws-ebs", "plugin: aws", "line 8, classes[0].plugin: is no plugin"),
        ("storageClass: gp2", "storageClass: gp3", "line 10, workloads[0].storageClass: gp3"),
        (CLASS, f"{CLASS}nodez: 5\n", "line 9, nodez: Object contains unknown field"),
        ("1.24.17", "1.99.0", "line 3, kubernetesVersion: 1.99.0 is not a Kubernetes version"),
        ("1.24.17", "1.5.0", "line 3, kubernetesVersion: 1.5.0 is not a Kubernetes version"),
        ("classes:", "- {name: workers}\nclasses:", "line 7, pools[1].name: there is a node pool"),
        (CLASS, CLASS * 2, "line 9, classes[1].name: there is a class gp2 already"),
        (SET, SET * 2, "line 11, workloads[1].name: there is a StatefulSet default/db already"),
        (
            SET,
            SET.replace("db", "db-1") + SET.replace("db,", "db, count: 2,"),
            "line 11, workloads[1].name: there is a StatefulSet default/db-1 already",
        ),
        (SET, f"{SET}spares:\n{SPARE}{SPARE}", "line 13, spares[1].storageClass: there is a"),
        ("count: 2", "labels: {'a b': c}", "line 6, pools[0].labels: Invalid value"),
        ("count: 2", "zones: [a, 'a b']", "line 6, pools[0].zones[1]: Invalid value"),
        ("count: 2", "drivers: ['No Such!']", "line 6, pools[0].drivers[0]: "),
        ("replicas: 2", "annotations: {'a b': c}", "line 10, workloads[0].annotations: Invalid"),
        ("replicas: 2", "maxUnavailable: -1", "line 10, workloads[0].maxUnavailable: "),
    ],
)
def test_a_mistake_is_named_with_its_line(
    before: str, after: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as refused:
        read(SMALL.replace(before, after, 1), tmp_path).scenario()
    assert said in str(refused.value)


@pytest.mark.parametrize(
    "obj",
    [
        "{apiVersion: v1, kind: Nope, metadata: {name: x}}",
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: X!}}",
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: one}}",
        "{apiVersion: v1, kind: ConfigMap}",
        "{apiVersion: v1, kind: ConfigMap, metadata: []}",
    ],
)
def test_an_object_that_is_not_taken_is_named_with_its_line(obj: str, tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    fine = "{apiVersion: v1, kind: ConfigMap, metadata: {name: one}}"
    path.write_text(f"{SMALL}objects:\n- {fine}\n- {obj}\n")
    with pytest.raises(InputError) as refused:
        of_scenario(str(path), max_size=1)
    assert "line 13, objects[1]: " in str(refused.value)


def test_a_scenario_of_one_s_own_comes_up(tmp_path: Path) -> None:
    sandbox = Sandbox.of(read(SMALL, tmp_path).scenario())
    running = [it for it in sandbox.store.list(PODS) if it["status"]["phase"] == "Running"]
    names = {it["metadata"]["name"] for it in running if "db" in it["metadata"]["name"]}
    assert names == {"db-0", "db-1"}


def test_pods_that_take_their_time_to_end(tmp_path: Path) -> None:
    text = SMALL.replace("storageClass: gp2}", "storageClass: gp2, secondsToEnd: 45}")
    sandbox = Sandbox.of(read(text, tmp_path).scenario(), by_hand=True)
    cluster = sandbox.cluster
    assert cluster is not None
    uid = cluster.store.get(PODS, "db-0", "default")["metadata"]["uid"]
    cluster.store.delete(PODS, "db-0", "default")
    cluster.run_for(44)
    pod = cluster.store.get(PODS, "db-0", "default")
    assert (pod["metadata"]["uid"], pod["status"]["phase"]) == (uid, "Running")
    cluster.run_for(30)
    pod = cluster.store.get(PODS, "db-0", "default")
    assert pod["metadata"]["uid"] != uid
    assert pod["status"]["phase"] == "Running"
