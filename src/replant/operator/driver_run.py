"""Runs the controllers of the drivers: watches what they consist of, and keeps it so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass

from replant.cluster.live import LiveReader, connect
from replant.cluster.ports import CSI_DRIVERS, DAEMON_SETS, DEPLOYMENTS, STORAGE_CLASSES, Resource
from replant.cluster.share_types import share_types
from replant.cluster.writing import LiveWriter
from replant.drivers.catalog import DRIVERS
from replant.drivers.kinds import GROUP
from replant.drivers.operand import Part, Split, part_of
from replant.drivers.sameness import MANAGER
from replant.drivers.values import Values
from replant.errors import Final, InputError, ReplantError
from replant.execute.lease import Lease
from replant.execute.timing import RealTiming, Timing
from replant.objects import Object
from replant.operator.driver_sight import Side, Sides, Sight, cr_resource, resource_of
from replant.operator.driver_status import ClusterStatus
from replant.operator.drivers import RESYNC, TRANSIENT, Drivers
from replant.operator.rounds import Rounds, pause
from replant.operator.run import Controller, Running, Where, said
from replant.operator.standing_by import lead
from replant.operator.telling import Teller

ROLE = "the role in deploy/rbac/drivers.yaml may"
LEASE = "replant-drivers"
TRIES, TIMEOUT = 2, 30.0
PLACES = 4
"""So many drivers at a time."""
SETTLING = 1.0
"""Seconds after which what was heard is looked at: of a thousand changes in one second, once."""
STATUS = "the cluster's status"
"""The one key that is not a driver."""
WATCHED_OF_OTHERS = ("Infrastructure", "Storage")


@dataclass(frozen=True)
class Asked:
    """What an operator of drivers is told."""

    where: Where
    values: Values
    nodes: Where | None = None
    """Where nodes are, if controllers run in another cluster."""
    split: Split | None = None


def drivers(
    asked: Asked,
    *,
    note: Callable[[str], None],
    pause: Callable[[int], float] = pause,
    timing: Timing | None = None,
) -> Controller:
    """Keeps the drivers of a cluster as their CRs ask for them."""
    time = timing or RealTiming()

    async def controller(running: Running) -> None:
        async with AsyncExitStack() as held:
            home = await held.enter_async_context(reach(asked.where, note))
            away = home
            if asked.nodes is not None:
                away = await held.enter_async_context(reach(asked.nodes, note))
            if GROUP not in await away.groups():
                raise Final(
                    f"{away.connection.server} does not serve {GROUP}: "
                    "kubectl apply -f deploy/drivers/crds.yaml"
                )
            sides = Sides(side(home), side(away), asked.split)
            keeper = _Keeper(asked, sides, home, away, note, pause, time)
            # Where nodes are: a seed has the controllers of many shoots, each with its operator.
            lease = Lease(away, sides.nodes.writer, time, note, LEASE)
            running.ready.set()
            await lead(lease, time, keeper.work, stop=running.stop, note=note)

    return controller


def reach(where: Where, note: Callable[[str], None]) -> AbstractAsyncContextManager[LiveReader]:
    """The way to a cluster; whoever is refused there is told of our role."""
    return connect(
        where.kubeconfig, where.context, timeout=TIMEOUT, tries=TRIES, notice=note, role=ROLE
    )


def side(reader: LiveReader) -> Side:
    """A cluster that is written to under the name that the fields of drivers are managed by."""
    return Side(reader, LiveWriter(reader, MANAGER))


class _Keeper:
    """What is done while no other operator does it."""

    def __init__(
        self,
        asked: Asked,
        sides: Sides,
        home: LiveReader,
        away: LiveReader,
        note: Callable[[str], None],
        pause: Callable[[int], float],
        timing: Timing,
    ) -> None:
        self._asked = asked
        self._sides = sides
        self._home, self._away = home, away
        self._note = note
        self._pause = pause
        self._timing = timing
        self._sight = Sight(sides, asked.values, timing.now, share_types)
        self._drivers = Drivers(sides, self._sight, asked.values, note)
        self._status = ClusterStatus(sides, self._sight, timing.now)
        self._teller = Teller(sides.nodes.writer, note)
        self._due: set[str] = set()
        self._rounds: Rounds | None = None

    async def work(self, end: asyncio.Event) -> None:
        """Attend to all drivers, and to each whenever something of it changes."""
        # kopf takes a third of a second to import.
        from replant.operator.watching import watch

        def failed(name: str, error: Exception, seconds: float) -> None:
            self._note(f"{name}: {said(error)}; trying again in {seconds:.0f} s")

        served = await self._served()
        namespaces = sorted({it.namespace for it in DRIVERS.values()})
        async with Rounds(self._attend, failed, PLACES, self._pause) as rounds:
            self._rounds = rounds

            def heard(resource: Resource, name: str, _obj: Object | None) -> None:
                self._call(_concerned(resource, name))

            for key in (*DRIVERS, STATUS):
                rounds.call(key)
            if self._asked.split is None:
                kinds = [*_kinds(Part.NODE, served), *_kinds(Part.CONTROLLER, served)]
                watching = [watch(kinds, self._home.connection, heard, stop=end,
                                  namespaces=namespaces)]  # fmt: skip
            else:
                watching = [
                    watch(_kinds(Part.NODE, served), self._away.connection, heard, stop=end,
                          namespaces=namespaces),
                    watch(_kinds(Part.CONTROLLER, served), self._home.connection, heard, stop=end,
                          namespaces=[self._asked.split.namespace]),
                ]  # fmt: skip
            try:
                await asyncio.gather(*watching)
            finally:
                self._rounds = None

    async def _served(self) -> frozenset[str]:
        try:
            return (await self._sight.surroundings()).served
        except InputError:
            return frozenset({"Infrastructure"})  # whose change it is that is waited for

    def _call(self, keys: tuple[str, ...]) -> None:
        """Have them attended to, soon: whatever else is heard meanwhile is seen then, too."""
        loop = asyncio.get_running_loop()
        for key in keys:
            if key not in self._due:
                self._due.add(key)
                loop.call_later(SETTLING / self._timing.haste, self._fire, key)

    def _fire(self, key: str) -> None:
        self._due.discard(key)
        if self._rounds is not None:
            self._rounds.call(key)

    async def _attend(self, key: str) -> float | None:
        if key == STATUS:
            again = await self._status.tell()
            return min(RESYNC, again or RESYNC) / self._timing.haste
        try:
            again = await self._drivers.attend(key)
        except InputError as error:
            if await self._sight.platform_is_known():
                await self._tell(key, error)
                raise
            again = RESYNC  # said in the cluster's status
        except TRANSIENT:
            raise
        except ReplantError as error:
            await self._tell(key, error)
            raise
        finally:
            self._call((STATUS,))
        return None if again is None else again / self._timing.haste

    async def _tell(self, key: str, error: ReplantError) -> None:
        cr = await self._sight.cr(DRIVERS[key])
        if cr is not None:
            await self._teller.tell(cr, "Failed", str(error))


def _kinds(part: Part, served: frozenset[str]) -> list[Resource]:
    """What is watched in a cluster; the rest is looked at now and then."""
    always = [DEPLOYMENTS, DAEMON_SETS, CSI_DRIVERS, STORAGE_CLASSES]
    others = [resource_of(it) for it in WATCHED_OF_OTHERS if it in served]
    found = [it for it in (*always, *others) if part_of(it.kind) is part]
    return found + ([cr_resource(it) for it in DRIVERS.values()] if part is Part.NODE else [])


def _concerned(resource: Resource, name: str) -> tuple[str, ...]:
    """The drivers that may have to do something."""
    for driver in DRIVERS.values():
        if resource.kind == driver.kind:
            return (driver.name, STATUS)
        if resource.kind == "CSIDriver" and name == driver.name:
            return (driver.name,)
    if resource.kind == "CSIDriver":
        return ()
    return tuple(DRIVERS)
