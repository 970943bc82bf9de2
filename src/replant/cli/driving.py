"""What ``replant drivers`` does: the engine of the operator, once, for one driver."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from replant.cli.connecting import connected
from replant.cli.driver_standing import rendered, runs, standing, trouble, unseen
from replant.cli.operator import read_values
from replant.cluster.share_types import share_types
from replant.cluster.writing import LiveWriter
from replant.drivers.adoption import (
    AFRESH,
    found_operand,
    has_begun,
    installed_by,
    is_foreign,
    subscription_of,
)
from replant.drivers.catalog import CR_NAME, DRIVERS, Driver, drivers_of
from replant.drivers.conditions import FALSE, PREREQS, conditions_of
from replant.drivers.crds import crd
from replant.drivers.kinds import key_of
from replant.drivers.naming import ADOPTED, OPERAND
from replant.drivers.preview import manifests, supposed, told
from replant.drivers.sameness import MANAGER, annotations_of, is_as_wanted, is_ours, marked
from replant.drivers.seen import Decision, Look, Seen
from replant.drivers.writes import Status
from replant.errors import (
    Blocked,
    Conflict,
    Final,
    Missing,
    NotServed,
    Refused,
    ReplantError,
    Retryable,
    printable,
)
from replant.execute.lease import Lease
from replant.execute.timing import RealTiming, Timing
from replant.objects import Object, name_of
from replant.operator.driver_run import LEASE
from replant.operator.driver_sight import Side, Sides, Sight, cr_resource, resource_of
from replant.operator.drivers import Drivers

if TYPE_CHECKING:
    from replant.cluster.live import LiveReader

UNREAD, BLOCKERS, RESUMABLE = 1, 3, 4
LOOK_AGAIN = 1.0
"""Seconds after which a driver that does not run yet is looked at again."""
SERVING = 30.0
"""Seconds in which a cluster begins to serve a CRD."""


class Engine:
    """The operator's engine, for one command."""

    def __init__(self, reader: LiveReader, given: dict[str, Any]) -> None:
        self.timing: Timing = RealTiming()
        self.values = read_values(given["values"])
        self.reader = reader
        self.writer = LiveWriter(reader, MANAGER)
        side = Side(reader, self.writer)
        self.sight = Sight(Sides(side, side), self.values, self.timing.now, share_types)
        self.drivers = Drivers(Sides(side, side), self.sight, self.values, _note)

    async def look(self, driver: Driver, cr: Object | None = None) -> tuple[Seen, Decision]:
        """What is seen of a driver, as if it had this CR, and what would come next."""
        return await self.drivers.decide(driver, cr)


@asynccontextmanager
async def _engine(given: dict[str, Any]) -> AsyncIterator[Engine]:
    async with connected(given, _note) as reader:
        yield Engine(reader, given)


def _note(text: str) -> None:
    click.echo(f"note: {printable(text)}", err=True)


def _run(work: Callable[[Engine], Awaitable[int]], given: dict[str, Any]) -> int:
    async def main() -> int:
        async with _engine(given) as engine:
            return await work(engine)

    try:
        return asyncio.run(main())
    except Blocked as error:
        click.echo(f"blocker: {printable(str(error))}", err=True)
        return BLOCKERS


# Status


def status(given: dict[str, Any]) -> int:
    """Print how drivers are."""

    async def work(engine: Engine) -> int:
        around = await engine.sight.surroundings()
        default, optional = drivers_of(around.cloud)
        of_cloud = {it.name for it in (*default, *optional) if not it.own_operator}
        found = []
        code = 0
        for driver in given["drivers"] or DRIVERS.values():
            try:
                seen, decision = await engine.look(driver)
                # What nobody has asked Replant for may be there all the same.
                if there := await engine.sight.get("CSIDriver", driver.name):
                    seen = replace(seen, objects={**seen.objects, key_of(there): there})
            except ReplantError as error:
                found.append(unseen(driver, error))
                code = UNREAD
                continue
            if seen.share_trouble:
                code = UNREAD
            is_there = seen.cr is not None or seen.csi_driver is not None
            if given["drivers"] or driver.name in of_cloud or is_there:
                found.append(standing(seen, decision))
        cloud = around.cloud or "not known, by what nodes say of their provider"
        click.echo(rendered(found, given["output"], str(cloud)), nl=False)
        return code

    return _run(work, given)


# Installing and adopting


def install(given: dict[str, Any]) -> int:
    """Install a driver, or show what that would make."""
    spec = {
        "credentials": given["credentials"],
        "defaultStorageClass": given["default_class"],
        "logLevel": given["log_level"],
        "storagePolicyName": given["storage_policy"],
        "shareTypes": list(given["share_types"]) or None,
    }
    spec = {key: it for key, it in spec.items() if it is not None}

    async def work(engine: Engine) -> int:
        driver: Driver = given["driver"]
        cr = supposed(driver, await engine.sight.cr(driver), spec)
        seen, decision = await engine.look(driver, cr)
        if given["output"] == "yaml":
            _refuse_vendors(driver)
            _print_manifests(manifests(seen, engine.values))
            return 0
        _refuse_blocked(seen, decision)
        _preview(engine, seen, decision)
        return await _carry_out(engine, driver, spec, given)

    return _run(work, given)


