"""What a run's processes tell each other of outages, by way of its journal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import DecodeError, Struct
from msgspec.json import decode

from replant.execute.journal import Entry, Journal, Mark
from replant.execute.outages import Outages, Turn
from replant.execute.timing import read, written


class WitnessedJournal:
    """A journal that is told of outages with whatever else is written: by no write of their own."""

    def __init__(self, journal: Journal, outages: Outages) -> None:
        self.where = journal.where
        self._journal = journal
        self._outages = outages

    async def write(self, entries: Sequence[Entry]) -> None:
        """The same, behind the outages that it does not know yet."""
        news = self._outages.news()
        await self._journal.write([*map(_entry, news), *entries])
        self._outages.wrote(len(news))

    async def aclose(self) -> None:
        """No more is written."""
        await self._journal.aclose()


def turns_of(entries: Iterable[Entry]) -> Iterator[Turn]:
    """What was written down of outages, in its order."""
    for it in entries:
        if it.mark in (Mark.LOST, Mark.SERVED):
            yield Turn(it.target, read(it.at), it.mark is Mark.SERVED, it.why)


def _entry(turn: Turn) -> Entry:
    mark = Mark.SERVED if turn.served else Mark.LOST
    # Whose claim it is was said when it was lost.
    return Entry(
        at=written(turn.at), mark=mark, target=turn.claim, why="" if turn.served else turn.workload
    )


class _Condition(Struct, rename="camel"):
    type: str = ""
    status: str = ""
    last_transition_time: str = ""


class _Status(Struct, frozen=True):
    conditions: list[_Condition] = []


class _Timed(Struct):
    """A pod with the times that are too many to be kept for all of them."""

    status: _Status = _Status()


def ready_since(body: bytes) -> float:
    """Since when a pod is ready; 0 where it does not say."""
    try:
        conditions = decode(body, type=_Timed).status.conditions
    except DecodeError:
        return 0.0
    ready = (it for it in conditions if (it.type, it.status) == ("Ready", "True"))
    return max((read(it.last_transition_time) for it in ready), default=0.0)
