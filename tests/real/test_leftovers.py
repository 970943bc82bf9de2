"""What a killed run leaves behind, and other bad starts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.ground import processes, programs, run
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

with run.folder(lambda line: print(line, file=sys.stderr)) as folder:
    cloud = Cloud(folder)
    plane = ControlPlane(programs.OLD, folder / "plane")
    plane.start_controller_manager({}, cloud)
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
        try:
            assert child.stdout is not None
            folder = Path(child.stdout.readline().strip())
            assert folder.parent == run.runs_folder()
            assert len(run.processes_of(folder)) > 8
            assert in_cgroups(folder)
        finally:
            child.kill()
        yield folder


def cgroups(folder: Path) -> list[Path]:
    name = run.cgroup_name(folder)
    return [*run.CGROUPS.glob(name), *run.CGROUPS.glob(f"*/{name}")]


def in_cgroups(folder: Path) -> list[str]:
    """The processes in the containers of a run's node, which know nothing of the run."""
    listed = (path for top in cgroups(folder) for path in top.rglob("cgroup.procs"))
    return [pid for path in listed for pid in path.read_text().split()]


def test_a_killed_run_leaves_nothing_running_and_the_next_clears_the_rest(
    killed_run: Path,
) -> None:
    wait_for(lambda: not run.processes_of(killed_run), "its processes to end by themselves", 10)
    wait_for(lambda: not in_cgroups(killed_run), "its containers to end by themselves", 10)
    said: list[str] = []
    run.clear_leftovers(said.append)
    assert f"clearing what the killed run {killed_run.name} left behind" in said
    assert not killed_run.exists()
    assert not cgroups(killed_run)


def test_a_run_that_lives_is_left_alone(ground: Path) -> None:
    said: list[str] = []
    run.clear_leftovers(said.append)
    assert not [line for line in said if ground.name in line]
    assert ground.exists()


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Another place for runs, with nobody else's in it."""
    runs = tmp_path / "runs"
    runs.mkdir(mode=0o700)
    monkeypatch.setattr(run, "runs_folder", lambda: runs)
    return runs


def test_a_left_over_mount_is_undone_and_what_is_behind_it_stays(
    elsewhere: Path, tmp_path: Path
) -> None:
    behind = tmp_path / "behind" / "file"
    behind.parent.mkdir()
    behind.touch()
    left = elsewhere / "1"
    (left / "mounted").mkdir(parents=True)
    subprocess.run(["mount", "--bind", behind.parent, left / "mounted"], check=True)
    assert run.mounts_below(left)
    with run.folder(lambda _line: None) as mine:
        assert mine.exists()
        assert not left.exists()
    assert behind.exists()
    assert not mine.exists()


def test_a_mount_that_stays_is_told_of_and_nothing_is_removed(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = elsewhere / "1" / "mounted"
    left.mkdir(parents=True)
    monkeypatch.setattr(run, "mounts_below", lambda _run: [str(left)])
    with pytest.raises(run.Unusable, match=f"{left} is left of a killed run and cannot be"):
        run.clear_leftovers(lambda _line: None)
    assert left.exists()


def test_a_folder_that_others_may_write_to_is_not_used(elsewhere: Path) -> None:
    elsewhere.chmod(0o755)
    with pytest.raises(run.Unusable, match=f"{elsewhere} is not a folder of ours alone"):
        run.folder(lambda _line: None).__enter__()
    assert not list(elsewhere.iterdir())


def test_a_port_in_use_is_not_the_end(
    ground: Path, cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = int(cloud.url.rpartition(":")[2])
    ports = iter([taken])
    monkeypatch.setattr(processes, "free_port", lambda: next(ports, None) or free_port())
    with ControlPlane(programs.OLD, ground / "taken") as plane:
        assert "address already in use" in plane.log("etcd")
        assert plane.api.ready()
