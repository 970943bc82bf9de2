"""Scenarios: each that ships comes up with everything running, and a mistake in one is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from replant.cli.documents import Document
from replant.cli.sandbox import SCENARIOS
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
        ("count: 2", "cuont: 2", "line 6, pools[0]: "),
        ("name: workers", "name: Workers!", "line 6, pools[0].name: "),
        ("name: workers", "version: x, name: workers", "line 6, pools[0].version: x is not"),
        ("plugin: aws-ebs", "plugin: aws", "line 8, classes[0].plugin: is no plugin"),
        ("storageClass: gp2", "storageClass: gp3", "line 10, workloads[0].storageClass: gp3"),
    ],
)
def test_a_mistake_is_named_with_its_line(
    before: str, after: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as refused:
        read(SMALL.replace(before, after, 1), tmp_path).scenario()
    assert said in str(refused.value)


def test_a_scenario_of_one_s_own_comes_up(tmp_path: Path) -> None:
    sandbox = Sandbox.of(read(SMALL, tmp_path).scenario())
    running = [it for it in sandbox.store.list(PODS) if it["status"]["phase"] == "Running"]
    names = {it["metadata"]["name"] for it in running if "db" in it["metadata"]["name"]}
    assert names == {"db-0", "db-1"}
