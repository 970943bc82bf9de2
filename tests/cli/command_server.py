"""Runs ``replant`` in forks of one process that has imported it: a start takes 20 ms, not 300.

Each command is a process of its own, with its own arguments, environment, working directory and
standard streams, as if a shell had started it. What Python reads from the environment when it
starts (locale, warnings) is that of the server.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import traceback
from pathlib import Path
from tempfile import TemporaryFile
from typing import NoReturn

from tests import proofs

REPLANT = Path(sys.executable).with_name("replant")
PROOFS: Path | None = None
"""Where proofs are kept; ``tests/conftest.py`` says."""
_REQUEST = 1 << 20
"""Bytes: arguments and environment together are smaller."""


class CommandServer:
    """The client's side: starts the server when it is first needed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None

    def run(self, *arguments: str, stdin: bytes = b"") -> tuple[int, bytes, bytes]:
        """The exit code, standard output and standard error of a command."""
        request = {
            "arguments": arguments,
            "environment": dict(os.environ),
            "folder": str(Path.cwd()),
        }
        with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as err:
            given.write(stdin)
            given.seek(0)
            server = self._connected()
            try:
                streams = [given.fileno(), out.fileno(), err.fileno()]
                socket.send_fds(server, [json.dumps(request).encode()], streams)
                code = int(server.recv(64))
            except BaseException:
                self.stop()  # a command that was given up may still run
                raise
            out.seek(0)
            err.seek(0)
            return code, out.read(), err.read()

    def stop(self) -> None:
        """End the server, and what it runs."""
        if self._process:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            assert self._socket
            self._socket.close()
        self._process = self._socket = None

    def _connected(self) -> socket.socket:
        if self._socket is None:
            self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", __name__, str(theirs.fileno()), str(PROOFS or "")],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    cwd=Path(__file__).parents[2],
                    start_new_session=True,
                )
            atexit.register(self.stop)
        return self._socket


def serve(client: socket.socket) -> None:
    """Run one command after the other, until the client is gone."""
    while True:
        message, streams, _flags, _address = socket.recv_fds(client, _REQUEST, 3)
        if not message:
            return
        process = os.fork()
        if process == 0:
            client.close()
            run_command(json.loads(message), streams)
        for stream in streams:
            os.close(stream)
        _, status = os.waitpid(process, 0)
        client.send(str(os.waitstatus_to_exitcode(status)).encode())


def run_command(request: dict[str, object], streams: list[int]) -> NoReturn:
    """Be the command that was asked for."""
    from replant.cli.main import run

    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(request["environment"])  # type: ignore[call-overload]
    os.chdir(str(request["folder"]))
    sys.argv = [str(REPLANT), *request["arguments"]]  # type: ignore[misc]
    code: object = 1
    try:
        run()
    except SystemExit as ended:
        code = ended.code
    except BaseException:  # noqa: BLE001 - as Python does at its end
        traceback.print_exc()
    atexit._run_exitfuncs()  # noqa: SLF001
    sys.stdout.flush()
    sys.stderr.flush()
    # Python's own end would first free every module that the server has imported.
    os._exit(code if isinstance(code, int) else 0)


def import_all() -> None:
    """Import what commands import when they need it."""
    import importlib
    import pkgutil

    import replant

    for module in pkgutil.walk_packages(replant.__path__, "replant."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    gc.freeze()  # a collection in a fork would touch, and so copy, all of it


if __name__ == "__main__":
    import_all()
    if sys.argv[2]:
        proofs.keep_in(Path(sys.argv[2]))
    serve(socket.socket(fileno=int(sys.argv[1])))
