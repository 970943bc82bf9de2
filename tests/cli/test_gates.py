"""``replant gates``, as a shell sees it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.shell import replant
from tests.cluster.api_server import World, serving
from tests.cluster.conftest import kubeconfig


@pytest.mark.workflow("gates")
def test_the_table_says_what_is_on_who_serves_and_what_comes_next() -> None:
    code, out, err = replant("gates", "--version", "1.24.17", "--gate", "CSIMigrationAWS=false")
    assert (code, err) == (0, "")
    lines = [line.split() for line in out.splitlines()]
    assert lines[0] == ["kube-controller-manager", "1.24.17"]
    assert ["CSIMigrationAWS", "off"] in lines
    assert ["CSIMigrationGCE", "on"] in lines
    assert "kubernetes.io/aws-ebs goes from phase 0 to 1" in out


def test_machines_get_the_same_as_json() -> None:
    gates = ["--gate", "CSIMigrationAWS=true,InTreePluginAWSUnregister=true"]
    code, out, _err = replant("gates", "--version", "1.22", *gates, "-o", "json")
    found = json.loads(out)
    assert code == 0
    assert found["gates"]["InTreePluginAWSUnregister"] is True
    assert found["plugins"][0] == {
        "plugin": "kubernetes.io/aws-ebs",
        "phase": 2,
        "registered": False,
        "meaning": "served by CSI only: the in-tree plugin is off",
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--version", "1.16", "--gate", "CSIMigrationAWS=true"],
            "needs CSIMigration, which is off",
        ),
        (["--version", "1.50"], "1.50 is not known here, only 1.14 to 1.36"),
        (["--version", "new"], "is not a Kubernetes version"),
        (["--version", "1.24", "--gate", "CSIMigrationAWS=on"], "is not GATE=true or GATE=false"),
        (["--version", "1.24", "--gate", ""], "is not GATE=true or GATE=false"),
        (["--kubeconfig", "no-such-file"], "no-such-file"),
    ],
)
def test_bad_input_fails_and_says_why(arguments: list[str], said: str) -> None:
    code, out, err = replant("gates", *arguments)
    assert (code, out) == (1, "")
    assert said in err


def test_without_a_version_the_cluster_is_asked(tmp_path: Path) -> None:
    world = World()
    world.documents["/version"] = b'{"gitVersion": "v1.26.4-gke.1"}'
    with serving(world) as server:
        config = kubeconfig(tmp_path / "config", server, user={"token": "t"})
        code, out, _err = replant("gates", "--kubeconfig", str(config))
    assert code == 0
    assert out.startswith("kube-controller-manager 1.26.4\n")
