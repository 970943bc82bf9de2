"""Shoots that must not be: a pool of nodes that the migration's rolling update would miss."""

from __future__ import annotations

from dataclasses import dataclass

from replant.errors import InputError, shown
from replant.gardener.providers import Provider
from replant.gardener.shoots import (
    OVERRIDE,
    annotations_of,
    migration_of,
    part,
    provider_type,
)
from replant.gates.versions import Version
from replant.objects import Object

FORBIDDEN, INVALID = "Forbidden", "Invalid"


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong, in the API's own sort, and where."""

    sort: str
    field: str
    detail: str

    def __str__(self) -> str:
        return f"{self.field}: {self.sort}: {self.detail}"


def problems(shoot: Object, provider: Provider, before: Object | None = None) -> list[Problem]:
    """What is wrong with the versions of a shoot's pools; nothing, if it is another provider's.

    What was wrong before is let be while neither the shoot's version nor that of its migration
    changes: a pool by its name and its version, wherever it stands.
    """
    if provider_type(shoot) != provider.type:
        return []
    same = before is not None and _measure(before) == _measure(shoot)
    try:
        migration = migration_of(shoot, provider)
    except InputError as error:
        return [] if same else [Problem(INVALID, "metadata.annotations", error.reason)]
    let_be = [_pool(it) for it in _workers(before)] if same else []
    found = []
    for number, worker in enumerate(_workers(shoot)):
        if _pool(worker) in let_be:
            continue
        written = part(worker, "kubernetes", "version")
        field = f"spec.provider.workers[{number}].kubernetes.version"
        if written is not None and (problem := _problem(written, field, migration)):
            found.append(problem)
    return found


def _measure(shoot: Object) -> tuple[object, object]:
    """By what the versions of a shoot's pools are judged."""
    return annotations_of(shoot).get(OVERRIDE), part(shoot, "spec", "kubernetes", "version")


def _workers(shoot: Object | None) -> list[object]:
    found = part(shoot, "spec", "provider", "workers")
    return found if isinstance(found, list) else []


def _pool(worker: object) -> tuple[object, object]:
    return part(worker, "name"), part(worker, "kubernetes", "version")


def _problem(written: object, field: str, migration: Version) -> Problem | None:
    try:
        version = Version.parse(written if isinstance(written, str) else "")
    except ValueError:
        detail = f"{shown(str(written))!r} is not a version such as 1.18 or v1.18.20"
        return Problem(INVALID, field, detail)
    if version >= migration:
        return None
    return Problem(
        FORBIDDEN,
        field,
        f"{version} is below {migration.of_minor}, with which volumes go over to CSI: "
        "until then all nodes have the control plane's version, so that all of them are rolled",
    )
