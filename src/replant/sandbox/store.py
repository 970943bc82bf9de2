"""The sandbox's objects, in memory, and the rules that hold for all of them.

The truth about an object is its JSON text; beside it stands the little that lists are asked by.
There is one counter of versions for everything, as there is one etcd behind a cluster. The store
knows no HTTP and has no clock of its own, and belongs to one thread: every call is done when it
returns, and whoever has subscribed has been told.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from replant.objects import Object
from replant.sandbox import changes, defaults, ownership, validation
from replant.sandbox.changes import Deletion
from replant.sandbox.ownership import Manager
from replant.sandbox.refusals import (
    MODIFIED,
    Cause,
    already_exists,
    conflict,
    forbidden,
    from_the_future,
    invalid,
    not_found,
    too_old,
)
from replant.sandbox.resources import (
    NAMESPACES,
    PERSISTENT_VOLUME_CLAIMS,
    STORAGE_CLASSES,
    Resource,
)
from replant.sandbox.shelves import (
    ADDED,
    DELETED,
    MODIFIED_EVENT,
    Entries,
    Entry,
    Event,
    Events,
    Listener,
    Objects,
    Shelf,
    Wanted,
    entry_of,
    selected,
)
from replant.sandbox.structure import structure_of
from replant.sandbox.validation import storage

WINDOW = 10_000
"""So many events of a resource are remembered at least."""
_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"
"""What a generated name ends in: nothing that could spell a word."""
_LEAVE_DEFAULTS = {"status", "binding"}
"""Who writes through these says nothing that has a default."""
_PROTECTED_NAMESPACES = {"default", "kube-system", "kube-public"}


@dataclass(frozen=True)
class Page:
    """A part of a list, and where it goes on."""

    entries: list[Entry]
    version: int
    next_key: str = ""
    remaining: int | None = None


class Store:
    """All objects of a sandbox. What is handed in belongs to the store from then on."""

    def __init__(
        self, now: Callable[[], datetime], new_uid: Callable[[], str], window: int = WINDOW
    ) -> None:
        self.now = now
        self._new_uid = new_uid
        self._window = window
        self._shelves: defaultdict[str, Shelf] = defaultdict(Shelf)
        self._listeners: tuple[Listener, ...] = ()
        self.admit: Callable[[Resource, Object], None] = lambda _resource, _obj: None
        """Completes what is created, or refuses it; not what was there all along."""
        self.version = 1
        self._moment = now()
        self._moment_written = _written(self._moment)

    # Reading

    def entry(self, resource: Resource, name: str, namespace: str = "") -> Entry:
        """An object with its text; ApiError if there is none."""
        found = self.find(resource, name, namespace)
        if found is None:
            raise not_found(resource, name)
        return found

    def find(self, resource: Resource, name: str, namespace: str = "") -> Entry | None:
        """An object with its text, or None."""
        there = self._shelves[resource.qualified].now.entries
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
        view = self._shelves[resource.qualified].now
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
        node: str = "",
    ) -> Page:
        """A part of a list, from ``start`` on, as everything was at version ``at``.

        Whoever wants only what is on a node may say so, and is answered sooner.
        """
        shelf = self._shelves[resource.qualified]
        version = at if at > 0 else self.version
        view = shelf.as_of(at)
        span = view.span(namespace, start)
        taken = min(limit or len(span), len(span))
        if wanted is None:
            page, rest = view.take(span[:taken]), span[taken:]
        else:
            places = shelf.on_node(node, span) if node and view is shelf.now else span
            page, rest = selected(view, places, wanted, limit)
        if not rest:
            return Page(page, version)
        if at <= 0:
            shelf.promise(version)
        return Page(page, version, view.keys[rest.start], None if wanted else len(rest))

    # Watching

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Have ``listener`` called with every change, once it is done; the answer ends that."""
        self._listeners += (listener,)

        def end() -> None:
            self._listeners = tuple(it for it in self._listeners if it is not listener)

        return end

    def events(self, resource: Resource, since: int) -> Events:
        """What has happened to a resource's objects since a version; ApiError if it is too old."""
        shelf = self._shelves[resource.qualified]
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
        self._place(resource, metadata, namespace)
        said = dict(metadata) if as_it_was else {}
        uid = said.get("uid") or self._new_uid()
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = metadata["generateName"] + _suffix(uid)
        for unsaid in changes.SERVER_SAYS:
            metadata.pop(unsaid, None)
        defaults.fill(resource, obj)
        if not ((as_it_was and "status" in obj) or resource.status_on_create):
            if resource.status:
                obj.pop("status", None)
            defaults.first_status(resource, obj)
        name = str(metadata.get("name") or "")
        causes = validation.metadata_causes(resource, metadata)
        causes += validation.content_causes(resource, obj, ours=manager is None)
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
        if not as_it_was:
            # Whoever creates an object is not said to manage what is completed in it.
            self.admit(resource, obj)
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
        new = changes.taken_over(resource, old, obj, subresource)
        if subresource not in _LEAVE_DEFAULTS or resource.custom:
            defaults.fill(resource, new)
        self._check_update(resource, old, new, subresource, ours=manager is None)
        if (
            resource.generation
            and subresource != "status"
            and changes.wanted(old) != changes.wanted(new)
        ):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        if manager is None or manager.operation != ownership.APPLY:
            self._track(resource, old, new, manager, self.time())
        if ownership.same_but_for_times(old, new):
            return old_entry
        if changes.is_gone(new):
            return self._remove(resource, old_entry, new, dry_run=dry_run)
        return self._write(resource, new, old_entry, dry_run=dry_run)

    def delete(
        self, resource: Resource, name: str, namespace: str = "", how: Deletion | None = None
    ) -> tuple[Entry, bool]:
        """Delete an object, and tell whether it is gone; or else, what has to happen first."""
        how = how or Deletion()
        entry = self.entry(resource, name, namespace)
        changes.check_preconditions(resource, entry, how)
        if resource is NAMESPACES and name in _PROTECTED_NAMESPACES:
            raise forbidden(resource, name, "this namespace may not be deleted")
        obj = entry.value()
        metadata = obj["metadata"]
        pending = changes.pending_grace(resource, metadata)
        if pending is not None and (how.grace_period is None or how.grace_period >= pending):
            return entry, False
        grace = changes.grace(resource, obj, how.grace_period)
        finalizers = changes.finalizers_of_deletion(resource, metadata, how)
        waits = changes.spec_finalizers(resource, obj)
        if not finalizers and not grace and not waits:
            return self._remove(resource, entry, obj, dry_run=how.dry_run), True
        going = "deletionTimestamp" in metadata
        if going and (waits or (pending is None and finalizers == metadata.get("finalizers"))):
            return entry, False
        metadata.pop("finalizers", None)
        if finalizers:
            metadata["finalizers"] = finalizers
        if not going or pending is not None:
            metadata["deletionTimestamp"] = _written(self.now() + timedelta(seconds=grace))
        if not waits:
            metadata["deletionGracePeriodSeconds"] = grace
        else:
            obj.setdefault("status", {})["phase"] = "Terminating"
        if resource.generation and not going:
            metadata["generation"] = metadata.get("generation", 0) + 1
        return self._write(resource, obj, entry, dry_run=how.dry_run), False

    # How

    def time(self) -> str:
        """Now, as objects say it."""
        moment = self.now()
        if moment != self._moment:
            # Much is written while a virtual clock stands still, and all of it says when.
            self._moment, self._moment_written = moment, _written(moment)
        return self._moment_written

    def _place(self, resource: Resource, metadata: Object, namespace: str) -> None:
        """Put a new object into a namespace that takes it, or into none."""
        if not resource.namespaced:
            metadata.pop("namespace", None)
            return
        namespace = metadata["namespace"] = namespace or metadata.get("namespace") or "default"
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

    def _check_update(
        self, resource: Resource, old: Object, new: Object, subresource: str, *, ours: bool
    ) -> None:
        metadata = new["metadata"]
        causes: list[Cause] = []
        if metadata != old["metadata"]:
            causes += validation.metadata_causes(resource, metadata)
            causes += changes.new_finalizers(old["metadata"], metadata)
        if not subresource or resource.custom:
            causes += validation.content_causes(resource, new, ours=ours)
            causes += validation.change_causes(resource, old, new)
        if causes:
            raise invalid(resource, metadata["name"], causes)
        if resource is PERSISTENT_VOLUME_CLAIMS and not subresource and storage.grows(old, new):
            self._check_growth(new)

    def _check_growth(self, claim: Object) -> None:
        found = self.find(STORAGE_CLASSES, storage.class_of(claim))
        if found is None or found.value().get("allowVolumeExpansion") is not True:
            raise forbidden(
                PERSISTENT_VOLUME_CLAIMS,
                claim["metadata"]["name"],
                "only dynamically provisioned pvc can be resized and the storageclass that "
                "provisions the pvc must support resize",
            )

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
            return entry_of(resource, obj, old.version if old else 0)
        self.version += 1
        metadata["resourceVersion"] = str(self.version)
        entry = entry_of(resource, obj, self.version)
        shelf = self._shelves[resource.qualified]
        shelf.put(entry)
        self._tell(shelf, Event(MODIFIED_EVENT if old else ADDED, entry, old))
        return entry

    def _remove(self, resource: Resource, old: Entry, last: Object, *, dry_run: bool) -> Entry:
        if dry_run:
            return old
        self.version += 1
        last["metadata"]["resourceVersion"] = str(self.version)
        entry = entry_of(resource, last, self.version)
        shelf = self._shelves[resource.qualified]
        shelf.remove(old.key)
        self._tell(shelf, Event(DELETED, entry, old))
        return entry

    def _tell(self, shelf: Shelf, event: Event) -> None:
        shelf.log(event, self._window)
        for listener in self._listeners:
            listener(event)


def _suffix(uid: str) -> str:
    number = int(uid.replace("-", "")[:12], 16)
    return "".join(_SUFFIX[number // len(_SUFFIX) ** place % len(_SUFFIX)] for place in range(5))


def _written(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
