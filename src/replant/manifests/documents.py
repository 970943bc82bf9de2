"""Documents of a source, whatever they are written in, as objects with the text they came from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, overload

from replant.errors import InputError
from replant.manifests import jsontext, yamltext
from replant.manifests.sources import Source
from replant.objects import GROUPS


class Format(StrEnum):
    """How a document is written."""

    JSON = "json"
    YAML = "yaml"


class Item:
    """One object. It is built up when asked for, and its text is kept to be passed on as it was."""

    __slots__ = ("_value", "raw", "text")

    def __init__(
        self, raw: jsontext.Slice | None = None, text: str | None = None, value: Any = None
    ) -> None:
        self.raw = raw
        self.text = text
        self._value = value

    def value(self) -> Any:
        """The object; ValueError says why it cannot be built up."""
        if self._value is None and self.raw is not None:
            return jsontext.decode(self.raw)
        return self._value


class RawItems(Sequence[Item]):
    """The items of a JSON list, made one by one: a hundred thousand at once take their room."""

    def __init__(self, raws: list[jsontext.Raw]) -> None:
        self._raws = raws

    def __len__(self) -> int:
        return len(self._raws)

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> RawItems: ...
    def __getitem__(self, index: int | slice) -> Item | RawItems:
        if isinstance(index, slice):
            return RawItems(self._raws[index])
        return Item(self._raws[index])

    def __iter__(self) -> Iterator[Item]:
        return map(Item, self._raws)


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a source: an object, or a list of objects."""

    source: str
    number: int
    format: Format
    items: Sequence[Item]
    head: dict[str, Any] | None = None
    """What a list says of itself; None where the document is one object."""
    whole: Item | None = None
    """The list as it was written, where that can be passed on."""


def documents(source: Source) -> Iterator[Document | InputError]:
    """The documents of a source, each, or what is wrong with it, in their order."""
    if jsontext.looks_like(source.data) and b"\n---" not in source.data:
        yield from _json_documents(source)
    else:
        yield from _yaml_documents(source)


def _json_documents(source: Source) -> Iterator[Document | InputError]:
    for outline in jsontext.outlines(source.data, source.name):
        if isinstance(outline, jsontext.Outline):
            yield _json_document(source, outline)
        elif outline.document == 1:
            yield from _yaml_after_all(source, outline)
        else:
            yield outline


def _yaml_after_all(source: Source, error: InputError) -> Iterator[Document | InputError]:
    """YAML may start with a brace too; where it is not valid either, it was meant as JSON."""
    found = list(_yaml_documents(source))
    if any(isinstance(document, InputError) for document in found):
        yield error
    else:
        yield from found


def _json_document(source: Source, outline: jsontext.Outline) -> Document | InputError:
    number, fields = outline.number, outline.fields
    try:
        kind = jsontext.decode(fields["kind"]) if "kind" in fields else ""
        if not _is_list(kind, has_items=outline.items is not None or "items" in fields):
            return Document(source.name, number, Format.JSON, [Item(raw=outline.text)])
        raws = outline.items
        items = RawItems(jsontext.items(fields["items"]) if raws is None else raws)
        head = {key: jsontext.decode(raw) for key, raw in fields.items() if key != "items"}
    except ValueError as error:
        return InputError(str(error), source=source.name, document=number)
    return Document(source.name, number, Format.JSON, items, head)


def _yaml_documents(source: Source) -> Iterator[Document | InputError]:
    for number, (before, text) in enumerate(yamltext.split(source.data.decode()), start=1):
        try:
            value = yamltext.load(text, before)
        except ValueError as error:
            yield InputError(str(error), source=source.name, document=number)
            continue
        if value is None:
            continue
        if not isinstance(value, dict):
            reason = "is YAML, but not an object"
            yield InputError(reason, source=source.name, document=number)
            continue
        yield _yaml_document(source, number, before + text, value)


def _yaml_document(
    source: Source, number: int, text: str, value: dict[str, Any]
) -> Document | InputError:
    whole = Item(text=text, value=value)
    items = value.get("items")
    if not _is_list(value.get("kind"), has_items="items" in value):
        return Document(source.name, number, Format.YAML, [whole])
    if not isinstance(items, list | None):
        return InputError("items: must be a list", source=source.name, document=number)
    head = {key: item for key, item in value.items() if key != "items"}
    inner = [Item(value=item) for item in items or ()]
    return Document(source.name, number, Format.YAML, inner, head, whole)


def _is_list(kind: object, *, has_items: bool) -> bool:
    """Whether this is one of Kubernetes' lists: other kinds may end in the same word."""
    if not has_items or not isinstance(kind, str) or not kind.endswith("List"):
        return False
    return kind == "List" or kind.removesuffix("List") in GROUPS
