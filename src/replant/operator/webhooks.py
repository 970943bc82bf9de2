"""The webhooks' server: TLS, one path for each, and certificates that may be renewed in place."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from replant.errors import InputError, Refused
from replant.operator.admission import Judge, answer

LARGEST = 16 * 1024 * 1024
"""No AdmissionReview is larger: an object and the one before, of 1.5 MiB each at most in etcd."""
RENEWAL = 60.0
"""Seconds between two looks whether the certificate's files have changed."""
MUTATE, VALIDATE, HEALTH = "/mutate-control-plane", "/validate-shoots", "/healthz"


@dataclass(frozen=True)
class Listener:
    """Where to listen."""

    address: str
    port: int
    option: str = "--port"
    """With which a person says so."""


@dataclass(frozen=True)
class Door:
    """Where to listen, and with which certificate."""

    address: str
    port: int
    certificate: Path
    key: Path


def application(judges: Mapping[str, Judge]) -> Starlette:
    """What answers at each path."""

    def asked(judge: Judge) -> Callable[[Request], object]:
        async def endpoint(request: Request) -> Response:
            try:
                body = await _body(request)
                if body is None:
                    return PlainTextResponse("larger than any AdmissionReview", 413)
                return _json(await answer(body, judge))
            except InputError as error:
                return PlainTextResponse(str(error), 400)
            except ClientDisconnect:
                return PlainTextResponse("nobody waits for this any more", 400)

        return endpoint

    async def healthy(_request: Request) -> Response:
        return PlainTextResponse("ok")

    routes = [Route(path, asked(judge), methods=["POST"]) for path, judge in judges.items()]
    return Starlette(routes=[*routes, Route(HEALTH, healthy)])


async def serve(
    judges: Mapping[str, Judge],
    door: Door,
    *,
    stop: asyncio.Event,
    note: Callable[[str], None],
    ready: Callable[[int], None] = lambda _port: None,
) -> None:
    """Answer until stopped."""
    config = uvicorn.Config(
        application(judges),
        ssl_certfile=str(door.certificate),
        ssl_keyfile=str(door.key),
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=5,
    )
    try:
        config.load()
    except (OSError, ssl.SSLError) as error:
        raise Refused(
            f"the certificate {door.certificate} and its key {door.key} cannot be used: {error}"
        ) from None
    with listening(Listener(door.address, door.port)) as opened:
        renewing = asyncio.create_task(_renew(config, door, note))
        port = opened.getsockname()[1]
        note(f"webhooks answer on https://{door.address}:{port}")
        ready(port)
        try:
            await until_stopped(config, opened, stop)
        finally:
            renewing.cancel()


async def until_stopped(config: uvicorn.Config, opened: socket.socket, stop: asyncio.Event) -> None:
    """Serve on an open port until stopped."""
    server = _Server(config)
    serving = asyncio.create_task(server.serve(sockets=[opened]))
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        server.should_exit = True
        stopping.cancel()
        await serving


def listening(where: Listener) -> socket.socket:
    """An open port; Refused says why not."""
    family = socket.AF_INET6 if ":" in where.address else socket.AF_INET
    try:
        # Whoever comes before it is served waits in the backlog.
        return socket.create_server((where.address, where.port), family=family)
    except OSError as error:
        raise Refused(
            f"port {where.port} of {where.address} cannot be opened: {error.strerror}; end what "
            f"listens there, or name another with {where.option}"
        ) from None


class _Server(uvicorn.Server):
    """Leaves signals to whoever runs it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _renew(config: uvicorn.Config, door: Door, note: Callable[[str], None]) -> None:
    """Take a certificate that has been renewed, for connections to come."""
    taken = _stamp(door)
    while True:
        await asyncio.sleep(RENEWAL)
        now = _stamp(door)
        if now == taken or config.ssl is None:
            continue
        try:
            config.ssl.load_cert_chain(door.certificate, door.key)
        except (OSError, ssl.SSLError) as error:
            # Half of it may be written; the one before still holds, and we look again.
            note(f"the new certificate {door.certificate} cannot be used yet: {error}")
            continue
        taken = now
        note(f"the certificate {door.certificate} was renewed")


def _stamp(door: Door) -> list[int]:
    files = (door.certificate, door.key)
    with contextlib.suppress(OSError):
        return [it.stat().st_mtime_ns for it in files]
    return []


async def _body(request: Request) -> bytes | None:
    """What was sent; None if it is too large."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > LARGEST:
            return None
    return bytes(body)


def _json(obj: object) -> Response:
    return Response(msgspec.json.encode(obj), media_type=JSONResponse.media_type)
