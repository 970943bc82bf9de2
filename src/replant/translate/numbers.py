"""Text that stands for something else: numbers in attributes, percent-encoding in URLs."""

from __future__ import annotations

import re

from replant.errors import shown
from replant.translate.fields import Fields

_DECIMAL = re.compile(r"[+-]?[0-9]{1,19}")
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})|%")


def decimal(owner: Fields, key: str, text: str) -> int:
    """A 32-bit integer that a map of strings holds."""
    if not _DECIMAL.fullmatch(text):
        owner.refuse(key, f"must be a whole number, not {shown(text)!r}")
    value = int(text)
    if not -(2**31) <= value < 2**31:
        owner.refuse(key, f"is too large for a 32-bit number: {text}")
    return value


def percent_decoded(path: str) -> str | None:
    """The path of a URL without its percent-encoding, or None where that is broken."""
    if "%" not in path:
        return path

    def byte(match: re.Match[bytes]) -> bytes:
        if match[1] is None:
            raise ValueError
        return bytes([int(match[1], 16)])

    try:
        return _ESCAPE.sub(byte, path.encode()).decode()
    except ValueError:
        return None
