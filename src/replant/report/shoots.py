"""How far the shoots of a seed are: a table, and plain data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from replant.errors import printable
from replant.gardener.standing import ShootStanding, State
from replant.report.wording import number_of

_HEADINGS = ("CLUSTER", "SHOOT", "PROVIDER", "VERSION", "STATE", "WAITS FOR")


def document(shoots: Sequence[ShootStanding]) -> dict[str, Any]:
    """The standings as plain data, for whichever notation."""
    return {
        "shoots": [
            {
                "cluster": it.cluster,
                "shoot": it.shoot,
                "provider": it.provider,
                "version": it.version,
                "state": it.state.value,
                "waitsFor": it.waits_for,
            }
            for it in shoots
        ]
    }


def text(shoots: Sequence[ShootStanding]) -> str:
    """A line for each shoot, and how many are in which state."""
    rows = [_HEADINGS, *(tuple(map(printable, _cells(it))) for it in shoots)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    counts = Counter(it.state for it in shoots)
    counted = ", ".join(f"{counts[it]:,} {it}" for it in State if counts[it])
    lines += ["", number_of(len(shoots), "shoot") + (f": {counted}" if counted else "")]
    return "\n".join(lines) + "\n"


def _cells(it: ShootStanding) -> tuple[str, ...]:
    return (it.cluster, it.shoot, it.provider, it.version, it.state.value, it.waits_for)
