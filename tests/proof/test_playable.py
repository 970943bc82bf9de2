"""What tests/real plays of the catalogue, what it has seen, and what docs/proof.md says of it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from replant.proof import verify
from tests.proof.catalogue import COUNTER_EXAMPLES
from tests.proof.playable import BEYOND, CLAIM, Play, can_be_acted, plays, story, why_not

ROOT = Path(__file__).parents[2]
PROOF = (ROOT / "docs/proof.md").read_text()
RECORD = json.loads((ROOT / "tests/real/observed/counterexamples.json").read_text())
PLAYED = [it.order for it in plays() if it.kind == CLAIM]


@pytest.mark.parametrize("name", [*PLAYED, *BEYOND])
def test_a_story_is_played_in_another_order_of_events_and_to_the_same_end(name: str) -> None:
    course = COUNTER_EXAMPLES[name].course
    told, verdict = story(course), verify(course)
    assert Counter((it.act, it.side) for it in told.events) == Counter(
        (it.act, it.side) for it in verdict.events
    )
    assert (told.problem.state, told.problem.cause) == (verdict.bad_state, verdict.cause)
    assert can_be_acted(told) is (name not in BEYOND)


def test_everything_that_is_played_is_in_the_record() -> None:
    assert sorted(it.name for it in plays()) == sorted(RECORD)


@pytest.mark.parametrize("play", plays(), ids=lambda it: it.name)
def test_the_record_is_of_what_is_told_now(play: Play) -> None:
    verdict = verify(COUNTER_EXAMPLES[play.order].course)
    row = RECORD[play.name]
    assert (row["told"], row["cause"]) == (verdict.bad_state, verdict.cause)


def test_the_docs_tell_the_share() -> None:
    happened = [name for name in PLAYED if RECORD[name]["happens"]]
    assert f"**{len(happened)} of {len(PLAYED)} happen as told**" in PROOF
    for name in set(PLAYED) - set(happened):
        assert f"`{name}`" in PROOF


def test_the_docs_tell_why_the_others_are_not_played() -> None:
    reasons = Counter(reason for name in COUNTER_EXAMPLES if (reason := why_not(name)))
    for reason, number in reasons.items():
        assert f"\n| {number} | {reason} |\n" in PROOF
