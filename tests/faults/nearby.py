"""A sandbox in the event loop of whoever uses it: no sockets and no threads, so it can be forked.

Requests go to the same application that a port would serve, with the same real client code on the
other side; only HTTP's bytes are left out.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping, MutableMapping
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote, urlencode

from replant.cluster.answers import Answer, Request
from replant.execute.timing import first_of
from replant.sandbox.server import Sandbox

STEP = 1.0
"""So many seconds the clock is put forward at a time."""
TURNS = 30
"""So many turns of the event loop it takes, at most, until everybody has heard what happened."""
SERVER = "http://sandbox"

App = Callable[..., Coroutine[Any, Any, None]]


class Nearby:
    """What a Connection does, without a network."""

    server = SERVER

    def __init__(self, sandbox: Sandbox) -> None:
        self._app = sandbox.api.app()
        self._sandbox = sandbox

    async def get(self, path: str, params: Mapping[str, str]) -> Answer:
        return await self.ask(Request("GET", path, params))

    async def ask(self, request: Request) -> Answer:
        answer = await answer_of(self._app, request)
        if request.method != "GET" and self._sandbox.cluster is not None:
            self._sandbox.cluster.settle()  # as it does behind a port, as soon as it is woken
        return answer

    def ask_later(self, request: Request, seconds: float) -> None:
        """Have a request come through some seconds from now, with nobody to hear the answer."""

        def come_through() -> None:
            with contextlib.suppress(StopIteration):
                answer_of(self._app, request).send(None)
                raise AssertionError("a request that waits cannot be made by a timer")

        self._sandbox.clock.after(seconds, come_through)

    @contextlib.asynccontextmanager
    async def lines(
        self, path: str, params: Mapping[str, str]
    ) -> AsyncIterator[tuple[Answer, AsyncIterator[bytes]]]:
        told: asyncio.Queue[MutableMapping[str, Any]] = asyncio.Queue()
        serving = asyncio.create_task(
            self._app(_scope(Request("GET", path, params)), _nothing_more, told.put)
        )
        try:
            status = (await told.get())["status"]
            if status == HTTPStatus.OK:
                yield Answer(SERVER, status, {}, b""), _lines(told)
            else:
                yield Answer(SERVER, status, {}, (await told.get())["body"]), _lines(told)
        finally:
            # Python 3.11's wait_for swallows a cancellation that comes when it is about to end.
            while not serving.done():
                serving.cancel()
                await asyncio.sleep(0)


async def answer_of(app: App, request: Request) -> Answer:
    """What an application answers to one request."""
    sent: list[dict[str, Any]] = []
    body = [{"type": "http.request", "body": request.body, "more_body": False}]

    async def receive() -> dict[str, Any]:
        return body.pop() if body else await _nothing_more()

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(_scope(request), receive, send)
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    whole = b"".join(it.get("body", b"") for it in sent[1:])
    return Answer(SERVER, sent[0]["status"], headers, whole)


def _scope(request: Request) -> dict[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": unquote(request.path),
        "raw_path": request.path.encode(),
        "query_string": urlencode(request.params).encode(),
        "root_path": "",
        "headers": [
            (b"accept", b"application/json"),
            (b"content-type", request.content_type.encode()),
        ],
        "server": ("sandbox", 80),
        "client": ("127.0.0.1", 1),
    }


async def _nothing_more() -> dict[str, Any]:
    await asyncio.Event().wait()
    raise AssertionError("nobody hangs up")


async def _lines(told: asyncio.Queue[MutableMapping[str, Any]]) -> AsyncIterator[bytes]:
    while True:
        message = await told.get()
        for line in message.get("body", b"").splitlines():
            yield line
        if not message.get("more_body"):
            return


class Hand:
    """The time of such a sandbox: whoever waits puts the clock forward."""

    haste = 1.0

    def __init__(self, sandbox: Sandbox, passed: Callable[[], None]) -> None:
        self._sandbox = sandbox
        self._passed = passed
        """Called whenever time has passed; what it raises ends whoever waited."""

    def now(self) -> float:
        return self._sandbox.clock.now().timestamp()

    async def sleep(self, seconds: float) -> None:
        cluster = self._sandbox.cluster
        assert cluster is not None
        while seconds > 0:
            cluster.run_for(min(seconds, STEP))
            seconds -= STEP
            await everybody_heard()
            self._passed()

    async def wait(
        self, tasks: Collection[asyncio.Task[Any]], woken: asyncio.Event, seconds: float
    ) -> None:
        if tasks:
            await first_of(tasks, woken, None)
        elif not woken.is_set():
            await self.sleep(min(seconds, STEP))


async def everybody_heard() -> None:
    """Let those who watch hear of what has happened."""
    for _turn in range(TURNS):
        await asyncio.sleep(0)
