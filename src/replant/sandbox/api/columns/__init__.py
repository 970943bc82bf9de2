"""The columns in which ``kubectl get`` shows each kind, and the cells of an object in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jsonpath import JSONPathError, findall

from replant.objects import Object
from replant.sandbox.api.columns import access, core, storage, workloads
from replant.sandbox.api.columns.cells import AGE, CREATED, NAME, Cell, Column, Since, shown
from replant.sandbox.resources import Resource

_COLUMNS = {**core.COLUMNS, **workloads.COLUMNS, **storage.COLUMNS, **access.COLUMNS}


def columns_of(resource: Resource) -> tuple[Column, ...]:
    """The columns of a kind."""
    if resource.custom:
        said = [
            Column(it.name, _at_path(it.json_path, it.type), it.type, it.priority > 0)
            for it in resource.columns
        ]
        return (NAME, *(said or [AGE]))
    if resource.kind == "Event":
        return core.EVENT
    name = storage.CLASS_NAME if resource.kind == "StorageClass" else NAME
    return (name, *_COLUMNS.get(resource.kind, (CREATED,)))


def _at_path(path: str, kind: str) -> Callable[[Object], Cell]:
    def cell(obj: Object) -> Cell:
        try:
            found = findall(f"${path}" if path.startswith((".", "[")) else f"$.{path}", obj)
        except JSONPathError:
            found = []
        if not found:
            return None
        if kind == "date":
            return Since(str(found[0]))
        value: Any = found[0]
        return value if kind in {"integer", "number", "boolean"} else shown(value)

    return cell
