"""Kubernetes quantities, as numbers."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

_QUANTITY = re.compile(r"([+-]?[0-9.]+)([eE][+-]?[0-9]+|[KMGTPE]i|[numkMGTPE])?")
_LONGEST_EXPONENT = len("e+999")
"""Numbers with more would fill the memory."""
_SUFFIXES = {
    "n": 1e-9,
    "u": 1e-6,
    "m": 1e-3,
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "P": 10**15,
    "E": 10**18,
    **{f"{letter}i": 2 ** (10 * power) for power, letter in enumerate("KMGTPE", start=1)},
}


def amount(quantity: object) -> int:
    """A quantity such as 10Gi as a whole number; 0 for what is none."""
    if isinstance(quantity, int) and not isinstance(quantity, bool):
        return quantity
    found = _QUANTITY.fullmatch(quantity) if isinstance(quantity, str) else None
    if not found:
        return 0
    number, suffix = found.groups()
    try:
        if suffix and suffix[0] in "eE" and suffix[1:]:
            return int(float(number + suffix))
        value = float(number) if "." in number else int(number)
        return int(value * _SUFFIXES.get(suffix or "", 1))
    except (ValueError, OverflowError):
        return 0


def exact(quantity: object) -> Fraction | None:
    """The same without rounding, and None for what is none."""
    if isinstance(quantity, bool) or not isinstance(quantity, int | float | str):
        return None
    return _exact(str(quantity))


# The same few sizes come again and again.


@lru_cache(maxsize=4096)
def _exact(quantity: str) -> Fraction | None:
    found = _QUANTITY.fullmatch(quantity)
    if not found:
        return None
    number, suffix = found[1], found[2] or ""
    if len(suffix) > _LONGEST_EXPONENT:
        return None
    try:
        if suffix in _SUFFIXES or not suffix:
            return Fraction(number) * Fraction(str(_SUFFIXES.get(suffix, 1)))
        return Fraction(number + suffix)
    except ValueError:
        return None
