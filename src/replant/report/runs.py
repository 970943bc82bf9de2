"""How a run has ended: what moved, how long workloads were without their disk, and the checks."""

from __future__ import annotations

from typing import Any

import msgspec

from replant.execute.run import Result
from replant.report.wording import number_of

SHOWN = 20
_MOVES = (
    ("Switch", "switch", "of gates"),
    ("Cordon", "node", "taken out"),
    ("Evict", "pod", "moved"),
    ("Annotate", "volume", "annotated"),
    ("CreateClass", "class", "made again"),
    ("MakeObject", "object", "made"),
    ("RemoveObject", "object", "removed"),
    ("RewriteTemplate", "template", "rewritten"),
    ("ScaleWorkload", "workload", "scaled"),
    ("ReplaceVolume", "volume", "replaced"),
)


def text(result: Result) -> str:
    """For a terminal."""
    lines = [
        f"Run {result.run}: {result.state} in {duration(result.seconds)}{_pauses(result)}.",
        f"  {_moved(result)}",
    ]
    if result.outages:
        lines.append("  Without their disk, the longest first:")
        for it in result.outages[:SHOWN]:
            times = "once" if it.times == 1 else f"{it.times} times"
            lines.append(f"    {it.workload}, {it.claim}: {times}, {duration(it.longest)} at most")
        if len(result.outages) > SHOWN:
            lines.append(f"    and {len(result.outages) - SHOWN:,} more")
    lines.append("  Verified:")
    lines += [f"    {it.check}: {it.message}" for it in result.checks]
    return "\n".join(lines)


def json_text(result: Result) -> str:
    """For programs."""
    return msgspec.json.format(msgspec.json.encode(as_data(result)), indent=2).decode()


def as_data(result: Result) -> dict[str, Any]:
    """A result as plain data."""
    return {
        "run": result.run,
        "state": result.state,
        "seconds": round(result.seconds, 1),
        "acts": result.acts,
        "outages": [
            {
                "workload": it.workload,
                "claim": it.claim,
                "times": it.times,
                "longestSeconds": round(it.longest, 1),
                "totalSeconds": round(it.total, 1),
            }
            for it in result.outages
        ],
        "checks": [
            {"check": it.check, "outcome": it.outcome, "message": it.message, "objects": it.objects}
            for it in result.checks
        ],
    }


def duration(seconds: float) -> str:
    """Seconds as a person would say them."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"


def _pauses(result: Result) -> str:
    return ", pauses included" if result.resumed else ""


def _moved(result: Result) -> str:
    parts = [
        f"{number_of(result.acts[name], what)} {done}"
        for name, what, done in _MOVES
        if result.acts.get(name)
    ]
    return (", ".join(parts) or "nothing had to be done") + "."
