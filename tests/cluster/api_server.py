"""A small API server on loopback: real sockets, lists in pages, and faults on demand."""

from __future__ import annotations

import json
import ssl
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Fault = Callable[["Handler"], None]


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    query: dict[str, str]
    authorization: str


@dataclass
class World:
    """What the server serves, how it misbehaves, and what it was asked."""

    collections: dict[str, tuple[str, list[str]]] = field(default_factory=dict)
    """By path: the kind of the list, and the names in it."""
    documents: dict[str, bytes] = field(default_factory=dict)
    script: deque[Fault | None] = field(default_factory=deque)
    """One for each request to come; None is an ordinary answer, and so is an empty script."""
    always: Fault | None = None
    faults: dict[str, Fault] = field(default_factory=dict)
    """By path: what is always answered there."""
    token: str = ""
    """Asked of everyone, unless empty."""
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0
    stopped: threading.Event = field(default_factory=threading.Event)

    def serve(self, path: str, kind: str, names: Iterable[str]) -> None:
        self.collections[path] = (kind, list(names))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    world: World

    def setup(self) -> None:
        super().setup()
        self.world.connections += 1

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        authorization = self.headers.get("Authorization", "")
        self.world.asked.append(Asked(self.command, url.path, query, authorization))
        fault = self.world.script.popleft() if self.world.script else self.world.always
        fault = fault or self.world.faults.get(url.path)
        if fault:
            fault(self)
        elif self.world.token and authorization != f"Bearer {self.world.token}":
            status(401, "Unauthorized")(self)
        elif url.path in self.world.documents:
            self.answer(200, self.world.documents[url.path])
        elif url.path in self.world.collections:
            self.answer(200, self.page(url.path, query))
        else:
            status(404, "the server could not find the requested resource")(self)

    do_DELETE = do_PUT = do_GET  # noqa: N815, http.server's names

    def page(self, path: str, query: dict[str, str]) -> bytes:
        kind, names = self.world.collections[path]
        start = int(query.get("continue", "0"))
        end = start + int(query["limit"])
        meta = {"resourceVersion": "7"} | ({"continue": str(end)} if end < len(names) else {})
        items = [{"metadata": {"name": name}} for name in names[start:end]]
        return json.dumps({"kind": kind, "metadata": meta, "items": items}).encode()

    def answer(self, code: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        given = headers or {}
        self.send_response_only(code)
        for name, value in ({"Content-Length": str(len(body))} | given).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, http.server's name
        pass


def status(code: int, message: str, reason: str = "", **headers: str) -> Fault:
    """An error as Kubernetes words it; ``retry_after`` becomes the header Retry-After."""
    body = json.dumps({"kind": "Status", "code": code, "message": message, "reason": reason})
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda handler: handler.answer(code, body.encode(), named)


def missing(name: str) -> Fault:
    """What is answered where there is no object of this name."""
    status = {"kind": "Status", "code": 404, "reason": "NotFound", "details": {"name": name}}
    return plain(404, json.dumps(status).encode())


def plain(code: int, body: bytes, **headers: str) -> Fault:
    return lambda handler: handler.answer(code, body, headers)


def cut_short(handler: Handler) -> None:
    """Promise more than is sent, and hang up."""
    handler.answer(200, b'{"kind":"PodList","items":[', {"Content-Length": "1000"})
    handler.close_connection = True


def hang_up(handler: Handler) -> None:
    handler.close_connection = True


def silent(handler: Handler) -> None:
    """Say nothing until the server stops."""
    handler.world.stopped.wait()
    handler.close_connection = True


@contextmanager
def serving(world: World, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Serve on a free port; yields the address."""

    class Bound(Handler):
        pass

    Bound.world = world
    with _Server(("127.0.0.1", 0), Bound) as server:
        if tls:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"
        finally:
            world.stopped.set()
            server.shutdown()
            thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that gives up is part of the tests."""
