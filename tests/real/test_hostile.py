"""Conversions there and back, while people and failures get in their way."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.real import hostile
from tests.real.ground import programs
from tests.real.ground.cloud import Cloud
from tests.real.ground.processes import settled

pytestmark = pytest.mark.long
CALM = 20.0
"""Seconds after which nothing that somebody did goes on having consequences."""


@pytest.mark.parametrize("version", ["old", "new"])
@pytest.mark.parametrize("seconds", [30, 300], ids=lambda it: f"{it}s")
def test_no_volume_comes_to_harm(cloud: Cloud, ground: Path, version: str, seconds: int) -> None:
    programs_version = {"old": programs.OLD, "new": programs.newest()}[version]
    seed = time.time_ns() % 10**6
    print(f"seed {seed}")  # noqa: T201
    folder = ground / f"hostile-{version}-{seconds}"
    with hostile.cluster(programs_version, cloud, folder, seed) as (world, role):
        conversions = hostile.Conversions(role, seed)
        with world.acting():
            conversions.go_on(seconds)
        conversions.end()
        settled(world.wrong, CALM)
        print(f"deeds {world.deeds}, commands by exit code {conversions.codes}")  # noqa: T201
        assert world.wrong() == []
        assert conversions.codes.get(0), "no conversion came to its end"
