"""Rejects tests that disturb each other or that wait for the wall clock.

A test fails that does one of these:

- ``time.sleep`` and ``asyncio.sleep`` of more than an instant in all, unless the test is marked
  ``wall_clock``, with the reason. Time of the sandbox comes from its virtual clock.
- ``bind`` to a port with a number: another test may have it. Port 0 gives a free one. What a
  process binds that a test starts is not seen.
- Environment variables or a working directory that a test leaves changed.

A test that hangs is ended by pytest-timeout; the stack of every asyncio task is printed first.
"""

from __future__ import annotations

import asyncio
import faulthandler
import functools
import gc
import os
import signal
import sys
import time
from collections.abc import Generator
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

import pytest
import pytest_timeout

MAX_SLEEP = 0.1
"""Seconds that a test may sleep in all; ``tests/waiting.py`` polls for longer."""
RUN_CLOCK = "replant.execute.timing"
"""The module by whose clock a run of Replant waits."""
GRACE = 60.0
"""Seconds that a test which is ended for hanging has for its end."""


class Rejected(AssertionError):
    """A test did what would make the suite slow or flaky."""


class Guard:
    """The rules, and the test to which they apply at the moment."""

    def __init__(self, tests: Path) -> None:
        """Watch what is called from files in a folder."""
        self._tests = f"{tests}{os.sep}"
        self._waiting = str(tests / "waiting.py")
        self._slept = 0.0
        self._item: pytest.Item | None = None
        self._violations: list[str] = []
        self._state = process_state()
        # pytest collects what tests write; of a process that ends, nobody would see it.
        self._stderr = os.fdopen(os.dup(2), "w")
        sys.addaudithook(self._audit)
        self._watch_sleeps()

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "socket.bind" and (self._item or self._is_collecting()):
            self._check_bind(arguments[1])

    def _watch_sleeps(self) -> None:
        """Check calls that make a test wait; a task that waits in the background does not."""
        sleep, asyncio_sleep = time.sleep, asyncio.sleep

        @functools.wraps(sleep)
        def checked_sleep(seconds: float, /) -> None:
            if self._is_test_code(sys._getframe(1)):  # noqa: SLF001
                self._check_sleep("time.sleep", seconds)
            sleep(seconds)

        @functools.wraps(asyncio_sleep)
        def checked_asyncio_sleep(delay: float, result: Any = None) -> Any:
            if self._is_test_code(sys._getframe(1)) and not has_virtual_time():  # noqa: SLF001
                self._check_sleep("asyncio.sleep", delay)
            return asyncio_sleep(delay, result)

        time.sleep = checked_sleep  # type: ignore[assignment]
        asyncio.sleep = checked_asyncio_sleep

    def _is_test_code(self, frame: FrameType) -> bool:
        """Whether a call comes from a test, or from the clock by which a run of Replant waits."""
        file = frame.f_code.co_filename
        in_tests = file.startswith(self._tests) and file != self._waiting
        return in_tests or frame.f_globals.get("__name__") == RUN_CLOCK

    def _is_collecting(self) -> bool:
        """Whether a call comes from a module of tests that is being imported."""
        frame: FrameType | None = sys._getframe(1)  # noqa: SLF001
        while frame and not (
            frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(self._tests)
        ):
            frame = frame.f_back
        return frame is not None

    def _check_sleep(self, function: str, seconds: float) -> None:
        if self._item and self._item.get_closest_marker("wall_clock"):
            return
        if self._item or self._is_collecting():
            self._slept += seconds
        if self._slept > MAX_SLEEP:
            self._reject(
                f"{function}({seconds:g}) in a test: wait on the virtual clock or for an event, "
                "poll with tests/waiting.py for the work of another process, or mark the test with "
                "@pytest.mark.wall_clock(reason)."
            )

    def _check_bind(self, address: Any) -> None:
        if isinstance(address, tuple) and address[1]:
            self._reject(
                f"A test binds port {address[1]}, which another test may have at the same time: "
                "bind port 0 and ask the socket for its number."
            )

    def _reject(self, why: str) -> None:
        self._violations.append(why)  # whoever catches the exception does not hide it
        raise Rejected(why)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Know which test runs."""
        self._item, self._violations, self._slept = item, [], 0.0
        try:
            return (yield)
        finally:
            self._item, self._slept = None, 0.0

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Refuse tests that need wall-clock time and do not say why."""
        for mark in item.iter_markers("wall_clock"):
            if not mark.args:
                raise pytest.UsageError(f"{item.nodeid}: wall_clock needs a reason.")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None, object, object]:
        """Fail a test that broke a rule, even if it caught the exception."""
        result = yield
        if self._violations:
            raise Rejected(self._violations[0])
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self) -> Generator[None, object, object]:
        """Fail a test that leaves the process other than it was, after its fixtures are gone."""
        result = yield
        now = process_state()
        if now != self._state:
            changes = ", ".join(sorted(name for name, _value in now ^ self._state))
            self._state = now  # the tests that follow are not to blame
            raise Rejected(f"The test changed {changes} and did not restore it: use monkeypatch.")
        return result

    def pytest_timeout_set_timer(self, item: pytest.Item, settings: Any) -> bool:
        """Have pytest-timeout print the asyncio tasks before it ends a test.

        One that goes on, since something catches the failure or its end hangs too, ends with its
        process: pytest-xdist reports that and starts another.
        """
        is_ending = False

        def end_test(_signal: int, _frame: FrameType | None) -> None:
            nonlocal is_ending
            print_tasks(self._stderr)
            if is_ending:
                faulthandler.dump_traceback(self._stderr)
                os._exit(1)
            is_ending = True
            pytest_timeout.timeout_sigalrm(item, settings)

        signal.signal(signal.SIGALRM, end_test)
        signal.setitimer(signal.ITIMER_REAL, settings.timeout, min(settings.timeout, GRACE))
        return True

    def pytest_timeout_cancel_timer(self) -> bool:
        """Leave no timer to the next test."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        return True


def has_virtual_time() -> bool:
    """Whether the loop that runs is one of the tests' own, whose clock jumps."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return False
    module: str = type(loop).__module__
    return module.startswith("tests.")


def process_state() -> set[tuple[str, str]]:
    """Environment variables and the working directory."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return {*own.items(), ("the working directory", str(Path.cwd()))}


def print_tasks(file: TextIO) -> None:
    """Print the stack of every asyncio task, in whichever thread its loop runs."""
    for found in gc.get_objects():
        if isinstance(found, asyncio.Task) and not found.done():
            found.print_stack(file=file)
    file.flush()
