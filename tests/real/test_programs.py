"""The cache of programs: built once, whole or not at all."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.ground import needs, programs
from tests.real.ground.controlplane import ControlPlane
from tests.real.ground.programs import Recipe, Unavailable


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "replant"


def toy(tmp_path: Path, text: str = "echo toy", command: str = "cp toy OUT/toy") -> Recipe:
    source = tmp_path / "toy"
    source.write_text(text)
    return Recipe("toy", (source,), (("sh", "-c", command),), ("toy",))


def built(recipe: Recipe) -> list[str]:
    """What is said while it is built."""
    said: list[str] = []
    programs.ensure(recipe, said.append)
    return said


def test_what_is_there_is_not_built_again(cache: Path, tmp_path: Path) -> None:
    recipe = toy(tmp_path)
    assert len(built(recipe)) == 2
    assert recipe.program("toy").read_text() == "echo toy"
    assert built(recipe) == []
    assert sorted(path.name for path in cache.iterdir()) == ["lock", recipe.folder.name]


def test_a_change_builds_it_anew_and_what_nobody_uses_goes(cache: Path, tmp_path: Path) -> None:
    folders = []
    for text in ("one", "two"):
        recipe = toy(tmp_path, text)
        built(recipe)
        folders.append(recipe.folder)
    os.utime(folders[0], (0, 0))
    recipe = toy(tmp_path, "three")
    assert built(recipe)[0] == f"removing {folders[0].name}: nobody has used it for a month"
    assert set(cache.glob("toy-*")) == {folders[1], recipe.folder}


def test_a_build_that_was_stopped_half_way_is_done_again(cache: Path, tmp_path: Path) -> None:
    half = cache / "building-abc" / "out"
    half.mkdir(parents=True)
    said = built(toy(tmp_path))
    assert said[0] == "removing building-abc: a build that was stopped half-way"
    assert not half.exists()


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            "echo one >&2; echo no such module >&2; exit 1",
            r"^sh -c for toy failed: no such module$",
        ),
        ("exit 1", r"^sh -c for toy failed: no reason given$"),
        ("true", r"^Building toy gave no toy\.$"),
    ],
)
def test_a_build_that_fails_says_why_in_one_line(
    tmp_path: Path, command: str, message: str
) -> None:
    recipe = toy(tmp_path, command=command)
    with pytest.raises(Unavailable, match=message):
        built(recipe)
    assert not recipe.folder.exists()


def test_a_disk_that_would_fill_up_is_told_of_before(cache: Path, tmp_path: Path) -> None:
    assert needs.lack_of_space(tmp_path, wanted=1) == ""
    greedy = dataclasses.replace(toy(tmp_path), space=10**18)
    with pytest.raises(Unavailable, match=f"wants 1000000000 GB of free disk and {cache} has"):
        built(greedy)


@pytest.mark.parametrize(
    ("path", "missing"),
    [("", "Go 1.26 or newer"), (os.environ["PATH"], "root")],
    ids=["without Go", "without root"],
)
def test_what_is_missing_is_said_in_one_line(path: str, missing: str) -> None:
    """As `make test-real` says it."""
    tests = Path(__file__).parent
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", str(tests)]
    if missing == "root":
        # A user namespace makes somebody else of us who may still read all files.
        command = ["unshare", "--user", *command]
    env = {**os.environ, "PATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        command, cwd=tests.parents[1], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    [line] = [line for line in done.stdout.splitlines() + done.stderr.splitlines() if line]
    assert "The proving ground needs " in line
    assert missing in line


@pytest.fixture
def given_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ground: Path) -> Iterator[Path]:  # noqa: ARG001
    """A folder as the ecosystem's own tools would fill it, named in KUBEBUILDER_ASSETS."""
    for program in (
        programs.etcd().program("etcd"),
        *programs.kubernetes(programs.NEW).folder.iterdir(),
    ):
        (tmp_path / program.name).symlink_to(program)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    programs.given_version.cache_clear()
    yield tmp_path
    programs.given_version.cache_clear()


def test_programs_that_the_user_has_are_used(given_programs: Path, ground: Path) -> None:
    assert programs.newest() == programs.NEW
    for name in ("etcd", *programs.KUBERNETES):
        assert programs.program(programs.NEW, name) == given_programs / name
    old = programs.kubernetes(programs.OLD)
    assert programs.program(programs.OLD, "kubelet") == old.program("kubelet")
    assert programs.kubernetes(programs.NEW) not in programs.recipes()
    with ControlPlane(programs.newest(), ground / "given") as plane:
        assert plane.api.ready()


def test_what_the_user_lacks_is_built_if_we_can(given_programs: Path) -> None:
    (given_programs / "kubelet").unlink()
    new = programs.kubernetes(programs.NEW)
    assert new in programs.recipes()
    assert programs.program(programs.NEW, "kubelet") == new.program("kubelet")


def test_what_the_user_lacks_is_named_if_we_cannot(
    given_programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (given_programs / "kube-controller-manager").unlink()
    (given_programs / "kubelet").unlink()
    monkeypatch.setattr(programs, "NEW", "1.0.0")
    lacking = "but no kube-controller-manager, kubelet: put them there"
    with pytest.raises(Unavailable, match=f"has Kubernetes .* {lacking}"):
        programs.recipes()
