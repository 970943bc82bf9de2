"""Where a moment is on a picture: work to scale, and pauses cut short.

A run that was stopped on Friday and resumed on Monday is two pieces of work with a mark between
them, and not two dots at the edges of a weekend.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from replant.report.run_course import Span

_SHORTEST_SHARE = 0.05
"""A pause is drawn to scale, but no longer than this share of all work."""
_TICKS = 7
_APART = 9.0
"""Labels that are closer than this, in percent, would run into each other."""
_ROUND = (
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 3 * 3600, 6 * 3600, 12 * 3600,
    86400, 7 * 86400,
)  # fmt: skip


class Tick(NamedTuple):
    """A moment that the axis names."""

    x: float
    label: str


class Scale:
    """Turns moments into percents of a picture's width."""

    def __init__(self, start: float, end: float, pauses: Sequence[Span]) -> None:
        work = end - start - sum(it.end - it.start for it in pauses)
        longest = max(work, 1.0) * _SHORTEST_SHARE
        self._times, self._drawn = [start], [0.0]
        for pause in pauses:
            self._add(pause.start, pause.start - self._times[-1])
            self._add(pause.end, min(pause.end - pause.start, longest))
        self._add(end, end - self._times[-1])
        self._pauses = pauses
        self._whole = self._drawn[-1] or 1.0

    def _add(self, moment: float, drawn: float) -> None:
        self._times.append(moment)
        self._drawn.append(self._drawn[-1] + drawn)

    def x(self, moment: float) -> float:
        """From 0 to 100."""
        after = min(max(bisect_right(self._times, moment), 1), len(self._times) - 1)
        start, end = self._times[after - 1], self._times[after]
        share = min(max((moment - start) / (end - start), 0.0), 1.0) if end > start else 0.0
        low, high = self._drawn[after - 1], self._drawn[after]
        return 100 * (low + share * (high - low)) / self._whole

    def ticks(self) -> Iterator[Tick]:
        """Round moments at which somebody was at work, few enough to be read."""
        distance = next((it for it in _ROUND if self._whole / it <= _TICKS), _ROUND[-1])
        form = "%H:%M:%S" if distance < 60 else "%H:%M" if distance < 86400 else "%d %b"
        last = -_APART
        for start, end in self._pieces():
            first = -(-start // distance) * distance
            for number in range(int((end - first) // distance) + 1 if end >= first else 0):
                moment = first + number * distance
                x = self.x(moment)
                if x - last >= _APART:
                    last = x
                    yield Tick(x, datetime.fromtimestamp(moment, UTC).strftime(form))

    def _pieces(self) -> Iterator[tuple[float, float]]:
        """When somebody was at work."""
        start = self._times[0]
        for pause in self._pauses:
            yield start, pause.start
            start = pause.end
        yield start, self._times[-1]


def clock(moment: float, *, day: bool = False) -> str:
    """The time of day, by UTC."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M:%S" if day else "%H:%M:%S")
