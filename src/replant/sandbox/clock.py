"""Time in the sandbox: a clock that is put forward by hand, and those that go by themselves.

Whatever takes time in the sandbox is a timer here, so that a test can live through minutes at
once, and the same world can be left to itself behind a server.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush
from itertools import count
from time import monotonic

from replant.errors import Refused

Call = Callable[[], None]

BEGINNING = datetime(2024, 1, 1, tzinfo=UTC)
"""When virtual time begins, unless another moment is named."""
FASTEST = 1000.0
"""A clock that were faster would leave controllers no time to be on time."""


class Clock(ABC):
    """Tells the time, and calls back when it has come."""

    def __init__(self) -> None:
        self._timers: list[tuple[datetime, int, Call]] = []
        self._numbers = count()
        self._listeners: list[Call] = []

    @abstractmethod
    def now(self) -> datetime:
        """This moment."""

    @property
    def by_hand(self) -> bool:
        """Whether it goes only when it is put forward."""
        return False

    @property
    def speed(self) -> float:
        """So many of its seconds pass in a real one."""
        return 1.0

    def real_seconds_until(self, moment: datetime) -> float | None:
        """So many real seconds until a moment has come; None if it does not come by itself."""
        if self.by_hand:
            return None
        return max((moment - self.now()).total_seconds(), 0) / self.speed

    def listen(self, call: Call) -> None:
        """Have ``call`` called whenever whoever waits for the next moment has to think again."""
        self._listeners.append(call)

    def at(self, moment: datetime, call: Call) -> None:
        """Have ``call`` called once a moment has come; those of one moment in the order asked."""
        timer = (moment, next(self._numbers), call)
        heappush(self._timers, timer)
        if self._timers[0] is timer:
            self._tell()

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

    def _tell(self) -> None:
        for call in self._listeners:
            call()


class VirtualClock(Clock):
    """Stands still until it is put forward by hand."""

    def __init__(self, start: datetime = BEGINNING) -> None:
        super().__init__()
        self._now = start

    def now(self) -> datetime:
        """This moment, which lasts until the clock is put forward."""
        return self._now

    @property
    def by_hand(self) -> bool:
        """Whether it goes only when it is put forward."""
        return True

    @property
    def speed(self) -> float:
        """It stands still by itself."""
        return 0.0

    def put_forward(self, moment: datetime) -> None:
        """Let a later moment come, without making any calls."""
        self._now = max(self._now, moment)


class RealClock(Clock):
    """Keeps the time of the machine."""

    def now(self) -> datetime:
        """This moment, as the machine has it."""
        return datetime.now(UTC)


class LiveClock(VirtualClock):
    """Begins in the past and is put forward by hand, until it goes by itself, at any speed.

    So a world can live through some time before anybody looks at it.
    """

    def __init__(self, seconds: float, speed: float = 1.0) -> None:
        super().__init__(datetime.now(UTC) - timedelta(seconds=seconds))
        self._speed = _checked(speed)
        self._since: float | None = None
        """The real moment at which it was last set; None while it is put forward by hand."""

    def now(self) -> datetime:
        """This moment. It never goes back, whatever becomes of its speed or the machine's clock."""
        if self._since is None:
            return self._now
        return self._now + timedelta(seconds=(monotonic() - self._since) * self._speed)

    @property
    def by_hand(self) -> bool:
        """Whether it goes only when it is put forward."""
        return self._since is None

    @property
    def speed(self) -> float:
        """So many of its seconds pass in a real one."""
        return 0.0 if self._since is None else self._speed

    def go_live(self) -> None:
        """Go by itself from now on, beginning with the machine's time."""
        self._now, self._since = max(self._now, datetime.now(UTC)), monotonic()
        self._tell()

    def go_at(self, speed: float) -> None:
        """Go at another speed from now on; Refused if it is none."""
        speed = _checked(speed)
        if self._since is not None:
            self._now, self._since = self.now(), monotonic()
        self._speed = speed
        self._tell()


def _checked(speed: float) -> float:
    if not 0 < speed <= FASTEST:
        raise Refused(f"A clock's speed is above 0 and at most {FASTEST:g}, not {speed:g}.")
    return speed


class Pace:
    """Keeps a world going as its clock goes, in the event loop of whoever serves it."""

    def __init__(self, clock: Clock, settle: Call) -> None:
        self._clock = clock
        self._settle = settle
        self._woken = asyncio.Event()
        clock.listen(self.wake)

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
            moment = self._clock.next_moment
            timeout = self._clock.real_seconds_until(moment) if moment else None
            # Not wait_for: Python 3.11's forgets a cancellation that comes with a wake.
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self._woken.wait()
