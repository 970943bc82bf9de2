"""What keeps the World true when watches end, expire, or tell what nobody can read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from replant.cluster.ports import EVERYTHING, Change, Page, Resource, Selected
from replant.errors import Expired, Final
from replant.execute.mirror import Mirror
from replant.execute.world import World
from tests.execute.memory import Api, Clock

EMPTY = b'{"metadata": {"resourceVersion": "1"}, "items": []}'
NODE = b'{"metadata": {"name": "n1", "uid": "u", "resourceVersion": "%d"}}'


class Watched(Api):
    """A server that ends every watch in one way."""

    def __init__(self, end: Exception | None = None, *, tells: bytes = b"", page: bytes = EMPTY):
        super().__init__()
        self.end = end
        self.tells = tells
        self.page = page
        self.lists = self.watches = 0

    async def list_pages(
        self, resource: Resource, *, namespace: str = "", selected: Selected = EVERYTHING
    ) -> AsyncIterator[Page]:
        del resource, namespace, selected
        self.lists += 1
        yield Page(self.page, first=True)

    async def watch(self, resource: Resource, version: str) -> AsyncIterator[Change]:
        del version
        self.watches += 1
        await asyncio.sleep(0)
        if self.tells and resource.kind == "Node":
            yield Change("MODIFIED", self.tells)
        if self.end:
            raise self.end


def followed(server: Watched, turns: int = 400) -> tuple[Clock, World]:
    async def story() -> None:
        mirror = Mirror(server, world, clock, lambda _: None)
        try:
            await mirror.start()
            for _ in range(turns):
                await asyncio.sleep(0)
                mirror.check()
        finally:
            await mirror.aclose()

    clock, world = Clock(), World()
    asyncio.run(story())
    return clock, world


@pytest.mark.parametrize("end", [Expired("too old"), None], ids=["expired", "ended"])
def test_a_server_that_ends_every_watch_is_not_asked_in_a_tight_loop(
    end: Exception | None,
) -> None:
    server = Watched(end)
    clock, _ = followed(server)
    assert clock.slept[-1] == 15.0
    # Four kinds, one try after the other, with pauses of up to a quarter of a minute.
    assert server.watches / 4 <= len(clock.slept) / 4 + 2


def test_watches_that_tell_something_are_begun_again_at_once() -> None:
    clock, world = followed(Watched(tells=NODE % 7), turns=20)
    assert world.node("n1")
    assert clock.slept.count(0.5) <= 3  # of the other kinds


@pytest.mark.parametrize(
    "server",
    [
        Watched(page=b'{"items": [{"metadata": {"name": 7}}]}'),
        Watched(page=b"<html>"),
        Watched(tells=b'{"metadata": {"name": 7}}'),
    ],
    ids=["item", "page", "change"],
)
def test_what_cannot_be_read_is_not_decided_about(server: Watched) -> None:
    with pytest.raises(Final, match="cannot be read"):
        followed(server)


def test_when_one_list_cannot_be_read_the_others_are_not_read_on() -> None:
    class Forbidding(Watched):
        async def list_pages(
            self, resource: Resource, *, namespace: str = "", selected: Selected = EVERYTHING
        ) -> AsyncIterator[Page]:
            if resource.kind == "Node":
                raise Final("you may not")
            async for page in super().list_pages(resource, namespace=namespace, selected=selected):
                for _ in range(10):
                    await asyncio.sleep(0)
                read.append(resource.kind)
                yield page

    async def story() -> None:
        mirror = Mirror(Forbidding(), World(), Clock(), lambda _: None)
        with pytest.raises(Final, match="you may not"):
            await mirror.start()
        for _ in range(20):
            await asyncio.sleep(0)

    read: list[str] = []
    asyncio.run(story())
    assert read == []
