"""Reads PersistentVolumes and their claims, few one by one and many in lists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from replant.cluster.ports import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, Reader, Resource
from replant.errors import Missing
from replant.execute.swapping import Seen
from replant.plan.model import VolumeSwap

FEW = 32
"""Up to so many volumes are asked for one by one; more are listed with all others."""


async def look_at(reader: Reader, volumes: Sequence[VolumeSwap], few: int = FEW) -> dict[str, Seen]:
    """Volumes with their claims, as they are, by the names of the volumes."""
    if len(volumes) <= few:
        return {it.name: await _look_at_one(reader, it) for it in volumes}
    found = await _listed(reader, PERSISTENT_VOLUMES, {it.name for it in volumes})
    claims = await _listed(reader, PERSISTENT_VOLUME_CLAIMS, {it.claim for it in volumes})
    return {it.name: Seen(found.get(it.name), claims.get(it.claim)) for it in volumes}


async def get(reader: Reader, resource: Resource, name: str, namespace: str = "") -> bytes | None:
    """One object as the server sent it; None if it is not there, or has no name."""
    if not name:
        return None
    try:
        return await reader.get(resource, name, namespace=namespace)
    except Missing:
        return None


async def _look_at_one(reader: Reader, volume: VolumeSwap) -> Seen:
    namespace, _, name = volume.claim.partition("/")
    return Seen(
        await get(reader, PERSISTENT_VOLUMES, volume.name),
        await get(reader, PERSISTENT_VOLUME_CLAIMS, name, namespace),
    )


async def _listed(reader: Reader, resource: Resource, wanted: Iterable[str]) -> dict[str, bytes]:
    names, found = set(wanted), dict[str, bytes]()
    async for page in reader.list_pages(resource):
        if page.first:
            found = {}
        for raw in msgspec.json.decode(page.body, type=_List).items or ():
            name = msgspec.json.decode(raw, type=_Named).metadata.called
            if name in names:
                found[name] = bytes(raw)
    return found


class _Metadata(msgspec.Struct):
    name: str
    namespace: str = ""

    @property
    def called(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class _Named(msgspec.Struct):
    metadata: _Metadata


class _List(msgspec.Struct):
    items: list[msgspec.Raw] | None
