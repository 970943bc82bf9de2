"""A share of bulk work in a process of its own, for machines with more than one processor."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from tempfile import TemporaryFile
from typing import BinaryIO

ENOUGH = 20_000
"""With fewer objects a process costs more than it gives."""

MOST = 4


def processors() -> int:
    """How many processes may share the work: one where it cannot be shared."""
    if not hasattr(os, "fork") or not hasattr(os, "sched_getaffinity"):
        return 1
    return min(len(os.sched_getaffinity(0)), MOST)


class Share:
    """Work that goes on in a child; its output is kept in a file until its turn comes.

    The child has everything that its parent had, and gives back bytes alone. Whatever ends it
    before its time costs nothing: the parent then does the work itself.
    """

    def __init__(self, work: Callable[[BinaryIO], bytes]) -> None:
        self._output = TemporaryFile()  # noqa: SIM115 - closed by close()
        self._report = TemporaryFile()  # noqa: SIM115
        self._child = os.fork()
        if self._child == 0:
            self._work(work)

    def _work(self, work: Callable[[BinaryIO], bytes]) -> None:
        done = False
        try:
            self._report.write(work(self._output))
            self._output.flush()
            self._report.flush()
            done = True
        finally:
            # Not sys.exit: what the parent has begun must not be ended here too.
            os._exit(0 if done else 1)

    def finish(self, out: BinaryIO) -> bytes | None:
        """Wait, copy the output, and give what the child reports; None where it has failed."""
        _, status = os.waitpid(self._child, 0)
        self._child = 0
        if status != 0:
            return None
        self._output.seek(0)
        shutil.copyfileobj(self._output, out, 2**20)
        self._report.seek(0)
        return self._report.read()

    def close(self) -> None:
        """Leave no child and no file behind."""
        if self._child:
            os.kill(self._child, signal.SIGKILL)
            os.waitpid(self._child, 0)
        self._output.close()
        self._report.close()
