"""The commands for a sandbox that is up: what they show, what they do, and how they say no."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from replant.cli.documents import Document
from replant.sandbox.server import Sandbox, open_port, serving, write_kubeconfig
from tests.cli.shell import replant
from tests.cli.test_sandbox import sandbox, server_of
from tests.waiting import wait_until

CONTROLLER = "kube-controller-manager"
SCENARIO = """\
apiVersion: replant.dev/v1alpha1
kind: Scenario
kubernetesVersion: 1.24.17
controlPlane: {replicas: 2, gates: {CSIMigrationAWS: false}, flags: {cloud-provider: aws}}
drivers: [ebs.csi.aws.com]
pools:
- {name: workers, count: 2, gates: {CSIMigrationAWS: false}, drivers: [ebs.csi.aws.com]}
classes:
- {name: gp2, plugin: aws-ebs}
workloads:
- {name: db, replicas: 2, storageClass: gp2}
"""
PATIENCE = 5
"""Seconds for what takes a moment on a machine that is not busy."""
DISKS = ["vol-00000000000000000", "vol-00000000000000001"]


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of a sandbox whose seconds take a twentieth of one."""
    folder = tmp_path_factory.mktemp("sandbox")
    (folder / "scenario.yaml").write_text(SCENARIO)
    scenario = Document.read(str(folder / "scenario.yaml"), 1).scenario()
    with closing(open_port(0)) as listening, serving(Sandbox.of(scenario, speed=20), listening):
        write_kubeconfig(folder / "config", listening.getsockname()[1])
        yield str(folder / "config")


def control(kubeconfig: str, *arguments: str) -> tuple[int, str, str]:
    return replant("sandbox", *arguments, "--kubeconfig", kubeconfig)


def shown(kubeconfig: str, *arguments: str) -> Any:
    code, out, err = control(kubeconfig, *arguments, "-o", "json")
    assert (code, err) == (0, "")
    return json.loads(out)


def rows(kubeconfig: str, *arguments: str) -> list[list[str]]:
    code, out, err = control(kubeconfig, *arguments)
    assert (code, err) == (0, "")
    return [line.split() for line in out.splitlines()]


def test_disks_are_shown_where_they_are(kubeconfig: str) -> None:
    head, *table = rows(kubeconfig, "disks")
    assert head == ["DISK", "SIZE", "ZONE", "NODE", "STATE"]
    assert [it[0] for it in table] == DISKS
    assert {it[3] for it in table} == {"workers-0", "workers-1"}
    assert {it[4] for it in table} == {"attached"}
    assert [it["id"] for it in shown(kubeconfig, "disks")["disks"]] == DISKS


def test_writes_are_counted(kubeconfig: str) -> None:
    head, *table = rows(kubeconfig, "writes")
    assert head == ["DISK", "WRITES", "GAPS", "LONGEST", "STOPPED", "YANKED"]
    assert all(int(it[1]) > 0 for it in table)
    assert {it[-1] for it in table} == {"no"}
    assert shown(kubeconfig, "writes")["yanked"] == []


def test_components_and_kubelets_are_switched_and_shown(kubeconfig: str) -> None:
    told = ("switch", "--component", CONTROLLER)
    head, *table = rows(kubeconfig, *told)
    assert head == ["NAME", "READY", "GATES", "FLAGS"]
    line = [f"{CONTROLLER}-control-plane-1", "yes", "CSIMigrationAWS=false", "--cloud-provider=aws"]
    assert table[1] == line

    first, second = shown(kubeconfig, *told, "CSIMigrationAWS=true")["replicas"]
    assert (first["gates"], first["ready"]) == ({"CSIMigrationAWS": True}, False)
    assert (second["gates"], second["ready"]) == ({"CSIMigrationAWS": False}, True)

    def confirmed() -> bool:
        replicas = shown(kubeconfig, *told)["replicas"]
        return all(it["ready"] and it["gates"] == {"CSIMigrationAWS": True} for it in replicas)

    wait_until(confirmed, "all replicas to be switched")

    assert rows(kubeconfig, "switch", "--node", "workers-1")[1][2] == "CSIMigrationAWS=false"
    (kubelet,) = shown(kubeconfig, "switch", "--node", "workers-1", "CSIMigrationAWS=-")["replicas"]
    assert kubelet["gates"] == {}


def test_a_node_is_killed_and_revived(kubeconfig: str) -> None:
    assert rows(kubeconfig, "kill", "workers-0")[1][:2] == ["workers-0", "no"]
    assert any("since" in it for it in rows(kubeconfig, "writes"))
    assert rows(kubeconfig, "revive", "workers-0")[1][:2] == ["workers-0", "yes"]

    def over() -> bool:
        disks = shown(kubeconfig, "writes")["disks"]
        return all(gap["end"] for it in disks for gap in it["gaps"])

    wait_until(over, "the node to be gone")
    assert any(it[3].endswith("s") for it in rows(kubeconfig, "writes")[1:])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("kill", "nobody"), 'nodes "nobody" not found'),
        (("revive", "no/body"), "the server could not find the requested resource"),
        (("switch", "--node", "nobody"), 'nodes "nobody" not found'),
        (
            ("switch", "--component", "etcd", "CSIMigrationAWS=true"),
            'component "etcd" not found: there are kube-controller-manager, kube-scheduler, ',
        ),
        (
            ("switch", "--component", CONTROLLER, "CSIMigrationAws=true"),
            "kube-controller-manager 1.24.17 would not start: CSIMigrationAws is no gate of the",
        ),
        (
            ("switch", "--node", "workers-0", "CSIMigrationOpenStack=false"),
            "kubelet 1.24.17 would not start: CSIMigrationOpenStack is locked to true at 1.24",
        ),
    ],
)
def test_what_the_sandbox_refuses_is_told_in_its_words(
    kubeconfig: str, arguments: tuple[str, ...], said: str
) -> None:
    code, out, err = control(kubeconfig, *arguments)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith(f"error: {said}")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("switch", "--node", "a", "CSIMigrationAWS=on"), "'CSIMigrationAWS=on' is not GATE=true"),
        (("switch", "--node", "a", "CSIMigrationAWS"), "'CSIMigrationAWS' is not GATE=true"),
        (("switch", "--node", "a", "=true"), "'=true' is not GATE=true"),
        (("switch", "CSIMigrationAWS=true"), "Name either a --component or a --node."),
        (("switch", "--node", "a", "--component", "b"), "Name either a --component or a --node."),
        (("kill",), "Missing argument 'NODE'"),
        (("disks", "-o", "yaml"), "'yaml' is not one of"),
        (("up", "--speed", "20"), "--speed is a scenario's"),
        (("up", "--speed", "fast"), "'fast' is not a valid float"),
    ],
)
def test_a_command_that_makes_no_sense_is_refused(arguments: tuple[str, ...], said: str) -> None:
    code, out, err = replant("sandbox", *arguments)
    assert (code, out) == (1, "")
    assert said in err.splitlines()[-1]


