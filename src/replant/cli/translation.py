"""Carries ``replant translate`` out: reads, translates and writes one object after another."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from replant.cli.bulk import collector_off
from replant.cli.reporting import Report
from replant.errors import InputError, TranslationError
from replant.manifests import jsontext, sources
from replant.manifests.documents import Document, Format, Item, documents
from replant.manifests.writers import DiffWriter, JsonWriter, Writer, YamlWriter
from replant.objects import Object, name_of
from replant.translate.manifest import Target, Translated, translate_object
from replant.translate.workloads import InlineDefaults


@dataclass
class Counts:
    """What became of the objects."""

    translated: int = 0
    unchanged: int = 0
    failed: int = 0
    added: set[str] = field(default_factory=set)


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
        out = sys.stdout.buffer
        for path in paths:
            self._translate_path(path, max_mib, out)
        out.flush()

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
        kind = str(document.head["kind"]).removesuffix("List")
        results = self._translate_items(document, kind)
        if document.whole:
            known = list(results)
            if all(result is None for _, result in known):
                writer.unchanged(document.whole)
                return
            results = iter(known)
        self._write_list(document.head, results, writer)

    def _write_list(
        self, head: Object, results: Iterator[tuple[Item, Translated | None]], writer: Writer
    ) -> None:
        # A PodList holds pods alone, so what is added beside them follows as documents.
        takes_any = head["kind"] == "List"
        later: list[Translated] = []
        writer.open_list(head)
        for item, result in results:
            if takes_any:
                self._write_added(result, writer)
            elif result and result.added:
                later.append(result)
            self._write(item, result, writer)
        writer.close_list()
        for result in later:
            self._write_added(result, writer)

    def _translate_items(
        self, document: Document, kind: str
    ) -> Iterator[tuple[Item, Translated | None]]:
        """Each item with what became of it, or None where it stays as it is."""
        for position, item in enumerate(document.items):
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


def _name(item: Item) -> str:
    try:
        return name_of(item.value())
    except ValueError:
        return "an object that cannot be read"
