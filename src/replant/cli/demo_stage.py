"""What a demonstration needs: commands as a person types them, clusters, and a clean end."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from types import FrameType, TracebackType
from typing import IO, Any, NamedTuple

import click

LONGEST = 60.0
"""So many seconds anything that a demonstration waits for may take."""
_LOOK_AGAIN = 0.1
_ENDING = 3.0
_SHOW_CURSOR = "\x1b[?25h"
_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Pace(NamedTuple):
    """How fast it goes."""

    speed: float
    """Of the sandboxes' clocks."""
    pause: float
    """Seconds in which an audience can read."""


class Part(NamedTuple):
    """How much of an output is shown: its first lines, and its last."""

    first: int
    last: int = 0


ALL = Part(1000)


@dataclass(slots=True)
class Cluster:
    """A sandbox that runs beside the demonstration."""

    kubeconfig: Path
    log: Path
    process: subprocess.Popen[str]
    address: str = ""

    def ask(self, path: str) -> Any:
        """What its API answers to a GET."""
        connection = HTTPConnection(self.address, timeout=LONGEST)
        try:
            connection.request("GET", path)
            return json.loads(connection.getresponse().read())
        except (OSError, HTTPException, ValueError) as error:
            raise click.ClickException(f"The sandbox does not answer: {error}{self.fate}") from None
        finally:
            connection.close()

    def is_up(self) -> bool:
        """Whether it serves; where is known from then on."""
        said = self.log.read_text()
        if self.process.poll() is not None:
            raise click.ClickException(f"The sandbox did not come up: {said}{self.fate}")
        _, _, after = said.partition("serving on http://")
        self.address, serves, _ = after.partition(";")
        return bool(serves)

    @property
    def fate(self) -> str:
        """Whether it has ended, to go with what failed."""
        code = self.process.poll()
        return "" if code is None else f" (the sandbox has ended, with the exit code {code})"


