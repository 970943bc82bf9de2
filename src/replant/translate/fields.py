"""Reading plain dicts as typed structures: a wrong type is an error that names object and field.

Kubernetes drops the difference between a missing field, a null and a zero value; so do these.
"""

from __future__ import annotations

from typing import Any, NoReturn

import msgspec

from replant.errors import TranslationError
from replant.objects import name_of

_TEXT = frozenset({str})
_INT32 = range(-(2**31), 2**31)
_JSON_NAMES = {
    bool: "a boolean",
    dict: "an object",
    float: "a number with a fraction",
    int: "a number",
    list: "a list",
    str: "a string",
    type(None): "null",
}


def mistyped(value: object, wanted: str, *, owner: str, field: str) -> TranslationError:
    """The error for a value of the wrong type. The value itself is not shown: it may be huge."""
    found = _JSON_NAMES.get(type(value), f"a {type(value).__name__}")
    return TranslationError(f"must be {wanted}, not {found}", obj=owner, field=field)


class Fields(msgspec.Struct, gc=False):
    """One structure of one object, read field by field.

    It knows its parent, not its path: a path is made only when an error needs it, and a cluster
    has a hundred thousand volumes without one. For the same reason it is a Struct, which costs
    a quarter of an instance to make.
    """

    data: dict[str, Any]
    parent: Fields | None
    key: str

    @property
    def owner(self) -> str:
        """What a person calls the object that this structure belongs to."""
        return self.parent.owner if self.parent else ""

    @property
    def path(self) -> str:
        """Where in the object this structure stands."""
        return self.parent.at(self.key) if self.parent else ""

    def at(self, key: str) -> str:
        """The full path of a field of this structure."""
        path = self.path
        return f"{path}.{key}" if path else key

    def refuse(self, key: str, reason: str) -> NoReturn:
        """Say that this field is why the object cannot be translated."""
        raise TranslationError(reason, obj=self.owner, field=self.at(key))

    def _mistyped(self, key: str, wanted: str) -> TranslationError:
        return mistyped(self.data[key], wanted, owner=self.owner, field=self.at(key))

    def maybe_text(self, key: str) -> str | None:
        """A string, or None where the field is missing or null."""
        value = self.data.get(key)
        if value is None or isinstance(value, str):
            return value
        raise self._mistyped(key, "a string")

    def text(self, key: str) -> str:
        """A string; "" where the field is missing."""
        value = self.data.get(key, "")
        return value if isinstance(value, str) else self.maybe_text(key) or ""

    def required_text(self, key: str) -> str:
        """A string that names something: without it nothing can be found again."""
        value = self.text(key)
        if not value:
            self.refuse(key, "is required and missing")
        return value

    def flag(self, key: str) -> bool:
        """A boolean; False where the field is missing."""
        value = self.data.get(key)
        if value is None:
            return False
        if isinstance(value, bool):
            return value
        raise self._mistyped(key, "a boolean")

    def number(self, key: str) -> int:
        """A 32-bit integer; 0 where the field is missing."""
        value = self.data.get(key)
        if value is None:
            return 0
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._mistyped(key, "a whole number")
        if value not in _INT32:
            self.refuse(key, "is too large for a 32-bit number")
        return value

    def structure(self, key: str) -> Fields | None:
        """A structure below this one, or None where it is missing."""
        value = self.data.get(key)
        if isinstance(value, dict):
            return Fields(value, self, key)
        if value is None:
            return None
        raise self._mistyped(key, "an object")

    def structures(self, key: str) -> list[Fields]:
        """A list of structures; empty where it is missing."""
        return [self.part(f"{key}[{index}]", item) for index, item in enumerate(self.items(key))]

    def part(self, place: str, value: object) -> Fields:
        """A structure that stands at ``place`` below this one."""
        if isinstance(value, dict):
            return Fields(value, self, place)
        raise mistyped(value, "an object", owner=self.owner, field=self.at(place))

    def texts(self, key: str) -> list[str]:
        """A list of strings; empty where it is missing."""
        value = self.items(key)
        for index, item in enumerate(value):
            if not isinstance(item, str):
                field = f"{self.at(key)}[{index}]"
                raise mistyped(item, "a string", owner=self.owner, field=field)
        return value

    def text_map(self, key: str) -> dict[str, str]:
        """A map of strings, with null values read as ""; empty where it is missing."""
        value = self.data.get(key)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self._mistyped(key, "an object")
        if _TEXT.issuperset(map(type, value)) and _TEXT.issuperset(map(type, value.values())):
            return value
        for name, item in value.items():
            if not isinstance(name, str):
                raise mistyped(name, "a string", owner=self.owner, field=f"{self.at(key)} (a key)")
            if not isinstance(item, str) and item is not None:
                raise mistyped(item, "a string", owner=self.owner, field=f"{self.at(key)}.{name}")
        return {name: item or "" for name, item in value.items()}

    def items(self, key: str) -> list[Any]:
        """A list of anything; empty where it is missing."""
        value = self.data.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self._mistyped(key, "a list")
        return value


class Root(Fields, gc=False):
    """A whole object, which has a name."""

    kind: str

    @property
    def owner(self) -> str:
        """What a person calls this object."""
        return name_of(self.data, self.kind)


def root(obj: object, kind: str) -> Root:
    """An object of this kind, to be read."""
    if isinstance(obj, dict):
        return Root(obj, None, "", kind)
    raise mistyped(obj, "an object", owner=name_of(obj, kind), field="")


def sparse(**fields: object) -> dict[str, Any]:
    """A structure without its zero values, as Kubernetes writes it."""
    return {key: value for key, value in fields.items() if value}
