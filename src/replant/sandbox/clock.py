"""Time in the sandbox: a clock that is run forward by hand, and one that keeps real time.

Whatever takes time in the sandbox is a timer here, so that a test can live through minutes at
once, and the same world can be left to itself behind a server.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush
from itertools import count

Call = Callable[[], None]

BEGINNING = datetime(2024, 1, 1, tzinfo=UTC)
"""When virtual time begins, unless another moment is named."""


class Clock(ABC):
    """Tells the time, and calls back when it has come."""

    def __init__(self) -> None:
        self._timers: list[tuple[datetime, int, Call]] = []
        self._numbers = count()

    @abstractmethod
    def now(self) -> datetime:
        """This moment."""

    def at(self, moment: datetime, call: Call) -> None:
        """Have ``call`` called once a moment has come; those of one moment in the order asked."""
        heappush(self._timers, (moment, next(self._numbers), call))

    def after(self, seconds: float, call: Call) -> None:
        """The same, some seconds from now."""
        self.at(self.now() + timedelta(seconds=seconds), call)

    @property
    def next_moment(self) -> datetime | None:
        """When the next call is due, if any is."""
        return self._timers[0][0] if self._timers else None

    def ring(self) -> bool:
        """Make the calls that are due, and tell whether there were any."""
        now, rung = self.now(), False
        # Calls that these calls ask for wait for the next round, so that a round ends.
        due = []
        while self._timers and self._timers[0][0] <= now:
            due.append(heappop(self._timers)[2])
        for call in due:
            call()
            rung = True
        return rung


class VirtualClock(Clock):
    """Stands still until it is put forward."""

    def __init__(self, start: datetime = BEGINNING) -> None:
        super().__init__()
        self._now = start

    def now(self) -> datetime:
        """This moment, which lasts until the clock is put forward."""
        return self._now

    def put_forward(self, moment: datetime) -> None:
        """Let a later moment come, without making any calls."""
        self._now = max(self._now, moment)


class RealClock(Clock):
    """Keeps the time of the machine."""

    def now(self) -> datetime:
        """This moment, as the machine has it."""
        return datetime.now(UTC)


class LiveClock(VirtualClock):
    """Begins in the past, so that a world can live through some time before anybody looks at it."""

    def __init__(self, seconds: float) -> None:
        super().__init__(datetime.now(UTC) - timedelta(seconds=seconds))
        self._live = False

    def now(self) -> datetime:
        """This moment: the machine's, once the clock is live."""
        return datetime.now(UTC) if self._live else super().now()

    def go_live(self) -> None:
        """Keep the time of the machine from now on."""
        self._live = True


class Pace:
    """Keeps a world going in real time, in the event loop of whoever serves it."""

    def __init__(self, clock: Clock, settle: Call) -> None:
        self._clock = clock
        self._settle = settle
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """There is something to do before the next timer; to be called in the same thread."""
        self._woken.set()

    async def keep(self) -> None:
        """Settle whenever a timer is due or something wakes it, until cancelled."""
        while True:
            self._woken.clear()
            self._settle()
            # What settling has written has woken it as well, but is already followed up.
            self._woken.clear()
            timeout = None
            if (moment := self._clock.next_moment) is not None:
                timeout = max((moment - self._clock.now()).total_seconds(), 0)
            try:
                await asyncio.wait_for(self._woken.wait(), timeout)
            except TimeoutError:
                continue
