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
    "test_hangs": r"Timeout",
}


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What pytest prints of tests that break the rules and of tests that keep them."""
    top = tmp_path_factory.mktemp("guarded")
    folder = top / "tests"
    folder.mkdir()
    (folder / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    (folder / "test_breaks.py").write_text(BREAKS)
    (folder / "test_keeps.py").write_text(KEEPS)
    # In the folder's own order: the working directory stays changed for what follows.
    options = (
        "-q",
        "-rA",
        "-p",
        "no:randomly",
        "-p",
        "no:cacheprovider",
        "-c",
        ROOT / "pyproject.toml",
    )
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "pytest",
        *options,
        f"--rootdir={top}",
        folder,
    ]
    wide = {**os.environ, "COLUMNS": "300"}
    ended = subprocess.run(command, cwd=ROOT, env=wide, capture_output=True, text=True, check=False)
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
