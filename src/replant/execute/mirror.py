"""Keeps the World true: lists once, then watches, and lists again where it must."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from msgspec import DecodeError, Struct, convert, field
from msgspec.json import Decoder

from replant.cluster.ports import NODES, PODS, Reader, Resource, Selected
from replant.errors import Expired, Final, Missing, Unreachable
from replant.execute.emptying import FreshNode
from replant.execute.insisting import Notice, insist, pause
from replant.execute.timing import Timing
from replant.execute.world import DECODERS, WATCHED, Metadata, Node, Pod, Record, World
from replant.objects import Object

_Kind = TypeVar("_Kind")

BOOKMARK, DELETED = "BOOKMARK", "DELETED"


class _ListMeta(Struct, rename="camel"):
    resource_version: str = ""


class _Page(Struct, Generic[_Kind]):
    items: list[_Kind] | None = None
    metadata: _ListMeta = field(default_factory=_ListMeta)


class _Bookmark(Struct):
    metadata: Metadata


_PAGES: dict[Resource, Decoder[Any]] = {
    resource: Decoder(_Page[record])  # type: ignore[valid-type]
    for resource, record in WATCHED.items()
}
_BOOKMARK = Decoder(_Bookmark)


class Mirror:
    """What a Reader tells, as a World. Everything in one event loop."""

    def __init__(self, reader: Reader, world: World, timing: Timing, notice: Notice) -> None:
        self._reader = reader
        self.world = world
        self._timing = timing
        self._notice = notice
        self._tasks: dict[Resource, asyncio.Task[None]] = {}
        self._told = ""
        """Of a server that is away; nothing, once it is back."""
        self.changed = asyncio.Event()
        """Set whenever something is news."""

    async def start(self) -> None:
        """Read everything once; from then on it is watched."""
        lists = [asyncio.create_task(self._list(it)) for it in WATCHED]
        try:
            versions = await asyncio.gather(*lists)
        except BaseException:
            # One that cannot be read is enough: the others are not asked for to no purpose.
            for it in lists:
                it.cancel()
            await asyncio.gather(*lists, return_exceptions=True)
            raise
        for resource, version in zip(WATCHED, versions, strict=True):
            self._tasks[resource] = asyncio.create_task(self._follow(resource, version))

    def relist(self) -> None:
        """Trust the watches no longer, and read everything once more."""
        for resource in self._tasks:
            self._tasks[resource].cancel()
            self._tasks[resource] = asyncio.create_task(self._follow(resource, ""))

    def check(self) -> None:
        """Raise what keeps it from seeing anything at all."""
        for task in self._tasks.values():
            if task.done() and not task.cancelled() and (error := task.exception()):
                raise error

    async def aclose(self) -> None:
        """Watch no more."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def look_at(self, name: str) -> FreshNode:
        """A node and its pods at this moment; the World learns of them too."""

        async def node() -> Node | None:
            try:
                body = await self._reader.get(NODES, name)
            except Missing:
                if known := self.world.node(name):
                    self.world.remove(NODES, known)
                return None
            found = _decode(NODES, body)
            self.world.put(NODES, found)
            return found if isinstance(found, Node) else None

        seen = await insist(node, self._timing, self._notice)
        selected = Selected(fields=f"spec.nodeName={name}")
        records, version = await insist(
            lambda: self._pages(PODS, selected), self._timing, self._notice
        )
        pods = tuple(it for it in records if isinstance(it, Pod))
        self.world.refresh_pods(name, pods, version)
        self.changed.set()
        return FreshNode(seen, pods, version)

    def take(self, resource: Resource, obj: Object) -> None:
        """Learn at once of what we have written ourselves."""
        self.world.put(resource, convert(obj, WATCHED[resource]))
        self.changed.set()

    async def _follow(self, resource: Resource, version: str) -> None:
        fruitless = 0
        """So many watches, one after the other, have told nothing at all."""
        while True:
            try:
                if not version:
                    version = await self._list(resource)
                async for change in self._reader.watch(resource, version):
                    fruitless, self._told = 0, ""
                    version = self._take(resource, change.type, change.body)
            except Expired:
                version = ""
            except Unreachable as error:
                seconds = pause(fruitless)
                self._tell(f"{error}; watching again in {seconds:g} s")
                fruitless += 1
                await self._timing.sleep(seconds)
                continue
            fruitless += 1
            if fruitless > 1:
                # A server that ends every watch at once would be asked thousands of times.
                await self._timing.sleep(pause(fruitless - 2))

    def _tell(self, text: str) -> None:
        """Say once what all watches come upon: they break off together."""
        if text != self._told:
            self._told = text
            self._notice(text)

    def _take(self, resource: Resource, type_: str, body: bytes) -> str:
        if type_ == BOOKMARK:
            with _legible(resource):
                return _BOOKMARK.decode(body).metadata.resource_version
        record = _decode(resource, body)
        if type_ == DELETED:
            self.world.remove(resource, record)
        else:
            self.world.put(resource, record)
        self.changed.set()
        return record.metadata.resource_version

    async def _list(self, resource: Resource) -> str:
        records, version = await insist(lambda: self._pages(resource), self._timing, self._notice)
        self.world.replace(resource, records)
        self.changed.set()
        return version

    async def _pages(
        self, resource: Resource, selected: Selected | None = None
    ) -> tuple[list[Record], str]:
        records: list[Record] = []
        version = ""
        async for page in self._reader.list_pages(resource, selected=selected or Selected()):
            if page.first:
                records = []
            with _legible(resource):
                listed = _PAGES[resource].decode(page.body)
            records += listed.items or ()
            version = listed.metadata.resource_version
        return records, version


def _decode(resource: Resource, body: bytes) -> Record:
    with _legible(resource):
        return DECODERS[resource].decode(body)


@contextmanager
def _legible(resource: Resource) -> Iterator[None]:
    try:
        yield
    except DecodeError as error:
        # Nothing may be decided about a cluster of which a part cannot be read.
        raise Final(f"a {resource.kind} cannot be read: {error}") from None
