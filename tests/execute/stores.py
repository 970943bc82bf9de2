"""A Reader of a sandbox's store: no HTTP, and no clock but the sandbox's own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

from replant.cluster.collect import Collector
from replant.cluster.ports import EVERYTHING, Change, Page, Resource, Selected
from replant.errors import Missing, NotServed
from replant.execute.census import Census, take_census
from replant.inventory.build import Builder
from replant.inventory.model import Inventory
from replant.plan.make import Wanted, make_plan
from replant.plan.model import Goal, Plan
from replant.sandbox.cluster import Cluster
from replant.sandbox.resources import Registry
from replant.sandbox.store import Store


class StoreReader:
    """Reads what a store has, a few objects to a page."""

    def __init__(self, store: Store, version: str = "1.24.17", page_size: int = 3) -> None:
        self._store = store
        self._version = version
        self._page_size = page_size
        self._registry = Registry()

    async def get(self, resource: Resource, name: str, *, namespace: str = "") -> bytes:
        raise Missing(f"{resource.kind} {namespace}/{name}")

    def watch(self, resource: Resource, version: str) -> AsyncIterator[Change]:
        raise NotServed(f"{resource.kind} {version}")

    async def list_pages(
        self, resource: Resource, *, namespace: str = "", selected: Selected = EVERYTHING
    ) -> AsyncIterator[Page]:
        group = f"{resource.group}/" if resource.group else ""
        found = self._registry.of_kind(f"{group}{resource.version}", resource.kind)
        if found is None:
            raise NotServed(resource.kind)
        wanted = dict(part.split("=") for part in selected.fields.split(",") if part)
        items = [
            entry.value()
            for entry in self._store.entries(found)
            if (not namespace or entry.namespace == namespace)
            and all(entry.fields.get(key) == value for key, value in wanted.items())
        ]
        for start in range(0, max(len(items), 1), self._page_size):
            part = items[start : start + self._page_size]
            yield Page(json.dumps({"items": part}).encode(), first=start == 0)

    async def server_version(self) -> str:
        return self._version

    async def node_config(self, node: str) -> bytes:
        raise NotServed(node)


def census_of(cluster: Cluster) -> Census:
    return asyncio.run(take_census(StoreReader(cluster.store)))


def inventory_of(cluster: Cluster) -> Inventory:
    async def collect() -> Inventory:
        builder = Builder()
        said: list[object] = []
        collector = Collector(
            StoreReader(cluster.store), builder,
            complain=said.append, progress=lambda _kind, _count: None,
        )  # fmt: skip
        await collector.collect()
        assert said == []
        return builder.finish(server=cluster.version, unknown=collector.unknown)

    return asyncio.run(collect())


def plan_of(cluster: Cluster, goal: Goal, *plugins: str) -> Plan:
    return make_plan(Wanted(goal=goal, plugins=plugins), inventory_of(cluster))
