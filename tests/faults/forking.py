"""Cases that begin where the process stands: each goes its own way in a fork of it."""

from __future__ import annotations

import os
import select
import signal
from asyncio import _get_running_loop, _set_running_loop
from dataclasses import dataclass, field
from typing import NoReturn

import msgspec

BUSY, HANGS = 60, 900
"""So many seconds a case may compute and may take; then it counts as one that never ends."""


class Verdict(msgspec.Struct):
    """How a case ended."""

    case: str
    problems: list[str] = []
    resumes: int = 0
    """How often somebody had to say that it should go on."""


@dataclass
class Forks:
    """Runs cases beside each other, each in a process of its own."""

    workers: int = 2
    verdicts: list[Verdict] = field(default_factory=list)
    _running: dict[int, tuple[int, str]] = field(default_factory=dict)
    """By the pipe on which it will tell: the process, and its case."""
    case: str = ""
    """In a process that lives one: which it is."""
    _telling: int = -1

    def fork(self, case: str) -> bool:
        """Begin a case; True in the process that is to live it, which must end with ``tell``."""
        while len(self._running) >= self.workers:
            self._hear()
        hearing, telling = os.pipe()
        loop = _get_running_loop()
        process = os.fork()
        if process == 0:
            _set_running_loop(loop)  # which asyncio forgets in a fork; this one may go on there
            os.close(hearing)
            self._telling = telling
            signal.setitimer(signal.ITIMER_PROF, BUSY)
            signal.alarm(HANGS)
            return True
        os.close(telling)
        self._running[hearing] = process, case
        return False

    def tell(self, verdict: Verdict) -> NoReturn:
        """End a case."""
        os.write(self._telling, msgspec.json.encode(verdict)[:60_000])
        os._exit(0)

    def wait(self) -> list[Verdict]:
        """All verdicts, once all cases have ended."""
        while self._running:
            self._hear()
        return self.verdicts

    def _hear(self) -> None:
        ready, _, _ = select.select(list(self._running), [], [])
        for hearing in ready:
            process, case = self._running.pop(hearing)
            with os.fdopen(hearing, "rb") as pipe:
                told = pipe.read()
            _, status = os.waitpid(process, 0)
            try:
                self.verdicts.append(msgspec.json.decode(told, type=Verdict))
            except msgspec.DecodeError:
                code = os.waitstatus_to_exitcode(status)
                endless = code in (-signal.SIGALRM, -signal.SIGPROF)
                said = "it did not come to an end" if endless else f"exit {code}"
                self.verdicts.append(Verdict(case, [said]))
