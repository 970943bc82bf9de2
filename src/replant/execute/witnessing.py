"""What a run's processes tell each other of outages, by way of its journal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

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


def recalled(outages: Outages, entries: Sequence[Entry]) -> None:
    """Have a new process know of the outages that those before it saw."""
    if entries:
        outages.recall(_turns_of(entries), until=read(entries[-1].at))


def _turns_of(entries: Iterable[Entry]) -> Iterator[Turn]:
    """What was written down of outages, in its order."""
    lost: dict[str, str] = {}
    for it in entries:
        if it.mark is Mark.LOST:
            lost[it.target] = it.why
            yield Turn(it.target, read(it.at), served=False, workload=it.why)
        elif it.mark is Mark.SERVED:
            yield Turn(it.target, read(it.at), served=True, workload=lost.pop(it.target, ""))
        elif it.mark is Mark.END:
            # A run that has come to its end is not to blame for what is so afterwards.
            yield from (Turn(claim, read(it.at), True, lost[claim]) for claim in lost)
            lost = {}


def _entry(turn: Turn) -> Entry:
    mark = Mark.SERVED if turn.served else Mark.LOST
    # Whose claim it is was said when it was lost.
    return Entry(
        at=written(turn.at), mark=mark, target=turn.claim, why="" if turn.served else turn.workload
    )
