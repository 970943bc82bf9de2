"""What ``kubectl get`` prints: a table of objects, row by row."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from replant.objects import Object
from replant.sandbox.api.columns import columns_of
from replant.sandbox.api.columns.cells import UNKNOWN, Cell, Column, Since
from replant.sandbox.resources import Resource
from replant.sandbox.shelves import Entry

PARTIAL = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}


def table(
    resource: Resource,
    entries: Iterable[Entry],
    metadata: Object,
    now: datetime,
    *,
    head: bool = True,
) -> Object:
    """Objects as a table; the columns are said once in a watch."""
    columns = columns_of(resource)
    rows = []
    versions = []
    for entry in entries:
        obj = entry.value()
        versions.append(entry.version)
        cells = [_written(column.cell(obj), now) for column in columns]
        partial: Object = PARTIAL | {"metadata": obj["metadata"]}
        rows.append({"cells": cells, "object": partial})
    if not metadata and versions:
        metadata = {"resourceVersion": str(versions[0])}
    definitions = [_definition(column) for column in columns] if head else []
    return empty(metadata) | {"columnDefinitions": definitions, "rows": rows}


def empty(metadata: Object) -> Object:
    """A table without anything."""
    return {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}


def _written(cell: Cell, now: datetime) -> str | int | bool | None:
    return _span(cell, now) if isinstance(cell, Since) else cell


def _definition(column: Column) -> Object:
    return {
        "name": column.name,
        "type": column.type,
        "format": "name" if column.name == "Name" else "",
        "description": column.name,
        "priority": 1 if column.wide else 0,
    }


def _span(span: Since, now: datetime) -> str:
    if not span.start:
        return span.otherwise
    try:
        start = datetime.fromisoformat(span.start)
        end = datetime.fromisoformat(span.end) if span.end else now
    except ValueError:
        return UNKNOWN
    return duration(int((end - start).total_seconds()))


def duration(seconds: int) -> str:
    """A time span in its two largest units, or one where the second says little."""
    seconds = max(seconds, 0)
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < 120:
        return f"{seconds}s"
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    if days < 8 * 365:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(first: int, unit: str, second: int, second_unit: str) -> str:
    return f"{first}{unit}{second}{second_unit}" if second else f"{first}{unit}"
