"""The sandbox answers what real Kubernetes 1.24 was seen to answer."""

from __future__ import annotations

import httpx
import pytest

from tests.real import records
from tests.sandbox.conformance import STORIES, Story, tell
from tests.sandbox.refused import REFUSED

SEEN = records.read("api-1.24.17")
ALL = (*STORIES, *REFUSED)


@pytest.mark.parametrize("story", ALL, ids=lambda story: story.name)
def test_the_answers_are_those_of_real_kubernetes(story: Story, http: httpx.Client) -> None:
    assert tell(http, story) == SEEN[story.name]


def test_every_story_is_on_record() -> None:
    assert [story.name for story in ALL] == list(SEEN)
