"""An API server that knows only the pages of a generated cluster, from memory, on loopback."""

from __future__ import annotations

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from replant.cluster.ports import SCANNED

KNOWN = {"/version": b'{"gitVersion":"v1.24.17"}', "/apis": b'{"kind":"APIGroupList","groups":[]}'}
KIND_BY_PLURAL = {resource.plural: resource.kind for resource in SCANNED}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    pages: dict[tuple[str, int], bytes]

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        if known := KNOWN.get(url.path):
            self.answer(known)
            return
        kind = KIND_BY_PLURAL[url.path.rpartition("/")[2]]
        number = int(parse_qs(url.query).get("continue", ["0"])[0])
        empty = f'{{"kind":"{kind}List","metadata":{{}},"items":[]}}'.encode()
        self.answer(self.pages.get((kind, number), empty))

    def answer(self, body: bytes) -> None:
        self.send_response_only(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - http.server's name
        pass


def main() -> None:
    folder = Path(sys.argv[1])
    Handler.pages = {
        (file.parent.name, int(file.stem)): file.read_bytes() for file in folder.glob("*/*.json")
    }
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
