"""An API server and a clock in memory: what a lease and a journal need of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from typing import Any

from replant.cluster.ports import EVERYTHING, Change, Page, Resource, Selected
from replant.errors import Conflict, Missing, NotServed, Uncertain
from replant.objects import Object

Key = tuple[str, str, str]


class Clock:
    """Time that passes only where somebody sleeps."""

    haste = 1.0

    def __init__(self) -> None:
        self.time = 1_000_000.0
        self.slept: list[float] = []

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds
        await asyncio.sleep(0)

    async def wait(
        self, tasks: Collection[asyncio.Task[Any]], woken: asyncio.Event, seconds: float
    ) -> None:
        if tasks:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        elif not woken.is_set():
            await self.sleep(seconds)


class Api:
    """Keeps objects, counts versions, checks preconditions, and loses answers on demand."""

    def __init__(self) -> None:
        self.objects: dict[Key, Object] = {}
        self.version = 0
        self.lose_answers = 0
        """So many writes to come are done, and nobody is told."""
        self.on_write: Callable[[], None] = lambda: None

    async def get(self, resource: Resource, name: str, *, namespace: str = "") -> bytes:
        return json.dumps(self._found(resource, name, namespace)).encode()

    async def list_pages(
        self, resource: Resource, *, namespace: str = "", selected: Selected = EVERYTHING
    ) -> AsyncIterator[Page]:
        wanted = dict(it.split("=") for it in selected.labels.split(",") if it)
        found = [
            obj
            for (plural, within, _), obj in self.objects.items()
            if plural == resource.plural
            and namespace in ("", within)
            and wanted.items() <= (obj["metadata"].get("labels") or {}).items()
        ]
        yield Page(json.dumps({"items": found or None}).encode(), first=True)

    async def create(self, resource: Resource, obj: Object, *, namespace: str = "") -> Object:
        key = resource.plural, namespace, obj["metadata"]["name"]
        if key in self.objects:
            raise Conflict(f"{key} is there")
        return self._write(key, {**obj, "metadata": {**obj["metadata"], "uid": f"uid-{key}"}})

    async def rehearse(self, resource: Resource, obj: Object) -> None:
        raise NotServed(f"{resource.kind} {obj}")

    async def patch(
        self, resource: Resource, name: str, patch: Mapping[str, Any], *, namespace: str = ""
    ) -> Object:
        obj = self._found(resource, name, namespace)
        for field in ("uid", "resourceVersion"):
            given = patch.get("metadata", {}).get(field)
            if given is not None and given != obj["metadata"][field]:
                raise Conflict(f"{field} of {name} is another")
        return self._write((resource.plural, namespace, name), _merged(obj, patch))

    async def delete(
        self, resource: Resource, name: str, *, uid: str, version: str, namespace: str = ""
    ) -> Object:
        raise NotServed(f"{resource.kind} {name} {uid} {version} {namespace}")

    async def evict(self, pod: str, *, namespace: str, uid: str) -> None:
        raise NotServed(f"{namespace}/{pod} {uid}")

    def watch(self, resource: Resource, version: str) -> AsyncIterator[Change]:
        raise NotServed(f"{resource.kind} {version}")

    async def server_version(self) -> str:
        return "1.24.17"

    async def node_config(self, node: str) -> bytes:
        raise NotServed(node)

    def named(self, part: str) -> Object:
        """The one object whose name has this in it."""
        (found,) = (obj for (_, _, name), obj in self.objects.items() if part in name)
        return found

    def _found(self, resource: Resource, name: str, namespace: str) -> Object:
        key = resource.plural, namespace, name
        if key not in self.objects:
            raise Missing(f"{key} is not there")
        return self.objects[key]

    def _write(self, key: Key, obj: Object) -> Object:
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        self.objects[key] = obj
        self.on_write()
        if self.lose_answers:
            self.lose_answers -= 1
            raise Uncertain("the answer was lost")
        return json.loads(json.dumps(obj))  # type: ignore[no-any-return]


def _merged(obj: Object, patch: Mapping[str, Any]) -> Object:
    merged = dict(obj)
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, Mapping):
            merged[name] = _merged(merged.get(name) or {}, value)
        else:
            merged[name] = value
    return merged
