"""A proxy on loopback that leads to TLS servers, and remembers what it was told."""

from __future__ import annotations

import select
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field


@dataclass
class Proxy:
    port: int = 0
    says: bytes = b"HTTP/1.1 200 OK\r\n\r\n"
    """To whoever asks for a way; nothing at all leaves them waiting."""
    told: list[bytes] = field(default_factory=list)
    """The head of each request for a way."""


@contextmanager
def tunnelling(proxy: Proxy, tls: ssl.SSLContext | None = None) -> Iterator[Proxy]:
    """Serve on a free port, for one way after the other."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        proxy.port = listening.getsockname()[1]
        over = threading.Event()

        def serve() -> None:
            while not over.is_set():
                client, _ = listening.accept()
                with suppress(OSError), tls.wrap_socket(client, True) if tls else client as one:
                    lead(proxy, one, over)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield proxy
        finally:
            over.set()
            with suppress(OSError):
                socket.create_connection(("127.0.0.1", proxy.port)).close()
            thread.join()


def lead(proxy: Proxy, client: socket.socket, over: threading.Event) -> None:
    head = b""
    while b"\r\n\r\n" not in head:
        if not (piece := client.recv(65536)):
            return
        head += piece
    proxy.told.append(head)
    if not proxy.says:
        over.wait(30)
        return
    client.sendall(proxy.says)
    port = int(head.split()[1].rpartition(b":")[2])
    if b" 200 " not in proxy.says:
        return
    with socket.create_connection(("127.0.0.1", port)) as server:
        while not over.is_set():
            held = [client] if isinstance(client, ssl.SSLSocket) and client.pending() else []
            ready = held or select.select([client, server], [], [], 0.05)[0]
            for one in ready:
                other = server if one is client else client
                if not (piece := one.recv(65536)):
                    return
                other.sendall(piece)
