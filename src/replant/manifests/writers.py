"""Writing documents: as JSON, as YAML, or as the difference between before and after.

What did not change is passed on as the text that it was, where the format is the same.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Protocol

from replant.manifests import jsontext, yamltext
from replant.manifests.documents import Item
from replant.objects import Object, name_of

_NEWLINE = b"\n"
_NEXT_ITEM = b",\n"


class Writer(Protocol):
    """Takes objects one by one. ValueError: this one cannot be written, and nothing was."""

    def open_list(self, head: Object) -> None:
        """Begin a list; what follows are its items."""

    def close_list(self) -> None:
        """End the list."""

    def unchanged(self, item: Item) -> None:
        """Write an object as it was."""

    def changed(self, item: Item, after: Object) -> None:
        """Write what became of an object."""

    def added(self, obj: Object) -> None:
        """Write an object that was not there before."""


class JsonWriter:
    """Compact JSON, one object a line, so that line tools can work with it."""

    def __init__(self, out: BinaryIO, *, inside_list: bool = False) -> None:
        """Write to ``out``, at the start of a document or behind an item of a list."""
        self.out = out
        self._before_item = _NEXT_ITEM if inside_list else None

    def open_list(self, head: Object) -> None:
        """See Writer."""
        start = jsontext.encode(head)[:-1]
        self.out.write(start + (b"," if head else b"") + b'"items":[')
        self._before_item = _NEWLINE

    def close_list(self) -> None:
        """See Writer."""
        self.out.write(b"\n]}\n")
        self._before_item = None

    def unchanged(self, item: Item) -> None:
        """See Writer."""
        self._write(jsontext.encode(item.value()) if item.raw is None else item.raw)

    def changed(self, item: Item, after: Object) -> None:  # noqa: ARG002
        """See Writer."""
        self._write(jsontext.encode(after))

    def added(self, obj: Object) -> None:
        """See Writer."""
        self._write(jsontext.encode(obj))

    def _write(self, text: jsontext.Slice | bytes) -> None:
        if self._before_item is None:
            self.out.write(text)
            self.out.write(_NEWLINE)
        else:
            self.out.write(self._before_item)
            self.out.write(text)
            self._before_item = _NEXT_ITEM


class YamlWriter:
    """YAML documents; the items of a list one after another, so that no list is held whole."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._documents = 0
        self._items: int | None = None

    def open_list(self, head: Object) -> None:
        """See Writer."""
        self._write_document(yamltext.dump(head) if head else "")
        self._items = 0

    def close_list(self) -> None:
        """See Writer."""
        if self._items == 0:
            self._out.write(b"items: []\n")
        self._items = None

    def unchanged(self, item: Item) -> None:
        """See Writer."""
        if self._items is None and item.text is not None and _ends_well(item):
            self._write_document(item.text)
            return
        try:
            self.added(item.value())
        except ValueError:
            if item.raw is None:
                raise
            # JSON is YAML too, and says what block style cannot.
            self._write_text(bytes(item.raw).replace(b"\n", b" ").decode() + "\n")

    def changed(self, item: Item, after: Object) -> None:  # noqa: ARG002
        """See Writer."""
        self.added(after)

    def added(self, obj: Object) -> None:
        """See Writer."""
        self._write_text(yamltext.dump(obj if self._items is None else [obj]), "")

    def _write_text(self, text: str, marker: str = "- ") -> None:
        if self._items is None:
            self._write_document(text)
            return
        self._out.write((("" if self._items else "items:\n") + marker + text).encode())
        self._items += 1

    def _write_document(self, text: str) -> None:
        if self._documents and not text.startswith("---"):
            self._out.write(b"---\n")
        self._out.write(text.encode())
        if text and not text.endswith("\n"):
            self._out.write(_NEWLINE)
        self._documents += 1


class DiffWriter:
    """Unified differences of what changed; nothing of what did not."""

    def __init__(self, out: BinaryIO, paint: Callable[[str], str]) -> None:
        self._out = out
        self._paint = paint

    def open_list(self, head: Object) -> None:
        """See Writer."""

    def close_list(self) -> None:
        """See Writer."""

    def unchanged(self, item: Item) -> None:
        """See Writer."""

    def changed(self, item: Item, after: Object) -> None:
        """See Writer."""
        before = item.value()
        name = _file_name(before)
        self._write(_difference(before, after, f"before/{name}", f"after/{name}"))

    def added(self, obj: Object) -> None:
        """See Writer."""
        self._write(_difference(None, obj, "/dev/null", f"after/{_file_name(obj)}"))

    def _write(self, lines: Iterator[str]) -> None:
        self._out.write("".join(self._paint(line) + "\n" for line in lines).encode())


def _ends_well(item: Item) -> bool:
    """Whether a line's end after the text changes nothing: in a block of text it may."""
    text = item.text or ""
    return text.endswith("\n") or yamltext.load(f"{text}\n") == item.value()


def _difference(before: Any, after: Object, old: str, new: str) -> Iterator[str]:
    old_lines = [] if before is None else yamltext.dump(before).splitlines()
    return difflib.unified_diff(old_lines, yamltext.dump(after).splitlines(), old, new, lineterm="")


def _file_name(obj: Object) -> str:
    return name_of(obj).replace(" ", "/", 1)
