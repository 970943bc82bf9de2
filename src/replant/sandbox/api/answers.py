"""Objects, lists and refusals as HTTP answers. Stored texts are passed on, not read."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import msgspec
import yaml
from starlette.responses import Response

from replant.objects import Object
from replant.sandbox.api import tables
from replant.sandbox.api.asking import YAML, Format
from replant.sandbox.refusals import ApiError
from replant.sandbox.resources import Resource
from replant.sandbox.shelves import Entry


def text(body: bytes, how: Format = Format(), code: int = 200) -> Response:  # noqa: B008
    """An answer whose JSON is there already."""
    if how.media == YAML:
        body = yaml.safe_dump(msgspec.json.decode(body), sort_keys=False).encode()
    return Response(body, code, media_type=how.media)


def value(obj: object, how: Format = Format(), code: int = 200) -> Response:  # noqa: B008
    """An answer that is still to be written."""
    return text(msgspec.json.encode(obj) + b"\n", how, code)


def refusal(error: ApiError) -> Response:
    """No, and why."""
    answer = value(error.status(), code=error.code)
    if seconds := (error.details or {}).get("retryAfterSeconds"):
        answer.headers["Retry-After"] = str(seconds)
    return answer


def one(entry: Entry, resource: Resource, how: Format, code: int = 200) -> Response:
    """One object."""
    if how.shape:
        return value(shaped(resource, [entry], how, {}), how, code)
    return text(whole(entry, resource) + b"\n", how, code)


def shaped(
    resource: Resource,
    entries: Iterable[Entry],
    how: Format,
    metadata: Object,
    *,
    head: bool = True,
) -> Object:
    """Entries as a table, or as their metadata."""
    if how.shape == "Table":
        return tables.table(resource, entries, metadata, how.now, head=head)
    partial = [tables.PARTIAL | {"metadata": it.value()["metadata"]} for it in entries]
    if how.shape == "PartialObjectMetadataList":
        kind = {"kind": how.shape, "apiVersion": "meta.k8s.io/v1"}
        return {**kind, "metadata": metadata, "items": partial}
    return partial[0]


def many(resource: Resource, entries: Iterable[Entry], metadata: Object, how: Format) -> Response:
    """A list: texts joined, with what they have in common said once."""
    if how.shape:
        return value(shaped(resource, entries, how, metadata), how)
    head = msgspec.json.encode(
        {"kind": f"{resource.kind}List", "apiVersion": resource.api_version, "metadata": metadata}
    )
    if resource.custom:
        items = [whole(it, resource) for it in entries]
    else:
        said = len(_prefix(resource))
        items = [b"{" + it.text[said:] for it in entries]
    return text(b"".join((head[:-1], b',"items":[', b",".join(items), b"]}\n")), how)


@cache
def _prefix(resource: Resource) -> bytes:
    both = {"kind": resource.kind, "apiVersion": resource.api_version}
    return msgspec.json.encode(both)[:-1] + b","


def whole(entry: Entry, resource: Resource) -> bytes:
    """An object's text, in the version that it is asked for."""
    if not resource.custom or resource.version == resource.storage_version:
        return entry.text
    return msgspec.json.encode({**entry.value(), "apiVersion": resource.api_version})


def line(kind: str, body: bytes) -> bytes:
    """One event of a watch."""
    return b'{"type":"%s","object":%s}\n' % (kind.encode(), body)
