"""``replant scan`` and ``replant explain``, as a shell sees them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from replant.cluster.live import collection
from replant.cluster.ports import POD_DISRUPTION_BUDGETS, SCANNED, SCANNED_WHERE_SERVED
from replant.inventory.checks.catalogue import TITLES
from tests.cli.shell import replant
from tests.cluster.api_server import World, serving, status
from tests.cluster.conftest import kubeconfig
from tests.inventory.clusters import (
    EBS,
    claim_ref,
    controller,
    driver,
    pod,
    pv,
    storage_class,
)


def dump(*objects: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": list(objects)}


CLEAN = dump(pv(csi={"driver": EBS}))
FINDINGS = dump(pv(), driver())
BLOCKERS = dump(pv(glusterfs={"path": "a"}))


@pytest.mark.parametrize(
    ("data", "arguments", "code"),
    [
        (CLEAN, [], 0),
        (FINDINGS, [], 2),
        (FINDINGS, ["--fail-on", "blockers"], 0),
        (BLOCKERS, [], 3),
        (BLOCKERS, ["--fail-on", "blockers"], 3),
        (BLOCKERS, ["--fail-on", "never"], 0),
        (BLOCKERS, ["--skip", "RP102"], 0),
        (FINDINGS, ["--check", "RP115"], 2),
        (FINDINGS, ["--check", "RP401,RP102"], 0),
        (b'{"kind": "List", "items": [', [], 1),
        (b"", [], 1),
        (BLOCKERS, ["--target-version", "1.23"], 1),
        (b"\xff\xfe\xff", [], 1),
        (BLOCKERS, ["--target-version", "latest"], 1),
        (BLOCKERS, ["--check", "RP999"], 1),
        (BLOCKERS, ["-l", "a=b,"], 1),
        (BLOCKERS, ["-n", "a", "-A"], 1),
        (BLOCKERS, ["-f", "no-such-file"], 1),
    ],
)
def test_exit_codes(data: Any, arguments: list[str], code: int) -> None:
    given = ["scan", "-f", "-", "--server-version", "1.24.17", *arguments]
    assert replant(*given, stdin=data)[0] == code


@pytest.mark.parametrize(
    ("data", "first"),
    [(CLEAN, "nothing to do"), (FINDINGS, "ready"), (BLOCKERS, "not ready")],
)
def test_the_first_line_says_where_one_stands(data: Any, first: str) -> None:
    _, out, _ = replant("scan", "-f", "-", "--server-version", "1.24.17", stdin=data)
    assert out.startswith(first)


@pytest.mark.parametrize(
    "output", ["table", "wide", "json", "yaml", "markdown", "csv", "junit", "sarif", "html"]
)
def test_every_format_names_the_volume(output: str) -> None:
    code, out, err = replant("scan", "-f", "-", "-o", output, stdin=dump(pv("the-volume")))
    assert code == 2
    assert "the-volume" in out
    assert err.endswith("1 objects read, 1 used, 0 passed over\n")


def test_machine_output_has_the_shape_of_the_schema() -> None:
    import jsonschema

    schema = json.loads((Path(__file__).parents[2] / "docs" / "scan-schema.json").read_text())
    _, out, _ = replant(
        "scan", "-f", "-", "-o", "json", "--target-version", "1.31",
        stdin=dump(pv(), pv("a", rbd={"image": "i", "monitors": ["m"]}), storage_class(), pod()),
    )  # fmt: skip
    result = json.loads(out)
    jsonschema.validate(result, schema)
    assert result["read"]["PersistentVolume"] == {"seen": 2, "used": 2, "passedOver": 0}
    assert result["findings"][0].keys() == {"id", "severity", "object", "reason", "fix"}


@pytest.mark.parametrize(
    "data",
    [b"", b'{"kind": "List", "items": [', dump({**pv("odd"), "spec": []}, storage_class("s", EBS))],
)
def test_nobody_is_ready_whose_input_could_not_be_read(data: Any) -> None:
    code, out, _ = replant("scan", "-f", "-", stdin=data)
    assert code == 1
    assert out.startswith("not ready: not everything could be read")


def test_odd_objects_are_named_and_counted() -> None:
    broken = {**pv("odd"), "spec": []}
    code, _, err = replant("scan", "-f", "-", stdin=dump(pv(), pv(), broken, {"kind": "Other"}))
    assert code == 1
    assert "item 1 is passed over: PersistentVolume db was there already" in err
    assert "item 2 is passed over: Expected `object`" in err
    assert err.endswith("4 objects read, 1 used, 3 passed over\n")


@pytest.fixture
def world() -> Iterator[tuple[World, str]]:
    world = World(token="secret")  # noqa: S106
    for resource in SCANNED:
        empty = {"kind": f"{resource.kind}List", "metadata": {}, "items": []}
        world.documents[collection(resource)] = json.dumps(empty).encode()
    world.documents["/version"] = b'{"gitVersion": "v1.24.17-eks-1"}'
    world.documents["/apis"] = b'{"kind": "APIGroupList", "groups": [{"name": "apps"}]}'
    with serving(world) as server:
        yield world, server


def config(tmp_path: Path, server: str) -> str:
    return str(kubeconfig(tmp_path / "config", server, user={"token": "secret"}))


@pytest.mark.workflow("scan")
def test_a_live_cluster_each_list_once(world: tuple[World, str], tmp_path: Path) -> None:
    served, server = world
    volumes = {"kind": "PersistentVolumeList", "metadata": {}, "items": [pv("a"), pv("b")]}
    served.documents["/api/v1/persistentvolumes"] = json.dumps(volumes).encode()
    code, out, _ = replant("scan", "--kubeconfig", config(tmp_path, server), "-o", "json")
    result = json.loads(out)
    assert code == 3
    assert result["server"] == {"version": "1.24.17"}
    assert result["read"]["PersistentVolume"] == {"seen": 2, "used": 2, "passedOver": 0}
    paths = [asked.path for asked in served.asked]
    assert sorted(paths) == sorted({*paths})
    assert {asked.method for asked in served.asked} == {"GET"}


def test_shoots_are_read_where_they_are_served(world: tuple[World, str], tmp_path: Path) -> None:
    served, server = world
    arguments = ("scan", "--kubeconfig", config(tmp_path, server), "-o", "json")
    shoots, clusters = map(collection, SCANNED_WHERE_SERVED)

    def findings() -> list[tuple[str, str]]:
        _, out, _ = replant(*arguments)
        return [(it["id"], it["object"]["kind"]) for it in json.loads(out)["findings"]]

    assert findings() == []
    assert not {shoots, clusters} & {it.path for it in served.asked}, "nobody has them"
    groups = [{"name": it.group} for it in SCANNED_WHERE_SERVED]
    served.documents["/apis"] = json.dumps({"groups": groups}).encode()
    workers = [{"kubernetes": {"version": "1.17.0"}}]
    spec = {"kubernetes": {"version": "1.18.1"}, "provider": {"type": "aws", "workers": workers}}
    bad = {"metadata": {"name": "s", "namespace": "n"}, "spec": spec}
    listed = {"kind": "ShootList", "metadata": {}, "items": [bad]}
    served.documents[shoots] = json.dumps(listed).encode()
    assert findings() == [("RP801", "Shoot")], "Clusters are not served, though their group is"
    served.faults[clusters] = status(403, "clusters is forbidden", "Forbidden")
    assert findings() == [("RP801", "Shoot"), ("RP002", "Scan")]
    served.faults["/apis"] = status(403, "apis is forbidden", "Forbidden")
    assert findings() == []


def test_what_may_not_be_read_is_a_finding(world: tuple[World, str], tmp_path: Path) -> None:
    served, server = world
    del served.documents["/apis/storage.k8s.io/v1/csinodes"]
    served.faults["/api/v1/nodes"] = status(403, "nodes is forbidden", "Forbidden")
    budgets = collection(POD_DISRUPTION_BUDGETS)
    served.faults[budgets] = status(403, "poddisruptionbudgets is forbidden", "Forbidden")
    code, out, _ = replant("scan", "--kubeconfig", config(tmp_path, server), "-o", "json")
    found = {(it["id"], it["object"]["name"]) for it in json.loads(out)["findings"]}
    assert code == 2
    assert found == {
        ("RP001", "CSINode"), ("RP002", "Node"), ("RP002", "PodDisruptionBudget"),
    }  # fmt: skip


def test_a_namespace_is_asked_for_by_its_path(world: tuple[World, str], tmp_path: Path) -> None:
    served, server = world
    served.documents["/api/v1/namespaces/shop/pods"] = b'{"kind": "PodList", "items": []}'
    replant("scan", "--kubeconfig", config(tmp_path, server), "-n", "shop")
    paths = {asked.path for asked in served.asked}
    assert {"/api/v1/namespaces/shop/pods", "/api/v1/persistentvolumes"} <= paths
    assert "/api/v1/pods" not in paths


@pytest.mark.parametrize("part", ["metadata", "spec"])
def test_an_odd_object_does_not_cost_its_page(
    world: tuple[World, str], tmp_path: Path, part: str
) -> None:
    served, server = world
    odd = {**pv("odd"), part: []}
    volumes = {"kind": "PersistentVolumeList", "metadata": {}, "items": [pv("a"), odd, pv("b")]}
    served.documents["/api/v1/persistentvolumes"] = json.dumps(volumes).encode()
    code, out, err = replant("scan", "--kubeconfig", config(tmp_path, server), "-o", "json")
    assert code == 1
    read = json.loads(out)["read"]["PersistentVolume"]
    assert read == {"seen": 3, "used": 2, "passedOver": 1}
    assert "is passed over: Expected `object`, got `array`" in err


@pytest.mark.parametrize(
    "body",
    [
        b'{"kind": "PersistentVolumeList", "items": {"a": 1}}',
        b'{"kind": "PersistentVolumeList", "items": [{"metadata": {"name": "\xff"}}]}',
        b'{"kind": "PersistentVolumeList", "items": [' + b"[" * 20_000 + b"]" * 20_000 + b"]}",
    ],
)
def test_odd_pages_are_a_clear_error(world: tuple[World, str], tmp_path: Path, body: bytes) -> None:
    served, server = world
    served.documents["/api/v1/persistentvolumes"] = body
    code, _, err = replant("scan", "--kubeconfig", config(tmp_path, server), "-o", "json")
    assert code == 1
    assert "error: " in err


def test_the_control_planes_flags_count_in_every_namespace(
    world: tuple[World, str], tmp_path: Path
) -> None:
    served, server = world
    volumes = {"kind": "PersistentVolumeList", "items": [pv(claimRef=claim_ref("data", "shop"))]}
    served.documents["/api/v1/persistentvolumes"] = json.dumps(volumes).encode()
    flags = {"kind": "PodList", "items": [controller("CSIMigrationAWS=false")]}
    served.documents["/api/v1/namespaces/kube-system/pods"] = json.dumps(flags).encode()
    arguments = ["--kubeconfig", config(tmp_path, server), "-n", "shop", "--check", "RP101"]
    _, out, _ = replant("scan", *arguments, "-o", "json")
    (finding,) = json.loads(out)["findings"]
    assert "phase 0" in finding["reason"]


def test_kubelets_are_asked_only_when_told(world: tuple[World, str], tmp_path: Path) -> None:
    served, server = world
    node = {"metadata": {"name": "n1"}, "status": {"nodeInfo": {"kubeletVersion": "v1.24.17"}}}
    nodes = {"kind": "NodeList", "metadata": {}, "items": [node]}
    served.documents["/api/v1/nodes"] = json.dumps(nodes).encode()
    configz = "/api/v1/nodes/n1/proxy/configz"
    served.documents[configz] = b'{"kubeletconfig": {"featureGates": {"CSIMigrationAWS": false}}}'
    arguments = ["scan", "--kubeconfig", config(tmp_path, server)]
    replant(*arguments)
    assert configz not in {asked.path for asked in served.asked}
    replant(*arguments, "--probe-nodes")
    assert configz in {asked.path for asked in served.asked}


def test_no_cluster_is_a_clear_error(tmp_path: Path) -> None:
    code, out, err = replant("scan", "--kubeconfig", str(tmp_path / "missing"))
    assert (code, out) == (1, "")
    assert "missing" in err


@pytest.mark.parametrize("finding", TITLES)
def test_every_finding_is_explained(finding: str) -> None:
    code, out, _ = replant("explain", finding.lower())
    assert code == 0
    assert out.startswith(f"# {finding}: {TITLES[finding]}\n")


@pytest.mark.workflow("explain")
def test_a_plugin_and_an_object_are_explained() -> None:
    code, out, _ = replant("explain", "vsphere-volume")
    assert code == 0
    assert "spec.vsphereVolume.volumePath" in out
    for name in ("pv/db", "persistentvolumes/db"):
        code, out, _ = replant(
            "explain", name, "-f", "-", "--server-version", "1.24", stdin=FINDINGS
        )
        assert code == 0
        assert "phase 1" in out
    assert replant("explain", "nonsense")[0] == 1
