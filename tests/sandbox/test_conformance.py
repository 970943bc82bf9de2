"""The sandbox answers what real Kubernetes 1.24 was seen to answer."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.real import records
from tests.sandbox.conformance import STORIES, tell
from tests.sandbox.refused import REFUSED

SEEN = records.read("api-1.24.17")
ALL = (*STORIES, *REFUSED)


@pytest.fixture(scope="module")
def answers(http: httpx.Client) -> dict[str, Any]:
    """In their order, as real Kubernetes was asked: some need what others have defined."""
    return {story.name: tell(http, story) for story in ALL}


@pytest.mark.parametrize("story", [it.name for it in ALL])
def test_the_answers_are_those_of_real_kubernetes(story: str, answers: dict[str, Any]) -> None:
    assert answers[story] == SEEN[story]


def test_every_story_is_on_record() -> None:
    assert [story.name for story in ALL] == list(SEEN)
