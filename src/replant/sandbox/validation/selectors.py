"""What selectors by label must be like."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from replant.sandbox.refusals import Cause, forbidden_value, invalid_value, required_value

_AMONG = ("In", "NotIn")
_THERE = ("Exists", "DoesNotExist")
_COMPARED = ("Gt", "Lt")


def expression_causes(
    field: str, expressions: Iterable[Any], *, compares: bool = False
) -> Iterator[Cause]:
    """What is wrong with expressions; those about nodes may also compare numbers."""
    for place, expression in enumerate(expressions):
        within = f"{field}[{place}]"
        operator, values = expression.get("operator"), expression.get("values") or ()
        if operator in _AMONG:
            if not values:
                why = "must be specified when `operator` is 'In' or 'NotIn'"
                yield required_value(f"{within}.values", why)
        elif operator in _THERE:
            if values:
                why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                yield forbidden_value(f"{within}.values", why)
        elif not compares or operator not in _COMPARED:
            why = "not a valid selector operator"
            yield invalid_value(f"{within}.operator", operator or "", why)
        elif len(values) != 1:
            why = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            yield required_value(f"{within}.values", why)
