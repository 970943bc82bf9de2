"""Each order of the catalogue has its verdict, and docs/proof.md says the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from replant.proof import BadState, verify
from replant.proof.orders import read_order
from tests.proof.catalogue import COUNTER_EXAMPLES, DOCUMENTED, ENTRIES, EXAMPLES

ROOT = Path(__file__).parents[2]
PROOF = (ROOT / "docs/proof.md").read_text()
TABLE = PROOF.partition("| order | told | events |\n")[2].partition("\n\n")[0]
ROWS = re.findall(r"^\| (.+) \| \*\*(.+?)\*\*.* \| (\d+) \|$", TABLE, re.MULTILINE)
"""The rows of docs/proof.md's table of wrong orders: the order, the bad state, how many events."""
LEAST = 26
"""Counter-examples that are played on real components."""


@pytest.mark.parametrize("name", ENTRIES)
def test_an_order_is_told_as_the_catalogue_has_it(name: str) -> None:
    entry = ENTRIES[name]
    verdict = verify(entry.course)
    assert (verdict.bad_state, verdict.safe) == (entry.told, entry.told is None), verdict.story
    assert verdict.states > 0
    assert len(verdict.events) == max(len(verdict.story) - 1, 0)


def test_the_catalogue_has_many_counter_examples() -> None:
    assert len(COUNTER_EXAMPLES) >= LEAST


def test_every_row_of_the_docs_is_in_the_catalogue() -> None:
    assert [order for order, *_ in ROWS] == list(DOCUMENTED)


@pytest.mark.parametrize(("order", "state", "events"), ROWS, ids=[row[0] for row in ROWS])
def test_a_row_of_the_docs(order: str, state: str, events: str) -> None:
    verdict = verify(ENTRIES[DOCUMENTED[order]].course)
    assert verdict.bad_state is BadState(state)
    assert len(verdict.events) == int(events)


@pytest.mark.parametrize(
    "path", sorted((ROOT / "examples/orders").iterdir()), ids=lambda it: it.stem
)
def test_an_example_is_in_the_catalogue(path: Path) -> None:
    # Somebody vouches for drivers in all orders of the catalogue, and in no example.
    course = read_order({**yaml.safe_load(path.read_text()), "driversStay": True})
    assert course == ENTRIES[EXAMPLES[path.stem]].course
