"""Each key is attended to when it is called, a few at a time, and again after a wait or a failure.

One that hangs or fails holds nobody else up for long: those that have failed have at most half of
the places, and come back ever more rarely.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress

from replant.errors import Conflict

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 300.0
"""Seconds after a failure, doubled each time."""

Attend = Callable[[str], Awaitable[float | None]]
"""Does all that there is to do for a key. Gives the seconds after which to look again, or None."""
Failed = Callable[[str, Exception, float], None]
"""Told the key, what went wrong, and after how many seconds it is tried again."""


def pause(tries: int) -> float:
    """How long to wait after so many failures in a row; less by chance, lest all come at once."""
    longest = min(FIRST_PAUSE * 2.0 ** min(tries, 20), LONGEST_PAUSE)
    return longest * random.uniform(0.5, 1.0)  # noqa: S311 - nobody gains by guessing it


class Rounds:
    """Attends to keys. Use as a context: what is under way when it ends is cancelled."""

    def __init__(
        self,
        attend: Attend,
        failed: Failed,
        places: int,
        pause: Callable[[int], float] = pause,
    ) -> None:
        self._attend = attend
        self._failed = failed
        self._pause = pause
        self._places = asyncio.Semaphore(places)
        self._for_failed = asyncio.Semaphore(max(1, places // 2))
        self._calls: dict[str, asyncio.Event] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Rounds:
        return self

    async def __aexit__(self, *_error: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def call(self, key: str) -> None:
        """Have a key attended to: now, or once more if that is under way."""
        if key in self._calls:
            self._calls[key].set()
            return
        self._calls[key] = asyncio.Event()
        task = asyncio.create_task(self._look_after(key, self._calls[key]))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def count(self) -> int:
        """How many keys are attended to, or wait for it."""
        return len(self._calls)

    async def _look_after(self, key: str, called: asyncio.Event) -> None:
        tries = 0
        try:
            while True:
                called.clear()
                try:
                    wait = await self._once(key, failed=tries > 0)
                    tries = 0
                except Conflict:
                    wait = self._pause(0)  # somebody else has written meanwhile: nothing has failed
                except Exception as error:  # noqa: BLE001 - whatever it is, others go on
                    wait = self._pause(tries)
                    tries += 1
                    self._failed(key, error, wait)
                if wait is None and not called.is_set():
                    return
                # Not wait_for: Python 3.11's forgets a cancellation that comes with a call.
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await called.wait()
        finally:
            del self._calls[key]

    async def _once(self, key: str, *, failed: bool) -> float | None:
        async with AsyncExitStack() as held:
            if failed:
                await held.enter_async_context(self._for_failed)
            await held.enter_async_context(self._places)
            return await self._attend(key)
