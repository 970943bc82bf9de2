from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.real.ground import needs, programs, run
from tests.real.ground.cloud import Cloud
from tests.real.ground.controlplane import ControlPlane

LONGEST_FIRST = (
    "test_mixed", "test_apply", "test_orders", "test_convert", "test_controllers", "test_kubeadm",
    "test_drivers", "test_kubectl", "test_rollouts", "test_plan", "test_gardener", "test_leading",
    "test_dangling", "test_counterexamples", "test_away", "test_cordons", "test_joined",
    "test_forgotten",
)  # fmt: skip
HANGS_AFTER = 900
"""Seconds. The longest test takes three minutes on a quiet machine."""


def pytest_sessionstart() -> None:
    if lacking := needs.missing():
        raise pytest.UsageError(f"The proving ground needs {', '.join(lacking)}.")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Real Kubernetes keeps its own time, and some of what it does takes minutes.

    The modules that take longest go first, so that no worker waits for one of them at the end.
    """
    real = [it for it in items if it.path.is_relative_to(config.rootpath / "tests" / "real")]
    for item in real:
        item.add_marker(pytest.mark.wall_clock("real Kubernetes"))
        item.add_marker(pytest.mark.timeout(HANGS_AFTER))
    if len(real) == len(items):
        rank = {name: number for number, name in enumerate(LONGEST_FIRST)}
        items.sort(key=lambda it: rank.get(it.path.stem, len(rank)))


@pytest.fixture(scope="session")
def ground(pytestconfig: pytest.Config) -> Iterator[Path]:
    """This run's folder. All programs are built before the first test that needs any."""
    terminal = pytestconfig.pluginmanager.getplugin("terminalreporter")

    def say(line: str) -> None:
        terminal.write_line(line, flush=True)

    with ExitStack() as stack:
        try:
            programs.ensure_all(say)
            folder = stack.enter_context(run.folder(say))
        except (programs.Unavailable, run.Unusable) as problem:
            # Not pytest.exit: from a worker of pytest-xdist nobody would hear the reason.
            pytest.fail(str(problem), pytrace=False)
        yield folder


@pytest.fixture(scope="session")
def cloud(ground: Path) -> Iterator[Cloud]:
    with Cloud(ground) as cloud:
        yield cloud


@pytest.fixture(scope="module")
def old(ground: Path, request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """Kubernetes whose migration gates can still be switched, with all in-tree plugins."""
    with ControlPlane(programs.OLD, ground / f"old-{request.path.stem}") as plane:
        yield plane


@pytest.fixture(scope="module")
def new(ground: Path, request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """Kubernetes of today, without any of them."""
    with ControlPlane(programs.newest(), ground / f"new-{request.path.stem}") as plane:
        yield plane
