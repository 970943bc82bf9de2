"""The suite rejects tests that would make it slow or flaky: each rule is broken here once."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BREAKS = """
import asyncio, os, socket, time
import pytest

def test_sleeps():
    time.sleep(30)

def test_sleeps_and_hides_it():
    try:
        time.sleep(30)
    except AssertionError:
        pass

def test_sleeps_in_a_loop():
    asyncio.run(asyncio.sleep(30))

def test_shares_a_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 18080))

def test_changes_the_environment():
    os.environ["REPLANT_GUARD"] = "1"

def test_changes_the_working_directory():
    os.chdir("/")

def test_sleeps_again_and_again():
    for _each in range(20):
        time.sleep(0.01)

@pytest.mark.timeout(1)
def test_hangs():
    async def hang_in_a_task():
        await asyncio.Event().wait()
    asyncio.run(hang_in_a_task())
"""
KEEPS = """
import asyncio, socket, threading, time
import pytest

def test_binds_a_free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))

@pytest.mark.wall_clock("the guard's own test")
def test_is_marked():
    time.sleep(0.02)

def test_yields():
    asyncio.run(asyncio.sleep(0))

def test_changes_the_environment_for_itself(monkeypatch):
    monkeypatch.setenv("REPLANT_GUARD", "1")
"""
REASONS = {
    "test_sleeps": r"time\.sleep\(30\) in a test",
    "test_sleeps_and_hides_it": r"time\.sleep\(30\) in a test",
    "test_sleeps_in_a_loop": r"asyncio\.sleep\(30\) in a test",
    "test_shares_a_port": r"A test binds port 18080",
    "test_changes_the_environment": r"The test changed REPLANT_GUARD",
    "test_changes_the_working_directory": r"The test changed the working directory",
    "test_sleeps_again_and_again": r"time\.sleep\(0\.01\) in a test",
    "test_hangs": r"Timeout",
}


HANGS_AT_ITS_END = """
import asyncio, threading, time
import pytest

async def hang_in_a_thread():
    await asyncio.Event().wait()

@pytest.fixture
def endless():
    threading.Thread(target=lambda: asyncio.run(hang_in_a_thread()), daemon=True).start()
    yield
    while True:
        threading.Event().wait(0.1)

@pytest.mark.timeout(1)
def test_hangs_and_so_does_its_end(endless):
    try:
        threading.Event().wait()
    except BaseException:
        pass
"""


def run_guarded(top: Path, **modules: str) -> subprocess.CompletedProcess[str]:
    """Run pytest with the guard on modules in a folder of their own."""
    folder = top / "tests"
    folder.mkdir()
    (folder / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)
    # In the folder's own order: the working directory stays changed for what follows.
    options = ("-q", "-rA", "-p", "no:randomly", "-p", "no:cacheprovider")
    command: list[str | Path] = [
        *(sys.executable, "-m", "pytest", *options, "-c", ROOT / "pyproject.toml"),
        *(f"--rootdir={top}", folder),
    ]
    wide = {**os.environ, "COLUMNS": "300"}
    return subprocess.run(command, cwd=ROOT, env=wide, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What pytest prints of tests that break the rules and of tests that keep them."""
    top = tmp_path_factory.mktemp("guarded")
    ended = run_guarded(top, test_breaks=BREAKS, test_keeps=KEEPS)
    return f"{ended.stdout}{ended.stderr}"


@pytest.mark.parametrize(("test", "reason"), REASONS.items(), ids=REASONS)
def test_a_test_that_breaks_a_rule_fails(outcome: str, test: str, reason: str) -> None:
    assert re.search(rf"^(?:FAILED|ERROR) \S+::{test} - .*{reason}", outcome, re.MULTILINE), outcome


def test_the_tasks_of_a_test_that_hangs_are_printed(outcome: str) -> None:
    assert "hang_in_a_task" in outcome


def test_tests_that_keep_the_rules_pass(outcome: str) -> None:
    failed = re.findall(r"^(?:FAILED|ERROR) \S+::(\w+)", outcome, re.MULTILINE)
    assert set(failed) == set(REASONS)
    for test in re.findall(r"def (test_\w+)", KEEPS):
        assert re.search(rf"^PASSED \S+::{test}$", outcome, re.MULTILINE), outcome


def test_a_test_whose_end_hangs_too_ends_with_its_process(tmp_path: Path) -> None:
    ended = run_guarded(tmp_path, test_hangs=HANGS_AT_ITS_END)
    assert ended.returncode == 1
    assert "hang_in_a_thread" in ended.stderr  # the tasks of all threads are printed
    assert "test_hangs.py" in ended.stderr


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        ("import time\n\ntime.sleep(30)\n", r"time\.sleep\(30\) in a test"),
        (
            "import socket\n\nsocket.create_server(('127.0.0.1', 18081))\n",
            "A test binds port 18081",
        ),
        (
            "import pytest\n\n@pytest.mark.wall_clock\ndef test_it():\n    pass\n",
            "wall_clock needs a reason",
        ),
    ],
    ids=["sleeps", "binds", "gives no reason"],
)
def test_a_module_that_breaks_a_rule_is_not_collected(
    tmp_path: Path, module: str, reason: str
) -> None:
    ended = run_guarded(tmp_path, test_module=module)
    assert ended.returncode != 0
    assert re.search(reason, ended.stdout + ended.stderr)
