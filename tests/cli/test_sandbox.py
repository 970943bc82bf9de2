"""``replant sandbox up``: it says where it is, serves what it was given, and ends when told."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import yaml

from tests.cli.shell import REPLANT, replant
from tests.waiting import wait_until

CLUSTER = str(Path(__file__).parents[2] / "examples" / "cluster.yaml")


@contextmanager
def sandbox(folder: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    command = [str(REPLANT), "sandbox", "up", "--kubeconfig", str(folder / "config"), *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout
            assert process.stderr
            said = process.stdout.readline().strip()
            assert said == str(folder / "config"), process.stderr.read()
            assert "serving on http://127.0.0.1:" in process.stderr.readline()
            yield process, Path(said)
        finally:
            process.kill()


def server_of(kubeconfig: Path) -> str:
    server: str = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
    return server


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_at_once_though_somebody_watches(tmp_path: Path, how: signal.Signals) -> None:
    with (
        sandbox(tmp_path) as (process, kubeconfig),
        httpx.Client(base_url=server_of(kubeconfig), trust_env=False) as http,
        http.stream("GET", "/api/v1/namespaces", params={"watch": "1"}) as watch,
    ):
        lines = watch.iter_lines()
        names = [json.loads(next(lines))["object"]["metadata"]["name"] for _each in range(4)]
        assert names == ["default", "kube-node-lease", "kube-public", "kube-system"]
        os.kill(process.pid, how)
        assert list(lines) == []
        assert process.wait(10) == {signal.SIGINT: 0, signal.SIGTERM: -signal.SIGTERM}[how]
        assert process.stderr
        assert process.stderr.read() == ""


def test_a_scan_sees_the_same_as_in_the_files_that_it_was_given(tmp_path: Path) -> None:
    with sandbox(tmp_path, "-f", CLUSTER) as (_process, kubeconfig):
        live = findings("--kubeconfig", str(kubeconfig))
    dump = findings("-f", CLUSTER, "--server-version", "1.24.17")
    assert live
    # That a dump may not be all there is, is said of a dump alone.
    assert live == dump - {it for it in dump if it[0] == "RP001"}


def findings(*arguments: str) -> set[tuple[str, str]]:
    _code, out, err = replant("scan", "-o", "json", *arguments)
    assert out, err
    return {(it["id"], json.dumps(it["object"])) for it in json.loads(out)["findings"]}


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        config = str(tmp_path / "config")
        code, out, err = replant("sandbox", "up", "--port", port, "--kubeconfig", config)
    assert (code, out) == (1, "")
    assert f"Port {port} of 127.0.0.1 is in use" in err
    assert not (tmp_path / "config").exists()


def test_a_kubeconfig_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    code, out, err = replant("sandbox", "up", "--kubeconfig", str(folder))
    assert (code, out) == (1, "")
    assert f"The kubeconfig cannot be written to {folder}: Is a directory." in err
    assert list(tmp_path.iterdir()) == [folder]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"apiVersion": "v9", "kind": "Pod"}, "does not serve v9"),
        ({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}, "spec.containers"),
        ({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "P!"}}, "metadata.name"),
    ],
)
def test_what_it_cannot_take_is_told(given: dict[str, object], said: str) -> None:
    code, _out, err = replant("sandbox", "up", "-f", "-", stdin=given)
    assert code == 1
    assert said in err


@pytest.mark.workflow("sandbox")
def test_a_scenario_lives_and_can_be_planned_for(tmp_path: Path) -> None:
    with sandbox(tmp_path, "--scenario", "aws-20-nodes", "--speed", "20") as (_process, kubeconfig):
        live = ("--kubeconfig", str(kubeconfig))
        code, out, err = replant("plan", "enable", "--plugin", "aws-ebs", *live, "-o", "json")
        assert (code, json.loads(out)["proof"]["safe"]) == (0, True), err
        with httpx.Client(base_url=server_of(kubeconfig), trust_env=False) as http:
            path = "/api/v1/namespaces/shop/pods/queue-0"
            uid_before = http.get(path).json()["metadata"]["uid"]
            eviction = {
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": {"name": "queue-0", "namespace": "shop"},
                "deleteOptions": {"gracePeriodSeconds": 0},
            }
            assert http.post(f"{path}/eviction", json=eviction).status_code == 201

            def is_made_again() -> bool:
                """Whether its StatefulSet has brought the pod back, and its disk has followed."""
                found = http.get(path).json()
                new = found["kind"] == "Pod" and found["metadata"]["uid"] != uid_before
                return bool(new and found["status"].get("phase") == "Running")

            wait_until(is_made_again, "the pod to run again", 30)


@pytest.mark.parametrize(
    ("scenario", "said"),
    [("no-such.yaml", "No such file"), (CLUSTER, ", apiVersion: "), ("", "give a name or a file")],
)
def test_a_scenario_that_is_none_is_refused(scenario: str, said: str) -> None:
    code, out, err = replant("sandbox", "up", "--scenario", scenario)
    assert (code, out) == (1, "")
    assert err.startswith("error: ")
    assert said in err
