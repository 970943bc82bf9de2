"""An API server that lags behind: it answers with what was true some time ago."""

from __future__ import annotations

from collections import deque
from datetime import datetime, timedelta

from replant.cluster.answers import Answer, Request
from replant.sandbox.api.app import Api
from replant.sandbox.server import VERSION, Sandbox
from replant.sandbox.shelves import DELETED, Event
from replant.sandbox.store import Store
from tests.faults.nearby import answer_of


class _Copy(Store):
    """A store that is told what happened to another, and when it may know."""

    def take(self, event: Event) -> None:
        shelf = self._shelves[event.entry.resource.qualified]
        if event.type == DELETED:
            shelf.remove(event.entry.key)
        else:
            shelf.put(event.entry)
        self.version = event.entry.version


class Behind:
    """Follows a sandbox's store, late."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._clock = sandbox.clock
        self._copy = _Copy(sandbox.clock.now, lambda: "")
        controls = sandbox.api.controls
        version = controls.version if controls else VERSION
        self._app = Api(self._copy, sandbox.registry, version).app()
        self._pending: deque[tuple[datetime, Event]] = deque()
        for resource in sandbox.registry:
            for entry in sandbox.store.entries(resource):
                self._copy.take(Event("ADDED", entry, None))
        self._copy.version = sandbox.store.version
        sandbox.store.subscribe(lambda event: self._pending.append((self._clock.now(), event)))

    async def ask(self, request: Request, lag: float) -> Answer:
        """What it answers, so many seconds late at most."""
        until = self._clock.now() - timedelta(seconds=lag)
        while self._pending and self._pending[0][0] <= until:
            self._copy.take(self._pending.popleft()[1])
        return await answer_of(self._app, request)
