"""What is wrong with an object by its schema, in the words of the real API server."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable, Iterator
from datetime import date, datetime
from functools import lru_cache
from typing import Any

from replant.objects import Object
from replant.sandbox.refusals import Cause, invalid_value, required_value, unsupported_value
from replant.sandbox.schemas.complete import EMBEDDED, PRESERVE, part

INT_OR_STRING = "x-kubernetes-int-or-string"
_LARGEST = 2**63
_NOWHERE = "<nil>"
"""Where the real one places what is wrong with several schemas at once."""
_KIND = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?", re.IGNORECASE)
_KIND_RULE = (
    "may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case "
    "alphanumeric characters or '-', start with an alphabetic character, and end with an "
    "alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)


def causes(schema: Object, obj: Object) -> list[Cause]:
    """All that is wrong with an object."""
    # Its metadata are everybody's, and looked at elsewhere.
    bare = {name: it for name, it in obj.items() if name not in {"metadata", "kind", "apiVersion"}}
    needed = [it for it in schema.get("required") or () if it not in obj or it in bare]
    return list(_causes({**schema, "required": needed}, bare, ""))


def _causes(schema: Object, value: Any, field: str) -> Iterator[Cause]:
    if value is None and schema.get("nullable"):
        return
    yield from _type_causes(schema, value, field)
    yield from _enum_causes(schema, value, field)
    if isinstance(value, str):
        yield from _text_causes(schema, value, field)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield from _number_causes(schema, value, field)
    elif isinstance(value, list) and schema.get("type") == "array":
        yield from _list_causes(schema, value, field)
    elif isinstance(value, dict) and schema.get("type", "object") == "object":
        yield from _map_causes(schema, value, field)
    yield from _logic_causes(schema, value, field)


# Types


def type_name(value: Any) -> str:
    """What JSON calls a value's type."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer" if -_LARGEST <= value < _LARGEST else "number"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def _type_causes(schema: Object, value: Any, field: str) -> Iterator[Cause]:
    found = type_name(value)
    wanted = ["integer", "string"] if schema.get(INT_OR_STRING) else [schema.get("type")]
    if wanted == [None] or found in wanted or (wanted == ["number"] and found == "integer"):
        return
    listed = ",".join(map(str, wanted))
    said = f'Invalid value: "{found}": {field} in body must be of type {listed}: "{found}"'
    yield Cause(field, said, "FieldValueTypeInvalid")


def _enum_causes(schema: Object, value: Any, field: str) -> Iterator[Cause]:
    allowed = schema.get("enum")
    if allowed and value not in allowed:
        listed = [it if isinstance(it, str) else json.dumps(it) for it in allowed]
        yield unsupported_value(field, value, listed)


# Texts and numbers


def _text_causes(schema: Object, value: str, field: str) -> Iterator[Cause]:
    longest, shortest = schema.get("maxLength"), schema.get("minLength")
    if longest is not None and len(value) > longest:
        yield Cause(field, f"Too long: may not be longer than {longest}", "FieldValueTooLong")
    elif shortest is not None and len(value) < shortest:
        yield invalid_value(
            field, value, f"{field} in body should be at least {shortest} chars long"
        )
    elif (pattern := schema.get("pattern")) and not _matches(str(pattern), value):
        yield invalid_value(field, value, f"{field} in body should match '{pattern}'")
    kind = schema.get("format")
    if (check := _FORMATS.get(str(kind))) and not _holds(check, value):
        said = f'Invalid value: "{value}": {field} in body must be of type {kind}: "{value}"'
        yield Cause(field, said, "FieldValueTypeInvalid")


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    try:
        return re.compile(pattern)
    except re.error:
        return None  # what Go understands and Python does not


def _matches(pattern: str, value: str) -> bool:
    compiled = _compiled(pattern)
    return compiled is None or compiled.search(value) is not None


def _holds(check: Callable[[str], object], value: str) -> bool:
    try:
        return check(value) is not None
    except ValueError:
        return False


