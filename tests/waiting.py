"""Waits for the work of another thread or process, which cannot be awaited."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

INTERVAL = 0.01
"""Seconds between two looks."""

What = str | Callable[[], str]
"""What is waited for, for the message of a failure; a function adds what there is instead."""


def wait_until(condition: Callable[[], object], what: What, timeout: float = 60) -> None:
    """Return as soon as a condition holds; fail if it does not within so many seconds."""
    deadline = time.monotonic() + timeout
    while not condition():
        _check_time(deadline, what, timeout)
        time.sleep(INTERVAL)


async def wait_until_async(
    condition: Callable[[], object], what: What, timeout: float = 60
) -> None:
    """Do the same while other tasks of this loop go on."""
    deadline = time.monotonic() + timeout
    while not condition():
        _check_time(deadline, what, timeout)
        await asyncio.sleep(INTERVAL)


def _check_time(deadline: float, what: What, timeout: float) -> None:
    if time.monotonic() > deadline:
        raise AssertionError(
            f"waited {timeout:g} s in vain for {what if isinstance(what, str) else what()}"
        )
