"""Events: what controllers tell people about objects."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from datetime import datetime, timedelta
from hashlib import sha256

from replant.sandbox.clock import Clock
from replant.sandbox.refusals import ApiError
from replant.sandbox.resources import EVENTS, Resource
from replant.sandbox.shelves import Entry
from replant.sandbox.store import Store

NORMAL, WARNING = "Normal", "Warning"
KEPT = timedelta(hours=1)
"""So long an event is kept after it was last seen."""


class Recorder:
    """Writes events; the same one again only counts."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._expiring: deque[tuple[datetime, str, str]] = deque()

    def record(self, about: Entry, component: str, kind: str, reason: str, message: str) -> None:
        """Tell something about an object."""
        namespace = about.namespace or "default"
        digest = sha256(f"{about.uid}{component}{reason}{message}".encode()).hexdigest()[:16]
        name = f"{about.name}.{digest}"
        time = self._store.time()
        if found := self._store.find(EVENTS, name, namespace):
            again = found.value()
            again["count"] += 1
            again["lastTimestamp"] = time
            self._store.update(EVENTS, again)
            return
        event = {
            "metadata": {"name": name},
            "involvedObject": _reference(about.resource, about),
            "reason": reason,
            "message": message,
            "type": kind,
            "source": {"component": component},
            "firstTimestamp": time,
            "lastTimestamp": time,
            "count": 1,
        }
        # A namespace that ends takes no more events, and nobody misses them.
        with suppress(ApiError):
            self._store.create(EVENTS, event, namespace=namespace)
            self._expire_later(namespace, name)

    def _expire_later(self, namespace: str, name: str) -> None:
        if not self._expiring:
            self._clock.after(KEPT.total_seconds(), self._expire)
        self._expiring.append((self._clock.now() + KEPT, namespace, name))

    def _expire(self) -> None:
        while self._expiring and self._expiring[0][0] <= self._clock.now():
            _moment, namespace, name = self._expiring.popleft()
            with suppress(ApiError):
                self._store.delete(EVENTS, name, namespace)
        if self._expiring:
            self._clock.at(self._expiring[0][0], self._expire)


def _reference(resource: Resource, about: Entry) -> dict[str, str]:
    said = {"kind": resource.kind, "name": about.name, "uid": about.uid}
    if about.namespace:
        said["namespace"] = about.namespace
    return said | {"apiVersion": resource.api_version, "resourceVersion": str(about.version)}