_UUID = re.compile(r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")
_FORMATS: dict[str, Callable[[str], object]] = {
    "date-time": lambda text: datetime.fromisoformat(text) if "T" in text.upper() else None,
    "date": date.fromisoformat,
    "ipv4": ipaddress.IPv4Address,
    "ipv6": ipaddress.IPv6Address,
    "cidr": lambda text: ipaddress.ip_network(text, strict=False) if "/" in text else None,
    "uuid": _UUID.fullmatch,
}


def _number_causes(schema: Object, value: float, field: str) -> Iterator[Cause]:
    factor, most, least = (schema.get(it) for it in ("multipleOf", "maximum", "minimum"))
    if factor and value % factor:
        yield invalid_value(field, value, f"{field} in body should be a multiple of {factor}")
    if most is not None:
        if schema.get("exclusiveMaximum") and value >= most:
            yield invalid_value(field, value, f"{field} in body should be less than {most}")
        elif value > most:
            why = f"{field} in body should be less than or equal to {most}"
            yield invalid_value(field, value, why)
    if least is not None:
        if schema.get("exclusiveMinimum") and value <= least:
            yield invalid_value(field, value, f"{field} in body should be greater than {least}")
        elif value < least:
            why = f"{field} in body should be greater than or equal to {least}"
            yield invalid_value(field, value, why)


# Lists and maps


def _size_causes(schema: Object, size: int, field: str, what: str) -> Iterator[Cause]:
    least, most = schema.get(f"min{what.capitalize()}"), schema.get(f"max{what.capitalize()}")
    if least is not None and size < least:
        yield invalid_value(field, size, f"{field} in body should have at least {least} {what}")
    if most is not None and size > most:
        said = f"Too many: {size}: must have at most {most} items"
        yield Cause(field, said, "FieldValueTooMany")


def _list_causes(schema: Object, value: list[Any], field: str) -> Iterator[Cause]:
    yield from _size_causes(schema, len(value), field, "items")
    items = part(schema, "items")
    for place, item in enumerate(value):
        yield from _causes(items, item, f"{field}[{place}]")
    kind, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys")
    if kind in {"set", "map"}:
        yield from _double_causes(value, list(keys or ()) if kind == "map" else [], field)


def _double_causes(value: list[Any], keys: list[str], field: str) -> Iterator[Cause]:
    seen = set()
    for place, item in enumerate(value):
        told = {key: item.get(key) for key in keys} if keys and isinstance(item, dict) else item
        text = json.dumps(told, sort_keys=True)
        if text in seen:
            shown = json.dumps(told, separators=(",", ":"))
            shown = f"map[string]interface {{}}{shown}" if isinstance(told, dict) else shown
            said = f"Duplicate value: {shown}"
            yield Cause(f"{field}[{place}]", said, "FieldValueDuplicate")
        seen.add(text)


def _map_causes(schema: Object, value: Object, field: str) -> Iterator[Cause]:
    def below(name: str) -> str:
        return f"{field}.{name}" if field else name

    if schema.get(EMBEDDED):
        yield from _embedded_causes(value, field)
    yield from _size_causes(schema, len(value), field, "properties")
    for name in schema.get("required") or ():
        if name not in value:
            yield required_value(below(name))
    properties, others = part(schema, "properties"), schema.get("additionalProperties")
    for name, it in value.items():
        inner = properties.get(name, others)
        if isinstance(inner, dict):
            yield from _causes(inner, it, below(name))


def _embedded_causes(value: Object, field: str) -> Iterator[Cause]:
    for name in ("apiVersion", "kind"):
        if not value.get(name):
            yield required_value(f"{field}.{name}", "must not be empty")
    kind = value.get("kind")
    if kind and not _KIND.fullmatch(str(kind)):
        yield invalid_value(f"{field}.kind", kind, _KIND_RULE)


# Several schemas at once


def _logic_causes(schema: Object, value: Any, field: str) -> Iterator[Cause]:
    def schemas(name: str) -> list[list[Cause]]:
        listed = schema.get(name)
        return [list(_causes(it, value, field)) for it in listed] if listed else []

    if (found := schemas("anyOf")) and all(found):
        yield _wrong(field, "must validate at least one schema (anyOf)")
        yield from min(found, key=len)
    if found := schemas("oneOf"):
        valid = sum(not it for it in found)
        if not valid:
            yield _wrong(field, "must validate one and only one schema (oneOf). Found none valid")
            yield from min(found, key=len)
        elif valid > 1:
            said = "must validate one and only one schema (oneOf). Found"
            yield _wrong(field, f"{said} {valid} valid alternatives")
    if any(found := schemas("allOf")):
        yield from (cause for each in found for cause in each)
        none = ". None validated" if all(found) else ""
        yield _wrong(field, f"must validate all the schemas (allOf){none}")
    if (forbidden := schema.get("not")) and not list(_causes(forbidden, value, field)):
        yield _wrong(field, "must not validate the schema (not)")


def _wrong(field: str, why: str) -> Cause:
    return Cause(_NOWHERE, f'Invalid value: "": "{field}" {why}')


# What is applied


def untyped(schema: Object, obj: Object) -> str:
    """Why an object cannot be applied: what has no type, or another; nothing if it can be."""
    bare = {name: it for name, it in obj.items() if name not in {"metadata", "kind", "apiVersion"}}
    return next(_untyped(schema, bare, ""), "")


_APPLIED = {
    "string": "string",
    "boolean": "boolean",
    "integer": "numeric (int or float)",
    "number": "numeric (int or float)",
    "array": "list",
    "object": "map",
}


def _untyped(schema: Object, value: Any, field: str) -> Iterator[str]:
    wanted, found = _APPLIED.get(str(schema.get("type"))), _APPLIED.get(type_name(value))
    if wanted and found and wanted != found:
        yield f"{field}: expected {wanted}, got {type_name(value)}"
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from _untyped(part(schema, "items"), item, f"{field}[{place}]")
    elif isinstance(value, dict) and not schema.get(EMBEDDED):
        properties, others = part(schema, "properties"), schema.get("additionalProperties")
        for name, it in value.items():
            below = properties.get(name, others)
            if isinstance(below, dict):
                yield from _untyped(below, it, f"{field}.{name}")
            elif not (below or schema.get(PRESERVE)):
                yield f"{field}.{name}: field not declared in schema"
