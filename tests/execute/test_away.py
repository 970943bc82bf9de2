"""A cluster that is away while it is watched."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from replant.cluster.ports import EVERYTHING, Change, Page, Resource, Selected
from replant.errors import Unreachable
from replant.execute.mirror import Mirror
from replant.execute.timing import RealTiming
from replant.execute.world import World
from tests import virtual_time


class Away:
    """A Reader of a cluster that is away as soon as everything was listed."""

    async def list_pages(
        self, resource: Resource, *, namespace: str = "", selected: Selected = EVERYTHING
    ) -> AsyncIterator[Page]:
        assert resource.namespaced or not namespace
        assert selected == EVERYTHING
        yield Page(b'{"items": [], "metadata": {"resourceVersion": "7"}}', first=True)

    async def watch(self, resource: Resource, version: str) -> AsyncIterator[Change]:
        if version:
            raise Unreachable("the cluster is away")
        yield Change("BOOKMARK", resource.kind.encode())

    async def get(self, resource: Resource, name: str, *, namespace: str = "") -> bytes:
        raise AssertionError(f"nobody asks to get {resource} {name} {namespace} here")

    async def server_version(self) -> str:
        raise AssertionError("nobody asks for the server version here")

    async def node_config(self, node: str) -> bytes:
        raise AssertionError(f"nobody asks for the config of {node} here")


def test_all_watches_break_off_together_and_it_is_said_once() -> None:
    said: list[str] = []

    async def main() -> None:
        mirror = Mirror(Away(), World(), RealTiming(), said.append)
        await mirror.start()
        # Short of the fourth time, which comes 0.5 + 1 + 2 s after the first.
        await asyncio.sleep(3.4)
        await mirror.aclose()

    virtual_time.run(main())
    assert said == [f"the cluster is away; watching again in {it} s" for it in ("0.5", "1", "2")]
