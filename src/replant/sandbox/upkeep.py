"""What happens by itself as soon as something is written: definitions are served, namespaces end.

In a real cluster parts of the API server and the namespace controller do this. Whatever is to be
done follows from what is stored.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from replant.objects import Object
from replant.sandbox.changes import Deletion
from replant.sandbox.refusals import ApiError
from replant.sandbox.resources import BACKGROUND, DEFINITIONS, NAMESPACES, Registry
from replant.sandbox.shelves import DELETED, Entry, Event
from replant.sandbox.store import Store

FIRST_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")


class Upkeep:
    """Keeps a store in order, from the moment it is made."""

    def __init__(self, store: Store, registry: Registry, now: Callable[[], datetime]) -> None:
        self._store = store
        self._registry = registry
        self._now = now
        self._todo: deque[Event] = deque()
        self._busy = False
        store.subscribe(self._heard)
        for name in FIRST_NAMESPACES:
            store.create(NAMESPACES, {"metadata": {"name": name}})

    def _heard(self, event: Event) -> None:
        entry = event.entry
        leaves = event.type == DELETED and entry.namespace
        if not leaves and entry.resource not in (NAMESPACES, DEFINITIONS):
            return
        self._todo.append(event)
        if self._busy:
            return
        self._busy = True
        try:
            while self._todo:
                self._follow(self._todo.popleft())
        finally:
            self._busy = False

    def _follow(self, event: Event) -> None:
        entry = event.entry
        if entry.resource is DEFINITIONS:
            self._serve(event)
        elif entry.resource is NAMESPACES:
            if entry.fields.get("status.phase") == "Terminating" and event.type != DELETED:
                self._empty(entry.name)
        elif event.type == DELETED:
            self._end(entry.namespace)

    def _serve(self, event: Event) -> None:
        definition = event.entry.value()
        name = event.entry.name
        if event.type == DELETED:
            for resource in self._registry.forget(name):
                for entry in self._store.entries(resource):
                    self._delete(entry)
            return
        self._registry.define(definition)
        status = definition.setdefault("status", {})
        if not status.get("conditions"):
            self._store.update(DEFINITIONS, self._established(definition), "status")

    def _established(self, definition: Object) -> Object:
        time = self._now().strftime("%Y-%m-%dT%H:%M:%SZ")
        spec = definition["spec"]
        singular = {"singular": spec["names"]["kind"].lower()}
        said = (
            ("NamesAccepted", "NoConflicts", "no conflicts found"),
            ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        )
        definition["status"] = {
            "conditions": [
                {
                    "type": kind,
                    "status": "True",
                    "lastTransitionTime": time,
                    "reason": reason,
                    "message": message,
                }
                for kind, reason, message in said
            ],
            "acceptedNames": singular
            | {"listKind": f"{spec['names']['kind']}List"}
            | spec["names"],
            "storedVersions": [it["name"] for it in spec["versions"] if it.get("storage")],
        }
        return definition

    def _empty(self, namespace: str) -> None:
        for resource in list(self._registry):
            if resource.namespaced and resource.stored:
                for entry in self._store.entries(resource, namespace):
                    self._delete(entry)
        self._end(namespace)

    def _end(self, namespace: str) -> None:
        """Let a namespace go that is to go, once nothing is left in it."""
        found = self._store.find(NAMESPACES, namespace)
        if found is None or found.fields.get("status.phase") != "Terminating":
            return
        namespaced = (it for it in self._registry if it.namespaced and it.stored)
        if any(self._store.entries(it, namespace) for it in namespaced):
            return
        obj = found.value()
        obj["spec"]["finalizers"] = []
        self._store.update(NAMESPACES, obj, "finalize")

    def _delete(self, entry: Entry) -> None:
        # What was deleted along with something else need not be any more.
        with suppress(ApiError):
            how = Deletion(propagation=BACKGROUND)
            self._store.delete(entry.resource, entry.name, entry.namespace, how)
