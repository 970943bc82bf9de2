"""``replant operator --controllers drivers`` as people run it: a process, kopf, HTTP."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from replant.drivers.crds import crds
from replant.sandbox.resources import CONFIG_MAPS
from replant.sandbox.scenario import Scenario
from replant.sandbox.server import Sandbox, open_port, serving, write_kubeconfig
from tests.cli.shell import replant
from tests.operators.driving import EBS, cloud
from tests.operators.test_drivers import secret
from tests.waiting import wait_until

PATIENCE = 100
SPEED = 20


@contextmanager
def up(tmp_path: Path, told: Scenario, *, defined: bool = True) -> Iterator[tuple[Sandbox, str]]:
    sandbox = Sandbox.of(told, speed=SPEED)
    sandbox.load([*(crds() if defined else ()), secret()])
    with open_port(0) as listening:
        write_kubeconfig(tmp_path / "k", listening.getsockname()[1])
        with serving(sandbox, listening):
            yield sandbox, str(tmp_path / "k")


@contextmanager
def operating(kubeconfig: str, *more: str) -> Iterator[Path]:
    """The process, until it is told to end; where it says what it does."""
    said = Path(kubeconfig).with_suffix(f".said-{time.monotonic_ns()}")
    command = [sys.executable, "-m", "replant", "operator", "--controllers", "drivers"]
    with said.open("w") as file:
        process = subprocess.Popen([*command, "--kubeconfig", kubeconfig, *more], stderr=file)
        try:
            yield said
            process.terminate()
            assert process.wait(60) == 0, said.read_text()
        finally:
            process.kill()
            process.wait()


def until(true: Callable[[], bool], said: Callable[[], str]) -> None:
    """Wait until something is true of a process, unless it says an error before."""

    def is_so() -> bool:
        assert not said().startswith("error"), said()
        return true()

    wait_until(is_so, said, PATIENCE)


def test_it_brings_a_driver_and_a_second_one_stands_down(tmp_path: Path) -> None:
    values = Path(__file__).parents[2] / "src/replant/drivers/values.yaml"
    mirrored = tmp_path / "values.yaml"
    mirror = 'mirror: "registry.example.org:5000/mirror"'
    mirrored.write_text(values.read_text().replace('mirror: ""', mirror))
    with up(tmp_path, cloud("aws")) as (sandbox, kubeconfig):

        def available() -> bool:
            found = sandbox.store.find(CONFIG_MAPS, "replant-drivers-status", "replant-system")
            if found is None:
                return False
            conditions = msgspec.json.decode(found.value()["data"]["conditions.json"])
            states = {it["type"]: it["status"] for it in conditions}
            return (states["Available"], states["Progressing"]) == ("True", "False")

        with operating(kubeconfig, "--values", str(mirrored)) as first:
            until(lambda: "holding the Lease" in first.read_text(), first.read_text)
            with operating(kubeconfig) as second:
                until(lambda: "standing down" in second.read_text(), second.read_text)
                until(available, first.read_text)
            assert "is at work in this cluster" in second.read_text()
            assert f"{EBS}:" not in second.read_text()
        daemon_sets = sandbox.registry.of_kind("apps/v1", "DaemonSet")
        assert daemon_sets
        [found] = sandbox.store.list(daemon_sets)
        images = [it["image"] for it in found["spec"]["template"]["spec"]["containers"]]
        assert all(it.startswith("registry.example.org:5000/mirror/") for it in images)


def test_without_its_definitions_it_says_what_to_do(tmp_path: Path) -> None:
    with up(tmp_path, cloud("aws"), defined=False) as (_sandbox, kubeconfig):
        code, _out, err = replant(
            "operator", "--controllers", "drivers", "--kubeconfig", kubeconfig
        )
    assert code == 1
    assert "kubectl apply -f deploy/drivers/crds.yaml" in err


@pytest.mark.parametrize("text", ["[]", "images: {}", "mirror: 1"])
def test_values_that_are_wrong_are_named(text: str, tmp_path: Path) -> None:
    path = tmp_path / "values.yaml"
    path.write_text(text)
    code, _out, err = replant("operator", "--controllers", "drivers", "--values", str(path))
    assert code == 1
    assert str(path) in err
