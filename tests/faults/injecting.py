"""Replant as a process that can be killed at any write, and a cluster that answers badly."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import cast

import msgspec

from replant.cluster.answers import Answer, Request, TryLater
from replant.cluster.connection import Connection
from replant.cluster.live import PATIENT, LiveReader
from replant.cluster.writing import LiveWriter
from replant.platforms.sandbox import SandboxActuator
from replant.sandbox.server import Sandbox
from tests.execute.living import Ground, Shown
from tests.faults.nearby import SERVER, Hand, Nearby
from tests.faults.staleness import Behind

AWAY = 300.0
"""So many seconds the API server is away when it is."""
LATE = 5.0
"""So many seconds a write is on its way that comes through behind the back of who is killed."""


class Killed(BaseException):
    """The process is no more. Nothing that it would still do reaches anything."""


class Fault(StrEnum):
    """What becomes of one write."""

    KILL_BEFORE = "killed before it"
    KILL_AFTER = "killed after it"
    KILL_LATE = "killed while it is on its way"
    CONFLICT = "409"
    BUSY = "429"
    BROKEN = "500"
    RESET = "reset connection"
    LOST = "done, answer lost"
    AWAY = "API server away for 5 minutes"


KILLS = (Fault.KILL_BEFORE, Fault.KILL_AFTER, Fault.KILL_LATE)
ANSWERS = (Fault.CONFLICT, Fault.BUSY, Fault.BROKEN, Fault.RESET, Fault.LOST, Fault.AWAY)

_STATUS = {
    Fault.CONFLICT: HTTPStatus.CONFLICT,
    Fault.BUSY: HTTPStatus.TOO_MANY_REQUESTS,
    Fault.BROKEN: HTTPStatus.INTERNAL_SERVER_ERROR,
}


@dataclass(frozen=True)
class Weather:
    """What is wrong with reads for as long as a process lives; all by a seed."""

    seed: int = 0
    stale: float = 0.0
    """Such a share of reads is answered by an API server that lags behind."""
    lag: float = 0.0
    """By so many seconds at most."""
    dropped: float = 0.0
    """Such a share of what watches tell is never heard."""
    deaf_to: str = ""
    """Only watches of a path that ends in this suffer so."""
    broken: float = 0.0
    """With such a probability a watch breaks off at any line."""
    expired: float = 0.0
    """The same, with 410 Gone."""


FAIR = Weather()

Do = Callable[[], Awaitable[Answer]]
AtWrite = Callable[["Process", Request, Do], Awaitable[Answer]]
"""Asked what becomes of a write."""


async def undisturbed(_process: Process, _request: Request, do: Do) -> Answer:
    return await do()


class Process:
    """One process of Replant: what a Connection is, as long as it lives."""

    server = SERVER

    def __init__(
        self,
        sandbox: Sandbox,
        passed: Callable[[], None],
        at_write: AtWrite = undisturbed,
        weather: Weather = FAIR,
        behind: Behind | None = None,
    ) -> None:
        self._nearby = Nearby(sandbox)
        self._passed = passed
        self._at_write = at_write
        self._weather = weather
        self._behind = behind
        self._chance = random.Random(weather.seed)  # noqa: S311 - it is to be repeated
        self.dead = False
        self.away_until = 0.0
        self.writes = 0
        self.timing = Hand(sandbox, self._time_passed)
        self.shown = Shown()
        connection = cast("Connection", self)
        reader = LiveReader(connection, self.timing.sleep, self.shown.note, PATIENT)
        self.ground = Ground(
            reader, LiveWriter(reader), SandboxActuator(connection), self.timing, self.shown
        )

    def _time_passed(self) -> None:
        self._passed()
        self._live()

    def _live(self) -> None:
        if self.dead:
            raise Killed

    def _reach(self) -> None:
        self._live()
        if self.timing.now() < self.away_until:
            raise TryLater("the connection failed: Connection refused")

    async def get(self, path: str, params: Mapping[str, str]) -> Answer:
        return await self.ask(Request("GET", path, params))

    async def ask(self, request: Request) -> Answer:
        self._reach()
        if request.method == "GET":
            return await self._read(request)
        self.writes += 1
        answer = await self._at_write(self, request, lambda: self._nearby.ask(request))
        self._live()
        return answer

    async def _read(self, request: Request) -> Answer:
        behind, weather = self._behind, self._weather
        if behind and "/sandbox" not in request.path and self._chance.random() < weather.stale:
            return await behind.ask(request, weather.lag)
        return await self._nearby.ask(request)

    @asynccontextmanager
    async def lines(
        self, path: str, params: Mapping[str, str]
    ) -> AsyncIterator[tuple[Answer, AsyncIterator[bytes]]]:
        self._reach()
        async with self._nearby.lines(path, params) as (answer, lines):
            yield answer, self._heard(lines) if path.endswith(self._weather.deaf_to) else lines

    async def _heard(self, lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        weather, chance = self._weather, self._chance.random
        async for line in lines:
            self._reach()
            if chance() < weather.dropped:
                continue
            if chance() < weather.broken:
                raise TryLater("the connection failed: Connection reset by peer")
            if chance() < weather.expired:
                yield b'{"type":"ERROR","object":{"code":410,"message":"too old resource version"}}'
                return
            yield line

    async def suffer(self, fault: Fault, request: Request, do: Do) -> Answer:
        """Have a fault become of a write."""
        match fault:
            case Fault.KILL_BEFORE:
                self.dead = True
            case Fault.KILL_AFTER:
                await do()
                self.dead = True
            case Fault.KILL_LATE:
                self.dead = True
                self._nearby.ask_later(request, LATE)
            case Fault.LOST:
                await do()
                raise TryLater("the connection failed: Connection reset by peer")
            case Fault.RESET:
                raise TryLater("the connection failed: Connection reset by peer")
            case Fault.AWAY:
                self.away_until = self.timing.now() + AWAY
                raise TryLater("the connection failed: Connection refused")
            case _:
                return refusal(_STATUS[fault])
        raise Killed


def refusal(status: HTTPStatus) -> Answer:
    said = {"kind": "Status", "code": status, "message": "so the test wants it"}
    return Answer(SERVER, status, {}, msgspec.json.encode(said))
