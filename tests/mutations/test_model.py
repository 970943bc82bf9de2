"""What the list of equivalent mutants says fits the model, and is little."""

from __future__ import annotations

import ast
import re
from collections import Counter

import pytest

from tests.mutations.changes import mutants
from tests.mutations.model import (
    EQUIVALENT,
    ROOT,
    SHARE_LISTED,
    SOURCES,
    TARGETS,
    TESTS,
    Target,
    all_mutants,
)

MUTANTS = all_mutants()


def test_every_mutant_has_a_name_of_its_own() -> None:
    counts = Counter(it.id for it in MUTANTS)
    assert [it for it, count in counts.items() if count > 1] == []


def test_what_is_listed_is_there_and_listed_once() -> None:
    """A name that is gone is of a rule that was changed: look at it again, and run the command."""
    assert sorted(set(EQUIVALENT) - {it.id for it in MUTANTS}) == []
    assert [it for it, count in Counter(EQUIVALENT).items() if count > 1] == []


def test_little_is_listed() -> None:
    assert len(EQUIVALENT) <= SHARE_LISTED * len(MUTANTS)


@pytest.mark.parametrize("target", TARGETS, ids=lambda it: it.file)
def test_what_is_left_out_is_there(target: Target) -> None:
    source = (SOURCES / target.file).read_text()
    tree = ast.parse(source)
    names = {it.name for it in ast.walk(tree) if isinstance(it, ast.FunctionDef)}
    names |= {it.id for it in ast.walk(tree) if isinstance(it, ast.Name)}
    assert {it.rpartition(".")[2] for it in target.left_out} <= names
    found = [it.id for it in mutants(target.file, source, lambda _name: True)]
    for part in target.parts_left_out:
        assert any(re.search(part, it) for it in found)


def test_the_tests_that_notice_are_there() -> None:
    assert [it for files in TESTS.values() for it in files if not (ROOT / it).exists()] == []


def test_each_place_is_changed() -> None:
    source = "def f(a):\n    if a < 1 and not g(a):\n        yield Event(1, 2, 3, a, b)\n"
    found = [(it.old, it.new) for it in mutants("f.py", source, lambda _name: True)]
    assert ("a < 1", "a <= 1") in found
    assert ("a < 1 and (not g(a))", "a < 1 or not g(a)") in found
    assert ("yield Event(1, 2, 3, a, b)", "pass") in found
    assert ("Event(1, 2, 3, a, b)", "Event(1, 2, 3, a, not b)") in found
