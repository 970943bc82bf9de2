"""How far all shoots of a seed are: looks at each as the controller would, and does nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec

from replant.cluster.ports import CLUSTERS, CONTROL_PLANES, Reader, Resource
from replant.errors import Final, InputError, NotServed, ReplantError
from replant.gardener.decisions import Look, Seen, decide
from replant.gardener.providers import PROVIDERS, Provider
from replant.gardener.shoots import part, provider_type, shoot_of
from replant.gardener.standing import ShootStanding, standing_of
from replant.objects import Object
from replant.operator.shoot_access import Visit, visit

AT_ONCE = 50
"""So many shoots are asked at a time: some may hang, and others need not wait for them."""


class _Page(msgspec.Struct):
    items: list[dict[str, Any]] | None = None


async def survey(
    seed: Reader, providers: Mapping[str, Provider] = PROVIDERS
) -> list[ShootStanding]:
    """Every shoot of a seed, by its Cluster's name; one that does not answer is told as such."""
    try:
        clusters = await _all(seed, CLUSTERS)
    except NotServed as error:
        raise Final(f"{error}: is this a seed of Gardener?") from None
    planes = {
        (part(it, "metadata", "namespace"), part(it, "metadata", "name"))
        for it in await _all(seed, CONTROL_PLANES)
    }
    places = asyncio.Semaphore(AT_ONCE)

    async def one(cluster: Object) -> ShootStanding:
        async with places:
            return await _standing(cluster, planes, providers, partial(visit, seed))

    found = await asyncio.gather(*map(one, clusters))
    return sorted(found, key=lambda it: it.cluster)


async def _standing(
    cluster: Object,
    planes: set[tuple[object, object]],
    providers: Mapping[str, Provider],
    visit: Visit,
) -> ShootStanding:
    shoot = shoot_of(cluster) or {}
    provider = providers.get(provider_type(shoot))
    if provider is None and shoot:
        return standing_of(cluster, None, None)
    name = part(cluster, "metadata", "name")
    seen = Seen(cluster, (name, part(shoot, "metadata", "name")) in planes)
    # Without a shoot any provider will do: there is nothing that it could be asked about.
    provider = provider or next(iter(providers.values()))
    try:
        return await _asked(seen, cluster, provider, visit(str(name)))
    except ReplantError as error:
        return standing_of(cluster, provider, None, str(error))
    except Exception as error:  # noqa: BLE001 - one that is odd must not hide all others
        # Only its sort: what is odd may be a kubeconfig, and is not to be quoted.
        return standing_of(cluster, provider, None, f"looking failed with {type(error).__name__}")


async def _asked(seen: Seen, cluster: Object, provider: Provider, way: Any) -> ShootStanding:
    action = decide(seen, provider)
    if not isinstance(action, Look):
        return standing_of(cluster, provider, action)
    async with way as shoot:
        while isinstance(action, Look):
            if action is Look.NODES:
                seen = replace(seen, kubelets=await shoot.kubelets())
            else:
                seen = replace(seen, classes=await shoot.classes())
            action = decide(seen, provider)
    return standing_of(cluster, provider, action)


async def _all(seed: Reader, resource: Resource) -> list[Object]:
    found: list[Object] = []
    async for page in seed.list_pages(resource):
        if page.first:
            found.clear()
        try:
            found += msgspec.json.decode(page.body, type=_Page).items or []
        except msgspec.DecodeError as error:
            raise InputError(f"cannot be read: {error}", source=resource.plural) from error
    return found
