"""Times as Kubernetes writes them, without a clock: seconds since 1970 and back."""

from __future__ import annotations

import re
from calendar import timegm

_DAY = 86_400
_STAMP = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.\d+)?Z")


def stamp(seconds: float) -> str:
    """A moment as ``metav1.Time`` has it."""
    days, rest = divmod(int(seconds), _DAY)
    year, month, day = _date(days)
    clock = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{year:04}-{month:02}-{day:02}T{clock}Z"


def seconds_of(text: object) -> float | None:
    """A moment that was written so; None for what is no such moment."""
    found = _STAMP.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        return None
    return float(timegm(tuple(int(it) for it in found.groups())))


def _date(days: int) -> tuple[int, int, int]:
    """The date that many days after 1 January 1970, counting in eras of 400 years from March."""
    days += 719_468
    era, of_era = divmod(days, 146_097)
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    shifted = (5 * of_year + 2) // 153
    day = of_year - (153 * shifted + 2) // 5 + 1
    month = shifted + 3 if shifted < 10 else shifted - 9
    return year + era * 400 + (month <= 2), month, day
