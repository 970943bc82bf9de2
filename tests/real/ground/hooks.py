"""The command of a user's that switches gates, and the other end of it: the test.

The command is a process of its own, as `replant apply --actuator hooks` starts it. It hands the
question over to whoever listens on a socket, and gives the answer back.
"""

from __future__ import annotations

import json
import shlex
import socketserver
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.real.ground.processes import Stoppable

Answering = Callable[[dict[str, Any]], object]

COMMAND = """
import socket, sys

with socket.socket(socket.AF_UNIX) as line:
    line.connect(sys.argv[1])
    line.sendall(sys.stdin.buffer.read())
    line.shutdown(socket.SHUT_WR)
    answer = line.makefile("rb").read()
if not answer:
    sys.exit("nobody could do it")
sys.stdout.buffer.write(answer)
"""


class Hook(Stoppable):
    """Listens for the command, and has its questions answered one by one.

    All in one thread that lives as long as this: what a thread has started ends with it.
    """

    def __init__(self, folder: Path, answer: Answering) -> None:
        program, path = folder / "hook.py", folder / "hook.sock"
        program.write_text(COMMAND)
        self.command = shlex.join([sys.executable, str(program), str(path)])
        """As --hook takes it."""

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                self.wfile.write(json.dumps(answer(json.load(self.rfile))).encode())

        self._server = socketserver.UnixStreamServer(str(path), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
