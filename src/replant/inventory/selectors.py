"""Label selectors, as kubectl takes them with -l and as objects have them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from replant.inventory.metadata import LabelRequirement, LabelSelector

_KEY = r"[A-Za-z0-9](?:[-A-Za-z0-9_./]*[A-Za-z0-9])?"
_VALUE = r"[-A-Za-z0-9_.]*"
_REQUIREMENT = re.compile(
    rf"\s*(?:(?P<set_key>{_KEY})\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\)"
    rf"|(?P<key>{_KEY})\s*(?P<sign>==|=|!=)\s*(?P<value>{_VALUE})"
    rf"|(?P<absent>!)?\s*(?P<bare>{_KEY}))\s*(?:,|$)"
)

_Labels = Mapping[str, str]
_Requirement = Callable[[_Labels], bool]


@dataclass(frozen=True)
class Selector:
    """All of these must hold."""

    requirements: tuple[_Requirement, ...]

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

    @classmethod
    def of(cls, selector: LabelSelector) -> Selector:
        """What an object's selector means; one that asks for nothing means all."""
        labels = (selector.matchLabels or {}).items()
        requirements = [_one_of(key, {value}) for key, value in labels]
        requirements += [_expression(it) for it in selector.matchExpressions or ()]
        return cls(tuple(requirements))

    def matches(self, labels: _Labels | None) -> bool:
        """Whether an object with these labels is meant."""
        return all(requirement(labels or {}) for requirement in self.requirements)


def _requirement(found: re.Match[str]) -> _Requirement:
    if found["set_key"]:
        values = {value.strip() for value in found["values"].split(",")}
        return (_one_of if found["operator"] == "in" else _none_of)(found["set_key"], values)
    if found["key"]:
        values = {found["value"]}
        return (_none_of if found["sign"] == "!=" else _one_of)(found["key"], values)
    return (_without if found["absent"] else _with)(found["bare"])


def _expression(requirement: LabelRequirement) -> _Requirement:
    key, values = requirement.key, frozenset(requirement.values or ())
    match requirement.operator:
        case "In":
            return _one_of(key, values)
        case "NotIn":
            return _none_of(key, values)
        case "DoesNotExist":
            return _without(key)
        case _:
            return _with(key)


def _one_of(key: str, values: Collection[str]) -> _Requirement:
    return lambda labels: labels.get(key) in values


def _none_of(key: str, values: Collection[str]) -> _Requirement:
    return lambda labels: labels.get(key) not in values


def _with(key: str) -> _Requirement:
    return lambda labels: key in labels


def _without(key: str) -> _Requirement:
    return lambda labels: key not in labels
