"""Files as a cluster to be read: dumps and manifests to the records of an inventory."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec

from replant.errors import InputError
from replant.inventory.build import Builder
from replant.inventory.checks.reading import ABSENT
from replant.inventory.records import OF_PLATFORMS, TYPES
from replant.manifests import jsontext
from replant.manifests.documents import Document, Item, documents
from replant.manifests.sources import Source
from replant.objects import is_ours

Say = Callable[[object], None]
Progress = Callable[[str, int], None]
"""Told the source and how many objects of its list have been read."""

_PROGRESS_EVERY = 5_000

_VERSIONS = frozenset({"v1", "v1beta1", "v1beta2", "v1alpha1", "v2alpha1"})
"""In all of these the fields that an inventory needs are the same."""

_USUAL = frozenset({"v1", "apps/v1", "batch/v1", "policy/v1", "storage.k8s.io/v1"})

OTHER = "other"
"""Under this name all objects are counted that hold no volumes, or are none."""

_DECODERS = {kind: msgspec.json.Decoder(record) for kind, record in TYPES.items()}
_START = re.compile(
    rb'\s*\{\s*"apiVersion"\s*:\s*"(?P<version>[^"\\]*)"\s*,\s*"kind"\s*:\s*"(?P<kind>\w+)"'
)


class _PassedOver(Exception):
    """Why an object does not count."""


class _Head(msgspec.Struct, gc=False):
    """What an object says that it is."""

    kind: str | None = None
    apiVersion: str | None = None  # noqa: N815


_HEAD = msgspec.json.Decoder(_Head)


class FileReader:
    """Takes sources in, one by one; what is wrong with an object is said, and the rest goes on."""

    def __init__(
        self,
        builder: Builder,
        *,
        problem: Say,
        note: Say,
        progress: Progress = lambda _source, _count: None,
    ) -> None:
        self._builder = builder
        self._problem = problem
        self._note = note
        self._progress = progress
        self._known: set[str] = set()

    def read(self, source: Source) -> None:
        """Take all objects of a source in."""
        for document in documents(source):
            if isinstance(document, InputError):
                self._problem(document)
            else:
                self._document(document)

    def unknown(self) -> dict[str, str]:
        """The kinds that no source had anything of."""
        return {kind: ABSENT for kind in TYPES if kind not in self._known | OF_PLATFORMS}

    def _document(self, document: Document) -> None:
        kind, version = "", ""
        if document.head is not None:
            kind = str(document.head.get("kind")).removesuffix("List")
            version = str(document.head.get("apiVersion") or "")
            # A list that is there but empty says that there is none.
            self._known.add(kind)
        for position, item in enumerate(document.items):
            if position % _PROGRESS_EVERY == 0:
                self._progress(document.source, position)
            try:
                self._item(item, kind, version)
            except _PassedOver as reason:
                self._note(f"{_place(document, position)} is passed over: {reason}")
            except (msgspec.DecodeError, ValueError, RecursionError) as error:
                self._problem(f"{_place(document, position)} is passed over: {error}")

    def _item(self, item: Item, kind: str, version: str) -> None:
        counted, used = OTHER, False
        try:
            said_kind, said_version = _head(item)
            kind, version = said_kind or kind, said_version or version
            if kind not in TYPES or not is_ours(kind, version):
                if kind == "List":
                    raise _PassedOver("it is a list inside a list")
                return
            counted = kind
            self._known.add(kind)
            if version not in _USUAL:
                _check_version(kind, version)
            record = _record(item, kind)
            used = self._builder.add(kind, record)
            if not used:
                raise _PassedOver(f"{kind} {record.metadata.name} was there already")
        finally:
            count = self._builder.counts(counted)
            count.seen += 1
            count.used += used
            count.passed_over += not used


def _place(document: Document, position: int) -> str:
    item = "" if document.head is None else f", item {position}"
    return f"{document.source}, document {document.number}{item}"


def _head(item: Item) -> tuple[str, str]:
    if item.raw is None:
        value = item.value()
        if not isinstance(value, dict):
            raise ValueError("it is not an object")
        return str(value.get("kind") or ""), str(value.get("apiVersion") or "")
    start = _START.match(item.raw)
    if start:
        version, kind = start.groups()
        return _text(kind), _text(version)
    head = _HEAD.decode(item.raw)
    return head.kind or "", head.apiVersion or ""


@lru_cache(maxsize=256)
def _text(word: bytes) -> str:
    return word.decode()


def _check_version(kind: str, version: str) -> None:
    if version and version.rpartition("/")[2] not in _VERSIONS:
        raise _PassedOver(f"{kind} of the unknown version {version}")


def _record(item: Item, kind: str) -> Any:
    return _DECODERS[kind].decode(jsontext.encode(item.value()) if item.raw is None else item.raw)
