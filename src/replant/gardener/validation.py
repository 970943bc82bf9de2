"""Shoots that must not be: a pool of nodes that the migration's rolling update would miss."""

from __future__ import annotations

from dataclasses import dataclass

from replant.errors import InputError, shown
from replant.gardener.providers import Provider
from replant.gardener.shoots import migration_of, part, provider_type
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


def problems(shoot: Object, provider: Provider) -> list[Problem]:
    """What is wrong with the versions of a shoot's pools; nothing, if it is another provider's."""
    if provider_type(shoot) != provider.type:
        return []
    try:
        migration = migration_of(shoot, provider)
    except InputError as error:
        return [Problem(INVALID, "metadata.annotations", error.reason)]
    workers = part(shoot, "spec", "provider", "workers")
    found = []
    for number, worker in enumerate(workers if isinstance(workers, list) else ()):
        written = part(worker, "kubernetes", "version")
        field = f"spec.provider.workers[{number}].kubernetes.version"
        if written is not None and (problem := _problem(written, field, migration)):
            found.append(problem)
    return found


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
