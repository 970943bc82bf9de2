"""A sandbox as a platform: its gates are switched, and its clock is read, over its own API."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from http import HTTPStatus
from typing import Any

import msgspec

from replant.cluster import answers
from replant.cluster.answers import Request, TryLater
from replant.cluster.connection import Connection
from replant.errors import Refused, Uncertain
from replant.execute.actuators import Place, Replica, Wanted
from replant.execute.hands import REQUESTS_AT_ONCE
from replant.execute.timing import RealTiming, Timing, first_of, read

STEP = 1.0
"""So many seconds a clock that is run by hand is put forward at a time."""
_DELIVERY = 0.002
"""So long, in real time, those who watch may take to hear of what has happened meanwhile."""


class _Replica(msgspec.Struct):
    name: str
    gates: dict[str, bool]
    flags: dict[str, str] | None = None
    ready: bool = True


class _Replicas(msgspec.Struct):
    replicas: list[_Replica]


class _Clock(msgspec.Struct, rename="camel"):
    now: str
    speed: float = 1.0
    by_hand: bool = False


class _Overview(msgspec.Struct):
    clock: _Clock


class SandboxActuator:
    """Switches components and kubelets of a sandbox."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._free = asyncio.Semaphore(REQUESTS_AT_ONCE)

    async def observe(self, place: Place) -> tuple[Replica, ...]:
        """The replicas as they run now; see Actuator."""
        async with self._free:
            body = await _ask(self._connection, Request("GET", _path(place)))
        found = msgspec.json.decode(body, type=_Replicas).replicas
        return tuple(Replica(it.name, it.gates, it.flags, it.ready) for it in found)

    async def switch(self, place: Place, wanted: Wanted) -> None:
        """Have every replica run with other gates; see Actuator."""
        change: dict[str, Any] = {"gates": wanted.gates}
        if not place.node:
            change |= {"addFlags": wanted.add_flags, "removeFlags": wanted.remove_flags}
        async with self._free:
            await _ask(
                self._connection, Request("PUT", _path(place), {}, msgspec.json.encode(change))
            )

    async def aclose(self) -> None:
        """There is nothing to leave behind."""


async def timing_of(connection: Connection) -> Timing:
    """The time that a sandbox keeps, however fast it runs."""
    body = await _ask(connection, Request("GET", "/sandbox"))
    clock = msgspec.json.decode(body, type=_Overview).clock
    now = read(clock.now)
    # Its clock runs ahead of ours: what a process writes must not be in the next one's future.
    return HandTiming(connection, now) if clock.by_hand else RealTiming(clock.speed, now)


class HandTiming:
    """The time of a sandbox whose clock is run by hand: whoever waits is the hand."""

    def __init__(self, connection: Connection, now: float) -> None:
        self._connection = connection
        self._now = now

    @property
    def haste(self) -> float:
        """While the machine works, it stands still."""
        return 1.0

    def now(self) -> float:
        """Seconds since 1970."""
        return self._now

    async def sleep(self, seconds: float) -> None:
        """Have the sandbox live through so much time."""
        body = msgspec.json.encode({"runFor": seconds})
        answer = await _ask(self._connection, Request("POST", "/sandbox/clock", {}, body))
        self._now = read(msgspec.json.decode(answer, type=_Clock).now)
        await asyncio.sleep(_DELIVERY)

    async def wait(
        self, tasks: Collection[asyncio.Task[Any]], woken: asyncio.Event, seconds: float
    ) -> None:
        """While an act is under way no time passes: how long it takes is the machine's matter."""
        if tasks:
            await first_of(tasks, woken, None)
        elif not woken.is_set():
            await self.sleep(min(seconds, STEP))


async def _ask(connection: Connection, request: Request) -> bytes:
    try:
        answer = await connection.ask(request)
    except TryLater as error:
        raise Uncertain(f"{connection.server}: {error.reason}") from error
    if answer.status in (HTTPStatus.OK, HTTPStatus.ACCEPTED):
        return answer.body
    busy = answer.status == HTTPStatus.TOO_MANY_REQUESTS
    if busy or answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise Uncertain(f"{connection.server}: the answer was {answers.said(answer)}")
    raise Refused(
        f"{connection.server}: {request.method} {request.path}: the answer was "
        f"{answers.said(answer)}; is it a sandbox with a scenario?"
    )


def _path(place: Place) -> str:
    return (
        f"/sandbox/nodes/{place.node}" if place.node else f"/sandbox/components/{place.component}"
    )
