"""GET: one object, or a list in pages."""

from __future__ import annotations

import base64
import binascii

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from replant.objects import Object
from replant.sandbox.api import answers
from replant.sandbox.api.asking import Target, number, wanted_format
from replant.sandbox.api.selection import only_node, wanted
from replant.sandbox.refusals import (
    ApiError,
    Cause,
    bad_request,
    expired,
    forbidden_value,
    from_the_future,
    invalid_kind,
    unsupported_value,
)
from replant.sandbox.store import Page, Store

_TOKEN_VERSION = "meta.k8s.io/v1"  # noqa: S105 (a version)
_INCONSISTENT = -1
"""The version in a token that goes on with whatever is there by then."""
GONE = 410


def get(store: Store, request: Request, target: Target) -> Response:
    """One object."""
    how = wanted_format(request, store.now())
    entry = store.entry(target.resource, target.name, target.namespace)
    return answers.one(entry, target.resource, how)


def list_page(store: Store, request: Request, target: Target) -> Response:
    """One page of a list."""
    how = wanted_format(request, store.now())
    page = _page(store, request, target)
    metadata: Object = {"resourceVersion": str(page.version)}
    if page.next_key:
        metadata["continue"] = _token(page.version, page.next_key)
        if page.remaining is not None:
            metadata["remainingItemCount"] = page.remaining
    return answers.many(target.resource, page.entries, metadata, how)


def _page(store: Store, request: Request, target: Target) -> Page:
    limit = number(request, "limit") or 0
    token = request.query_params.get("continue", "")
    check_match(request)
    if token and request.query_params.get("resourceVersion") not in {None, "", "0"}:
        raise bad_request("specifying resource version is not allowed when using continue")
    at, start = _read_token(token) if token else (exact_version(store, request), "")
    selected = wanted(request, target.resource)
    try:
        return store.page(
            target.resource, target.namespace, selected, limit, start, at, only_node(request)
        )
    except ApiError as error:
        if error.code != GONE or not token:
            raise
        raise expired(error.message, _token(_INCONSISTENT, start)) from None


def exact_version(store: Store, request: Request) -> int:
    """The version that a list must be of, or 0 if the newest will do."""
    asked = version(request)
    if asked > store.version:
        raise from_the_future(asked, store.version)
    match = request.query_params.get("resourceVersionMatch")
    return asked if match == "Exact" else 0


def version(request: Request) -> int:
    """The resourceVersion that is asked for; 0 if none is."""
    said = request.query_params.get("resourceVersion") or "0"
    if not said.isascii() or not said.isdigit():
        raise bad_request(
            f'invalid resource version: resourceVersion: Invalid value: "{said}": '
            f'strconv.ParseUint: parsing "{said}": invalid syntax'
        )
    return int(said)


def check_match(request: Request) -> None:
    """Whether resourceVersionMatch makes sense; ApiError if not."""
    match = request.query_params.get("resourceVersionMatch")
    if not match:
        return
    field = "resourceVersionMatch"
    cause: Cause | None = None
    if match not in {"Exact", "NotOlderThan"}:
        cause = unsupported_value(field, match, ["Exact", "NotOlderThan", ""])
    elif not request.query_params.get("resourceVersion") and "watch" not in request.query_params:
        cause = forbidden_value(field, f"{field} is forbidden unless resourceVersion is provided")
    elif request.query_params.get("continue"):
        cause = forbidden_value(field, f"{field} is forbidden when continue is provided")
    if cause:
        raise invalid_kind("ListOptions", "meta.k8s.io", "", [cause])


def _token(version: int, start: str) -> str:
    said = {"v": _TOKEN_VERSION, "rv": version, "start": start}
    return base64.urlsafe_b64encode(msgspec.json.encode(said)).decode().rstrip("=")


def _read_token(token: str) -> tuple[int, str]:
    try:
        padded = token + "=" * (-len(token) % 4)
        said = msgspec.json.decode(base64.urlsafe_b64decode(padded))
        return int(said["rv"]), str(said["start"])
    except (binascii.Error, msgspec.DecodeError, KeyError, TypeError, ValueError) as error:
        raise bad_request(f"invalid continue token: continue key is not valid: {error}") from None
