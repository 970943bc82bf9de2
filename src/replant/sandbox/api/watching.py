"""Watches: a stream of events, one JSON text on each line."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import replace

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from replant.objects import Object
from replant.sandbox.api import answers, reading, tables
from replant.sandbox.api.asking import JSON, Format, Target, number, truth, wanted_format
from replant.sandbox.api.selection import wanted
from replant.sandbox.refusals import ApiError
from replant.sandbox.resources import Resource
from replant.sandbox.shelves import ADDED, DELETED, MODIFIED_EVENT, Entry, Event, Wanted
from replant.sandbox.store import Store

BOOKMARK_EVERY = 60.0
LONGEST = 1800
INITIAL_END = {"k8s.io/initial-events-end": "true"}


class Bell:
    """Wakes those who watch when something happens, and sends them home when it is over."""

    def __init__(self, store: Store) -> None:
        self.closed = False
        self._sleepers: dict[str, set[asyncio.Event]] = {}
        store.subscribe(lambda event: self._ring(event.entry.resource.qualified))

    def _ring(self, which: str) -> None:
        for sleeper in self._sleepers.get(which, ()):
            sleeper.set()

    def close(self) -> None:
        """End all watches."""
        self.closed = True
        for which in self._sleepers:
            self._ring(which)

    def join(self, resource: Resource) -> tuple[asyncio.Event, Callable[[], None]]:
        """An event that is set whenever something happens; and how to leave again."""
        sleepers = self._sleepers.setdefault(resource.qualified, set())
        sleeper = asyncio.Event()
        sleepers.add(sleeper)
        return sleeper, lambda: sleepers.discard(sleeper)


def watch(store: Store, bell: Bell, request: Request, target: Target) -> Response:
    """What happens to the objects of a resource, from a version on."""
    how = wanted_format(request, store.now())
    reading.check_match(request)
    watcher = _Watcher(store, bell, target, wanted(request, target.resource, target.name), how)
    seconds = number(request, "timeoutSeconds") or LONGEST + random.randrange(LONGEST)  # noqa: S311
    asked = reading.version(request)
    initial = request.query_params.get("sendInitialEvents")
    # Without a version a watch begins with all that there is.
    whole = truth(request, "sendInitialEvents") if initial else not asked
    stream = watcher.stream(
        since=asked if asked and not whole else store.version,
        whole=whole,
        say_end=bool(initial) and whole,
        bookmarks=truth(request, "allowWatchBookmarks"),
        seconds=seconds,
    )
    media = f"{JSON};stream=watch" if how.shape else JSON
    return StreamingResponse(stream, media_type=media)


class _Watcher:
    def __init__(
        self, store: Store, bell: Bell, target: Target, selected: Wanted | None, how: Format
    ) -> None:
        self._store = store
        self._bell = bell
        self._target = target
        self._selected = selected
        self._how = how
        self._columns_sent = False

    async def stream(
        self, *, since: int, whole: bool, say_end: bool, bookmarks: bool, seconds: int
    ) -> AsyncIterator[bytes]:
        sleeper, leave = self._bell.join(self._target.resource)
        clock = asyncio.get_running_loop().time
        end = clock() + seconds
        next_bookmark = clock() + BOOKMARK_EVERY
        try:
            if whole:
                since = self._store.version
                yield self._initial(say_end, since)
            while not self._bell.closed:
                sleeper.clear()
                try:
                    happened = self._store.events(self._target.resource, since)
                except ApiError as error:
                    yield answers.line("ERROR", msgspec.json.encode(error.status()))
                    return
                since = self._store.version
                if lines := b"".join(map(self._line, happened)):
                    yield lines
                now = clock()
                if now >= end:
                    return
                if now >= next_bookmark:
                    # Also amid events: whoever sees none of them would else fall behind.
                    next_bookmark = now + BOOKMARK_EVERY
                    if bookmarks:
                        yield self._bookmark(since)
                # Not wait_for: Python 3.11's forgets a cancellation that comes with an event.
                with suppress(TimeoutError):
                    async with asyncio.timeout(min(end, next_bookmark) - now):
                        await sleeper.wait()
        finally:
            leave()

    def _initial(self, say_end: bool, version: int) -> bytes:
        there = self._store.entries(self._target.resource, self._target.namespace, self._selected)
        lines = [answers.line(ADDED, self._body(entry)) for entry in there]
        if say_end:
            lines.append(self._bookmark(version, INITIAL_END))
        return b"".join(lines)

    def _line(self, event: Event) -> bytes:
        """The event as it looks to someone who sees only what is selected."""
        if self._target.namespace not in {"", event.entry.namespace}:
            return b""
        kind = event.type
        if self._selected:
            is_in = event.type != DELETED and self._selected(event.entry)
            was_in = event.previous is not None and self._selected(event.previous)
            if not (is_in or was_in):
                return b""
            if event.previous is not None and not is_in:
                return answers.line(DELETED, self._body(_as_last_seen(event.previous, event.entry)))
            kind = MODIFIED_EVENT if was_in else ADDED
        return answers.line(kind, self._body(event.entry))

    def _body(self, entry: Entry) -> bytes:
        resource = self._target.resource
        if not self._how.shape:
            return answers.whole(entry, resource)
        metadata: Object = {"resourceVersion": str(entry.version)}
        how = replace(self._how, now=self._store.now())
        head, self._columns_sent = not self._columns_sent, True
        return msgspec.json.encode(answers.shaped(resource, [entry], how, metadata, head=head))

    def _bookmark(self, version: int, annotations: Object | None = None) -> bytes:
        resource = self._target.resource
        metadata: Object = {"resourceVersion": str(version), "creationTimestamp": None}
        if annotations:
            metadata["annotations"] = annotations
        obj: Object = {"kind": resource.kind, "apiVersion": resource.api_version}
        obj["metadata"] = metadata
        if self._how.shape == "Table":
            rows = [{"cells": [], "object": obj | tables.PARTIAL}]
            obj = tables.empty(metadata) | {"columnDefinitions": [], "rows": rows}
        return answers.line("BOOKMARK", msgspec.json.encode(obj))


def _as_last_seen(seen: Entry, now: Entry) -> Entry:
    """An object that is no longer selected, as it was when it still was."""
    obj = seen.value()
    obj["metadata"]["resourceVersion"] = str(now.version)
    return msgspec.structs.replace(seen, version=now.version, text=msgspec.json.encode(obj))
