"""How often and how patiently a cluster is asked again. tenacity has the loop, we the numbers.

Imported only when a cluster is to be read, because tenacity is not needed otherwise.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

import tenacity

from replant.cluster.answers import TryLater
from replant.errors import Unreachable

FIRST_WAIT, LONGEST_WAIT = 0.5, 8.0
"""Seconds, doubled each time, with up to the first of jitter, when the server names no time."""

PATIENCE = 300.0
"""A server that asks for a longer wait (seconds) is not waited for: a person should know."""

T = TypeVar("T")

_backoff = tenacity.wait_exponential(FIRST_WAIT, LONGEST_WAIT) + tenacity.wait_random(0, FIRST_WAIT)


async def until_answered(
    ask: Callable[[], Awaitable[T]],
    *,
    where: str,
    tries: int,
    sleep: Callable[[float], Awaitable[None]],
    notice: Callable[[str], None],
) -> T:
    """Call ``ask`` until it does not say TryLater; Unreachable when it always does."""
    try:
        return await ask()  # nearly always; what tenacity sets up costs more than the question
    except TryLater as error:
        failed = [error]

    async def ask_again() -> T:
        if failed:
            raise failed.pop()  # the first try, of which tenacity has still to hear
        return await ask()

    def tell(state: tenacity.RetryCallState) -> None:
        notice(f"{where}: {_why(state).reason}; asking again in {state.upcoming_sleep:.1f} s")

    retrying = tenacity.AsyncRetrying(
        sleep=sleep,
        retry=tenacity.retry_if_exception_type(TryLater),
        wait=_wait,
        stop=tenacity.stop_after_attempt(tries) | _WantsTooMuch(),
        before_sleep=tell,
        reraise=True,
    )
    try:
        return await retrying(ask_again)
    except TryLater as error:
        tried = retrying.statistics["attempt_number"]
        times = "once" if tried == 1 else f"{tried} times"
        if (error.after or 0) > PATIENCE:
            times = (
                f"{times}, and not again because it wants to be left alone for {error.after:g} s"
            )
        hint = f"; {error.hint}" if error.hint else ""
        raise Unreachable(f"{where}: {error.reason} (asked {times}){hint}") from error


def _why(state: tenacity.RetryCallState) -> TryLater:
    """The last try's failure: tenacity asks for waits and stops only after one that we retry."""
    return cast("TryLater", cast("tenacity.Future", state.outcome).exception())


def _wait(state: tenacity.RetryCallState) -> float:
    after = _why(state).after
    return _backoff(state) if after is None else after


class _WantsTooMuch(tenacity.stop.stop_base):
    def __call__(self, retry_state: tenacity.RetryCallState) -> bool:
        return (_why(retry_state).after or 0) > PATIENCE
