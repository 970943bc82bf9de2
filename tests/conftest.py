"""What holds for all tests."""

import shutil
import signal
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests import proofs
from tests.cli import command_server, shell
from tests.guard import Guard

PROOFS = "proofs"
"""What the controller of pytest-xdist calls the folder of proofs that it gives to workers."""

PURE_PACKAGES = (
    "translate", "gates", "routing", "inventory", "plan", "proof", "swap", "drivers", "gardener",
    "manifests", "report",
)  # fmt: skip
"""Folders whose tests need no clock, process or socket: see ``make test-quick``."""
FOLDER = pytest.StashKey[Path]()

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell without job control has what it puts in the background ignore Ctrl-C, and so would
    # all that tests start in order to interrupt it.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples in every run, so that a failure is of the change and not of the dice; `make
# test-explore` looks for others.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("quick", settings.get_profile("same"), max_examples=10)
settings.register_profile("explore", max_examples=2_000, deadline=None, print_blob=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--quick", action="store_true", help="only pure packages, and a workflow of each command"
    )


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("quick"):
        settings.load_profile("quick")
    config.pluginmanager.register(Guard(config.rootpath / "tests"), "guard")
    given = getattr(config, "workerinput", {}).get(PROOFS)
    folder = Path(given or tempfile.mkdtemp(prefix="replant-proofs-"))
    if not given:
        config.add_cleanup(lambda: shutil.rmtree(folder))
    config.stash[FOLDER] = folder
    proofs.cache_verdicts_in(folder)
    command_server.PROOFS = folder


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("quick"):
        return
    folders = tuple(config.rootpath / "tests" / it for it in PURE_PACKAGES)
    quick = [
        it
        for it in items
        if it.get_closest_marker("workflow")
        or (it.path.parent in folders and not it.get_closest_marker("exhaustive"))
    ]
    chosen = frozenset(quick)
    config.hook.pytest_deselected(items=[it for it in items if it not in chosen])
    items[:] = quick


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Have a worker of pytest-xdist share the folder."""
    node.workerinput[PROOFS] = str(node.config.stash[FOLDER])


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Have workflows start real processes: forks hide what an import or an end does wrong."""
    shell.in_forks = item.get_closest_marker("workflow") is None
