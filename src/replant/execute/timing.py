"""Time for whoever waits: the machine's, or that of a cluster whose clock runs faster."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any, Protocol


class Timing(Protocol):
    """Tells the time, and lets it pass."""

    @property
    def haste(self) -> float:
        """So many of its seconds pass while the machine works for one."""
        ...

    def now(self) -> float:
        """Seconds since 1970."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Let so much time pass."""
        ...

    async def wait(
        self, tasks: Collection[asyncio.Task[Any]], woken: asyncio.Event, seconds: float
    ) -> None:
        """Let time pass until a task has ended, something wakes us, or so much has passed."""
        ...


class RealTiming:
    """The machine's time, or one that runs so many times as fast, from a moment on."""

    def __init__(self, speed: float = 1.0, start: float | None = None) -> None:
        self._speed = speed
        self._start = time.time() if start is None else start
        self._began = time.monotonic()

    @property
    def haste(self) -> float:
        """So many of its seconds pass while the machine works for one."""
        return self._speed

    def now(self) -> float:
        """Seconds since 1970."""
        return self._start + (time.monotonic() - self._began) * self._speed

    async def sleep(self, seconds: float) -> None:
        """Let so much time pass."""
        await asyncio.sleep(seconds / self._speed)

    async def wait(
        self, tasks: Collection[asyncio.Task[Any]], woken: asyncio.Event, seconds: float
    ) -> None:
        """Wait for whichever comes first."""
        await first_of(tasks, woken, seconds / self._speed)


async def first_of(
    tasks: Collection[asyncio.Task[Any]], woken: asyncio.Event, seconds: float | None
) -> None:
    """Wait in real time until a task has ended, something wakes us, or so much has passed."""
    waking = asyncio.create_task(woken.wait())
    try:
        await asyncio.wait({*tasks, waking}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waking.cancel()


def written(seconds: float) -> str:
    """A moment as Kubernetes writes it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")[:-6] + "Z"


def read(moment: str) -> float:
    """The moment that Kubernetes wrote; 0 where it is none."""
    try:
        return datetime.fromisoformat(moment).timestamp()
    except ValueError:
        return 0.0
