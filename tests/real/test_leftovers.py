"""What a killed run leaves behind, and other bad starts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.ground import controlplane, programs, run
from tests.real.ground.cloud import Cloud
from tests.real.ground.controlplane import ControlPlane
from tests.real.ground.processes import free_port, wait_for

# Everything of a run that could stay behind: processes, mounts, control groups, a container.
RUN = """
import sys, time
from tests.real.ground import programs, run
from tests.real.ground.cloud import Cloud
from tests.real.ground.controlplane import ControlPlane
from tests.real.ground.machine import Machine
from tests.real.ground.processes import wait_for
from tests.real.ground.volumes import pod_object

with run.folder(print) as folder:
    cloud = Cloud(folder)
    plane = ControlPlane(programs.OLD, folder / "plane")
    plane.start_controller_manager({}, cloud)
    wait_for(lambda: plane.api.find("ServiceAccount", "default", "default"), "an account")
    machine = Machine(plane, folder / "machine", "node")
    plane.api.create(pod_object("sleeper", "node"))
    status = lambda: plane.api.get("Pod", "sleeper", "default")["status"]
    wait_for(lambda: status()["phase"] == "Running", "a pod", 60)
    print(folder, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def killed_run(ground: Path) -> Iterator[Path]:  # noqa: ARG001 - all is built there
    """The folder of a run that was killed with everything running."""
    with subprocess.Popen([sys.executable, "-c", RUN], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        folder = Path(child.stdout.readline().strip())
        assert folder.parent == run.runs_folder()
        assert len(run.processes_of(folder)) > 8
        assert cgroups(folder)
        os.kill(child.pid, signal.SIGKILL)
        yield folder


def cgroups(folder: Path) -> list[Path]:
    name = run.cgroup_name(folder)
    return [*run.CGROUPS.glob(name), *run.CGROUPS.glob(f"*/{name}")]


def test_a_killed_run_leaves_nothing_running_and_the_next_clears_the_rest(
    killed_run: Path,
) -> None:
    wait_for(lambda: not run.processes_of(killed_run), "its processes to end by themselves", 10)
    assert not run.mounts_below(killed_run)
    said: list[str] = []
    run.clear_leftovers(said.append)
    assert said == [f"clearing what the killed run {killed_run.name} left behind"]
    assert not killed_run.exists()
    assert not cgroups(killed_run)


def test_a_run_that_lives_is_left_alone(ground: Path) -> None:
    said: list[str] = []
    run.clear_leftovers(said.append)
    assert not said
    assert ground.exists()


def test_a_left_over_mount_is_undone(tmp_path: Path) -> None:
    left = run.runs_folder() / "0"
    (left / "mounted").mkdir(parents=True)
    subprocess.run(["mount", "--bind", tmp_path, left / "mounted"], check=True)
    assert run.mounts_below(left)
    run.clear_leftovers(lambda _line: None)
    assert not left.exists()
    assert tmp_path.exists()


def test_a_folder_that_others_may_write_to_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o755)
    monkeypatch.setattr(run, "runs_folder", lambda: tmp_path)
    with pytest.raises(run.NotOurs, match=f"{tmp_path} is not a folder of ours alone"):
        run.folder(lambda _line: None).__enter__()
    assert not list(tmp_path.iterdir())


def test_a_port_in_use_is_not_the_end(
    ground: Path, cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = int(cloud.url.rpartition(":")[2])
    ports = iter([taken])
    monkeypatch.setattr(controlplane, "free_port", lambda: next(ports, None) or free_port())
    with ControlPlane(programs.OLD, ground / "taken") as plane:
        assert "address already in use" in plane.log("etcd")
        assert plane.api.ready()
