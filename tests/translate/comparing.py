"""Our answers beside others, as Kubernetes compares them: an empty typed field is no field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from replant import translate

STRING_MAPS = {"labels", "annotations", "parameters", "volumeAttributes", "capacity"}


def ask(request: dict[str, Any]) -> Any:
    """Our answer to a request as the reference translator is asked it."""
    match request["op"]:
        case "pvToCSI":
            return translate.pv_to_csi(request["pv"])
        case "pvToInTree":
            return translate.pv_to_in_tree(request["pv"])
        case "inlineToCSI":
            return translate.inline_to_csi(request["volume"], request["podNamespace"])
        case "storageClassToCSI":
            return translate.storage_class_to_csi(request["plugin"], request["storageClass"])
        case "repairHandle":
            handle = (request["driver"], request["handle"], request["nodeID"])
            return translate.repair_volume_handle(*handle)
        case other:
            raise AssertionError(f"unknown operation {other}")


def typed(value: Any) -> Any:
    """``value`` without empty typed fields; the entries of string maps all stay."""
    if isinstance(value, list):
        return [typed(item) for item in value]
    if not isinstance(value, dict):
        return value
    fields = {key: item if key in STRING_MAPS else typed(item) for key, item in value.items()}
    return {key: item for key, item in fields.items() if item or item == [""]}


def differences(before: Any, after: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    """The paths of the fields that are not the same in both."""
    if isinstance(before, dict) or isinstance(after, dict):
        before, after = before or {}, after or {}
        for key in before.keys() | after.keys():
            yield from differences(before.get(key), after.get(key), (*path, key))
    elif before != after:
        yield ".".join(path)
