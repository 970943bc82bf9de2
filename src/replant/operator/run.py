"""Runs controllers until they are told to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from replant.cluster.live import LiveReader, connect
from replant.cluster.writing import LiveWriter
from replant.errors import Final, NotServed, ReplantError, printable
from replant.gardener.providers import Provider
from replant.objects import Object
from replant.operator.gardener_seed import CLUSTERS, Migration
from replant.operator.rounds import Rounds, pause
from replant.operator.shoot_access import visit
from replant.operator.telling import Teller

ROLE = "the role in deploy/rbac/gardener.yaml may"
SEED_TRIES = 2
SEED_TIMEOUT = 30.0


@dataclass(frozen=True)
class Where:
    """The seed, as kubectl would find it."""

    kubeconfig: str | None = None
    context: str | None = None


@dataclass
class Running:
    """How others see that it runs, and stop it."""

    stop: asyncio.Event = field(default_factory=asyncio.Event)
    ready: asyncio.Event = field(default_factory=asyncio.Event)


async def migrate_shoots(
    where: Where,
    provider: Provider,
    *,
    concurrency: int,
    note: Callable[[str], None],
    running: Running,
    pause: Callable[[int], float] = pause,
) -> None:
    """Watch a seed's Clusters, and take the shoots that are due over to CSI."""
    from replant.operator.watching import watch

    connecting = connect(
        where.kubeconfig,
        where.context,
        timeout=SEED_TIMEOUT,
        tries=SEED_TRIES,
        notice=note,
        role=ROLE,
    )
    async with connecting as reader:
        await _must_be_served(reader)
        writer = LiveWriter(reader)
        teller = Teller(writer, note)
        migration = Migration(provider, reader, writer, partial(visit, reader), teller, note)

        def failed(name: str, error: Exception, seconds: float) -> None:
            note(f"Cluster {name}: {_said(error)}; trying again in {seconds:.0f} s")

        async with Rounds(migration.attend, failed, concurrency, pause) as rounds:

            def heard(name: str, cluster: Object | None) -> None:
                if migration.concerns(cluster):
                    rounds.call(name)

            await watch(CLUSTERS, reader.connection, heard, stop=running.stop, ready=running.ready)


async def _must_be_served(reader: LiveReader) -> None:
    """Say so if this is no seed: watches would wait for its kinds for ever."""
    try:
        async for _page in reader.list_pages(CLUSTERS):
            return
    except NotServed as error:
        raise Final(f"{error}: is this a seed of Gardener?") from None


def _said(error: Exception) -> str:
    if isinstance(error, ReplantError):
        return printable(str(error))
    return printable(f"{type(error).__name__}: {error}")
