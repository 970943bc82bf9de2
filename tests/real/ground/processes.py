"""Children that die with the tests, and waiting for things to become so."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from tests.real.ground import run

T = TypeVar("T")
TAIL = 15
PATIENCE = 10
"""Seconds that a process has for ending by itself."""
IN_USE = "address already in use"
LISTENING = "0A"
"""As the kernel writes the state of a socket."""


class Died(Exception):
    """A process ended that should be running."""


class Stoppable(ABC):
    """Something that runs, and stops when the block that it was made for is left."""

    @abstractmethod
    def stop(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


class Process:
    """One child. The kernel ends it when the tests end, however they end."""

    def __init__(
        self, name: str, command: list[str], folder: Path, env: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        with self.log.open("ab") as log:
            self._child = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **(env or {}), run.MARK: str(folder)},
                cwd=folder,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def running(self) -> bool:
        return self._child.poll() is None

    def listens(self, port: int) -> bool:
        """Whether it is this process, and not some other, that listens there."""
        wanted = listeners(port)
        try:
            files = [str(file.readlink()) for file in Path(f"/proc/{self.pid}/fd").iterdir()]
        except OSError:  # it has just ended, or closed one of them
            return False
        return not wanted.isdisjoint(files)

    def stop(self) -> None:
        """Ask it to end, then make it."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> None:
        if not self.running:
            return
        self._send(how)
        try:
            self._child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._send(signal.SIGKILL)
            self._child.kill()
            self._child.wait()

    def _send(self, how: signal.Signals) -> None:
        self._child.send_signal(how)

    def wait_until(self, ready: Callable[[], bool], timeout: float = 60) -> None:
        """Wait until it is ready; if it dies first, say what it said last."""

        def look() -> bool:
            if not self.running:
                last = "\n".join(self.log.read_text(errors="replace").splitlines()[-TAIL:])
                raise Died(
                    f"{self.name} ended with {self._child.returncode}; it said last:\n{last}"
                )
            return ready()

        wait_for(look, f"{self.name} to be ready", timeout)


class Kept:
    """A child that is started anew whenever it ends by itself, as a kubelet does with its own."""

    def __init__(self, start: Callable[[], Process]) -> None:
        self.starts = 0
        self._start = start
        self._process: Process | None = None
        self._leave = Process.stop
        self._leaving = threading.Event()
        # What a thread has started ends with it, so this one lives as long as its children.
        self._thread = threading.Thread(target=self._keep, daemon=True)
        self._thread.start()
        wait_for(lambda: self.starts or not self._thread.is_alive(), "the first start", 90)

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.running

    def stop(self) -> None:
        self._leaving.set()
        self._thread.join()

    def kill(self) -> None:
        self._leave = Process.kill
        self.stop()

    def wait_until(self, ready: Callable[[], bool], timeout: float = 60) -> None:
        """Wait until it is ready, however often it has to be started for that."""
        wait_for(ready, "what is kept running to be ready", timeout)

    def _keep(self) -> None:
        while not self._leaving.is_set():
            self._process = process = self._start()
            self.starts += 1
            while process.running and not self._leaving.wait(0.05):
                pass
        if self._process:
            self._leave(self._process)


def wait_for(look: Callable[[], T], what: str, timeout: float = 90, pause: float = 0.1) -> T:
    """The first true answer; a failure says what was waited for and what was seen last."""
    end = time.monotonic() + timeout
    while not (seen := look()):
        if time.monotonic() > end:
            raise AssertionError(f"waited {timeout} s for {what}; seen last: {seen!r}")
        time.sleep(pause)
    return seen


def settled(look: Callable[[], T], quiet: float = 8, timeout: float = 90) -> T:
    """What is seen once it has not changed for some seconds."""
    seen, since = look(), time.monotonic()
    end = since + timeout
    while time.monotonic() - since < quiet:
        if time.monotonic() > end:
            raise AssertionError(f"it still changed after {timeout} s; seen last: {seen!r}")
        time.sleep(0.2)
        now = look()
        if now != seen:
            seen, since = now, time.monotonic()
    return seen


def start_on_free_port(
    start: Callable[[int], Process], ready: Callable[[int], bool] = lambda _port: True
) -> tuple[Process, int]:
    """Start on a free port; if another process was quicker to take it, on another."""
    attempts_left = 3
    while True:
        attempts_left -= 1
        port = free_port()
        process = start(port)
        try:
            process.wait_until(partial(process.listens, port))
            process.wait_until(partial(ready, port))
        except Died as death:
            if IN_USE not in str(death).lower() or not attempts_left:
                raise
        except BaseException:
            process.kill()
            raise
        else:
            return process, port


def free_port() -> int:
    """A port that the kernel has just found free on loopback."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def listeners(port: int) -> set[str]:
    """The sockets that listen on a port, as the files of their owners name them."""
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    fields = (line.split() for line in lines)
    return {
        f"socket:[{inode}]"
        for _slot, local, _remote, state, *_, inode in (each[:10] for each in fields)
        if state == LISTENING and local.endswith(f":{port:04X}")
    }
