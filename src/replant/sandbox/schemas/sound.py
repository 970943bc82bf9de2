"""Whether a schema is built as schemas are, so that nothing trips over it later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from replant.objects import Object

_SCHEMAS = ("items", "not")
_LISTS_OF_SCHEMAS = ("anyOf", "oneOf", "allOf")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_size(value: Any) -> bool:
    return _is_number(value) and value >= 0


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(it, str) for it in value)


_SIMPLE: dict[str, Callable[[Any], bool]] = {
    "type": lambda value: isinstance(value, str),
    "format": lambda value: isinstance(value, str),
    "pattern": lambda value: isinstance(value, str),
    "enum": lambda value: isinstance(value, list),
    "required": _texts,
    "x-kubernetes-list-map-keys": _texts,
    **dict.fromkeys(("maximum", "minimum"), _is_number),
    **dict.fromkeys(
        (
            "multipleOf", "maxLength", "minLength", "maxItems", "minItems", "maxProperties",
            "minProperties",
        ),
        _is_size,
    ),
}  # fmt: skip


def is_sound(schema: Any) -> bool:
    """Whether all its parts are what they must be."""
    if not isinstance(schema, dict):
        return False
    simple = all(check(schema[name]) for name, check in _SIMPLE.items() if name in schema)
    return simple and all(is_sound(it) for it in _parts(schema))


def _parts(schema: Object) -> list[Any]:
    found = [schema[name] for name in _SCHEMAS if name in schema]
    others = schema.get("additionalProperties", True)
    if not isinstance(others, bool):
        found.append(others)
    properties = schema.get("properties", {})
    found += properties.values() if isinstance(properties, dict) else [None]
    for name in _LISTS_OF_SCHEMAS:
        inner = schema.get(name, [])
        found += inner if isinstance(inner, list) else [None]
    return found
