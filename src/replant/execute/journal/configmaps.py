"""A journal in the cluster itself, so that another machine can go on.

A run is a few ConfigMaps: documents (the plan and how the cluster was, compressed and cut to size),
a head that says that all of them are there, and logs, each a batch of entries under a number. Every
write names the version of the log that it was made for, so two writers cannot both succeed.
"""

from __future__ import annotations

import gzip
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from replant.cluster.ports import CONFIG_MAPS, Reader, Selected, Writer
from replant.errors import Conflict, Final, Missing, Refused, Uncertain, printable
from replant.execute.census_model import Census
from replant.execute.insisting import Notice, insist
from replant.execute.journal.model import Entry, Header, Mark, Run, State, Summary
from replant.execute.namespace import NAMESPACE
from replant.execute.timing import Timing, written
from replant.objects import Object
from replant.plan.model import Plan

RUN, PART, STATE = "replant.dev/run", "replant.dev/journal", "replant.dev/state"
_HEAD, _DOCUMENT, _LOG = "head", "document", "log"

DOCUMENT_BYTES = 700_000
"""In base64 it stays below the 1 MiB that a ConfigMap may have."""
LOG_BYTES = 16_000
"""Each batch writes its whole log anew, so logs are kept short."""
LARGEST_BATCH = 900_000


class _Document(msgspec.Struct, frozen=True):
    plan: Plan
    before: Census


