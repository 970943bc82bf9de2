"""Bar charts as inline SVG that needs no script and fits any width."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

_ROW = 46
_LABEL_LINE = 16
_BAR_TOP = 25
_BAR = 12


class Bar(NamedTuple):
    """One line of a chart."""

    label: str
    value: int
    shown: str
    """The value as people read it."""


def bar_chart(title: str, bars: Sequence[Bar]) -> str:
    """Bars under each other, each with its label above it and its value at the right.

    Widths are shares of whatever room there is, so that bars grow with the page and letters do
    not. Labels must be free of control characters; their markup is escaped here.
    """
    largest = max((bar.value for bar in bars), default=0)
    rows = "".join(_row(index, bar, largest) for index, bar in enumerate(bars))
    spoken = escape(f"{title}: " + ", ".join(f"{bar.label} {bar.shown}" for bar in bars))
    return (
        f"<figure><figcaption>{escape(title)}</figcaption>"
        f'<svg role="img" aria-label="{spoken}" width="100%" height="{_ROW * len(bars)}">'
        f"{rows}</svg></figure>\n"
    )


def _row(index: int, bar: Bar, largest: int) -> str:
    top = index * _ROW
    # In whole numbers: a sum of nonsensical capacities may exceed what a float can hold.
    share = bar.value * 1000 // largest / 10 if largest else 0
    # The smallest bar is still a bar: there is something, and it must be seen.
    width = max(share, 0.5) if bar.value else 0
    return (
        f'<text x="0" y="{top + _LABEL_LINE}">{escape(bar.label)}</text>'
        f'<text class="value" x="100%" y="{top + _LABEL_LINE}" text-anchor="end">'
        f"{escape(bar.shown)}</text>"
        f'<rect class="track" y="{top + _BAR_TOP}" width="100%" height="{_BAR}" rx="3"/>'
        f'<rect class="bar" y="{top + _BAR_TOP}" width="{width}%" height="{_BAR}" rx="3"/>'
    )
