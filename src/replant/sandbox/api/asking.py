"""A request, understood: what it is about, what it wants, and in which format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
import yaml
from starlette.requests import Request

from replant.objects import Object
from replant.sandbox import shapes
from replant.sandbox.api import protobuf
from replant.sandbox.ownership import UPDATE, Manager
from replant.sandbox.refusals import (
    ApiError,
    bad_request,
    invalid_kind,
    not_acceptable,
    nothing_there,
    unsupported_body,
    unsupported_value,
)
from replant.sandbox.resources import NAMESPACES, Registry, Resource

JSON, YAML = "application/json", "application/yaml"
_FIELD_VALIDATION = ("", "Ignore", "Strict", "Warn")
_READABLE = {"", JSON, YAML, protobuf.MEDIA, "application/x-www-form-urlencoded"}


@dataclass(frozen=True)
class Target:
    """What a path names."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def target(registry: Registry, group: str, version: str, path: str) -> Target:
    """What the part of a path behind the version names; ApiError if nothing is served there."""
    parts = [part for part in path.split("/") if part]
    namespace = ""
    if parts[0] == NAMESPACES.plural and len(parts) > 2 and not _of_namespace(group, parts):
        namespace, parts = parts[1], parts[2:]
    resource = registry.find(group, version, parts[0])
    if resource is None or len(parts) > 3:
        raise nothing_there()
    name, subresource = (*parts[1:], "", "")[:2]
    if bool(namespace) != resource.namespaced and (namespace or name):
        raise nothing_there()
    if subresource and subresource not in resource.subresources:
        raise nothing_there()
    return Target(resource, namespace, name, subresource)


def _of_namespace(group: str, parts: list[str]) -> bool:
    return not group and len(parts) == 3 and parts[2] in NAMESPACES.subresources


@dataclass(frozen=True)
class Format:
    """How an answer is to be written."""

    media: str = JSON
    shape: str = ""
    """Table, PartialObjectMetadata or PartialObjectMetadataList, instead of the object."""
    now: datetime = datetime.min
    """What ages in a table are counted to."""


def wanted_format(request: Request, now: datetime) -> Format:
    """The first format that is asked for and can be had; ApiError if there is none."""
    asked = request.headers.get("accept") or "*/*"
    for choice in asked.split(","):
        media, *parameters = (part.strip() for part in choice.split(";"))
        said = dict(part.partition("=")[::2] for part in parameters)
        if media in {"*/*", "application/*"}:
            return Format()
        if media in {JSON, YAML} and said.get("g", "meta.k8s.io") == "meta.k8s.io":
            return Format(media, said.get("as", ""), now)
    raise not_acceptable()


def manager(request: Request, api_version: str, subresource: str = "") -> Manager:
    """Who writes: what it calls itself, or else its program."""
    agent = request.headers.get("user-agent", "unknown").partition("/")[0]
    name = request.query_params.get("fieldManager") or agent
    return Manager(name, UPDATE, subresource, api_version)


def dry_run(request: Request, options: str) -> bool:
    """Whether nothing is to be stored."""
    asked = request.query_params.getlist("dryRun")
    return checked_dry_run(asked, options)


def check_field_validation(request: Request, options: str) -> None:
    """ApiError if somebody wants unknown fields to be treated in a way that there is not."""
    said = request.query_params.get("fieldValidation", "")
    if said not in _FIELD_VALIDATION:
        cause = unsupported_value("fieldValidation", said, _FIELD_VALIDATION)
        raise invalid_kind(options, "meta.k8s.io", "", [cause])


def checked_dry_run(asked: list[str], options: str) -> bool:
    """The same for what was said in another place; ApiError if it makes no sense."""
    if any(it != "All" for it in asked):
        listed = ",".join(f'"{it}"' for it in asked)
        cause = unsupported_value("dryRun", [], ["All"])
        said = cause.message.replace("[]", f"[{listed}]")
        raise invalid_kind(options, "meta.k8s.io", "", [type(cause)("dryRun", said, cause.reason)])
    return bool(asked)


def number(request: Request, name: str) -> int | None:
    """A query parameter that is a number; ApiError if it is none."""
    said = request.query_params.get(name)
    if not said:
        return None
    try:
        return int(said)
    except ValueError:
        raise bad_request(f'strconv.ParseInt: parsing "{said}": invalid syntax') from None


def said_truth(request: Request, name: str) -> bool | None:
    """The same where it matters whether it is said at all; whatever is not false is true."""
    said = request.query_params.get(name)
    return None if said is None else said.lower() not in {"0", "false"}


def truth(request: Request, name: str) -> bool:
    """A query parameter that is true or false."""
    return request.query_params.get(name, "").lower() in {"1", "true", "t"}


async def content(request: Request) -> Any:
    """The body, read; ApiError if that cannot be done."""
    media = request.headers.get("content-type", "").partition(";")[0].strip()
    if media not in _READABLE:
        raise unsupported_body()
    if media == protobuf.MEDIA:
        try:
            return protobuf.decode(await request.body())
        except protobuf.Unreadable:
            raise unsupported_body() from None
    return read(await request.body(), media)


def read(body: bytes, media: str) -> Any:
    """What is written in a body."""
    try:
        return yaml.safe_load(body) if "yaml" in media else msgspec.json.decode(body)
    except (msgspec.DecodeError, yaml.YAMLError, UnicodeDecodeError) as error:
        said = body.decode(errors="replace")
        raise bad_request(
            f"couldn't get version/kind; json parse error: {error} ({said[:1000]})"
        ) from None


def checked_object(
    body: Any,
    resource: Resource,
    kind: str = "",
    api_version: str = "",
    refusal: Callable[[str], ApiError] = bad_request,
) -> Object:
    """A body that is an object of the kind that belongs here; ApiError if it is not."""
    kind, api_version = kind or resource.kind, api_version or resource.api_version
    if not isinstance(body, dict):
        raise bad_request(f"the object provided is unrecognized (must be of type {kind})")
    said_kind, said_version = body.get("kind") or kind, body.get("apiVersion") or api_version
    if (said_kind, said_version) != (kind, api_version):
        raise bad_request(
            f'{said_kind} in version "{said_version}" cannot be handled as a {kind}: no kind '
            f'"{said_kind}" is registered for version "{said_version}"'
        )
    if not resource.custom:
        body = shapes.without_nulls(body)
    if why := shapes.wrong(body, kind):
        said = f'{kind} in version "{resource.version}" cannot be handled as a {kind}: {why}'
        raise refusal(said)
    return {**body, "kind": kind, "apiVersion": api_version, "metadata": body.get("metadata") or {}}
