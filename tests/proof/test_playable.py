"""What tests/real plays of the catalogue."""

from __future__ import annotations

from collections import Counter

import pytest

from replant.proof import verify
from tests.proof.catalogue import COUNTER_EXAMPLES
from tests.proof.playable import BEYOND, CLAIM, can_be_acted, plays, story

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
