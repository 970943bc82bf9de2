"""JSON documents, one after another, taken apart without being built up.

A dump of a large cluster is one document with a hundred thousand items. Only its outline is
decoded; each item stays a slice of the input until someone asks for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from replant.errors import InputError

_OUTLINE = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ITEMS = msgspec.json.Decoder(list[msgspec.Raw] | None)
_VALUE = msgspec.json.Decoder(Any)
_ENCODER = msgspec.json.Encoder()
_WHOLE = msgspec.json.Decoder(msgspec.Raw)

_TRAILING = re.compile(r"trailing characters \(byte (\d+)\)")
_SPACE = re.compile(rb"\s*")
_START = re.compile(rb"\s*[{\[]")

Raw = msgspec.Raw
Slice = msgspec.Raw | memoryview
"""A part of the input, not yet built up."""


@dataclass(frozen=True, slots=True)
class Outline:
    """One document: its text, and its fields, not yet built up."""

    number: int
    text: memoryview
    fields: dict[str, msgspec.Raw]
    items: list[msgspec.Raw] | None = None
    """The items of a list, where they were told apart in passing."""


def looks_like(data: bytes) -> bool:
    """Whether this may be JSON, by its first character."""
    return _START.match(data) is not None


def outlines(data: bytes, source: str) -> Iterator[Outline | InputError]:
    """The outline of each document, or what is wrong with it.

    After text that is no JSON nothing more can be told apart, so that ends the file.
    """
    view = memoryview(data)
    start, number = _end_of_space(data, 0), 1
    while start < len(data):
        try:
            end, fields, items = _first(view[start:])
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            yield InputError(f"is not valid JSON: {error}", source=source, document=number)
            return
        except RecursionError:
            yield InputError("is nested too deeply", source=source, document=number)
            return
        if fields is None:
            yield InputError("is JSON, but not an object", source=source, document=number)
        else:
            yield Outline(number, view[start : start + end], fields, items)
        start, number = _end_of_space(data, start + end), number + 1


def items(raw: msgspec.Raw) -> list[msgspec.Raw]:
    """The items of a list, each still a slice of the input; ValueError where it is no list."""
    try:
        return _ITEMS.decode(raw) or []
    except msgspec.DecodeError as error:
        raise ValueError(f"items: {error}") from error


def decode(raw: Slice) -> Any:
    """A value, built up; ValueError says why it cannot be."""
    try:
        return _VALUE.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(str(error)) from error
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def encode(value: Any) -> bytes:
    """Compact JSON; ValueError says why it cannot be."""
    try:
        return _ENCODER.encode(value)
    except (TypeError, UnicodeEncodeError) as error:
        raise ValueError(f"it cannot be written as JSON: {error}") from error
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


class _List(msgspec.Struct, forbid_unknown_fields=True):
    """A list with the fields that lists have, and no others."""

    items: list[msgspec.Raw] | None
    kind: msgspec.Raw = msgspec.Raw()
    apiVersion: msgspec.Raw = msgspec.Raw()  # noqa: N815
    metadata: msgspec.Raw = msgspec.Raw()


_LIST = msgspec.json.Decoder(_List)


_Fields = dict[str, msgspec.Raw]


def _first(view: memoryview) -> tuple[int, _Fields | None, list[msgspec.Raw] | None]:
    """Where the first document ends, its fields, or None where it is no object, and its items."""
    try:
        whole = _LIST.decode(view)
    except msgspec.DecodeError:
        return (*_first_object(view), None)
    fields = {"apiVersion": whole.apiVersion, "kind": whole.kind, "metadata": whole.metadata}
    return len(view), {key: raw for key, raw in fields.items() if bytes(raw)}, whole.items or []


def _first_object(view: memoryview) -> tuple[int, _Fields | None]:
    try:
        return len(view), _OUTLINE.decode(view)
    except msgspec.ValidationError:
        return _end(view), None
    except msgspec.DecodeError as error:
        end = _end_before(error)
        return end, _first_object(view[:end])[1]


def _end(view: memoryview) -> int:
    try:
        _WHOLE.decode(view)
    except msgspec.DecodeError as error:
        return _end_before(error)
    return len(view)


def _end_before(error: msgspec.DecodeError) -> int:
    """Where the document ends that more text follows; any other error is the caller's."""
    trailing = _TRAILING.search(str(error))
    if not trailing:
        raise error
    return int(trailing[1]) - 1


def _end_of_space(data: bytes, start: int) -> int:
    match = _SPACE.match(data, start)
    return match.end() if match else start
