"""Shoots of Gardener whose pools of nodes the migration's rolling update would miss."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from replant.errors import InputError, shown
from replant.gardener.providers import PROVIDERS
from replant.gardener.shoots import migration_of, part, provider_type, version_of
from replant.gardener.validation import FORBIDDEN, Problem, problems
from replant.gates.versions import Version
from replant.inventory.checks.view import View
from replant.inventory.findings import Finding, ObjectRef, Severity
from replant.inventory.metadata import Metadata
from replant.inventory.model import Inventory
from replant.objects import Object


def findings(view: View) -> Iterator[Finding]:
    """One finding for each pool whose version must not be."""
    for ref, shoot in _shoots(view.inventory):
        provider = PROVIDERS.get(provider_type(shoot))
        if provider is None:
            continue
        for problem in problems(shoot, provider):
            early = problem.sort == FORBIDDEN and _before(shoot, migration_of(shoot, provider))
            yield Finding(
                "RP801",
                Severity.WARNING if early else Severity.BLOCKER,
                ref,
                f"{problem}.",
                _fix(shoot, problem),
            )


def _shoots(inventory: Inventory) -> Iterator[tuple[ObjectRef, Object]]:
    """Every shoot that stays, once: a Cluster whose Shoot is here as well is only its copy."""
    here = set()
    for shoot in inventory.shoots:
        metadata = shoot.metadata
        namespace = metadata.namespace or ""
        here.add((namespace, metadata.name))
        if not metadata.deletionTimestamp:
            yield (
                ObjectRef("Shoot", metadata.name, namespace),
                {"kind": "Shoot", "metadata": _metadata(metadata), "spec": shoot.spec},
            )
    for cluster in inventory.clusters:
        embedded = cluster.spec.shoot or {}
        named = part(embedded, "metadata", "namespace"), part(embedded, "metadata", "name")
        if named not in here and not cluster.metadata.deletionTimestamp:
            yield ObjectRef("Cluster", cluster.metadata.name), embedded


def _metadata(metadata: Metadata) -> Object:
    return {
        "name": metadata.name,
        "namespace": metadata.namespace or "",
        "annotations": metadata.annotations or {},
    }


def _before(shoot: Object, migration: Version) -> bool:
    """Whether the control plane is not there yet, so that it is only to be put right in time."""
    try:
        return version_of(shoot).first_patch < migration
    except InputError:
        return False


def _fix(shoot: Object, problem: Problem) -> str:
    namespace, name = (str(part(shoot, "metadata", it) or "") for it in ("namespace", "name"))
    return (
        f"kubectl -n {quote(namespace)} edit shoot {quote(name)} in the garden cluster, and remove "
        f"{shown(problem.field)}: the pool then has the control plane's version."
        if problem.sort == FORBIDDEN
        else f"kubectl -n {quote(namespace)} edit shoot {quote(name)} in the garden cluster, and "
        f"mend {shown(problem.field)}."
    )
