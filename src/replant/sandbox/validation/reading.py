"""How validation looks into objects, and what it asks of more than one kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from replant.sandbox.refusals import Cause, invalid_value, required_value


def at(obj: Any, path: tuple[str, ...]) -> Any:
    """What is at a path of an object, or None."""
    for name in path:
        if not isinstance(obj, dict):
            return None
        obj = obj.get(name)
    return obj


def negative_causes(field: str, part: Any, *names: str) -> Iterator[Cause]:
    """Which numbers of a part are below nought, where they are said."""
    for name in names:
        value = part.get(name)
        if isinstance(value, int) and value < 0:
            yield invalid_value(f"{field}.{name}", value, "must be greater than or equal to 0")


def missing_causes(field: str, part: Any, *names: str) -> Iterator[Cause]:
    """What a part must say and does not."""
    for name in names:
        if not part.get(name):
            yield required_value(f"{field}.{name}")