class ConfigMapJournals:
    """All runs of one cluster."""

    elsewhere = ""

    def __init__(self, reader: Reader, writer: Writer, timing: Timing, notice: Notice) -> None:
        self._reader = reader
        self._writer = writer
        self._timing = timing
        self._notice = notice

    async def runs(self) -> list[Summary]:
        """All runs, the oldest first."""
        heads = await self._list(f"{PART}={_HEAD}")
        found = []
        for head in heads:
            with _reading(head["metadata"]["name"]):
                header = msgspec.json.decode(head["data"]["header"], type=Header)
                state = State(head["metadata"]["labels"].get(STATE, State.UNFINISHED))
            found.append(Summary(header.id, header.goal, header.started, state))
        return sorted(found, key=lambda it: it.started)

    async def begin(self, run: Run) -> ConfigMapJournal:
        """Write the documents, then the head: a run without a head was never begun."""
        document = gzip.compress(msgspec.json.encode(_Document(run.plan, run.before)), mtime=0)
        parts = [
            document[start : start + DOCUMENT_BYTES]
            for start in range(0, len(document), DOCUMENT_BYTES)
        ]
        run_id = run.header.id
        for number, part in enumerate(parts):
            made = _config_map(run_id, _DOCUMENT, number)
            await self._create({**made, "binaryData": {"part": b64encode(part).decode()}})
        head = _config_map(run_id, _HEAD)
        head["metadata"]["labels"][STATE] = State.UNFINISHED
        header = msgspec.json.encode(run.header).decode()
        await self._create({**head, "data": {"header": header, "documents": str(len(parts))}})
        return ConfigMapJournal(self, run_id, 0, 0)

    async def read(self, run_id: str) -> Run:
        """A run; what is missing of it is an error."""
        return _run(run_id, await self._parts(run_id))

    async def open(self, run_id: str) -> tuple[Run, ConfigMapJournal]:
        """A run to go on with. Whoever wrote to it before cannot do so from here on."""

        async def ask() -> tuple[Run, ConfigMapJournal] | None:
            parts = await self._parts(run_id)
            logs = _logs(run_id, parts)
            try:
                if logs:
                    await self._close(logs[-1])
            except Conflict:
                return None  # the other has written meanwhile: read that too
            count = sum(len(it.get("data") or {}) for it in logs)
            return _run(run_id, parts), ConfigMapJournal(self, run_id, len(logs), count)

        while (opened := await insist(ask, self._timing, self._notice)) is None:
            continue
        return opened

    async def _close(self, log: Object) -> None:
        """Change a log in the version that was read, so that a batch for that version fails."""
        metadata = log["metadata"]
        patch = {
            "metadata": {
                "uid": metadata["uid"],
                "resourceVersion": metadata["resourceVersion"],
                "annotations": {"replant.dev/closed": written(self._timing.now())},
            }
        }
        await self._writer.patch(CONFIG_MAPS, metadata["name"], patch, namespace=NAMESPACE)

    async def _parts(self, run_id: str) -> dict[str, Object]:
        found = await self._list(f"{RUN}={run_id}")
        return {it["metadata"]["name"]: it for it in found}

    async def set_state(self, run_id: str, state: State) -> None:
        """Say in the head how a run ended, so that lists need not read its logs."""
        patch = {"metadata": {"labels": {STATE: state}}}

        async def ask() -> Object:
            return await self._writer.patch(
                CONFIG_MAPS, _name(run_id, _HEAD), patch, namespace=NAMESPACE
            )

        await insist(ask, self._timing, self._notice)

    async def create_or_find(self, config_map: Object) -> Object:
        """Make a ConfigMap, or find the one that is there under its name."""

        async def ask() -> Object:
            try:
                return await self._writer.create(CONFIG_MAPS, config_map, namespace=NAMESPACE)
            except Conflict as error:
                name = config_map["metadata"]["name"]
                try:
                    body = await self._reader.get(CONFIG_MAPS, name, namespace=NAMESPACE)
                except Missing:
                    # There is none, whatever the answer said: that may be asked again.
                    raise Uncertain(str(error)) from error
                found: Object = msgspec.json.decode(body)
                return found

        return await insist(ask, self._timing, self._notice)

    async def add(self, config_map: Object, key: str, value: str) -> Object:
        """Add an entry to a ConfigMap that is still as we know it."""
        metadata = config_map["metadata"]
        patch = {
            "metadata": {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]},
            "data": {key: value},
        }

        async def ask() -> Object:
            try:
                return await self._writer.patch(
                    CONFIG_MAPS, metadata["name"], patch, namespace=NAMESPACE
                )
            except (Conflict, Uncertain) as error:
                # Perhaps it is ours that was written, and only the answer was lost.
                found: Object = msgspec.json.decode(
                    await self._reader.get(CONFIG_MAPS, metadata["name"], namespace=NAMESPACE)
                )
                if (found.get("data") or {}).get(key) == value:
                    return found
                if found["metadata"]["resourceVersion"] != metadata["resourceVersion"]:
                    raise Refused(_TAKEN) from None
                # It is as it was, whatever the answer said: that may be asked again.
                raise Uncertain(str(error)) from error

        return await insist(ask, self._timing, self._notice)

    async def _create(self, config_map: Object) -> None:
        await self.create_or_find({**config_map, "immutable": "binaryData" in config_map})

    async def _list(self, labels: str) -> list[Object]:
        found: list[Any] = []
        async for page in self._reader.list_pages(
            CONFIG_MAPS, namespace=NAMESPACE, selected=Selected(labels=labels)
        ):
            if page.first:
                found = []
            found += msgspec.json.decode(page.body)["items"] or ()
        return found


_TAKEN = (
    "Another Replant goes on with this run: its journal was written to meanwhile. This one stops; "
    "nothing that it had not written down was done."
)


class ConfigMapJournal:
    """The entries of one run."""

    def __init__(self, journals: ConfigMapJournals, run_id: str, log: int, count: int) -> None:
        self.where = place_of(run_id)
        self._journals = journals
        self._run_id = run_id
        self._log = log
        self._count = count
        self._current: Object | None = None
        self._size = 0

    async def write(self, entries: Sequence[Entry]) -> None:
        """Write entries as one batch, each batch under the next number."""
        encoded = msgspec.json.encode(list(entries))
        if len(encoded) > LARGEST_BATCH:
            if len(entries) == 1:
                raise Final(f"An entry of the journal is too large: {entries[0].target}.")
            half = len(entries) // 2
            await self.write(entries[:half])
            await self.write(entries[half:])
            return
        state = _state_after(entries)
        if state is State.UNFINISHED:
            # Before it is so: killed in between, a run must not look finished to others.
            await self._journals.set_state(self._run_id, state)
        await self._append(encoded.decode(), len(encoded))
        if state and state is not State.UNFINISHED:
            await self._journals.set_state(self._run_id, state)

    async def _append(self, batch: str, size: int) -> None:
        if self._current is not None and self._size + size > LOG_BYTES:
            self._current = None
        key = _number(self._count)
        if self._current is None:
            self._current = await self._new_log(key, batch)
            self._size = size
        else:
            self._current = await self._journals.add(self._current, key, batch)
            self._size += size
        self._count += 1

    async def _new_log(self, key: str, batch: str) -> Object:
        made = _config_map(self._run_id, _LOG, self._log)
        found = await self._journals.create_or_find({**made, "data": {key: batch}})
        if found.get("data") != {key: batch}:
            raise Refused(_TAKEN)
        self._log += 1
        return found

    async def aclose(self) -> None:
        """Nothing is held open."""


