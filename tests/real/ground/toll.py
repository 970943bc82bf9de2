"""A way to an API server on which writes are counted, and whoever makes the n-th can be ended."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from tests.real.ground.processes import Stoppable, wait_for

READS = ("GET", "HEAD")
PASSED_ON = ("authorization", "content-type", "accept")
EVERY = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]


class Write(NamedTuple):
    method: str
    path: str
    body: bytes
    type: str


class Toll(Stoppable):
    """Answers on plain HTTP, and passes everything on to one API server, watches too."""

    def __init__(self, server: str, authority: Path) -> None:
        self.writes: list[Write] = []
        """Events aside: they tell of what is done, and are not part of it."""
        self.fatal: int | None = None
        """Before the write of this number is passed on, ``end`` is called; it is not passed on."""
        self.end: Callable[[], None] = lambda: None
        self.fell = threading.Event()
        trust = ssl.create_default_context(cafile=str(authority))
        self._upstream = httpx.AsyncClient(
            base_url=server, verify=trust, trust_env=False, timeout=600
        )
        listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        route = Route("/{path:path}", self._pass_on, methods=EVERY)
        app = Starlette(routes=[route], lifespan=self._open)
        config = uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([listener],), daemon=True)
        self._thread.start()
        wait_for(lambda: self._server.started, "the toll to be open")

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(30)

    def begin(self, fatal: int | None = None) -> None:
        """Count from the start; the write of this number, from 0, is whoever's last."""
        self.writes.clear()
        self.fell.clear()
        self.fatal = fatal

    @asynccontextmanager
    async def _open(self, _app: Starlette) -> AsyncIterator[None]:
        async with self._upstream:
            yield

    async def _pass_on(self, request: Request) -> Response:
        body = await request.body()
        if request.method not in READS and not request.url.path.endswith("/events"):
            if self.fatal == len(self.writes):
                self.fatal = None
                self.end()
                self.fell.set()
                return Response(status_code=503)
            sort = request.headers.get("content-type", "")
            self.writes.append(Write(request.method, request.url.path, body, sort))
        headers = {name: request.headers[name] for name in PASSED_ON if name in request.headers}
        asked = self._upstream.build_request(
            request.method, str(request.url.path), params=request.query_params, headers=headers,
            content=body,
        )  # fmt: skip
        answer = await self._upstream.send(asked, stream=True)
        return StreamingResponse(
            _pieces(answer), answer.status_code, media_type=answer.headers.get("content-type")
        )


async def _pieces(answer: httpx.Response) -> AsyncIterator[bytes]:
    try:
        async for piece in answer.aiter_bytes():
            yield piece
    finally:
        await answer.aclose()
