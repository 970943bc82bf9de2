"""The sandbox's objects, in memory, and the rules that hold for all of them.

The truth about an object is its JSON text; beside it stands the little that lists are asked by.
There is one counter of versions for everything, as there is one etcd behind a cluster. The store
knows no HTTP and has no clock of its own, and belongs to one thread: every call is done when it
returns, and whoever has subscribed has been told.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from replant.objects import Object
from replant.sandbox import defaults, ownership, validation
from replant.sandbox.ownership import Manager
from replant.sandbox.refusals import (
    EXPIRED_LIST,
    MODIFIED,
    Cause,
    already_exists,
    conflict,
    expired,
    forbidden,
    forbidden_value,
    from_the_future,
    invalid,
    not_found,
    too_old,
)
from replant.sandbox.resources import NAMESPACES, Resource
from replant.sandbox.structure import structure_of

ADDED, MODIFIED_EVENT, DELETED = "ADDED", "MODIFIED", "DELETED"
WINDOW = 10_000
"""So many events of a resource are remembered at least."""
SNAPSHOTS = 32
"""So many lists of a resource that are still being paged through are remembered."""
DEFAULT_GRACE = 30

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"
"""What a generated name ends in: nothing that could spell a word."""
_PROTECTED_NAMESPACES = {"default", "kube-system", "kube-public"}


class Entry(NamedTuple):
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


class Event(NamedTuple):
    """One change. A deleted object is as it was last, with the version of its deletion."""

    type: str
    entry: Entry
    previous: Entry | None


Entries = list[Entry]
Events = list[Event]
Objects = list[Object]
Listener = Callable[[Event], None]
Wanted = Callable[[Entry], bool]


@dataclass(frozen=True)
class Deletion:
    """How something is to be deleted."""

    grace_period: int | None = None
    uid: str = ""
    version: str = ""
    propagation: str = ""
    dry_run: bool = False


@dataclass(frozen=True)
class Page:
    """A part of a list, and where it goes on."""

    entries: list[Entry]
    version: int
    next_key: str = ""
    remaining: int | None = None


class _View:
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
        return [self.entries[key] for key in self.keys[span.start : span.stop]]


class _Shelf:
    """The objects of one resource, and what has happened to them."""

    def __init__(self) -> None:
        self.now = _View([], {})
        self.events: list[Event] = []
        self.forgotten = 0
        """The version up to which events are no longer known."""
        self._promised: list[int] = []
        """Versions that somebody pages through, and that are still the present one."""
        self._kept: OrderedDict[int, _View] = OrderedDict()

    def put(self, entry: Entry) -> None:
        self._keep_promises()
        key = entry.key
        if key not in self.now.entries:
            insort(self.now.keys, key)
        self.now.entries[key] = entry

    def remove(self, key: str) -> None:
        self._keep_promises()
        del self.now.entries[key]
        del self.now.keys[bisect_left(self.now.keys, key)]

    def log(self, event: Event, window: int) -> None:
        self.events.append(event)
        if len(self.events) > 2 * window:
            self.forgotten = self.events[-window - 1].entry.version
            del self.events[:-window]

    def after(self, version: int) -> list[Event]:
        place = bisect_right(self.events, version, key=lambda event: event.entry.version)
        return self.events[place:]

    def promise(self, version: int) -> None:
        """Somebody will ask for more of this version."""
        if version not in self._promised:
            self._promised.append(version)

    def _keep_promises(self) -> None:
        if self._promised:
            view = _View(list(self.now.keys), dict(self.now.entries))
            self._kept.update(dict.fromkeys(self._promised, view))
            self._promised.clear()
            while len(self._kept) > SNAPSHOTS:
                self._kept.popitem(last=False)

    def as_of(self, version: int) -> _View:
        """How it was at a version, or is if none is named; ApiError if that is forgotten."""
        if version <= 0 or not self.events or self.events[-1].entry.version <= version:
            return self.now
        if version not in self._kept:
            raise expired(EXPIRED_LIST)
        self._kept.move_to_end(version)
        return self._kept[version]


class Store:
    """All objects of a sandbox. What is handed in belongs to the store from then on."""

    def __init__(
        self, now: Callable[[], datetime], new_uid: Callable[[], str], window: int = WINDOW
    ) -> None:
        self.now = now
        self._new_uid = new_uid
        self._window = window
        self._shelves: dict[str, _Shelf] = {}
        self._listeners: list[Listener] = []
        self.version = 1
        self._second = now().replace(microsecond=0)
        self._second_written = _written(self._second)

    # Reading

    def entry(self, resource: Resource, name: str, namespace: str = "") -> Entry:
        """An object with its text; ApiError if there is none."""
        found = self.find(resource, name, namespace)
        if found is None:
            raise not_found(resource, name)
        return found

    def find(self, resource: Resource, name: str, namespace: str = "") -> Entry | None:
        """An object with its text, or None."""
        there = self._shelf(resource).now.entries
        return there.get(f"{namespace}/{name}" if namespace else name)

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object:
        """An object, built anew; ApiError if there is none."""
        return self.entry(resource, name, namespace).value()

    def list(
        self, resource: Resource, namespace: str = "", wanted: Wanted | None = None
    ) -> Objects:
        """The objects of a resource, built anew, in order."""
        return [it.value() for it in self.entries(resource, namespace, wanted)]

    def entries(
        self, resource: Resource, namespace: str = "", wanted: Wanted | None = None
    ) -> Entries:
        """The same as they are stored."""
        view = self._shelf(resource).now
        there = view.take(view.span(namespace, ""))
        return [it for it in there if wanted(it)] if wanted else there

    def page(
        self,
        resource: Resource,
        namespace: str = "",
        wanted: Wanted | None = None,
        limit: int = 0,
        start: str = "",
        at: int = 0,
    ) -> Page:
        """A part of a list, from ``start`` on, as everything was at version ``at``."""
        shelf = self._shelf(resource)
        version = at if at > 0 else self.version
        view = shelf.as_of(at)
        span = view.span(namespace, start)
        taken = min(limit or len(span), len(span))
        if wanted is None:
            page, rest = view.take(span[:taken]), span[taken:]
        else:
            page, rest = _selected(view, span, wanted, limit)
        if not rest:
            return Page(page, version)
        if at <= 0:
            shelf.promise(version)
        return Page(page, version, view.keys[rest.start], None if wanted else len(rest))

    # Watching

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Have ``listener`` called with every change, once it is done; the answer ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def events(self, resource: Resource, since: int) -> Events:
        """What has happened to a resource's objects since a version; ApiError if it is too old."""
        shelf = self._shelf(resource)
        if since < shelf.forgotten:
            raise too_old(since, shelf.forgotten)
        if since > self.version:
            raise from_the_future(since, self.version)
        return shelf.after(since)

    # Writing

    def create(
        self,
        resource: Resource,
        obj: Object,
        *,
        namespace: str = "",
        manager: Manager | None = None,
        as_it_was: bool = False,
        dry_run: bool = False,
    ) -> Entry:
        """Store a new object; as it was, for whoever sets a scene rather than plays in it.

        As it was means with its status, its uid and its age, where it says them.
        """
        metadata = obj["metadata"] = dict(obj.get("metadata") or {})
        if resource.namespaced:
            metadata["namespace"] = namespace or metadata.get("namespace") or "default"
            self._check_namespace(resource, metadata)
        else:
            metadata.pop("namespace", None)
        said = dict(metadata) if as_it_was else {}
        uid = said.get("uid") or self._new_uid()
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = metadata["generateName"] + _suffix(uid)
        for unsaid in _SERVER_SAYS:
            metadata.pop(unsaid, None)
        defaults.fill(resource, obj)
        if not ((as_it_was and "status" in obj) or resource.status_on_create):
            if resource.status:
                obj.pop("status", None)
            defaults.first_status(resource, obj)
        name = str(metadata.get("name") or "")
        causes = validation.metadata_causes(resource, metadata)
        causes += validation.content_causes(resource, obj)
        if causes:
            raise invalid(resource, name, causes)
        if self.find(resource, name, metadata.get("namespace", "")):
            raise already_exists(resource, name)
        metadata["uid"] = uid
        time = self.time()
        metadata["creationTimestamp"] = said.get("creationTimestamp") or time
        if resource.generation:
            metadata["generation"] = said.get("generation") or 1
        if manager is not None and manager.operation != ownership.APPLY:
            self._track(resource, None, obj, manager, time)
        return self._write(resource, obj, None, dry_run=dry_run)

    def update(
        self,
        resource: Resource,
        obj: Object,
        subresource: str = "",
        *,
        manager: Manager | None = None,
        dry_run: bool = False,
    ) -> Entry:
        """Store an object anew. Where it says its uid or resourceVersion, they must be right."""
        said = obj["metadata"]
        namespace = said.get("namespace", "") if resource.namespaced else ""
        old_entry = self.entry(resource, said["name"], namespace)
        old = old_entry.value()
        self._check_same(resource, obj, old_entry)
        new = _taken_over(resource, old, obj, subresource)
        if subresource != "status":
            defaults.fill(resource, new)
        self._check_update(resource, old, new, subresource)
        if resource.generation and subresource != "status" and _wants(old) != _wants(new):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        if manager is None or manager.operation != ownership.APPLY:
            self._track(resource, old, new, manager, self.time())
        if ownership.same_but_for_times(old, new):
            return old_entry
        if _is_gone(new):
            return self._remove(resource, old_entry, new, dry_run=dry_run)
        return self._write(resource, new, old_entry, dry_run=dry_run)

    def delete(
        self, resource: Resource, name: str, namespace: str = "", how: Deletion | None = None
    ) -> tuple[Entry, bool]:
        """Delete an object, and tell whether it is gone; or else, what has to happen first."""
        how = how or Deletion()
        entry = self.entry(resource, name, namespace)
        _check_preconditions(resource, entry, how)
        if resource is NAMESPACES and name in _PROTECTED_NAMESPACES:
            raise forbidden(resource, name, "this namespace may not be deleted")
        obj = entry.value()
        metadata = obj["metadata"]
        grace = _grace(resource, obj, how.grace_period)
        finalizers = _with_propagation(metadata.get("finalizers") or [], how.propagation)
        waits = _spec_finalizers(resource, obj)
        if not finalizers and not grace and not waits:
            return self._remove(resource, entry, obj, dry_run=how.dry_run), True
        if "deletionTimestamp" in metadata and grace >= metadata.get(
            "deletionGracePeriodSeconds", 0
        ):
            return entry, False
        if finalizers:
            metadata["finalizers"] = finalizers
        metadata["deletionTimestamp"] = _written(self.now() + timedelta(seconds=grace))
        if not waits:
            metadata["deletionGracePeriodSeconds"] = grace
        else:
            obj.setdefault("status", {})["phase"] = "Terminating"
        if resource.generation:
            metadata["generation"] = metadata.get("generation", 0) + 1
        return self._write(resource, obj, entry, dry_run=how.dry_run), False

    # How

    def _shelf(self, resource: Resource) -> _Shelf:
        shelf = self._shelves.get(resource.qualified)
        if shelf is None:
            shelf = self._shelves[resource.qualified] = _Shelf()
        return shelf

    def time(self) -> str:
        """Now, as objects say it."""
        second = self.now().replace(microsecond=0)
        if second != self._second:
            # Much is written in a second, and most of the time it would take is this.
            self._second, self._second_written = second, _written(second)
        return self._second_written

    def _check_namespace(self, resource: Resource, metadata: Object) -> None:
        namespace = metadata["namespace"]
        found = self.find(NAMESPACES, namespace)
        if found is None:
            raise not_found(NAMESPACES, namespace)
        if found.fields.get("status.phase") == "Terminating":
            raise forbidden(
                resource,
                str(metadata.get("name", "")),
                f"unable to create new content in namespace {namespace} because it is being "
                "terminated",
            )

    def _check_same(self, resource: Resource, obj: Object, entry: Entry) -> None:
        said = obj["metadata"]
        if (uid := said.get("uid")) and uid != entry.uid:
            why = (
                f"Precondition failed: UID in precondition: {uid}, UID in object meta: {entry.uid}"
            )
            raise conflict(resource, entry.name, why)
        if (version := said.get("resourceVersion")) and version != str(entry.version):
            raise conflict(resource, entry.name, MODIFIED)

    def _check_update(self, resource: Resource, old: Object, new: Object, subresource: str) -> None:
        metadata = new["metadata"]
        if subresource == "status" and metadata == old["metadata"]:
            return
        causes = validation.metadata_causes(resource, metadata)
        causes += _new_finalizers(old["metadata"], metadata)
        if not subresource:
            causes += validation.content_causes(resource, new)
            causes += validation.change_causes(resource, old, new)
        if causes:
            raise invalid(resource, metadata["name"], causes)

    def _track(
        self,
        resource: Resource,
        old: Object | None,
        new: Object,
        manager: Manager | None,
        time: str,
    ) -> None:
        seen = {name: it for name, it in new.items() if name != "status"} if old is None else new
        ownership.track(old, seen, manager, time, structure_of(resource))

    def _write(
        self, resource: Resource, obj: Object, old: Entry | None, *, dry_run: bool = False
    ) -> Entry:
        metadata = obj["metadata"]
        if dry_run:
            if old is None:
                metadata.pop("resourceVersion", None)
            return _entry(resource, obj, old.version if old else 0)
        self.version += 1
        metadata["resourceVersion"] = str(self.version)
        entry = _entry(resource, obj, self.version)
        shelf = self._shelf(resource)
        shelf.put(entry)
        self._tell(shelf, Event(MODIFIED_EVENT if old else ADDED, entry, old))
        return entry

    def _remove(self, resource: Resource, old: Entry, last: Object, *, dry_run: bool) -> Entry:
        if dry_run:
            return old
        self.version += 1
        last["metadata"]["resourceVersion"] = str(self.version)
        entry = _entry(resource, last, self.version)
        shelf = self._shelf(resource)
        shelf.remove(old.key)
        self._tell(shelf, Event(DELETED, entry, old))
        return entry

    def _tell(self, shelf: _Shelf, event: Event) -> None:
        shelf.log(event, self._window)
        for listener in list(self._listeners):
            listener(event)