@pytest.mark.parametrize("speed", ["0", "-1", "1e9", "nan", "inf"])
def test_a_speed_that_is_none_is_refused(speed: str, tmp_path: Path) -> None:
    config = tmp_path / "config"
    given = ("--scenario", "openshift", "--speed", speed, "--kubeconfig", str(config))
    code, out, err = replant("sandbox", "up", *given)
    assert (code, out) == (1, "")
    said = "error: A clock's speed is above 0 and at most 1000, not "
    assert err.startswith(said)
    assert err.count("\n") == 1
    assert not config.exists()


def test_a_sandbox_can_go_faster(tmp_path: Path) -> None:
    with sandbox(tmp_path, "--scenario", "openshift", "--speed", "50") as (_process, kubeconfig):

        def writes() -> int:
            count: int = shown(str(kubeconfig), "writes")["disks"][0]["writes"]
            return count

        before = writes()
        # By the machine's clock there would be one a second.
        wait_until(lambda: writes() - before >= 20 * PATIENCE, "fifty writes in a second", PATIENCE)


# Where there is no sandbox


def test_without_a_kubeconfig_it_says_how_to_get_one(tmp_path: Path) -> None:
    code, out, err = control(str(tmp_path / "none"), "disks")
    said = f"error: kubeconfig {tmp_path}/none: there is no such file; replant sandbox up writes it"
    assert (code, out, err) == (1, "", f"{said}\n")


def test_a_sandbox_that_has_ended_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    write_kubeconfig(tmp_path / "config", port)
    code, out, err = control(str(tmp_path / "config"), "writes")
    assert (code, out) == (1, "")
    assert err.startswith(f"error: No sandbox answers at http://127.0.0.1:{port}: ")
    assert err.endswith("Start one with replant sandbox up.\n")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("server", "said"),
    [
        ("https://127.0.0.1:6443", "leads to https://127.0.0.1:6443, which is no sandbox"),
        ("http://10.0.0.1:80", "leads to http://10.0.0.1:80, which is no sandbox"),
        ("http://127.0.0.1", "leads to http://127.0.0.1, which is no sandbox"),
        ("http://127.0.0.1:99999", "Port out of range"),
        ("http://[", "Invalid IPv6 URL"),
        (None, "names no server for its current context"),
    ],
)
def test_another_cluster_s_kubeconfig_is_not_followed(
    server: str | None, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "config"
    write_kubeconfig(path, 1)
    config = yaml.safe_load(path.read_text())
    config["clusters"][0]["cluster"] = {"server": server} if server else {}
    path.write_text(yaml.safe_dump(config))
    code, out, err = control(str(path), "kill", "workers-0")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert said in err


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"a: [", b"\xff\xfe\x00", b"contexts: 5\nclusters: 6"]
)
def test_a_kubeconfig_that_is_none_is_refused(text: bytes, tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_bytes(text)
    code, out, err = control(str(path), "disks")
    assert (code, out) == (1, "")
    assert err.startswith(f"error: kubeconfig {path}: ")
    assert err.count("\n") == 1
    assert control(str(tmp_path), "disks")[2] == f"error: kubeconfig {tmp_path}: Is a directory\n"


class Stranger(BaseHTTPRequestHandler):
    """Something else that answers on the port where a sandbox was."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"[1]" if self.path.endswith("disks") else b"<html>")

    def log_message(self, *_arguments: object) -> None:
        pass


@pytest.mark.parametrize("command", ["disks", "writes"])
def test_something_else_on_the_port_is_not_taken_for_a_sandbox(
    command: str, tmp_path: Path
) -> None:
    with HTTPServer(("127.0.0.1", 0), Stranger) as server:
        threading.Thread(target=server.handle_request).start()
        write_kubeconfig(tmp_path / "config", server.server_port)
        code, out, err = control(str(tmp_path / "config"), command)
    said = f"error: What answers at http://127.0.0.1:{server.server_port} is no sandbox.\n"
    assert (code, out, err) == (1, "", said)


def test_a_sandbox_without_a_scenario_has_nothing_to_show(tmp_path: Path) -> None:
    with sandbox(tmp_path) as (_process, kubeconfig):
        assert server_of(kubeconfig).startswith("http://127.0.0.1:")
        code, out, err = control(str(kubeconfig), "disks")
    said = "error: there is no cluster behind this API: it was brought up without a scenario\n"
    assert (code, out, err) == (1, "", said)
