"""The three kinds of patch, as pure functions on objects."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import jsonpatch
import jsonpointer

from replant.sandbox.refusals import ApiError, bad_request, unusable_patch
from replant.sandbox.resources import Path
from replant.sandbox.structure import Structure

JSON = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"

_DIRECTIVE = "$patch"
_RETAIN = "$retainKeys"
_DELETE_FROM = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"


def json_patch(obj: Any, patch: Any) -> Any:
    """RFC 6902: operations, one after the other."""
    if not isinstance(patch, list):
        raise bad_request("error decoding patch: a JSON patch is a list of operations")
    try:
        return jsonpatch.apply_patch(deepcopy(obj), patch)
    except jsonpatch.InvalidJsonPatch as error:
        raise bad_request(f"error decoding patch: {error}") from None
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException):
        raise unusable_patch() from None


def merge_patch(obj: Any, patch: Any) -> Any:
    """RFC 7386: what is said is set, what is null is removed."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(obj) if isinstance(obj, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged


def strategic_patch(obj: Any, patch: Any, structure: Structure) -> Any:
    """Kubernetes' own: as a merge patch, but lists that are maps in disguise are merged too."""
    if not isinstance(patch, dict):
        raise bad_request("error decoding patch: a strategic merge patch is an object")
    return _map(obj, patch, (), structure)


def _map(current: Any, patch: dict[str, Any], path: Path, structure: Structure) -> Any:
    directive = patch.get(_DIRECTIVE, "merge")
    if directive in {"replace", "delete"}:
        return _plain(patch) if directive == "replace" else {}
    if directive != "merge":
        raise bad_request(f"Unknown patch type found: {directive}")
    merged = dict(current) if isinstance(current, dict) else {}
    if _RETAIN in patch:
        merged = {name: it for name, it in merged.items() if name in patch[_RETAIN]}
    for field, gone in _directives(patch, _DELETE_FROM):
        merged[field] = [it for it in merged.get(field) or () if it not in gone]
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        elif not name.startswith("$"):
            merged[name] = _value(merged.get(name), value, (*path, name), structure)
    for field, order in _directives(patch, _ORDER):
        there = merged.get(field)
        if isinstance(there, list):
            before = current.get(field) if isinstance(current, dict) else None
            key = structure.patched.get((*path, field))
            merged[field] = _in_order(there, order, before or [], key)
    return merged


def _directives(patch: dict[str, Any], prefix: str) -> list[tuple[str, Any]]:
    """What a patch says beside its fields, by the field that it says it of."""
    return [
        (name.removeprefix(prefix), said) for name, said in patch.items() if name.startswith(prefix)
    ]


def _value(current: Any, patch: Any, path: Path, structure: Structure) -> Any:
    if isinstance(patch, dict):
        return _plain(patch) if path in structure.whole else _map(current, patch, path, structure)
    if isinstance(patch, list):
        if path in structure.patched:
            return _items(current or [], patch, path, structure)
        if path in structure.patched_sets:
            before = current or []
            merged = [*before, *(it for it in patch if it not in before)]
            return _in_order(merged, patch, before, None)
        return _plain(patch)
    return patch


def _items(current: list[Any], patch: list[Any], path: Path, structure: Structure) -> list[Any]:
    key = structure.patched[path]
    if any(isinstance(it, dict) and it.get(_DIRECTIVE) == "replace" for it in patch):
        return [_plain(it) for it in patch if _DIRECTIVE not in it]
    merged = list(current)
    for item in patch:
        if not isinstance(item, dict) or key not in item:
            raise _no_key(item, key)
        places = [n for n, it in enumerate(merged) if it.get(key) == item[key]]
        if item.get(_DIRECTIVE) == "delete":
            merged = [it for n, it in enumerate(merged) if n not in places]
        elif places:
            merged[places[0]] = _map(merged[places[0]], item, path, structure)
        else:
            merged.append(_map({}, item, path, structure))
    return _in_order(merged, patch, current, key)


def _no_key(item: Any, key: str) -> ApiError:
    return ApiError(500, "", f"map: {item} does not contain declared merge key: {key}", None)


def _in_order(items: list[Any], order: list[Any], before: list[Any], key: str | None) -> list[Any]:
    """The items that the patch orders in its order; the others as they were, as late as can be.

    Another goes in front of an ordered one only if both were there before in that order.
    """

    def said(item: Any) -> Any:
        return item.get(key) if key else item

    wanted, known = [said(it) for it in order], [said(it) for it in before]
    ordered = [it for it in items if said(it) in wanted]
    ordered.sort(key=lambda it: wanted.index(said(it)))
    others = [it for it in items if said(it) not in wanted]
    merged: list[Any] = []
    for item in ordered:
        place = known.index(said(item)) if said(item) in known else -1
        while others and said(others[0]) in known[: max(place, 0)]:
            merged.append(others.pop(0))
        merged.append(item)
    return merged + others


def _plain(value: Any) -> Any:
    """A part of a patch as it is stored: without directives, nulls and what they meant."""
    if isinstance(value, dict):
        return {
            name: _plain(it)
            for name, it in value.items()
            if it is not None and not name.startswith("$")
        }
    if isinstance(value, list):
        return [_plain(it) for it in value]
    return value
