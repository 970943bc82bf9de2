"""What bulk work of all commands needs."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedWriter, RawIOBase
from typing import BinaryIO, cast


@contextmanager
def collector_off(wanted: bool = True) -> Iterator[None]:
    """Without the garbage collector, which finds nothing in bulk work but looks for it anyway.

    What was made meanwhile is out of its sight for good: it will be needed until the end.
    """
    was_on = gc.isenabled()
    if wanted:
        gc.disable()
    try:
        yield
    finally:
        if wanted:
            gc.freeze()
        if was_on:
            gc.enable()


@contextmanager
def buffered_stdout() -> Iterator[BinaryIO]:
    """Standard output with a large buffer: a system call for every few kilobytes is felt."""
    out = BufferedWriter(cast("RawIOBase", sys.stdout.buffer), buffer_size=2**20)
    try:
        yield out
        out.flush()
    finally:
        out.detach()