def place_of(run_id: str) -> str:
    """Where the entries of a run are, as a person would look for them."""
    return f"ConfigMaps {RUN}={run_id} in {NAMESPACE}"


def _run(run_id: str, parts: Mapping[str, Object]) -> Run:
    head = parts.get(_name(run_id, _HEAD))
    if head is None:
        raise Refused(f"There is no run {run_id} in the cluster's journal.")
    with _reading(head["metadata"]["name"]):
        header = msgspec.json.decode(head["data"]["header"], type=Header)
        documents = int(head["data"]["documents"])
    document = b""
    for part in _numbered(run_id, _DOCUMENT, documents, parts):
        with _reading(part["metadata"]["name"]):
            document += b64decode(part["binaryData"]["part"], validate=True)
    with _reading(_name(run_id, _DOCUMENT, 0)):
        read = msgspec.json.decode(gzip.decompress(document), type=_Document)
    return Run(header, read.plan, read.before, _entries(_logs(run_id, parts)))


def _logs(run_id: str, parts: Mapping[str, Object]) -> list[Object]:
    """The logs in their order."""
    count = sum(name.startswith(f"{_name(run_id, _LOG)}-") for name in parts)
    return _numbered(run_id, _LOG, count, parts)


def _numbered(run_id: str, part: str, count: int, parts: Mapping[str, Object]) -> list[Object]:
    """So many parts of a run; one that is missing is an error, for nobody knows what it said."""
    names = [_name(run_id, part, number) for number in range(count)]
    for name in names:
        if name not in parts:
            raise Final(
                f"The journal of run {run_id} is incomplete: the ConfigMap {NAMESPACE}/{name} is "
                "missing."
            )
    return [parts[name] for name in names]


def _entries(logs: Sequence[Object]) -> list[Entry]:
    entries: list[Entry] = []
    count = 0
    for log in logs:
        with _reading(log["metadata"]["name"]):
            for number, batch in sorted((log.get("data") or {}).items()):
                if number != _number(count):
                    raise ValueError(f"{number} stands where {_number(count)} should")
                entries += msgspec.json.decode(batch, type=list[Entry])
                count += 1
    return entries


def _number(batch: int) -> str:
    return f"{batch:08}"


@contextmanager
def _reading(name: str) -> Iterator[None]:
    """Say of which ConfigMap it is that something other than Replant has been written to."""
    try:
        yield
    except (LookupError, TypeError, ValueError, EOFError, OSError, zlib.error) as error:
        what = printable(f"{type(error).__name__}: {error}")
        raise Final(
            f"The ConfigMap {NAMESPACE}/{name} is no part of a journal that can be read ({what}). "
            "Put it back as it was; if it was never Replant's, take its label "
            f"{PART} away."
        ) from error


def _state_after(entries: Sequence[Entry]) -> State | None:
    if not any(it.mark in (Mark.END, Mark.UNDO) for it in entries):
        return None
    last = next(it for it in reversed(entries) if it.mark in (Mark.END, Mark.UNDO))
    if last.mark is Mark.UNDO:
        return State.UNFINISHED
    return State(last.why)


def _name(run_id: str, part: str, number: int | None = None) -> str:
    return f"replant-{run_id}-{part}" + ("" if number is None else f"-{number:04}")


def _config_map(run_id: str, part: str, number: int | None = None) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": _name(run_id, part, number),
            "namespace": NAMESPACE,
            "labels": {RUN: run_id, PART: part},
        },
    }
