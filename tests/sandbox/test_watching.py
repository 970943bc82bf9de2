"""Watches over HTTP: many at once, from any moment on, and what becomes of those too late."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from itertools import count
from typing import Any

import httpx
import pytest

from replant.sandbox.api import watching
from replant.sandbox.server import Sandbox, open_port, serving

CMS = "/api/v1/namespaces/default/configmaps"
WATCHERS = 100


def client(address: str) -> httpx.AsyncClient:
    limits = httpx.Limits(max_connections=WATCHERS + 10)
    return httpx.AsyncClient(base_url=address, trust_env=False, timeout=30, limits=limits)


async def events(
    http: httpx.AsyncClient,
    path: str,
    query: dict[str, str],
    begun: Callable[[], object] = lambda: None,
) -> AsyncIterator[dict[str, Any]]:
    async with http.stream("GET", path, params={"watch": "1", **query}) as answer:
        assert answer.status_code == 200
        begun()
        async for line in answer.aiter_lines():
            yield json.loads(line)


async def create(http: httpx.AsyncClient, name: str, **labels: str) -> dict[str, Any]:
    obj = {"metadata": {"name": name, "labels": labels}}
    answer = await http.post(CMS, json=obj)
    assert answer.status_code == 201
    found: dict[str, Any] = answer.json()
    return found


def test_a_hundred_watchers_see_the_same(address: str) -> None:
    async def watcher(
        http: httpx.AsyncClient, since: str, begun: Callable[[], object]
    ) -> list[str]:
        seen = []
        async for event in events(http, CMS, {"resourceVersion": since}, begun):
            seen.append(f"{event['type']} {event['object']['metadata']['name']}")
            if len(seen) == 3:
                break
        return seen

    async def main() -> list[list[str]]:
        async with client(address) as http:
            since = (await create(http, "first"))["metadata"]["resourceVersion"]
            watching = [asyncio.Event() for _each in range(WATCHERS)]
            watchers = [asyncio.create_task(watcher(http, since, it.set)) for it in watching]
            for it in watching:
                await it.wait()
            await create(http, "second")
            await http.delete(f"{CMS}/first")
            await http.delete(f"{CMS}/second")
            return await asyncio.gather(*watchers)

    seen = asyncio.run(main())
    assert seen == [["ADDED second", "DELETED first", "DELETED second"]] * WATCHERS


def test_a_watch_that_begins_with_all_says_when_it_has_told_all(address: str) -> None:
    async def main() -> list[dict[str, Any]]:
        async with client(address) as http:
            await create(http, "one", watch="list")
            await create(http, "two", watch="list")
            asked = {
                "sendInitialEvents": "true",
                "resourceVersionMatch": "NotOlderThan",
                "allowWatchBookmarks": "true",
                "labelSelector": "watch=list",
                "timeoutSeconds": "1",
            }
            return [event async for event in events(http, CMS, asked)]

    *added, bookmark = asyncio.run(main())
    assert [it["object"]["metadata"]["name"] for it in added] == ["one", "two"]
    assert bookmark["type"] == "BOOKMARK"
    assert bookmark["object"]["kind"] == "ConfigMap"
    metadata = bookmark["object"]["metadata"]
    assert metadata["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert int(metadata["resourceVersion"]) >= int(
        added[-1]["object"]["metadata"]["resourceVersion"]
    )


def test_a_watch_from_too_long_ago_is_told_so() -> None:
    async def main(address: str) -> list[dict[str, Any]]:
        async with client(address) as http:
            for number in range(30):
                await create(http, f"n{number}")
            return [it async for it in events(http, CMS, {"resourceVersion": "2"})]

    small = Sandbox(window=10)
    with closing(open_port(0)) as listening, serving(small, listening) as address:
        told = asyncio.run(main(address))
    assert [it["type"] for it in told] == ["ERROR"]
    assert (told[0]["object"]["code"], told[0]["object"]["reason"]) == (410, "Expired")


def test_bookmarks_come_also_while_others_change_all_the_time(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever sees none of the changes would else come back with a version that is forgotten."""
    monkeypatch.setattr(watching, "BOOKMARK_EVERY", 0.5)

    async def first_bookmark(http: httpx.AsyncClient) -> int:
        asked = {"labelSelector": "seen=never", "allowWatchBookmarks": "true"}
        async for event in events(http, CMS, {"timeoutSeconds": "20", **asked}):
            return int(event["object"]["metadata"]["resourceVersion"])
        return 0

    async def main() -> tuple[int, int]:
        async with client(address) as http:
            since = int((await create(http, "busy"))["metadata"]["resourceVersion"])
            waiting = asyncio.create_task(first_bookmark(http))
            for number in count():
                if waiting.done():
                    break
                merge = {"content-type": "application/merge-patch+json"}
                change = {"data": {"number": str(number)}}
                await http.patch(f"{CMS}/busy", json=change, headers=merge)
            return since, await waiting

    since, said = asyncio.run(main())
    assert said > since


def test_a_watch_of_one_object(address: str) -> None:
    async def main() -> list[str]:
        async with client(address) as http:
            await create(http, "mine")
            await create(http, "other")
            found = events(http, f"{CMS}/mine", {"timeoutSeconds": "1"})
            return [event["object"]["metadata"]["name"] async for event in found]

    assert asyncio.run(main()) == ["mine"]
