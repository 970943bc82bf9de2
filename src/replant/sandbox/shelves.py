"""The objects of one resource as they are kept: texts in order, and what has happened to them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from replant.objects import Object
from replant.sandbox.refusals import EXPIRED_LIST, expired
from replant.sandbox.resources import Path, Resource

ADDED, MODIFIED_EVENT, DELETED = "ADDED", "MODIFIED", "DELETED"
NODE_NAME = "spec.nodeName"
"""The one field that kubelets, and whoever drains, ask for again and again."""
SNAPSHOTS = 32
"""So many lists of a resource that are still being paged through are remembered."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One object: its text, and what is asked about it without reading that."""

    resource: Resource
    namespace: str
    name: str
    uid: str
    version: int
    labels: Mapping[str, str]
    fields: Mapping[str, str]
    text: bytes

    @property
    def key(self) -> str:
        """Its place among its kind, by which lists are in order."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    def value(self) -> Object:
        """The object itself, built anew: the caller may do with it what it likes."""
        built: Object = _decode(self.text)
        return built


class Event(msgspec.Struct, frozen=True, gc=False):
    """One change. A deleted object is as it was last, with the version of its deletion."""

    type: str
    entry: Entry
    previous: Entry | None


Entries = list[Entry]
Events = list[Event]
Objects = list[Object]
Listener = Callable[[Event], None]
Wanted = Callable[[Entry], bool]


class View:
    """The objects of one resource in order: as they are, or as they were."""

    __slots__ = ("entries", "keys")

    def __init__(self, keys: list[str], entries: dict[str, Entry]) -> None:
        self.keys = keys
        self.entries = entries

    def span(self, namespace: str, start: str) -> range:
        """The places of what is in a namespace, or anywhere, from a key on."""
        # A slash is followed by a zero, so this is behind every name in the namespace.
        first = bisect_left(self.keys, max(start, f"{namespace}/" if namespace else ""))
        last = bisect_left(self.keys, f"{namespace}0") if namespace else len(self.keys)
        return range(first, max(first, last))

    def take(self, span: range) -> list[Entry]:
        """What stands in these places."""
        return [self.entries[key] for key in self.keys[span.start : span.stop]]


class Shelf:
    """The objects of one resource, and what has happened to them."""

    def __init__(self) -> None:
        self.now = View([], {})
        self.events: list[Event] = []
        self.forgotten = 0
        """The version up to which events are no longer known."""
        self._promised: list[int] = []
        """Versions that somebody pages through, and that are still the present one."""
        self._kept: OrderedDict[int, View] = OrderedDict()
        self._on_nodes: dict[str, set[str]] = {}
        """By node, the keys of what is there."""

    def put(self, entry: Entry) -> None:
        """Keep an object, in place of what it was before."""
        self._keep_promises()
        key = entry.key
        before = self.now.entries.get(key)
        if before is None:
            insort(self.now.keys, key)
        self.now.entries[key] = entry
        if NODE_NAME in entry.fields:
            self._move(key, before.fields[NODE_NAME] if before else "", entry.fields[NODE_NAME])

    def remove(self, key: str) -> None:
        """Keep it no longer."""
        self._keep_promises()
        before = self.now.entries.pop(key)
        del self.now.keys[bisect_left(self.now.keys, key)]
        self._move(key, before.fields.get(NODE_NAME, ""), "")

    def on_node(self, node: str, span: range) -> list[int]:
        """Those of some places, as things are now, where something of a node stands."""
        places = (bisect_left(self.now.keys, key) for key in self._on_nodes.get(node, ()))
        return sorted(place for place in places if place in span)

    def _move(self, key: str, before: str, after: str) -> None:
        if before == after:
            return
        if before:
            self._on_nodes[before].discard(key)
        if after:
            self._on_nodes.setdefault(after, set()).add(key)

    def log(self, event: Event, window: int) -> None:
        """Remember what has happened, and forget what is long past."""
        self.events.append(event)
        if len(self.events) > 2 * window:
            self.forgotten = self.events[-window - 1].entry.version
            del self.events[:-window]

    def after(self, version: int) -> list[Event]:
        """What has happened since a version."""
        place = bisect_right(self.events, version, key=lambda event: event.entry.version)
        return self.events[place:]

    def promise(self, version: int) -> None:
        """Somebody will ask for more of this version."""
        if version not in self._promised:
            self._promised.append(version)

    def _keep_promises(self) -> None:
        if self._promised:
            view = View(list(self.now.keys), dict(self.now.entries))
            self._kept.update(dict.fromkeys(self._promised, view))
            self._promised.clear()
            while len(self._kept) > SNAPSHOTS:
                self._kept.popitem(last=False)

    def as_of(self, version: int) -> View:
        """How it was at a version, or is if none is named; ApiError if that is forgotten."""
        if version <= 0 or not self.events or self.events[-1].entry.version <= version:
            return self.now
        if version not in self._kept:
            raise expired(EXPIRED_LIST)
        self._kept.move_to_end(version)
        return self._kept[version]


def selected(
    view: View, places: Sequence[int], wanted: Wanted, limit: int
) -> tuple[list[Entry], range]:
    """Up to so many that are wanted, and the places from the next one of them on."""
    page: list[Entry] = []
    for place in places:
        entry = view.entries[view.keys[place]]
        if wanted(entry):
            if limit and len(page) == limit:
                return page, range(place, places[-1] + 1)
            page.append(entry)
    return page, range(0)


def entry_of(resource: Resource, obj: Object, version: int) -> Entry:
    """An object as it is kept."""
    metadata = obj["metadata"]
    api_version = resource.api_version
    if resource.custom and resource.storage_version:
        api_version = f"{resource.group}/{resource.storage_version}"
    own = {"kind": resource.kind, "apiVersion": api_version}
    return Entry(
        resource,
        metadata.get("namespace", ""),
        metadata["name"],
        metadata["uid"],
        version,
        metadata.get("labels") or {},
        {name: _field(obj, path) for name, path in resource.fields.items()},
        # These two stand first, so that a list, which says them once, can leave them out.
        _encode({**own, **obj, **own}),
    )


def _field(obj: Object, path: Path) -> str:
    value: Any = obj
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
