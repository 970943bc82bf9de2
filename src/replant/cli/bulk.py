"""What bulk work of all commands needs."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


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
