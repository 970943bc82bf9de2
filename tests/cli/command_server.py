"""Runs ``replant`` in forks of one process that has imported it: a start takes 20 ms, not 300.

Each command is a process with its own arguments, environment, working directory and standard
streams. It differs from one that a shell starts in what Python does before and after: the modules
are imported already, the hash seed is the server's, and nothing is freed at the end. Tests with the
marker ``workflow`` start real processes, and so do those of signals and of repeatable output.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from pathlib import Path
from tempfile import TemporaryFile
from typing import NoReturn

from tests import proofs

REPLANT = Path(sys.executable).with_name("replant")
PROOFS: Path | None = None
"""Where verdicts are kept; ``tests/conftest.py`` says."""
_LENGTH = 8
"""Bytes before a request, which say how long it is."""
_ENVIRONMENT = dict(os.environ)
"""The server's own: not that of the test which happens to need it first."""


class CommandServer:
    """The client's side: starts the server when it is first needed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None

    def run(self, *arguments: str, stdin: bytes = b"") -> tuple[int, bytes, bytes]:
        """The exit code, standard output and standard error of a command."""
        request = json.dumps(
            {"arguments": arguments, "environment": dict(os.environ), "folder": str(Path.cwd())}
        ).encode()
        with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as err:
            given.write(stdin)
            given.seek(0)
            server = self._connected()
            try:
                streams = [given.fileno(), out.fileno(), err.fileno()]
                socket.send_fds(server, [len(request).to_bytes(_LENGTH)], streams)
                server.sendall(request)
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
            self._socket, theirs = socket.socketpair()
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", __name__, str(theirs.fileno()), str(PROOFS or "")],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    cwd=Path(__file__).parents[2],
                    env=_ENVIRONMENT,
                    start_new_session=True,
                )
            atexit.register(self.stop)
        return self._socket


def serve(client: socket.socket) -> None:
    """Run one command after the other, until the client is gone."""
    while True:
        head, streams, _flags, _address = socket.recv_fds(client, _LENGTH, 3)
        if not head:
            return
        length = int.from_bytes(head)
        request = b""
        while len(request) < length:
            request += client.recv(length - len(request))
        process = os.fork()
        if process == 0:
            client.close()
            run_command(json.loads(request), streams)
        for stream in streams:
            os.close(stream)
        wait_for_end(process, client)
        _, status = os.waitpid(process, 0)
        client.send(str(os.waitstatus_to_exitcode(status)).encode())


def wait_for_end(process: int, client: socket.socket) -> None:
    """Wait for a command; end it if the client is gone, for then nobody else would."""
    if not hasattr(os, "pidfd_open"):
        return  # not Linux
    end = os.pidfd_open(process)
    try:
        ready, _, _ = select.select([end, client.fileno()], [], [])
        if end not in ready:
            os.kill(process, signal.SIGKILL)
    finally:
        os.close(end)


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
    if isinstance(code, str):
        sys.stderr.write(f"{code}\n")
        code = 1
    # What Python does at its end, but for freeing every module that the server has imported.
    threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001 - waits for threads
    atexit._run_exitfuncs()  # noqa: SLF001
    sys.stdout.flush()
    sys.stderr.flush()
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
        proofs.cache_verdicts_in(Path(sys.argv[2]))
    serve(socket.socket(fileno=int(sys.argv[1])))
