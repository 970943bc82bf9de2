"""Runs controllers until they are told to stop."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from replant.cluster.live import LiveReader, connect
from replant.cluster.ports import CLUSTERS, Resource
from replant.cluster.writing import LiveWriter
from replant.errors import Final, NotServed, ReplantError, printable
from replant.gardener.components import CLOUD_CONFIG_PATH
from replant.gardener.providers import Provider
from replant.objects import Object
from replant.operator.admission import control_plane, shoots
from replant.operator.gardener_seed import Migration
from replant.operator.health import Tally, application
from replant.operator.health import serve as answer_probes
from replant.operator.rounds import Rounds, pause
from replant.operator.shoot_access import visit
from replant.operator.telling import Teller
from replant.operator.webhooks import MUTATE, VALIDATE, Door, Listener, serve

ROLE = "the role in deploy/rbac/gardener.yaml may"
SEED_TRIES = 2
SEED_TIMEOUT = 30.0
WEBHOOK_TIMEOUT = 5.0
"""Seconds for an answer of the seed: less than what it waits for ours."""


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


Controller = Callable[[Running], Awaitable[None]]
"""Runs until it is told to stop."""


async def run(
    controllers: Sequence[Controller],
    *,
    running: Running,
    signals: bool = True,
) -> None:
    """Run controllers until one ends or is interrupted; then all do."""

    async def one(controller: Controller) -> None:
        try:
            await controller(running)
        finally:
            running.stop.set()

    if signals:
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, running.stop.set)
    results = await asyncio.gather(*(one(it) for it in controllers), return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result


def webhooks(
    where: Where,
    provider: Provider,
    door: Door,
    *,
    note: Callable[[str], None],
    cloud_config: str = CLOUD_CONFIG_PATH,
    ready: Callable[[int], None] = lambda _port: None,
) -> Controller:
    """Answers for Deployments of control planes, by the Clusters of a seed, and for Shoots."""

    async def controller(running: Running) -> None:
        connecting = connect(
            where.kubeconfig,
            where.context,
            timeout=WEBHOOK_TIMEOUT,
            tries=1,
            notice=note,
            role=ROLE,
        )
        async with connecting as reader:
            judges = {
                MUTATE: control_plane(reader, provider, cloud_config),
                VALIDATE: shoots(provider),
            }

            def opened(port: int) -> None:
                running.ready.set()
                ready(port)

            await serve(judges, door, stop=running.stop, note=note, ready=opened)

    return controller


def health(
    where: Listener, tally: Tally, *, opened: Callable[[int], None] = lambda _port: None
) -> Controller:
    """Answers probes, and tells what was counted."""

    async def controller(running: Running) -> None:
        app = application(running.ready.is_set, tally)
        await answer_probes(app, where, stop=running.stop, opened=opened)

    return controller


def migration(
    where: Where,
    provider: Provider,
    *,
    concurrency: int,
    note: Callable[[str], None],
    pause: Callable[[int], float] = pause,
    tally: Tally | None = None,
) -> Controller:
    """Watches a seed's Clusters, and takes the shoots that are due over to CSI."""
    counts = tally or Tally()

    async def controller(running: Running) -> None:
        # kopf takes a third of a second to import, which webhooks alone need not wait for.
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
            way = partial(visit, reader)
            of = Migration(provider, reader, writer, way, teller, note, counts.wrote)

            async def attend(name: str) -> float | None:
                try:
                    wait = await of.attend(name)
                except Exception:
                    counts.looked("failed")
                    raise
                counts.looked("done" if wait is None else "waits")
                return wait

            def failed(name: str, error: Exception, seconds: float) -> None:
                note(f"Cluster {name}: {said(error)}; trying again in {seconds:.0f} s")

            async with Rounds(attend, failed, concurrency, pause) as rounds:
                counts.attended = rounds.count

                def heard(_kind: Resource, name: str, cluster: Object | None) -> None:
                    if of.concerns(cluster):
                        rounds.call(name)

                await watch(
                    [CLUSTERS], reader.connection, heard, stop=running.stop, ready=running.ready
                )

    return controller


async def _must_be_served(reader: LiveReader) -> None:
    """Say so if this is no seed: watches would wait for its kinds for ever."""
    try:
        async for _page in reader.list_pages(CLUSTERS):
            return
    except NotServed as error:
        raise Final(f"{error}: is this a seed of Gardener?") from None


def said(error: Exception) -> str:
    """An error on one line."""
    if isinstance(error, ReplantError):
        return printable(str(error))
    return printable(f"{type(error).__name__}: {error}")
