"""Carries ``replant translate`` out: reads, translates and writes one object after another."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import BinaryIO

import msgspec

from replant.cli import shares
from replant.cli.bulk import buffered_stdout, collector_off
from replant.cli.reporting import Recording, Report
from replant.cli.shares import Share
from replant.errors import InputError, TranslationError
from replant.manifests import jsontext, sources
from replant.manifests.documents import Document, Format, Item, documents
from replant.manifests.writers import DiffWriter, JsonWriter, Writer, YamlWriter
from replant.objects import Object, name_of
from replant.translate.manifest import Target, Translated, translate_object
from replant.translate.workloads import InlineDefaults


class Counts(msgspec.Struct):
    """What became of the objects."""

    translated: int = 0
    unchanged: int = 0
    failed: int = 0
    added: set[str] = msgspec.field(default_factory=set)

    def include(self, other: Counts) -> None:
        """Count what another process has counted."""
        self.translated += other.translated
        self.unchanged += other.unchanged
        self.failed += other.failed


class Outcome(msgspec.Struct):
    """What a process with a share of a list has to tell."""

    counts: Counts
    said: list[tuple[str, str]]


class Translation:
    """One run of the command."""

    def __init__(
        self,
        report: Report,
        *,
        to: str,
        output: str | None,
        recursive: bool,
        inline_capacity: str,
        namespace: str,
        paint: Callable[[str], str],
    ) -> None:
        self._report = report
        self._target = Target(to)
        self._output = output
        self._recursive = recursive
        self._inline = InlineDefaults(inline_capacity, namespace)
        self._paint = paint
        self._counts = Counts()
        self._writer: Writer | None = None

    def run(self, paths: tuple[str, ...], max_mib: int) -> None:
        """Translate all that ``paths`` stand for to standard output."""
        with buffered_stdout() as out:
            for path in paths:
                self._translate_path(path, max_mib, out)

    def summary(self) -> str:
        """One line that accounts for every object."""
        counts = self._counts
        read = counts.translated + counts.unchanged + counts.failed
        return (
            f"{read} objects read: {counts.translated} translated, {counts.unchanged} need no "
            f"change, {counts.failed} not translated; {len(counts.added)} objects added"
        )

    def _translate_path(self, path: str, max_mib: int, out: BinaryIO) -> None:
        for file in sources.find(path, recursive=self._recursive):
            try:
                if isinstance(file, InputError):
                    raise file
                source = sources.read(file, max_mib)
            except InputError as error:
                self._report.problem(error)
                continue
            # YAML's loader does leave cycles behind, so there the collector stays on.
            with collector_off(jsontext.looks_like(source.data)):
                for document in documents(source):
                    if isinstance(document, InputError):
                        self._report.problem(document)
                    else:
                        self._translate_document(document, self._writer_for(document.format, out))

    def _writer_for(self, found: Format, out: BinaryIO) -> Writer:
        if self._writer is None:
            match self._output or found:
                case "json":
                    self._writer = JsonWriter(out)
                case "yaml":
                    self._writer = YamlWriter(out)
                case _:
                    self._writer = DiffWriter(out, self._paint)
        return self._writer

    def _translate_document(self, document: Document, writer: Writer) -> None:
        if document.head is None:
            for item, result in self._translate_items(document, ""):
                self._write_added(result, writer)
                self._write(item, result, writer)
            return
        if len(document.items) >= shares.ENOUGH and isinstance(writer, JsonWriter):
            self._translate_in_shares(document, document.head, writer)
            return
        results = self._translate_items(document, _item_kind(document.head))
        if document.whole:
            known = list(results)
            if all(result is None for _, result in known):
                writer.unchanged(document.whole)
                return
            results = iter(known)
        self._write_list(document.head, results, writer)

    def _translate_in_shares(self, document: Document, head: Object, writer: JsonWriter) -> None:
        """A long list by all processors: each takes a run of items, the first one is ours."""
        size = -(-len(document.items) // shares.processors())
        runs = [range(start, start + size) for start in range(0, len(document.items), size)]
        writer.open_list(head)
        writer.out.flush()
        gc.freeze()  # what the children read must not be copied for the collector's sake
        with ExitStack() as stack:
            helpers = []
            for run in runs[1:]:
                helper = Share(partial(self._translate_run, document, head, run))
                stack.callback(helper.close)
                helpers.append((helper, run))
            kind = _item_kind(head)
            later = self._write_items(head, self._translate_items(document, kind, runs[0]), writer)
            for helper, run in helpers:
                report = helper.finish(writer.out)
                if report is None:
                    results = self._translate_items(document, kind, run)
                    later += self._write_items(head, results, writer)
                else:
                    outcome = msgspec.msgpack.decode(report, type=Outcome)
                    self._counts.include(outcome.counts)
                    self._report.repeat(outcome.said)
        writer.close_list()
        for result in later:
            self._write_added(result, writer)

    def _translate_run(self, document: Document, head: Object, run: range, out: BinaryIO) -> bytes:
        """In a process of its own: translate a run of items behind others."""
        self._report, self._counts = recording, counts = Recording(), Counts()
        writer = JsonWriter(out, inside_list=True)
        results = self._translate_items(document, _item_kind(head), run)
        for item, result in results:
            if result and result.added:
                raise _NeedsCompany
            self._write(item, result, writer)
        return msgspec.msgpack.encode(Outcome(counts, recording.said))

    def _write_list(
        self, head: Object, results: Iterator[tuple[Item, Translated | None]], writer: Writer
    ) -> None:
        writer.open_list(head)
        later = self._write_items(head, results, writer)
        writer.close_list()
        for result in later:
            self._write_added(result, writer)

    def _write_items(
        self, head: Object, results: Iterator[tuple[Item, Translated | None]], writer: Writer
    ) -> list[Translated]:
        """Write a list's items; what must be added behind the list is given back."""
        # A PodList holds pods alone, so what is added beside them follows as documents.
        takes_any = head["kind"] == "List"
        later: list[Translated] = []
        for item, result in results:
            if result and result.added:
                if takes_any:
                    self._write_added(result, writer)
                else:
                    later.append(result)
            self._write(item, result, writer)
        return later

    def _translate_items(
        self, document: Document, kind: str, run: range | None = None
    ) -> Iterator[tuple[Item, Translated | None]]:
        """Each item with what became of it, or None where it stays as it is."""
        first = run.start if run else 0
        items = document.items[run.start : run.stop] if run else document.items
        for position, item in enumerate(items, start=first):
            try:
                yield item, self._translate_item(item, kind)
            except TranslationError as error:
                self._fail(error)
                yield item, None
            except ValueError as error:
                place = "" if document.head is None else f", item {position}"
                self._fail(f"{document.source}, document {document.number}{place}: {error}")
                yield item, None

    def _translate_item(self, item: Item, kind: str) -> Translated | None:
        obj = item.value()
        if not isinstance(obj, dict):
            raise ValueError("is not an object")  # noqa: TRY004 - it is the input's value
        said = obj.get("kind")
        if isinstance(said, str) and said:
            kind = said
        if kind.endswith("List") and "items" in obj:
            raise ValueError("is a list inside a list, which is not translated")
        result = translate_object(obj, kind, self._target, self._inline)
        for note in result.notes:
            self._report.note(note)
        if result.obj is obj:
            self._counts.unchanged += 1
            return None
        return result

    def _write(self, item: Item, result: Translated | None, writer: Writer) -> None:
        try:
            if result is None:
                writer.unchanged(item)
                return
            try:
                writer.changed(item, result.obj)
                self._counts.translated += 1
            except ValueError as error:
                self._fail(f"{name_of(result.obj)}: {error}")
                writer.unchanged(item)
        except ValueError as error:
            self._report.problem(f"{_name(item)} is left out: {error}")

    def _write_added(self, result: Translated | None, writer: Writer) -> None:
        for obj in result.added if result else ():
            # Its name tells the namespace too: one without is the one that --namespace names.
            name = f"{obj['kind']} {obj['metadata']['name']}"
            if name not in self._counts.added:
                self._counts.added.add(name)
                writer.added(obj)

    def _fail(self, message: object) -> None:
        self._counts.failed += 1
        self._report.problem(message)


class _NeedsCompany(Exception):
    """An object needs others beside it, and only one process knows which are there already."""


def _item_kind(head: Object) -> str:
    return str(head["kind"]).removesuffix("List")


def _name(item: Item) -> str:
    try:
        return name_of(item.value())
    except ValueError:
        return "an object that cannot be read"
