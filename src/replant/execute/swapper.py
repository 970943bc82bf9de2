"""Takes one volume to its twin: each move once, and a look after whatever has failed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack

import msgspec

from replant.cluster.ports import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    Reader,
    Resource,
    Writer,
)
from replant.errors import Conflict, Missing, Uncertain
from replant.execute.swapping import LookAtVolumes, ReplaceVolume, Seen
from replant.objects import Object
from replant.plan.model import VolumeSwap
from replant.swap import moves
from replant.swap.moves import next_move

Sleep = Callable[[float], Awaitable[None]]

FEW = 32
"""Up to so many volumes are asked for one by one; more are listed with all others."""
AWAY_AT_ONCE = 4
"""So many volumes may be away at a time: the fewer there are, the sooner each is back."""
_FAILURES = 5
"""So often in a row a move may fail before somebody else decides about the volume."""
_LOOKS = (0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28)
"""How long to wait before each look for what others do; together two and a half seconds."""


class Swapper:
    """Carries the moves of volumes out."""

    def __init__(self, reader: Reader, writer: Writer, sleep: Sleep) -> None:
        self._reader = reader
        self._writer = writer
        self._sleep = sleep
        self._narrows = asyncio.Semaphore(AWAY_AT_ONCE)

    async def look(self, act: LookAtVolumes) -> dict[str, Seen]:
        """The volumes and claims of an act, as they are."""
        if len(act.volumes) <= FEW:
            return {it.name: await self._look_at(it) for it in act.volumes}
        volumes = await self._listed(PERSISTENT_VOLUMES, {it.name for it in act.volumes})
        claims = await self._listed(PERSISTENT_VOLUME_CLAIMS, {it.claim for it in act.volumes})
        return {it.name: Seen(volumes.get(it.name), claims.get(it.claim)) for it in act.volumes}

    async def replace(self, act: ReplaceVolume) -> moves.Move:
        """Move on until there is nothing left to do, or only others can do it."""
        async with AsyncExitStack() as narrows:
            return await self._replace(act.swap, act.volume, act.claim, narrows)

    async def _replace(
        self,
        swap: moves.Swap,
        volume: Object | None,
        claim: Object | None,
        narrows: AsyncExitStack,
    ) -> moves.Move:
        looks, failures, narrow = iter(_LOOKS), 0, False
        while True:
            move = next_move(swap, volume, claim)
            match move:
                case moves.Done() | moves.Stuck() | moves.Outdated():
                    return move
                case moves.Await():
                    wait = next(looks, None)
                    if wait is None:
                        return move
                    await self._sleep(wait)
                    volume, claim = await self._look(swap)
                    continue
                case moves.Delete() | moves.Create() if not narrow:
                    await narrows.enter_async_context(self._narrows)
                    narrow = True
            try:
                if isinstance(move, moves.Nudge):
                    namespace, name = swap.claim
                    claim = await self._writer.patch(
                        PERSISTENT_VOLUME_CLAIMS, name, move.patch, namespace=namespace
                    )
                else:
                    volume = await self._change(swap.name, move)
            except (Conflict, Missing, Uncertain):
                failures += 1
                if failures >= _FAILURES:
                    raise
                volume, claim = await self._look(swap)
            else:
                failures = 0

    async def _change(
        self, name: str, move: moves.Patch | moves.Delete | moves.Create
    ) -> Object | None:
        """Make one move; the volume as it is then, None if it is gone."""
        if isinstance(move, moves.Create):
            return await self._writer.create(PERSISTENT_VOLUMES, move.volume)
        if isinstance(move, moves.Patch):
            answer = await self._writer.patch(PERSISTENT_VOLUMES, name, move.patch)
        else:
            answer = await self._writer.delete(
                PERSISTENT_VOLUMES, name, uid=move.uid, version=move.version
            )
        return None if _is_gone(answer) else answer

    async def _look(self, swap: moves.Swap) -> tuple[Object | None, Object | None]:
        namespace, name = swap.claim
        volume, claim = await asyncio.gather(
            self._get(PERSISTENT_VOLUMES, swap.name, ""),
            self._get(PERSISTENT_VOLUME_CLAIMS, name, namespace),
        )
        return _decoded(volume), _decoded(claim)

    async def _look_at(self, volume: VolumeSwap) -> Seen:
        namespace, _, name = volume.claim.partition("/")
        return Seen(
            await self._get(PERSISTENT_VOLUMES, volume.name, ""),
            await self._get(PERSISTENT_VOLUME_CLAIMS, name, namespace),
        )

    async def _get(self, resource: Resource, name: str, namespace: str) -> bytes | None:
        if not name:
            return None
        try:
            return await self._reader.get(resource, name, namespace=namespace)
        except Missing:
            return None

    async def _listed(self, resource: Resource, wanted: Iterable[str]) -> dict[str, bytes]:
        """The objects of these names, each as the server sent it."""
        names, found = set(wanted), dict[str, bytes]()
        async for page in self._reader.list_pages(resource):
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


def _decoded(body: bytes | None) -> Object | None:
    return None if body is None else msgspec.json.decode(body, type=dict)


def _is_gone(answer: Object) -> bool:
    """Whether what was asked for was the end of the object: nothing held it any more."""
    metadata = answer.get("metadata") or {}
    return answer.get("kind") == "Status" or (
        bool(metadata.get("deletionTimestamp")) and not metadata.get("finalizers")
    )