def adopt(given: dict[str, Any]) -> int:
    """Adopt a driver, or show what would be adopted."""

    async def work(engine: Engine) -> int:
        driver: Driver = given["driver"]
        _refuse_vendors(driver)
        found = await engine.sight.cr(driver)
        seen, decision = await engine.look(driver, supposed(driver, found, {}))
        if _goes_on(seen, decision):
            _refuse_blocked(seen, decision)
            click.echo(f"{driver.name} is being adopted already, which goes on.")
            return await _carry_out(engine, driver, {}, given)
        spec = await _adoption(engine, seen)
        # Whoever has claimed it back meanwhile had it so far; now it is asked for once more.
        forget = tuple(AFRESH) if ADOPTED in annotations_of(found or {}) else ()
        seen, decision = await engine.look(driver, supposed(driver, found, spec, forget))
        _refuse_blocked(seen, decision)
        return await _carry_out(engine, driver, spec, given, forget)

    return _run(work, given)


def _goes_on(seen: Seen, decision: Decision) -> bool:
    """Whether an adoption has begun and is not over, wherever it was stopped."""
    driver, cr, csi_driver = seen.driver, seen.cr or {}, seen.csi_driver
    if has_begun(driver, seen.keeper or {}):
        return True
    if csi_driver is None:
        return OPERAND in annotations_of(cr)  # it is made anew
    return is_ours(csi_driver) and not (runs(told(seen, decision)) and not decision.writes)


async def _adoption(engine: Engine, seen: Seen) -> dict[str, object]:
    """What a CR has to say so that what is there is adopted; Blocked if nothing can be."""
    driver = seen.driver
    subscription = subscription_of(driver, seen.subscriptions)
    if subscription is not None:
        click.echo(
            f"{driver.name} is kept by an operator of OLM. {name_of(subscription)}, its "
            "ClusterServiceVersion and the operator go; the driver's pods run on."
        )
        return {}
    if seen.csi_driver is None or not is_foreign(seen.csi_driver):
        there = "is not installed" if seen.csi_driver is None else "is Replant's already"
        raise Blocked(f"{driver.name} {there}: replant drivers install {driver.backend}")
    looked = await engine.sight.closer(seen, (Look.WORKLOADS,))
    found = found_operand(driver, looked.workloads or ())
    if found.names is None:
        raise Blocked(f"{driver.name} cannot be adopted: {found.trouble}")
    names = found.names
    click.echo(
        f"{driver.name} was installed by {installed_by(seen.csi_driver)}. Deployment "
        f"{names.namespace}/{names.controller} and DaemonSet {names.namespace}/{names.node} are "
        "taken over under their names."
    )
    return {"adoption": "Adopt"}


def _refuse_vendors(driver: Driver) -> None:
    if driver.own_operator:
        raise Blocked(
            f"{driver.name} is installed by its vendor's operator; replant drivers status tells "
            "how it is"
        )


def _refuse_blocked(seen: Seen, decision: Decision) -> None:
    _refuse_vendors(seen.driver)
    if not all(isinstance(it, Status) for it in decision.writes):
        return  # it gets on, whatever its CR has said so far
    conditions = told(seen, decision)
    prereqs = conditions.get(PREREQS)
    if prereqs is not None and prereqs.status == FALSE:
        raise Blocked(prereqs.message)
    degraded = conditions.get("Degraded")
    if degraded is not None and degraded.reason == "InvalidSettings":
        raise Blocked(degraded.message)
    available = conditions.get("Available")
    if available is not None and available.reason == "Unmanaged":
        raise Blocked(f"{seen.driver.kind} {CR_NAME} says managementState: Unmanaged")


def _print_manifests(objects: list[Object]) -> None:
    from replant.manifests import yamltext

    click.echo("".join(f"---\n{yamltext.dump(it)}" for it in objects), nl=False)


def _preview(engine: Engine, seen: Seen, decision: Decision) -> None:
    """Say what would be made and changed."""
    driver = seen.driver
    click.echo(f"{driver.name}, in namespace {seen.names.namespace}:")
    there = {**seen.objects, **{key_of(it): it for it in seen.classes}}
    same = 0
    for obj in manifests(seen, engine.values)[2:]:
        found = there.get(key_of(obj))
        if found is not None and is_as_wanted(found, obj):
            same += 1
        else:
            click.echo(f"  {'create' if found is None else 'change'} {name_of(obj)}")
    if same:
        click.echo(f"  {same} objects are as they should be")
    available = told(seen, decision).get("Available")
    if available is not None and available.reason == "WaitingForCredentials":
        click.echo(f"It waits until this is there: {printable(available.message)}")


