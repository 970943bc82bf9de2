"""Label selectors, as kubectl takes them with -l."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

_KEY = r"[A-Za-z0-9](?:[-A-Za-z0-9_./]*[A-Za-z0-9])?"
_VALUE = r"[-A-Za-z0-9_.]*"
_REQUIREMENT = re.compile(
    rf"\s*(?:(?P<set_key>{_KEY})\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\)"
    rf"|(?P<key>{_KEY})\s*(?P<sign>==|=|!=)\s*(?P<value>{_VALUE})"
    rf"|(?P<absent>!)?\s*(?P<bare>{_KEY}))\s*(?:,|$)"
)

_Labels = Mapping[str, str]


@dataclass(frozen=True)
class Selector:
    """All of these must hold."""

    requirements: tuple[Callable[[_Labels], bool], ...]

    @classmethod
    def parse(cls, text: str) -> Selector:
        """Read ``app=db,tier!=test,env in (a,b),!old``; ValueError for anything else."""
        requirements = []
        position = 0
        while position < len(text):
            found = _REQUIREMENT.match(text, position)
            if not found or found.end() == position:
                raise ValueError(f"{text!r} is not a label selector such as app=db,tier!=test")
            requirements.append(_requirement(found))
            position = found.end()
        if not requirements or text.rstrip().endswith(","):
            raise ValueError(f"{text!r} is not a label selector such as app=db,tier!=test")
        return cls(tuple(requirements))

    def matches(self, labels: _Labels | None) -> bool:
        """Whether an object with these labels is meant."""
        return all(requirement(labels or {}) for requirement in self.requirements)


def _requirement(found: re.Match[str]) -> Callable[[_Labels], bool]:
    if found["set_key"]:
        key = found["set_key"]
        values = {value.strip() for value in found["values"].split(",")}
        if found["operator"] == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    if found["key"]:
        key, value = found["key"], found["value"]
        if found["sign"] == "!=":
            return lambda labels: labels.get(key) != value
        return lambda labels: labels.get(key) == value
    key = found["bare"]
    if found["absent"]:
        return lambda labels: key not in labels
    return lambda labels: key in labels
