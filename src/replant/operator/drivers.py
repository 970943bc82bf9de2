"""Keeps CSI drivers as their CRs ask for them: looks, asks ``decide``, writes, looks again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from replant.cluster.ports import Resource
from replant.drivers.catalog import DRIVERS, Driver
from replant.drivers.decisions import decide
from replant.drivers.kinds import Key, key_of
from replant.drivers.seen import Decision, Seen
from replant.drivers.settings import wants_details
from replant.drivers.status import failed
from replant.drivers.values import Values
from replant.drivers.writes import (
    Annotate,
    Apply,
    Create,
    Delete,
    Finalizers,
    Replace,
    Status,
    Write,
)
from replant.errors import Conflict, InputError, Missing, ReplantError, Retryable, Uncertain
from replant.objects import Object, name_of
from replant.operator.driver_sight import Sides, Sight, cr_resource, resource_of

RESYNC = 300.0
"""Seconds after which everything is looked at again: not all that drivers consist of is watched."""
TURNS = 12
"""So often in a row there is something to write at most; after that somebody undoes it."""
TRANSIENT = (Conflict, Uncertain)
"""After these it is looked at again, and nobody has to know."""
TOLERATED = 5
"""Unless they come so often in a row."""


class Contested(Retryable):
    """Whatever is written, something else is to be written: somebody works against us."""


class Drivers:
    """Attends to drivers. Remembers nothing between two looks but what the cluster is like.

    And how often in a row it was disturbed.
    """

    def __init__(
        self, sides: Sides, sight: Sight, values: Values, note: Callable[[str], None]
    ) -> None:
        self.sight = sight
        self._sides = sides
        self._values = values
        self._note = note
        self._disturbed: Counter[str] = Counter()

    async def attend(self, name: str) -> float | None:
        """Do all that there is to do for a driver; the seconds after which to look again."""
        driver, decision = DRIVERS[name], Decision()
        try:
            for _turn in range(TURNS):
                decision = Decision()
                seen, decision = await self.decide(driver)
                if wants_details(seen.cr):
                    self._note(f"{name}: {len(decision.writes)} writes: {decision.why}")
                if not decision.writes:
                    del self._disturbed[name]
                    return min(RESYNC, decision.again or RESYNC)
                await self._carry_out(driver, decision)
            raise Contested(
                f"{name}: there is still something to write after {TURNS} turns, the last of it "
                f"{name_of(decision.writes[0].object)}; see who else changes it"
            )
        except ReplantError as error:
            self._disturbed[name] += 1
            if not isinstance(error, TRANSIENT) or self._disturbed[name] >= TOLERATED:
                await self._say_failed(driver, decision, error)
            raise

    async def _carry_out(self, driver: Driver, decision: Decision) -> None:
        deleted: set[Key] = set()
        for write in decision.writes:
            if key_of(write.object) in deleted:
                break  # it may not be gone yet: look first
            await self._do(driver, write)
            if isinstance(write, Delete):
                deleted.add(key_of(write.object))

    async def _say_failed(self, driver: Driver, decision: Decision, error: ReplantError) -> None:
        """Have the CR say that it is not attended to: what it said last may hold no more."""
        try:
            if isinstance(error, InputError) and not await self.sight.platform_is_known():
                return  # said in the cluster's status
            cr = await self.sight.cr(driver)
            status = failed(cr, decision, str(error), self.sight.now()) if cr else None
            if status is not None:
                await self._do(driver, status)
        except ReplantError as another:
            self._note(f"{driver.name}: its status could not be written: {another}")

    async def decide(self, driver: Driver, supposed: Object | None = None) -> tuple[Seen, Decision]:
        """What is seen of a driver, as if it had this CR, and what comes next."""
        seen = await self.sight.driver(driver, supposed)
        decision = decide(seen, self._values)
        looked: set[str] = set()
        while decision.look:
            if looked >= set(decision.look):
                raise InputError("is asked for what was looked at already", source=driver.name)
            looked |= set(decision.look)
            seen = await self.sight.closer(seen, decision.look)
            decision = decide(seen, self._values)
        return seen, decision

    async def _do(self, driver: Driver, write: Write) -> None:
        obj = write.object
        metadata = obj["metadata"]
        name, namespace = metadata["name"], metadata.get("namespace", "")
        kind = obj["kind"]
        resource = _resource(driver, obj)
        writer = self._sides.of(kind, namespace).writer
        match write:
            case Apply():
                await writer.apply(resource, obj, namespace=namespace)
            case Create():
                try:
                    await writer.create(resource, obj, namespace=namespace)
                except Conflict:
                    return  # somebody's own is there by now
            case Replace():
                await writer.replace(resource, obj, namespace=namespace)
            case Delete():
                try:
                    await writer.delete(
                        resource,
                        name,
                        uid=metadata["uid"],
                        version=metadata["resourceVersion"],
                        namespace=namespace,
                    )
                except Missing:
                    return  # somebody else was sooner
            case Annotate(_, annotations):
                patch = {"metadata": {**_seen(obj), "annotations": dict(annotations)}}
                await writer.patch(resource, name, patch, namespace=namespace)
            case Finalizers(_, finalizers):
                patch = {"metadata": {**_seen(obj), "finalizers": list(finalizers)}}
                await writer.patch(resource, name, patch, namespace=namespace)
            case Status(_, status):
                version = metadata["resourceVersion"]
                await writer.put_status(
                    resource, name, status, version=version, namespace=namespace
                )
                return  # said in the object itself
        self._note(f"{driver.name}: {type(write).__name__.lower()} {name_of(obj)}")


def _seen(obj: Object) -> Object:
    metadata = obj["metadata"]
    return {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}


def _resource(driver: Driver, obj: Object) -> Resource:
    return cr_resource(driver) if obj["kind"] == driver.kind else resource_of(obj["kind"])
