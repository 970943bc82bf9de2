from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.real.ground import needs, programs, run
from tests.real.ground.cloud import Cloud
from tests.real.ground.controlplane import ControlPlane


def pytest_sessionstart() -> None:
    if lacking := needs.missing():
        raise pytest.UsageError(f"The proving ground needs {', '.join(lacking)}.")


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
            pytest.exit(str(problem), returncode=1)
        yield folder


@pytest.fixture(scope="session")
def cloud(ground: Path) -> Iterator[Cloud]:
    with Cloud(ground) as cloud:
        yield cloud


@pytest.fixture(scope="session")
def old(ground: Path) -> Iterator[ControlPlane]:
    """Kubernetes whose migration gates can still be switched, with all in-tree plugins."""
    with ControlPlane(programs.OLD, ground / "old") as plane:
        yield plane


@pytest.fixture(scope="session")
def new(ground: Path) -> Iterator[ControlPlane]:
    """Kubernetes of today, without any of them."""
    with ControlPlane(programs.newest(), ground / "new") as plane:
        yield plane
