"""An event loop whose time jumps to the next timer as soon as there is nothing else to do.

What takes an hour of its time takes no time of the machine, and what is later by one second comes
later on every machine, however slow that is. It is for code that waits only for itself: threads,
processes and sockets take time of the machine.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """A loop whose clock starts at 0 and is put forward by its selector."""

    def __init__(self) -> None:
        self._selector_of_time = _JumpingSelector()
        super().__init__(self._selector_of_time)

    def time(self) -> float:
        """Seconds since it was made."""
        return self._selector_of_time.now


class _JumpingSelector(selectors.SelectSelector):
    """Puts the clock forward instead of waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            # No timer is left, so this would wait for ever.
            raise AssertionError("every task waits for another one")
        self.now += timeout
        return ready


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in virtual time."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)