def _selected(view: _View, span: range, wanted: Wanted, limit: int) -> tuple[list[Entry], range]:
    """Up to so many that are wanted, and the places from the next one of them on."""
    page: list[Entry] = []
    for place in span:
        entry = view.entries[view.keys[place]]
        if wanted(entry):
            if limit and len(page) == limit:
                return page, range(place, span.stop)
            page.append(entry)
    return page, range(0)


def _entry(resource: Resource, obj: Object, version: int) -> Entry:
    metadata = obj["metadata"]
    api_version = resource.api_version
    if resource.custom and resource.storage_version:
        api_version = f"{resource.group}/{resource.storage_version}"
    # These two stand first, so that a list, which says them once, can leave them out.
    ordered = {"kind": resource.kind, "apiVersion": api_version} | {
        name: value for name, value in obj.items() if name not in {"kind", "apiVersion"}
    }
    return Entry(
        resource,
        metadata.get("namespace", ""),
        metadata["name"],
        metadata["uid"],
        version,
        metadata.get("labels") or {},
        {name: _as_field(validation.at(obj, path)) for name, path in resource.fields.items()},
        _encode(ordered),
    )


def _as_field(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _suffix(uid: str) -> str:
    number = int(uid.replace("-", "")[:12], 16)
    return "".join(_SUFFIX[number // len(_SUFFIX) ** place % len(_SUFFIX)] for place in range(5))


def _written(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _taken_over(resource: Resource, old: Object, new: Object, subresource: str) -> Object:
    """The new object, with everything of the old one that may not be said this way."""
    before, said = old["metadata"], new["metadata"]
    if subresource == "status" and resource.custom:
        said = before | {"managedFields": said.get("managedFields")}
    metadata = {name: value for name, value in said.items() if value not in (None, [], {})}
    for name in _FIXED:
        metadata.pop(name, None)
        if name in before:
            metadata[name] = before[name]
    if "managedFields" not in said and "managedFields" in before:
        metadata["managedFields"] = before["managedFields"]
    taken = new
    if subresource in {"status", "finalize"}:
        part = "status" if subresource == "status" else "spec"
        taken = {name: value for name, value in old.items() if name != part}
        if part in new:
            taken[part] = new[part]
    elif resource.status:
        taken = {name: value for name, value in new.items() if name != "status"}
        if "status" in old:
            taken["status"] = old["status"]
    own = {"kind": old["kind"], "apiVersion": old["apiVersion"]}
    return {**taken, **own, "metadata": metadata}


_SERVER_SAYS = (
    "uid", "generation", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink",
    "resourceVersion",
)  # fmt: skip
_FIXED = (
    "name", "namespace", "uid", "creationTimestamp", "generation", "generateName",
    "deletionTimestamp", "deletionGracePeriodSeconds", "resourceVersion", "selfLink",
)  # fmt: skip


def _wants(obj: Object) -> Object:
    unwanted = {"metadata", "status", "kind", "apiVersion"}
    return {name: value for name, value in obj.items() if name not in unwanted}


def _new_finalizers(before: Object, after: Object) -> Iterator[Cause]:
    if "deletionTimestamp" not in before:
        return
    known = before.get("finalizers") or ()
    if added := [it for it in after.get("finalizers") or () if it not in known]:
        listed = ", ".join(f'"{it}"' for it in added)
        yield forbidden_value(
            "metadata.finalizers",
            "no new finalizers can be added if the object is being deleted, found new "
            f"finalizers []string{{{listed}}}",
        )


def _spec_finalizers(resource: Resource, obj: Object) -> bool:
    return resource is NAMESPACES and bool((obj.get("spec") or {}).get("finalizers"))


def _is_gone(obj: Object) -> bool:
    """Whether nothing keeps an object any more that is being deleted."""
    metadata = obj["metadata"]
    if "deletionTimestamp" not in metadata or metadata.get("finalizers"):
        return False
    if obj.get("kind") == NAMESPACES.kind:
        return not (obj.get("spec") or {}).get("finalizers")
    return not metadata.get("deletionGracePeriodSeconds")


def _grace(resource: Resource, obj: Object, asked: int | None) -> int:
    """How many seconds an object is given to end."""
    if resource.kind != "Pod" or resource.custom:
        return 0
    spec = obj.get("spec") or {}
    if not spec.get("nodeName") or (obj.get("status") or {}).get("phase") in {
        "Succeeded",
        "Failed",
    }:
        return 0
    if asked is None:
        asked = spec.get("terminationGracePeriodSeconds", DEFAULT_GRACE)
    return max(int(asked), 0)


def _with_propagation(finalizers: list[str], propagation: str) -> list[str]:
    added = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}.get(propagation)
    return finalizers if added is None or added in finalizers else [*finalizers, added]


def _check_preconditions(resource: Resource, entry: Entry, how: Deletion) -> None:
    why = ""
    if how.uid and how.uid != entry.uid:
        why = (
            f"the UID in the precondition ({how.uid}) does not match the UID in record "
            f"({entry.uid}). The object might have been deleted and then recreated"
        )
    elif how.version and how.version != str(entry.version):
        why = (
            f"the ResourceVersion in the precondition ({how.version}) does not match the "
            f"ResourceVersion in record ({entry.version}). The object might have been modified"
        )
    if why:
        raise conflict(resource, entry.name, why, by_kind=True)
