"""A user's own command as an actuator: it is told what to do as JSON, and answers as JSON.

The command talks to files, not to pipes, and is in a session of its own: whatever becomes of
Replant meanwhile, what it has begun on a machine it can bring to an end.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Annotated

import msgspec

from replant.errors import Final, InputError, Retryable, printable, shown
from replant.execute.actuators import Place, Replica, Wanted

TRY_AGAIN = 75
"""EX_TEMPFAIL of sysexits.h: it did not work now, and may later."""

TIMEOUT = 600.0
MOST_WRITTEN = 16 * 2**20
"""A command that writes more has run wild: an answer for 5,000 replicas has 1 MiB."""

_LOOKS_EVERY = 0.05
_GRACE = 5.0
_LAST_LINES = 5
_QUOTED = 600

_EXPECTED = '{"replicas": [{"name": "...", "gates": {"...": true}}]}'


class _SeenReplica(msgspec.Struct, forbid_unknown_fields=True):
    name: Annotated[str, msgspec.Meta(min_length=1)]
    gates: dict[str, bool]
    flags: dict[str, str] | None = None
    ready: bool = True


class _SeenReplicas(msgspec.Struct, forbid_unknown_fields=True):
    replicas: list[_SeenReplica] | None


@dataclass(frozen=True, slots=True)
class _Done:
    """How a command has ended."""

    code: int
    stdout: bytes
    stderr: bytes


class Hooks:
    """An actuator that asks a command of the user's; docs/actuators.md has the protocol."""

    def __init__(self, command: str, timeout: float = TIMEOUT) -> None:
        try:
            self._command = shlex.split(command)
        except ValueError as error:
            raise InputError(f"cannot be split into words: {error}", source="the hook") from error
        if not self._command or not self._command[0] or "\0" in command:
            raise InputError("names no command", source="the hook")
        if not shutil.which(self._command[0]):
            # Said now, a slip of the pen leaves no run behind that has to be resumed.
            raise InputError(
                f"{shown(self._command[0])} is nothing that can be executed: name a command that "
                "is found in PATH, or the path of a file that may be executed",
                source="the hook",
            )
        self._name = f"the hook {shown(self._command[0])}"
        self._timeout = timeout

    async def observe(self, place: Place) -> tuple[Replica, ...] | None:
        """What the command says of the replicas; see Actuator."""
        answer = await self._ask({"verb": "observe", **_named(place)}, place)
        if not answer.strip():
            raise Final(f"{self._about('observe', place)} printed nothing; expected {_EXPECTED}")
        try:
            seen = msgspec.json.decode(answer, type=_SeenReplicas)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Final(
                f"{self._about('observe', place)} printed what is not an answer: "
                f"{printable(str(error))}; expected {_EXPECTED}"
            ) from error
        if seen.replicas is None:
            return None
        return tuple(Replica(it.name, it.gates, it.flags, it.ready) for it in seen.replicas)

    async def switch(self, place: Place, wanted: Wanted) -> None:
        """Have the command switch; see Actuator."""
        question: dict[str, object] = {"verb": "switch", **_named(place), "gates": wanted.gates}
        if wanted.add_flags:
            question["addFlags"] = dict(wanted.add_flags)
        if wanted.remove_flags:
            question["removeFlags"] = dict(wanted.remove_flags)
        await self._ask(question, place)

    async def aclose(self) -> None:
        """Nothing is left behind: every command has its own end."""

    def _about(self, verb: object, place: Place) -> str:
        return f"{self._name}, asked to {verb} {shown(place.name)},"

    async def _ask(self, question: dict[str, object], place: Place) -> bytes:
        about = self._about(question["verb"], place)
        done = await self._run(msgspec.json.encode(question), about)
        match done.code:
            case 0:
                return done.stdout
            case code if code == TRY_AGAIN:
                raise Retryable(f"{about} wants to be asked again{_last_words(done.stderr)}")
            case code if code < 0:
                raise Final(f"{about} was ended by signal {-code}{_last_words(done.stderr)}")
        raise Final(f"{about} ended with {done.code}{_last_words(done.stderr)}")

    async def _run(self, question: bytes, about: str) -> _Done:
        with (
            tempfile.TemporaryFile() as stdin,
            tempfile.TemporaryFile() as stdout,
            tempfile.TemporaryFile() as stderr,
        ):
            stdin.write(question)
            stdin.seek(0)
            process = self._start(stdin, stdout, stderr)
            await self._wait(process, (stdout, stderr), about)
            return _Done(process.returncode, _content(stdout), _content(stderr))

    def _start(
        self, stdin: IO[bytes], stdout: IO[bytes], stderr: IO[bytes]
    ) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(  # noqa: S603 - it is the user's command, split, without a shell
                self._command, stdin=stdin, stdout=stdout, stderr=stderr, start_new_session=True
            )
        except FileNotFoundError as error:
            raise Final(f"{self._name} is not there: {error.strerror}") from error
        except PermissionError as error:
            raise Final(f"{self._name} may not be executed: {error.strerror}") from error
        except OSError as error:
            raise Final(f"{self._name} cannot be started: {error.strerror}") from error

    async def _wait(
        self, process: subprocess.Popen[bytes], outputs: tuple[IO[bytes], ...], about: str
    ) -> None:
        """Wait for its end. Whoever cancels this leaves the command to finish what it began."""
        end = time.monotonic() + self._timeout
        while process.poll() is None:
            if any(os.fstat(it.fileno()).st_size > MOST_WRITTEN for it in outputs):
                await _stop(process)
                raise _too_much(about)
            if time.monotonic() > end:
                await _stop(process)
                raise Retryable(f"{about} had not ended after {self._timeout:g} s and was stopped")
            await asyncio.sleep(_LOOKS_EVERY)
        if any(os.fstat(it.fileno()).st_size > MOST_WRITTEN for it in outputs):
            raise _too_much(about)


def _named(place: Place) -> dict[str, str]:
    return {"node": place.node} if place.node else {"component": place.component}


def _too_much(about: str) -> Final:
    return Final(f"{about} wrote more than {MOST_WRITTEN // 2**20} MiB")


async def _stop(process: subprocess.Popen[bytes]) -> None:
    """End it with all that it started: politely first, so that it can tidy up."""
    _signal(process, signal.SIGTERM)
    end = time.monotonic() + _GRACE
    while process.poll() is None and time.monotonic() < end:
        await asyncio.sleep(_LOOKS_EVERY)
    # It may be gone, and what it started not.
    _signal(process, signal.SIGKILL)
    process.wait()


def _signal(process: subprocess.Popen[bytes], how: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, how)


def _content(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


def _last_words(stderr: bytes) -> str:
    """The last lines of what it said, on one line."""
    said = stderr[-4 * _QUOTED :].decode(errors="replace").splitlines()
    lines = [printable(line.strip()) for line in said if line.strip()]
    last = " | ".join(lines[-_LAST_LINES:])
    if not last:
        return " and said nothing on its standard error"
    return ": " + (last if len(last) <= _QUOTED else "…" + last[-_QUOTED:])