async def _carry_out(
    engine: Engine,
    driver: Driver,
    spec: dict[str, object],
    given: dict[str, Any],
    forget: tuple[str, ...] = (),
) -> int:
    if not given["yes"]:
        click.echo("Nothing was done. Do it with --yes.", err=True)
        return 0
    await _ask(engine, driver, spec, forget)

    async def done() -> bool:
        conditions = {it.type: it for it in conditions_of(await engine.sight.cr(driver))}
        prereqs = conditions.get(PREREQS)
        if prereqs is not None and prereqs.status == FALSE:
            raise Blocked(prereqs.message)
        return runs(conditions)

    return await _until(engine, driver, done, f"{driver.name} runs", given["timeout"])


async def _ask(
    engine: Engine, driver: Driver, spec: dict[str, object], forget: tuple[str, ...]
) -> None:
    """Have the CRD and the CR say what is wanted, and the CR these annotations no more."""
    definition = marked(crd(driver))
    await engine.writer.apply(resource_of("CustomResourceDefinition"), definition)
    until = engine.timing.now() + SERVING
    while True:
        try:
            return await _ask_once(engine, driver, spec, forget)
        except (Conflict, Missing, NotServed):
            # A CRD is served a moment after it was made, and others may write its CR.
            if engine.timing.now() > until:
                raise
            await engine.timing.sleep(LOOK_AGAIN)


async def _ask_once(
    engine: Engine, driver: Driver, spec: dict[str, object], forget: tuple[str, ...]
) -> None:
    cr = await engine.sight.cr(driver)
    asked = supposed(driver, cr, spec, forget)
    if cr is None:
        await engine.writer.create(cr_resource(driver), asked)
    elif asked != cr:
        metadata: Object = {"resourceVersion": cr["metadata"]["resourceVersion"]}
        if forget:
            metadata["annotations"] = dict.fromkeys(forget)
        patch = {"metadata": metadata, "spec": spec}
        await engine.writer.patch(cr_resource(driver), CR_NAME, patch)


async def _until(
    engine: Engine,
    driver: Driver,
    done: Callable[[], Awaitable[bool]],
    goal: str,
    timeout: float,
) -> int:
    """Attend to a driver until it is as it should be, unless an operator does."""
    lease = Lease(engine.reader, engine.writer, engine.timing, _note, LEASE)
    try:
        await lease.acquire()
    except Refused as error:
        _note(f"{error} It does the rest; see replant drivers status {driver.backend}")
        return 0
    said, until = "", engine.timing.now() + timeout
    try:
        while True:
            try:
                await engine.drivers.attend(driver.name)
            except Retryable as error:
                said = _say(said, str(error))
            if await done():
                click.echo(goal)
                return 0
            conditions = {it.type: it for it in conditions_of(await engine.sight.cr(driver))}
            said = _say(said, trouble(conditions))
            if engine.timing.now() > until:
                click.echo(f"stopped: not yet: {goal}; the same command goes on", err=True)
                return RESUMABLE
            await engine.timing.sleep(LOOK_AGAIN)
            if lease.due <= 0:
                await lease.renew({})
    finally:
        with suppress(Final, Retryable):
            await lease.release()


def _say(before: str, now: str) -> str:
    if now and now != before:
        _note(now)
    return now or before


# Removing


def remove(given: dict[str, Any]) -> int:
    """Remove a driver, or show what is in the way."""

    async def work(engine: Engine) -> int:
        driver: Driver = given["driver"]
        _refuse_vendors(driver)
        cr = await engine.sight.cr(driver)
        if driver.default:
            raise Blocked(
                f"{driver.name} is installed by default, and would come back: to use another "
                f"driver, set managementState of {driver.kind} {CR_NAME} to Unmanaged and delete "
                "this one by hand"
            )
        if cr is None:
            raise Blocked(f"there is no {driver.kind} {CR_NAME}: Replant has not installed it")
        seen, _ = await engine.look(driver)
        seen = await engine.sight.closer(seen, (Look.USES,))
        if seen.uses is not None and seen.uses.names:
            raise Blocked(f"{driver.name} is still in use by {seen.uses.message}")
        ours = [it for it in (*seen.classes, *seen.objects.values()) if is_ours(it)]
        kept = [it for it in ours if it["kind"] == "Namespace"]
        for obj in ours:
            if obj not in kept and obj.get("provisioner", driver.name) == driver.name:
                click.echo(f"  delete {name_of(obj)}")
        click.echo(f"  delete {driver.kind} {CR_NAME}")
        if not given["yes"]:
            click.echo("Nothing was done. Do it with --yes.", err=True)
            return 0
        metadata = cr["metadata"]
        with suppress(Missing):
            await engine.writer.delete(
                cr_resource(driver),
                CR_NAME,
                uid=metadata["uid"],
                version=metadata["resourceVersion"],
            )

        async def gone() -> bool:
            return await engine.sight.cr(driver) is None

        return await _until(engine, driver, gone, f"{driver.name} is removed", given["timeout"])

    return _run(work, given)
