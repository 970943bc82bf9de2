"""kopf watches; what it hears of is called by name. Nothing is written by it.

Of kopf only what leaves no trace is used: its handlers of changes would keep their progress in
annotations and finalizers of objects that are not ours, and a steady state would not be one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import kopf

from replant.cluster.connection import Connection
from replant.cluster.ports import Resource
from replant.objects import Object

PAGE = 500
CONNECT_TIMEOUT = 30.0

Heard = Callable[[str, Object | None], None]
"""Told an object's name, and what it is now; None if it is gone."""


async def watch(
    resource: Resource,
    connection: Connection,
    heard: Heard,
    *,
    stop: asyncio.Event,
    ready: asyncio.Event | None = None,
) -> None:
    """Tell of every object of a kind, and whenever one changes, until stopped or interrupted."""
    registry = kopf.OperatorRegistry()
    fresh = True

    @kopf.on.login(registry=registry)
    async def log_in(**_more: Any) -> kopf.ConnectionInfo:
        nonlocal fresh
        if not fresh:
            await connection.open()  # asked again: what we had was not accepted any more
        fresh = False
        return kopf.ConnectionInfo(**asdict(connection.credentials()))

    @kopf.on.event(resource.group, resource.version, resource.plural, registry=registry)
    async def on_event(name: str, type: str, body: kopf.Body, **_more: Any) -> None:  # noqa: A002
        heard(name, None if type == "DELETED" else dict(body))

    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.watching.chunk_size = PAGE
    settings.watching.connect_timeout = CONNECT_TIMEOUT
    await kopf.operator(
        registry=registry,
        settings=settings,
        clusterwide=True,
        standalone=True,
        stop_flag=stop,
        ready_flag=ready,
    )
