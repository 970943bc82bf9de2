"""Takes one volume to its twin: each move once, and a look after whatever has failed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

import msgspec

from replant.cluster.ports import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    Reader,
    Writer,
)
from replant.core.convert.conditions import MET, Conditions, Disk
from replant.errors import Conflict, Missing, Uncertain
from replant.execute.runtime.late_look import LateLook
from replant.execute.runtime.volumes import get, look_at
from replant.execute.swapping import LookAtVolumes, ReplaceVolume, Seen
from replant.objects import Object
from replant.swap import moves
from replant.swap.moves import next_move

Sleep = Callable[[float], Awaitable[None]]

AWAY_AT_ONCE = 4
"""So many volumes may be away at a time: the fewer there are, the sooner each is back."""
_FAILURES = 5
"""So often in a row a move may fail before somebody else decides about the volume."""
_LOOKS = (0.015, 0.02, 0.03, 0.04, 0.06, 0.08, 0.16, 0.32, 0.64, 1.28)
"""How long to wait before each look for what others do; together two and a half seconds."""
_MISSED = 0.3
"""So many seconds after the controllers were told, they have missed it, and are told once more."""


class Swapper:
    """Carries the moves of volumes out."""

    def __init__(self, reader: Reader, writer: Writer, late: LateLook, sleep: Sleep) -> None:
        self._reader = reader
        self._writer = writer
        self._late = late
        self.sleep = sleep
        self.narrows = asyncio.Semaphore(AWAY_AT_ONCE)

    async def look(self, act: LookAtVolumes) -> dict[str, Seen]:
        """The volumes and claims of an act, as they are."""
        return await look_at(self._reader, act.volumes)

    async def replace(self, act: ReplaceVolume) -> moves.Move:
        """Move on until there is nothing left to do, or only others can do it."""
        async with AsyncExitStack() as narrows:
            way = _Way(self, act, narrows)
            return await way.go()

    async def rehearse(self, swap: moves.Swap) -> None:
        """See that the API server would take what is to come, while all is as it was."""
        await self._writer.rehearse(PERSISTENT_VOLUMES, swap.after)

    async def conditions(self, disk: Disk, move: moves.Delete | moves.Create) -> Conditions:
        """Whether the volume may be deleted, or created, at this moment."""
        if isinstance(move, moves.Create):
            return self._late.before_create(disk)
        return await self._late.conditions(disk)

    async def nudge(self, swap: moves.Swap, move: moves.Nudge) -> Object:
        """Change the claim of a volume; the claim as it is then."""
        namespace, name = swap.claim
        return await self._writer.patch(
            PERSISTENT_VOLUME_CLAIMS, name, move.patch, namespace=namespace
        )

    async def change(
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

    async def volume(self, swap: moves.Swap) -> Object | None:
        """The volume of that name, as it is."""
        return _decoded(await get(self._reader, PERSISTENT_VOLUMES, swap.name))

    async def claim(self, swap: moves.Swap) -> Object | None:
        """The claim of that name, as it is."""
        namespace, name = swap.claim
        return _decoded(await get(self._reader, PERSISTENT_VOLUME_CLAIMS, name, namespace))


class _Way:
    """One volume on its way: what was seen of it last, and what was done about it in this act."""

    def __init__(self, swapper: Swapper, act: ReplaceVolume, narrows: AsyncExitStack) -> None:
        self._swapper = swapper
        self._swap = act.swap
        self._volume = act.volume
        self._claim = act.claim
        self._disk = act.disk
        self._conditions: Conditions | None = None
        """As they were seen right before a delete or a create; None where nobody has looked."""
        self._narrows = narrows
        self._is_narrow = False
        self._rehearsed = False
        self._told: moves.Nudge | None = None
        self._looks = list(_LOOKS)
        self._waited = 0.0
        """So many seconds, since the controllers were told something."""

    async def go(self) -> moves.Move:
        """Move on; the last move says why it went no further."""
        failures = 0
        while True:
            move = next_move(self._swap, self._volume, self._claim, self._conditions or MET)
            try:
                if not await self._does(move):
                    return move
                if self._conditions is None:  # what was only looked at may still be refused
                    failures = 0
            except (Conflict, Missing, Uncertain):
                failures += 1
                self._conditions = None
                if failures >= _FAILURES:
                    raise
                await self._look()

    async def _does(self, move: moves.Move) -> bool:
        """Make a move, or wait for what others do; tells whether there may be another."""
        swap = self._swap
        match move:
            case moves.Done() | moves.Stuck() | moves.Outdated():
                return False
            case moves.Await() if self._conditions:
                return False  # others need its place among those that are away
            case moves.Await(otherwise=telling) if telling and self._is_missed():
                await self._tell(telling)
            case moves.Await():
                return await self._waits()
            case moves.Nudge():
                if self._told and (move == self._told or self._may_be_heard()):
                    return await self._waits()
                await self._tell(move)
            case moves.Patch() | moves.Delete() | moves.Create():
                await self._rehearse()
                await self._enter_or_leave_narrows(move)
                if isinstance(move, moves.Delete | moves.Create) and self._conditions is None:
                    self._conditions = await self._swapper.conditions(self._disk, move)
                    return True
                self._conditions = None
                self._volume = await self._swapper.change(swap.name, move)
        return True

    async def _tell(self, nudge: moves.Nudge) -> None:
        self._told = None  # whatever was told before: if this answer is lost, a look will say
        self._claim = await self._swapper.nudge(self._swap, nudge)
        self._told, self._waited = nudge, 0.0

    def _may_be_heard(self) -> bool:
        """Whether what was told last is still given time: the controllers have not acted yet."""
        acted = self._claim is not None and moves.is_bound(self._claim)
        return not acted and self._waited <= _MISSED

    def _is_missed(self) -> bool:
        """Whether it is to be taken back, with time left to say it again and to see what comes."""
        return not self._may_be_heard() and len(self._looks) > 1

    async def _rehearse(self) -> None:
        volume, before = self._volume, self._swap.before
        if volume is None or self._rehearsed:
            return
        if volume["metadata"]["uid"] == before["metadata"]["uid"]:
            await self._swapper.rehearse(self._swap)
        self._rehearsed = True

    async def _enter_or_leave_narrows(self, move: moves.Move) -> None:
        if isinstance(move, moves.Delete | moves.Create):
            if not self._is_narrow:
                await self._narrows.enter_async_context(self._swapper.narrows)
                self._is_narrow = True
        elif isinstance(move, moves.Patch) and "spec" in move.patch:
            await self._narrows.aclose()  # it is not away yet, or no longer

    async def _waits(self) -> bool:
        if not self._looks:
            return False
        wait = self._looks.pop(0)
        await self._swapper.sleep(wait)
        self._waited += wait
        if self._volume is None or self._claim is None:
            await self._look()
        elif not moves.is_bound(self._volume):
            self._volume = await self._swapper.volume(self._swap)
        else:
            self._claim = await self._swapper.claim(self._swap)
        return True

    async def _look(self) -> None:
        self._volume, self._claim = await asyncio.gather(
            self._swapper.volume(self._swap), self._swapper.claim(self._swap)
        )


def _decoded(body: bytes | None) -> Object | None:
    return None if body is None else msgspec.json.decode(body, type=dict)


def _is_gone(answer: Object) -> bool:
    """Whether what was asked for was the end of the object: nothing held it any more."""
    metadata = answer.get("metadata") or {}
    return answer.get("kind") == "Status" or (
        bool(metadata.get("deletionTimestamp")) and not metadata.get("finalizers")
    )
