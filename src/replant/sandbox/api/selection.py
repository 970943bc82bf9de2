"""Which objects a list or a watch is asked for: label and field selectors."""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request

from replant.inventory.selectors import Selector
from replant.sandbox.refusals import bad_request
from replant.sandbox.resources import Resource
from replant.sandbox.shelves import NODE_NAME, Entry, Wanted

_NAMES: dict[str, Callable[[Entry], str]] = {
    "metadata.name": lambda entry: entry.name,
    "metadata.namespace": lambda entry: entry.namespace,
}


def wanted(request: Request, resource: Resource, name: str = "") -> Wanted | None:
    """What must hold for an object to be meant, or None if all are."""
    conditions: list[Wanted] = []
    if said := request.query_params.get("labelSelector"):
        conditions.append(_labels(said))
    if said := request.query_params.get("fieldSelector"):
        conditions += [_field(resource, part) for part in said.split(",") if part]
    if name:
        conditions.append(lambda entry: entry.name == name)
    if not conditions:
        return None
    return lambda entry: all(condition(entry) for condition in conditions)


def only_node(request: Request) -> str:
    """The node on which everything must be that is meant; nothing if it may be anywhere."""
    said = request.query_params.get("fieldSelector", "")
    parts = [part.partition("=") for part in said.split(",")]
    return next((value.removeprefix("=") for field, _, value in parts if field == NODE_NAME), "")


def _labels(said: str) -> Wanted:
    try:
        selector = Selector.parse(said)
    except ValueError as error:
        raise bad_request(f"unable to parse requirement: {error}") from None
    return lambda entry: selector.matches(entry.labels)


def _field(resource: Resource, part: str) -> Wanted:
    sign = next((it for it in ("!=", "==", "=") if it in part), "")
    if not sign:
        raise bad_request(f"invalid selector: '{part}'; can't understand '{part}'")
    field, _sign, value = part.partition(sign)
    if field in _NAMES:
        read = _NAMES[field]
    elif field in resource.fields:

        def read(entry: Entry) -> str:
            return entry.fields.get(field, "")

    else:
        raise bad_request(_unknown(resource, field))
    return lambda entry: (read(entry) == value) is (sign != "!=")


def _unknown(resource: Resource, field: str) -> str:
    if resource.fields:
        return f"field label not supported: {field}"
    return f'"{field}" is not a known field selector: only "metadata.name", "metadata.namespace"'
