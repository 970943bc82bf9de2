"""What a consumer of a Reader does with pages."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable

from replant.cluster.ports import Reader, Resource


def names(resource: Resource, namespace: str = "") -> Callable[[Reader], Awaitable[list[str]]]:
    """Read a list to its end, and forget what came before a page that is the first."""

    async def ask(reader: Reader) -> list[str]:
        found: list[str] = []
        async for page in reader.list_pages(resource, namespace=namespace):
            if page.first:
                found.clear()
            found += [item["metadata"]["name"] for item in json.loads(page.body)["items"]]
        return found

    return ask
