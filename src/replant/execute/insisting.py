"""Goes on asking a cluster that is away, and says so."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from replant.errors import Uncertain, Unreachable
from replant.execute.timing import Timing

FIRST, LONGEST = 0.5, 15.0
"""Seconds between two tries, doubled each time."""

T = TypeVar("T")
Notice = Callable[[str], None]


def pause(tries: int) -> float:
    """How long to wait after so many tries that came to nothing."""
    return min(FIRST * 2.0 ** min(tries, 10), LONGEST)


async def insist(ask: Callable[[], Awaitable[T]], timing: Timing, notice: Notice) -> T:
    """Ask until there is an answer. What is asked must do no harm when it is done twice."""
    tries = 0
    while True:
        try:
            return await ask()
        except (Uncertain, Unreachable) as error:
            seconds = pause(tries)
            notice(f"{error}; asking again in {seconds:g} s")
        tries += 1
        await timing.sleep(seconds)
