"""``make test-quick`` goes the shortest way through every command."""

from __future__ import annotations

import re
from pathlib import Path

from replant.cli.main import COMMANDS

TESTS = Path(__file__).parents[1]
WORKFLOW = re.compile(r'^@pytest\.mark\.workflow\("([a-z]+)"\)$', re.MULTILINE)


def test_every_command_has_a_workflow() -> None:
    marked = {name for it in TESTS.rglob("test_*.py") for name in WORKFLOW.findall(it.read_text())}
    assert marked == set(COMMANDS)
