"""CI, the devcontainer and the documents call targets that the Makefile has."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
TARGET = re.compile(r"^([a-z][a-z-]*):", re.MULTILINE)
CALL = re.compile(r"(?:^|[`;&|])\s*(?:make|part)\s+([a-z][a-z-]*)", re.MULTILINE)
"""As .ci/run has it too, which runs a target with its function ``part``."""
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
DOCUMENTS = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "tests/real/README.md")]


def targets() -> set[str]:
    return set(TARGET.findall((ROOT / "Makefile").read_text()))


def commands_of(workflow: Path) -> Iterator[str]:
    for job in yaml.safe_load(workflow.read_text())["jobs"].values():
        yield from (step["run"] for step in job["steps"] if "run" in step)


def commands_of_devcontainer() -> Iterator[str]:
    config = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    yield from (value for key, value in config.items() if key.endswith("Command"))


def called_targets(commands: Iterable[str]) -> set[str]:
    called = {target for command in commands for target in CALL.findall(command)}
    assert called, "no make target is called"
    return called


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda it: it.name)
def test_a_workflow_calls_targets_that_exist(workflow: Path) -> None:
    assert called_targets(commands_of(workflow)) <= targets()


def test_the_workflows_run_what_must_be_green_before_a_change_lands() -> None:
    """The same targets as .ci/run, which runs them on one machine."""
    landing = called_targets([(ROOT / ".ci" / "run").read_text()])
    in_workflows = set().union(*(called_targets(commands_of(it)) for it in WORKFLOWS))
    assert landing <= in_workflows


def test_the_devcontainer_calls_targets_that_exist() -> None:
    assert called_targets(commands_of_devcontainer()) <= targets()


@pytest.mark.parametrize("path", [*DOCUMENTS, ROOT / ".ci" / "run"], ids=lambda it: it.name)
def test_documents_name_targets_that_exist(path: Path) -> None:
    code = "\n".join(re.findall(r"```.*?```|`[^`]+`", path.read_text(), re.DOTALL))
    text = path.read_text() if path.suffix != ".md" else code
    assert called_targets([text]) <= targets()


def test_every_target_is_phony_and_has_its_help() -> None:
    makefile = (ROOT / "Makefile").read_text()
    [phony] = re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    helped = set(re.findall(r"^([a-z][a-z-]*):.*## ", makefile, re.MULTILINE))
    assert set(phony.split()) == targets() == helped
