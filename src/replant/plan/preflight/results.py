"""What a check says, and how it names what it is about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from replant.plan.model import Weight

_NAMED = 5
"""So many objects are named in one message; then they are counted."""


class Result(NamedTuple):
    """One thing that a check found."""

    weight: Weight
    message: str
    fix: str = ""


Results = Iterator[Result]


def blocker(message: str, fix: str = "") -> Result:
    """Something that must be put right before the plan is carried out."""
    return Result(Weight.BLOCKER, message, fix)


def warning(message: str, fix: str = "") -> Result:
    """Something that a person must know of."""
    return Result(Weight.WARNING, message, fix)


def blocked_by(names: Sequence[str], what: str, fix: str = "", *, noun: str = "Node") -> Results:
    """A blocker about these objects, if there are any: ``Node a, b WHAT.``"""
    if names:
        yield blocker(f"{noun} {listed(names)} {what}.", fix)


def listed(names: Sequence[str]) -> str:
    """The first of some names, and how many more there are."""
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
