"""Conditions of drivers, and what they come to for the cluster.

A driver's CR has conditions of its parts, such as ``DriverNodeProgressing``, and what they come to:
``Available``, ``Progressing``, ``Degraded`` and ``Upgradeable``. Those of all CRs come to the
cluster's by the same rules, with one more: what is Degraded counts only after two minutes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from replant.drivers.stamps import seconds_of, stamp
from replant.objects import Object

AVAILABLE, PROGRESSING, DEGRADED, UPGRADEABLE = TYPES = (
    "Available",
    "Progressing",
    "Degraded",
    "Upgradeable",
)
PREREQS = "PrereqsSatisfied"
DISABLED = "Disabled"
"""A driver that has nothing to do here, and does not count for the cluster."""

TRUE, FALSE, UNKNOWN = "True", "False", "Unknown"
GOOD = {AVAILABLE: TRUE, UPGRADEABLE: TRUE, PROGRESSING: FALSE, DEGRADED: FALSE}
_OTHER = {TRUE: FALSE, FALSE: TRUE}

INERTIA = 120.0
"""Seconds for which a trouble may pass by itself before the cluster counts as degraded."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition; ``since`` is when its status has last changed, None if it is new."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    since: float | None = None


def condition_of(obj: Object) -> Condition:
    """As an object has it."""
    return Condition(
        str(obj.get("type", "")),
        str(obj.get("status", UNKNOWN)),
        str(obj.get("reason") or ""),
        str(obj.get("message") or ""),
        seconds_of(obj.get("lastTransitionTime")),
    )


def conditions_of(obj: Object | None) -> list[Condition]:
    """All that an object has."""
    written = ((obj or {}).get("status") or {}).get("conditions")
    return [condition_of(it) for it in written or () if isinstance(it, dict)]


def dated(
    conditions: Iterable[Condition], before: Iterable[Condition], now: float
) -> list[Condition]:
    """Conditions with the moment since when each has its status."""
    old = {it.type: it for it in before}
    new = []
    for it in conditions:
        was = old.get(it.type)
        kept = was is not None and was.status == it.status and was.since is not None
        new.append(replace(it, since=was.since if was and kept else now))
    return new


def written(conditions: Iterable[Condition]) -> list[Object]:
    """As an object's status has them, by type."""
    return [
        {
            "type": it.type,
            "status": it.status,
            "reason": it.reason or "AsExpected",
            "message": it.message,
            "lastTransitionTime": stamp(it.since or 0),
        }
        for it in sorted(conditions, key=lambda it: it.type)
    ]


def union(kind: str, conditions: Sequence[Condition], settled: float | None = None) -> Condition:
    """What all conditions whose type ends so come to.

    ``settled`` is the moment before which a bad one must have begun to count.
    """
    good = GOOD[kind]
    ours = [it for it in conditions if it.type.endswith(kind)]
    if not ours:
        return Condition(kind, UNKNOWN, "NoData")
    bad = [it for it in ours if it.status != good]
    old = [it for it in bad if settled is None or it.since is None or it.since <= settled]
    if not old:
        return Condition(kind, good, "AsExpected", "All is well")
    # What is bad for certain beats what is not known.
    status = _OTHER[good] if any(it.status == _OTHER[good] for it in bad) else UNKNOWN
    return Condition(kind, status, _reason(kind, bad), _message(bad))


def unions(conditions: Sequence[Condition]) -> list[Condition]:
    """A driver's own four, beside the conditions of its parts."""
    return [union(it, conditions) for it in TYPES]


def _reason(kind: str, bad: Sequence[Condition]) -> str:
    reasons = []
    for it in bad:
        prefix = it.type.removesuffix(kind)
        reasons.append("_".join(word for word in (prefix, it.reason) if word))
    return "::".join(sorted(reasons))


def _message(bad: Sequence[Condition]) -> str:
    lines = [
        f"{it.type}: {line}"
        for it in sorted(bad, key=lambda it: it.type)
        for line in it.message.splitlines()
    ]
    return "\n".join(lines)


# One cause for all of a driver


def phase(reason: str, message: str, **status: str) -> list[Condition]:
    """A driver's own four where one cause explains them; those that are not named are good."""
    told = {it: status.get(it.lower(), GOOD[it]) for it in TYPES}
    return [
        Condition(it, value, reason, message)
        if value != GOOD[it]
        else Condition(it, value, "AsExpected", "All is well")
        for it, value in told.items()
    ]


# The whole cluster


def clusterwide(
    crs: Mapping[str, Object], before: Iterable[Condition], now: float
) -> tuple[list[Condition], float | None]:
    """What the CRs of drivers, by kind, come to; and after how many seconds that may change."""
    parts = []
    for kind, cr in crs.items():
        own = {it.type: it for it in conditions_of(cr)}
        disabled = own.get(DISABLED)
        if disabled is None or disabled.status != TRUE:
            parts += [replace(own[it], type=f"{kind}{it}") for it in TYPES if it in own]
    settled = now - INERTIA
    found = [union(it, parts, settled if it == DEGRADED else None) for it in TYPES]
    if not crs:
        found = [Condition(it, GOOD[it], "AsExpected", "All is well") for it in TYPES]
    maturing = [
        it.since + INERTIA - now
        for it in parts
        if it.type.endswith(DEGRADED) and it.status != FALSE and it.since and it.since > settled
    ]
    return dated(found, before, now), min(maturing, default=None)


def no_platform(before: Iterable[Condition], error: str, now: float) -> list[Condition]:
    """What the cluster's come to while nobody knows which cloud it is in."""
    before = list(before)
    was = any(it.type == AVAILABLE and it.status == TRUE for it in before)
    found = [
        Condition(AVAILABLE, TRUE, "AsExpected", "All is well")
        if was
        else Condition(AVAILABLE, FALSE, "UnknownPlatform", error),
        Condition(PROGRESSING, TRUE, "UnknownPlatform", error),
        Condition(DEGRADED, FALSE, "AsExpected", "All is well"),
        Condition(UPGRADEABLE, TRUE, "AsExpected", "All is well"),
    ]
    return dated(found, before, now)
