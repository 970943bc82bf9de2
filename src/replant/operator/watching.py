"""kopf watches; what it hears of is called by name. Nothing is written by it.

Of kopf only what leaves no trace is used: its handlers of changes would keep their progress in
annotations and finalizers of objects that are not ours, and a steady state would not be one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable
from dataclasses import asdict
from typing import Any

import kopf

from replant.cluster.connection import Connection
from replant.cluster.ports import Resource
from replant.objects import Object

PAGE = 500
CONNECT_TIMEOUT = 30.0

Heard = Callable[[Resource, str, Object | None], None]
"""Told an object's kind, its name, and what it is now; None if it is gone."""


async def watch(
    resources: Iterable[Resource],
    connection: Connection,
    heard: Heard,
    *,
    stop: asyncio.Event,
    ready: asyncio.Event | None = None,
    namespaces: Collection[str] = (),
) -> None:
    """Tell of every object of some kinds, and whenever one changes, until stopped or interrupted.

    The kinds have to be served. Where namespaces are named, all others are left out.
    """
    registry = kopf.OperatorRegistry()
    fresh = True

    @kopf.on.login(registry=registry)
    async def log_in(**_more: Any) -> kopf.ConnectionInfo:
        nonlocal fresh
        if not fresh:
            await connection.open()  # asked again: what we had was not accepted any more
        fresh = False
        return kopf.ConnectionInfo(**asdict(connection.credentials()))

    def listen(resource: Resource) -> None:
        @kopf.on.event(resource.group, resource.version, resource.plural, registry=registry)
        async def on_event(name: str, type: str, body: kopf.Body, **_more: Any) -> None:  # noqa: A002
            heard(resource, name, None if type == "DELETED" else dict(body))

    for resource in resources:
        listen(resource)
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.watching.chunk_size = PAGE
    settings.watching.connect_timeout = CONNECT_TIMEOUT
    await kopf.operator(
        registry=registry,
        settings=settings,
        clusterwide=not namespaces,
        namespaces=namespaces,
        standalone=True,
        stop_flag=stop,
        ready_flag=ready,
    )