@dataclass
class Stage:
    """Runs commands in a folder that is removed at the end, with every process that is left."""

    pace: Pace
    acts: int
    """How many there will be."""
    folder: Path = field(init=False)
    _act: int = 0
    _children: list[subprocess.Popen[str]] = field(default_factory=list)
    _clusters: list[Cluster] = field(default_factory=list)
    _kubeconfig: str = ""

    def __enter__(self) -> Stage:
        self._before = {it: signal.signal(it, _interrupt) for it in _ENDS}
        with _undisturbed():
            self.folder = Path(tempfile.mkdtemp(prefix="replant-demo-"))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End what still runs, whatever happened; one more Ctrl-C does not keep it from that."""
        for name in _ENDS:
            signal.signal(name, signal.SIG_IGN)
        try:
            for child in self._children:
                self.end(child)
            shutil.rmtree(self.folder, ignore_errors=True)
        finally:
            for name, handler in self._before.items():
                signal.signal(name, handler)

    # What the audience sees

    def act(self, title: str, explanation: str) -> None:
        """Say what comes next, and why."""
        self._act += 1
        click.echo()
        click.secho(f"== {self._act} of {self.acts}: {title}", bold=True)
        self.tell(explanation)

    def tell(self, sentence: str) -> None:
        """Say something, and let it be read."""
        click.secho(sentence, fg="cyan")
        time.sleep(self.pace.pause)

    def type(self, line: str) -> None:
        """Show a command line, as short as a person would have it."""
        if self._kubeconfig:
            line = line.replace(self._kubeconfig, "$KUBECONFIG")
        click.secho(f"$ {line}", fg="green")

    def show(self, output: str, part: Part = ALL) -> None:
        """Show an output, or part of it."""
        lines = output.rstrip("\n").split("\n")
        left_out = len(lines) - part.first - part.last
        if left_out > 1:
            rest = f"    … {left_out} more lines"
            lines = [*lines[: part.first], rest, *lines[len(lines) - part.last :]]
        click.echo("\n".join(lines))
        time.sleep(self.pace.pause)

    # What is run

    def use(self, cluster: Cluster) -> None:
        """Let commands go to a cluster."""
        self.type(f"export KUBECONFIG={cluster.kubeconfig}")
        self._kubeconfig = str(cluster.kubeconfig)

    def sandbox(self, name: str, scenario: str) -> Cluster:
        """Begin to start a sandbox; it is up when it says so."""
        kubeconfig, log = self.folder / name, self.folder / f"{name}.log"
        speed = ("--speed", f"{self.pace.speed:g}")
        up = ("sandbox", "up", "--scenario", scenario, *speed, "--kubeconfig", str(kubeconfig))
        self.type(f"{_typed(up)} &")
        with log.open("w") as errors:
            process = self._popen(up, stdout=subprocess.DEVNULL, stderr=errors)
        self._clusters.append(Cluster(kubeconfig, log, process))
        return self._clusters[-1]

    def run(self, *arguments: str, expect: int = 0, part: Part = ALL, grep: str = "") -> None:
        """Run a command to its end, and show what it prints, or those lines that match."""
        self.type(_typed(arguments) + (f" | grep -E '{grep}'" if grep else ""))
        child = self._popen(arguments, stdout=subprocess.PIPE)
        self.finish(child, expect, part, grep)

    def begin(self, *arguments: str) -> subprocess.Popen[str]:
        """Begin a command that something will happen to."""
        self.type(_typed(arguments))
        return self._popen(arguments, stdout=subprocess.PIPE)

    def begin_writing(self, name: str, *arguments: str) -> subprocess.Popen[str]:
        """Begin a command whose output goes to a file of the folder."""
        self.type(f"{_typed(arguments)} > {name}")
        with (self.folder / name).open("w") as file:
            return self._popen(arguments, stdout=file)

    def finish(
        self, child: subprocess.Popen[str], expect: int, part: Part = ALL, grep: str = ""
    ) -> None:
        """Wait for a command's end, which must be as it is expected."""
        output, _ = child.communicate()
        if output:
            lines = output.splitlines()
            self.show("\n".join(it for it in lines if re.search(grep, it)), part)
        if child.returncode != expect:
            raise click.ClickException(
                f"This should have ended with the exit code {expect}, "
                f"but did with {child.returncode}.{''.join(it.fate for it in self._clusters)}"
            )

    def kill(self, child: subprocess.Popen[str]) -> None:
        """End a command as a machine that dies does: it cannot even clear its line."""
        child.kill()
        child.wait()
        if sys.stderr.isatty():
            click.echo(_SHOW_CURSOR, err=True)

    def end(self, child: subprocess.Popen[str]) -> None:
        """End a process that is no longer needed."""
        if child.poll() is not None:
            return
        child.terminate()
        try:
            child.wait(_ENDING)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()

    def await_(self, what: str, is_so: Callable[[], bool]) -> None:
        """Wait until something is so; the demonstration has failed if it does not come."""
        until = time.monotonic() + LONGEST
        while not is_so():
            if time.monotonic() > until:
                raise click.ClickException(f"Waited for {LONGEST:g} s, in vain, for {what}.")
            time.sleep(_LOOK_AGAIN)

    def _popen(
        self, arguments: tuple[str, ...], *, stdout: int | IO[str], stderr: IO[str] | None = None
    ) -> subprocess.Popen[str]:
        with _undisturbed():
            child = subprocess.Popen(  # noqa: S603 - our own commands
                [sys.executable, "-m", "replant", *arguments],
                cwd=self.folder,
                env={**os.environ, "KUBECONFIG": self._kubeconfig},
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                text=True,
                errors="replace",
            )
            self._children.append(child)
        return child


def _typed(arguments: tuple[str, ...]) -> str:
    return f"replant {' '.join(arguments)}"


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Let an interruption wait until what is made here is known, and so will be removed."""
    came: list[int] = []
    before = {it: signal.signal(it, lambda name, _frame: came.append(name)) for it in _ENDS}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)
    if came:
        raise KeyboardInterrupt
