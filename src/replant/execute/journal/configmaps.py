"""A journal in the cluster itself, so that another machine can go on.

A run is a few ConfigMaps: documents (the plan and how the cluster was, compressed and cut to size),
a head that says that all of them are there, and logs, each a batch of entries under a number. Every
write names the version of the log that it was made for, so two writers cannot both succeed.
"""

from __future__ import annotations

import gzip
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

import msgspec

from replant.cluster.ports import CONFIG_MAPS, Reader, Selected, Writer
from replant.errors import Conflict, Final, Refused, Uncertain
from replant.execute.census_model import Census
from replant.execute.insisting import Notice, insist
from replant.execute.journal.model import Entry, Header, Mark, Run, State, Summary
from replant.execute.namespace import NAMESPACE
from replant.execute.timing import Timing, written
from replant.objects import Object
from replant.plan.model import Plan

RUN, PART = "replant.dev/run", "replant.dev/journal"
_HEAD, _DOCUMENT, _LOG = "head", "document", "log"

DOCUMENT_BYTES = 700_000
"""In base64 it stays below the 1 MiB that a ConfigMap may have."""
LOG_BYTES = 64_000
"""Each batch writes its whole log anew, so logs are kept short."""
LARGEST_BATCH = 900_000


class _Document(msgspec.Struct, frozen=True):
    plan: Plan
    before: Census


class ConfigMapJournals:
    """All runs of one cluster."""

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
            header = msgspec.json.decode(head["data"]["header"], type=Header)
            state = State(head["metadata"]["labels"].get("replant.dev/state", State.UNFINISHED))
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
        head["metadata"]["labels"]["replant.dev/state"] = State.UNFINISHED
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
        patch = {"metadata": {"labels": {"replant.dev/state": state}}}

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
            except Conflict:
                name = config_map["metadata"]["name"]
                found: Object = msgspec.json.decode(
                    await self._reader.get(CONFIG_MAPS, name, namespace=NAMESPACE)
                )
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
            except (Conflict, Uncertain):
                # Perhaps it is ours that was written, and only the answer was lost.
                found: Object = msgspec.json.decode(
                    await self._reader.get(CONFIG_MAPS, metadata["name"], namespace=NAMESPACE)
                )
                if found["data"].get(key) == value:
                    return found
                if found["metadata"]["resourceVersion"] != metadata["resourceVersion"]:
                    raise Refused(_TAKEN) from None
                raise

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
            found += msgspec.json.decode(page.body)["items"]
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
        batch = msgspec.json.encode(list(entries)).decode()
        if len(batch) > LARGEST_BATCH:
            if len(entries) == 1:
                raise Final(f"An entry of the journal is too large: {entries[0].target}.")
            half = len(entries) // 2
            await self.write(entries[:half])
            await self.write(entries[half:])
            return
        if self._current is not None and self._size + len(batch) > LOG_BYTES:
            self._current = None
        key = f"{self._count:08}"
        if self._current is None:
            self._current = await self._new_log(key, batch)
        else:
            self._current = await self._journals.add(self._current, key, batch)
            self._size += len(batch)
        self._count += 1
        if state := _state_after(entries):
            await self._journals.set_state(self._run_id, state)

    async def _new_log(self, key: str, batch: str) -> Object:
        made = _config_map(self._run_id, _LOG, self._log)
        found = await self._journals.create_or_find({**made, "data": {key: batch}})
        if found.get("data") != {key: batch}:
            raise Refused(_TAKEN)
        self._log += 1
        self._size = len(batch)
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
    document = b""
    for number in range(int(head["data"]["documents"])):
        part = parts.get(_name(run_id, _DOCUMENT, number))
        if part is None:
            raise Final(
                f"The journal of run {run_id} is incomplete: the ConfigMap "
                f"{NAMESPACE}/{_name(run_id, _DOCUMENT, number)} is missing."
            )
        document += b64decode(part["binaryData"]["part"])
    batches = [batch for log in _logs(run_id, parts) for batch in _batches(log)]
    read = msgspec.json.decode(gzip.decompress(document), type=_Document)
    header = msgspec.json.decode(head["data"]["header"], type=Header)
    entries = [it for batch in batches for it in msgspec.json.decode(batch, type=list[Entry])]
    return Run(header, read.plan, read.before, entries)


def _logs(run_id: str, parts: Mapping[str, Object]) -> list[Object]:
    """The logs in their order, up to the first that is not there."""
    names = (_name(run_id, _LOG, number) for number in range(len(parts)))
    return list(takewhile(bool, (parts.get(it, {}) for it in names)))


def _batches(log: Object) -> list[str]:
    return [batch for _number, batch in sorted((log.get("data") or {}).items())]


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
