"""What columns are made of: a name, and how the cell of an object is found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from replant.objects import Object
from replant.sandbox.validation import at

NONE, UNSET, UNKNOWN = "<none>", "<unset>", "<unknown>"


class Since(NamedTuple):
    """A time span: until now, unless it is over."""

    start: str | None
    end: str | None = None
    otherwise: str = UNKNOWN


Cell = str | int | bool | Since | None


class Column(NamedTuple):
    """A column, and what stands in it."""

    name: str
    cell: Callable[[Object], Cell]
    type: str = "string"
    wide: bool = False


def shown(value: Any) -> str:
    """A value of an object as people read it."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def text(*path: str, otherwise: Cell = "") -> Callable[[Object], Cell]:
    """What stands at a path, as people read it."""

    def cell(obj: Object) -> Cell:
        found = at(obj, path)
        return otherwise if found is None else shown(found)

    return cell


def truth(*path: str, otherwise: bool) -> Callable[[Object], Cell]:
    """Whether what stands at a path is so."""
    return lambda obj: otherwise if (found := at(obj, path)) is None else bool(found)


def number(*path: str) -> Callable[[Object], Cell]:
    """The number at a path; zero where there is none."""
    return lambda obj: at(obj, path) or 0


def count(*path: str) -> Callable[[Object], Cell]:
    """How many things stand at a path."""
    return lambda obj: len(at(obj, path) or ())


def _created(obj: Object) -> Cell:
    return Since(at(obj, ("metadata", "creationTimestamp")))


def phase(obj: Object) -> str:
    """How far an object is, by its own words."""
    if at(obj, ("metadata", "deletionTimestamp")):
        return "Terminating"
    return str(at(obj, ("status", "phase")) or "")


def selector(*path: str) -> Callable[[Object], Cell]:
    """The selector at a path."""
    return lambda obj: selector_text(at(obj, path)) or NONE


def selector_text(selector: Object | None) -> str:
    """A selector as kubectl takes it."""
    if not selector:
        return ""
    if "matchLabels" not in selector and "matchExpressions" not in selector:
        return ",".join(f"{key}={value}" for key, value in selector.items())
    parts = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for it in selector.get("matchExpressions") or ():
        values = ",".join(it.get("values") or ())
        match it.get("operator"):
            case "In":
                parts.append(f"{it['key']} in ({values})")
            case "NotIn":
                parts.append(f"{it['key']} notin ({values})")
            case "Exists":
                parts.append(it["key"])
            case _:
                parts.append(f"!{it['key']}")
    return ",".join(parts)


NAME = Column("Name", text("metadata", "name"))
AGE = Column("Age", _created)
CREATED = Column("Created At", text("metadata", "creationTimestamp"))
