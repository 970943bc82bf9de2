"""A connection to the cluster that is meant, and the journals of its runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from replant.cluster.live import LiveReader
    from replant.execute.journal import Journals
    from replant.execute.timing import Timing

CLUSTER = "cluster"
"""What ``--journal`` says where runs are kept in the cluster itself."""


@asynccontextmanager
async def connected(
    given: dict[str, Any], notice: Callable[[str], None], tries: int = 0
) -> AsyncIterator[LiveReader]:
    """A reader of the cluster that the options name."""
    from replant.cluster.live import TRIES, connect

    async with connect(
        given["kubeconfig"], given["context"], tries=tries or TRIES, notice=notice
    ) as reader:
        yield reader


def journals_of(
    journal: str, reader: LiveReader, timing: Timing, notice: Callable[[str], None]
) -> Journals:
    """Where runs are written down."""
    from replant.cluster.writing import LiveWriter
    from replant.execute.journal.configmaps import ConfigMapJournals
    from replant.execute.journal.files import FileJournals

    if journal != CLUSTER:
        return FileJournals(Path(journal).expanduser())
    return ConfigMapJournals(reader, LiveWriter(reader), timing, notice)


def place_of(journal: str, run_id: str) -> str:
    """Where a run is written down, as a person would look for it."""
    from replant.execute.journal import configmaps

    if journal != CLUSTER:
        return str(Path(journal).expanduser().absolute())
    return configmaps.place_of(run_id)
