"""Who owns which fields: ``metadata.managedFields``, and the merge that server-side apply does.

Inside, a set of fields is a set of paths whose elements are written as FieldsV1 writes them:
``f:name`` for a field, ``k:{…}`` and ``v:…`` for items of lists.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from replant.objects import Object
from replant.sandbox.refusals import ApiError
from replant.sandbox.resources import Path
from replant.sandbox.structure import MAPS, Structure

Fields = frozenset[Path]
APPLY, UPDATE = "Apply", "Update"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

_THERE = object()
"""The value of an item of a list: that it is there."""
_MAP = object()
"""The value of a map: that it is there. Who applies owns what is in a map, not the map."""
_UNOWNED = {
    ("f:kind",),
    ("f:apiVersion",),
    *(
        ("f:metadata", f"f:{name}")
        for name in (
            "name", "namespace", "uid", "resourceVersion", "creationTimestamp", "generation",
            "managedFields", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink",
        )
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Manager:
    """Who writes: a name, how, and through which subresource."""

    name: str
    operation: str = UPDATE
    subresource: str = ""
    api_version: str = ""


Managers = dict[Manager, tuple[Fields, str]]
"""What each owns, and since when."""


def leaves(obj: Object, structure: Structure) -> dict[Path, Any]:
    """Every field of an object that can have an owner, with its value."""
    return dict(_leaves(obj, (), (), structure))


def _leaves(
    value: Any, fields: Path, path: Path, structure: Structure
) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, dict) and value and not structure.is_one_value(fields):
        if fields and fields[-1] in MAPS:
            yield path, _MAP
        yield from _leaves_of_map(value, fields, path, structure)
    elif isinstance(value, list) and value and fields in structure.keyed:
        for item in value:
            place = (*path, _item_key(item, structure.keyed[fields]))
            yield place, _THERE
            if isinstance(item, dict):
                yield from _leaves_of_map(item, fields, place, structure)
    elif isinstance(value, list) and value and fields in structure.sets:
        for item in value:
            yield (*path, f"v:{_written(item)}"), item
    else:
        yield path, value


def _leaves_of_map(
    value: Object, fields: Path, path: Path, structure: Structure
) -> Iterator[tuple[Path, Any]]:
    for name, part in value.items():
        place = (*path, f"f:{name}")
        if place not in _UNOWNED:
            yield from _leaves(part, (*fields, name), place, structure)


def _item_key(item: Any, keys: tuple[str, ...]) -> str:
    said = item if isinstance(item, dict) else {}
    # A port that does not say its protocol means this one; the key says it nevertheless.
    assumed = {"protocol": "TCP"}
    key = {name: said.get(name, assumed.get(name)) for name in sorted(keys)}
    return f"k:{_written({name: value for name, value in key.items() if value is not None})}"


def _written(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def managers_of(obj: Object) -> Managers:
    """Who owns what, as an object says it."""
    managers: Managers = {}
    for entry in obj["metadata"].get("managedFields") or ():
        manager = Manager(
            entry.get("manager", ""),
            entry.get("operation", UPDATE),
            entry.get("subresource", ""),
            entry.get("apiVersion", ""),
        )
        managers[manager] = (_read(entry.get("fieldsV1") or {}), entry.get("time", ""))
    return managers


def _read(tree: Object) -> Fields:
    found: set[Path] = set()
    todo: list[tuple[Path, Object]] = [((), tree)]
    while todo:
        path, node = todo.pop()
        if path and (not node or "." in node):
            found.add(path)
        todo += [((*path, name), part) for name, part in node.items() if name != "."]
    return frozenset(found)


def write_managers(obj: Object, managers: Managers) -> None:
    """Say in an object who owns what."""
    entries = []
    for manager, (fields, time) in managers.items():
        if not fields:
            continue
        entry = {"manager": manager.name, "operation": manager.operation}
        entry |= {"apiVersion": manager.api_version, "time": time, "fieldsType": "FieldsV1"}
        entries.append(entry | {"fieldsV1": _tree(fields)})
        if manager.subresource:
            entries[-1]["subresource"] = manager.subresource
    obj["metadata"].pop("managedFields", None)
    if entries:
        obj["metadata"]["managedFields"] = entries


def _tree(fields: Fields) -> Object:
    tree: Object = {}
    for path in sorted(fields):
        node = tree
        for depth, element in enumerate(path):
            if element not in node:
                node[element] = {}
            # What has parts and is owned itself says the latter with a dot.
            if depth < len(path) - 1 and path[: depth + 1] in fields:
                node[element].setdefault(".", {})
            node = node[element]
    return tree


def track(
    old: Object | None, new: Object, manager: Manager | None, time: str, structure: Structure
) -> None:
    """Write down in ``new`` who owns what, now that ``manager`` has made it of ``old``."""
    managers = managers_of(new)
    if manager is None and not managers:
        return
    before = leaves(old, structure) if old else {}
    after = leaves(new, structure)
    changed = frozenset(
        path for path, value in after.items() if path not in before or before[path] != value
    )
    kept: Managers = {}
    for other, (fields, since) in managers.items():
        left = frozenset(fields & after.keys())
        if manager is not None and other != manager:
            left -= changed
        kept[other] = (left, since)
    if manager is not None and changed:
        own = kept.get(manager, (frozenset(), ""))[0]
        kept[manager] = (own | changed, time)
    write_managers(new, kept)


def apply(
    live: Object, wanted: Object, manager: Manager, time: str, structure: Structure, *, force: bool
) -> Object:
    """What becomes of ``live`` when ``manager`` applies ``wanted``; ApiError for conflicts."""
    managers = managers_of(live)
    now = leaves(live, structure)
    asked = {path: it for path, it in leaves(wanted, structure).items() if it is not _MAP}
    conflicts = {
        other: clash
        for other, (fields, _since) in managers.items()
        if other != manager and not _is_own_past(other, manager, live)
        if (clash := {path for path in fields & asked.keys() if now.get(path) != asked[path]})
    }
    if conflicts and not force:
        raise _conflict(conflicts)
    lost = {path for clash in conflicts.values() for path in clash}
    before = managers.pop(manager, (frozenset(), ""))[0]
    others = {it for fields, _since in managers.values() for it in fields}
    merged: Object = _merged(live, wanted, (), structure)
    gone = before - asked.keys() - others
    if gone:
        merged = _without(merged, gone, (), (), structure)
    kept: Managers = {other: (fields - lost, since) for other, (fields, since) in managers.items()}
    kept[manager] = (frozenset(asked), time)
    write_managers(merged, kept)
    return merged


def _is_own_past(other: Manager, manager: Manager, live: Object) -> bool:
    """Whether these are the fields that kubectl owned when it still applied by itself."""
    annotations = live["metadata"].get("annotations") or {}
    names = (manager.name, other.name)
    return names == ("kubectl", "kubectl-client-side-apply") and LAST_APPLIED in annotations


def _conflict(conflicts: Mapping[Manager, set[Path]]) -> ApiError:
    causes = []
    told: dict[str, list[str]] = {}
    for manager, paths in sorted(conflicts.items(), key=lambda it: it[0].name):
        who = f'conflict with "{manager.name}"'
        if manager.subresource:
            who += f' with subresource "{manager.subresource}"'
        if manager.operation == UPDATE:
            who += f" using {manager.api_version}"
        for path in sorted(paths):
            field = _spoken(path)
            causes.append({"reason": "FieldManagerConflict", "message": who, "field": field})
            told.setdefault(who, []).append(field)
    count = len(causes)
    said = f"Apply failed with {count} conflict{'s' if count > 1 else ''}: "
    if count == 1:
        said += f"{causes[0]['message']}: {causes[0]['field']}"
    else:
        listed = ("\n- ".join([f"{who}:", *fields]) for who, fields in told.items())
        said += "conflicts " + "\nconflicts ".join(it.removeprefix("conflict ") for it in listed)
    return ApiError(409, "Conflict", said, {"causes": causes})


def _spoken(path: Path) -> str:
    said = ""
    for element in path:
        kind, _colon, rest = element.partition(":")
        if kind == "f":
            said += f".{rest}"
        elif kind == "k":
            keys = ",".join(f"{name}={_written(it)}" for name, it in json.loads(rest).items())
            said += f"[{keys}]"
        else:
            said += f"[={rest}]"
    return said


def _merged(live: Any, wanted: Any, fields: Path, structure: Structure) -> Any:
    if isinstance(live, dict) and isinstance(wanted, dict) and not structure.is_one_value(fields):
        changed = {
            name: _merged(live.get(name), part, (*fields, name), structure)
            for name, part in wanted.items()
        }
        return live | changed
    if isinstance(live, list) and isinstance(wanted, list):
        if fields in structure.keyed:
            return _merged_items(live, wanted, fields, structure)
        if fields in structure.sets:
            return live + [it for it in wanted if it not in live]
    return wanted


def _merged_items(
    live: list[Any], wanted: list[Any], fields: Path, structure: Structure
) -> list[Any]:
    keys = structure.keyed[fields]
    items = {_item_key(item, keys): item for item in live}
    for item in wanted:
        key = _item_key(item, keys)
        items[key] = _merged(items.get(key), item, fields, structure)
    return list(items.values())


def _without(value: Any, gone: Fields, fields: Path, path: Path, structure: Structure) -> Any:
    if isinstance(value, dict):
        kept = {}
        for name, part in value.items():
            place = (*path, f"f:{name}")
            if place in gone:
                continue
            rest = part
            if any(it[: len(place)] == place for it in gone):
                rest = _without(part, gone, (*fields, name), place, structure)
                if rest in ({}, []) and part not in ({}, []):
                    continue
            kept[name] = rest
        return kept
    if isinstance(value, list) and fields in structure.keyed:
        keys = structure.keyed[fields]
        placed = [((*path, _item_key(item, keys)), item) for item in value]
        return [
            _without(item, gone, fields, place, structure)
            for place, item in placed
            if place not in gone
        ]
    if isinstance(value, list) and fields in structure.sets:
        return [item for item in value if (*path, f"v:{_written(item)}") not in gone]
    return value


def same_but_for_times(one: Object, other: Object) -> bool:
    """Whether two objects are equal, whenever their owners have written."""
    if one.keys() != other.keys():
        return False
    # Most of what is written differs, and in the status: metadata is the dearest to compare.
    if any(one[name] != other[name] for name in one if name != "metadata"):
        return False
    return _timeless(one["metadata"]) == _timeless(other["metadata"]) and _owned(one) == _owned(
        other
    )


def _timeless(metadata: Object) -> Object:
    changing = {"managedFields", "resourceVersion"}
    return {name: value for name, value in metadata.items() if name not in changing}


def _owned(obj: Object) -> set[tuple[Manager, Fields]]:
    return {(who, fields) for who, (fields, _time) in managers_of(obj).items()}
