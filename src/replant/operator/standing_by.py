"""One operator at a time: a second one stands down, says so, and takes over when the first is gone.

It is a convenience: what makes two of them harmless is that each looks before it writes, and that
what could do harm is written only to what was seen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from replant.errors import ReplantError
from replant.execute.lease import RENEWAL, Lease
from replant.execute.timing import Timing, first_of

LOOK_AGAIN = 10.0
"""Seconds after which one that stands by looks whether it has to take over."""
PATIENCE = 20.0
"""Seconds in which what is under way has to come to an end."""


async def lead(
    lease: Lease,
    timing: Timing,
    work: Callable[[asyncio.Event], Awaitable[None]],
    *,
    stop: asyncio.Event,
    note: Callable[[str], None],
) -> None:
    """Work whenever the lease is ours, until stopped; work is told by its own event to end."""
    while not stop.is_set():
        if not await _take(lease, timing, stop, note):
            return
        note(f"holding the Lease {lease.name} as {lease.holder}")
        await _while_held(lease, timing, work, stop, note)


async def _take(
    lease: Lease, timing: Timing, stop: asyncio.Event, note: Callable[[str], None]
) -> bool:
    said = ""
    while not stop.is_set():
        try:
            await lease.acquire()
        except ReplantError as error:
            if str(error) != said:
                said = str(error)
                note(f"standing down: {said}")
            await timing.wait((), stop, LOOK_AGAIN)
        else:
            return True
    return False


async def _while_held(
    lease: Lease,
    timing: Timing,
    work: Callable[[asyncio.Event], Awaitable[None]],
    stop: asyncio.Event,
    note: Callable[[str], None],
) -> None:
    end, kept = asyncio.Event(), True
    working = asyncio.ensure_future(work(end))
    try:
        while not (stop.is_set() or working.done()):
            await timing.wait((working,), stop, RENEWAL)
            if not (stop.is_set() or working.done()):
                await lease.renew({})
    except ReplantError as error:
        note(f"standing down: {error}")
        kept = False
    finally:
        end.set()
        await first_of((working,), asyncio.Event(), PATIENCE)
        if not working.done():
            working.cancel()
            with suppress(asyncio.CancelledError):
                await working
    if kept:
        stop.set()  # it has ended by itself, or was told to
        with suppress(ReplantError):
            await lease.release()
    if not working.cancelled():
        working.result()
