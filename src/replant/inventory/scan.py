"""The scan itself: every check on one inventory, counted and judged."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from replant.gates.versions import Version
from replant.inventory.checks import (
    attachments,
    classes,
    drivers,
    featuresets,
    portworx,
    reading,
    shoots,
    versions,
    volumes,
    workloads,
)
from replant.inventory.checks.catalogue import ABOUT_THE_SCAN
from replant.inventory.checks.reading import ABSENT
from replant.inventory.checks.view import View
from replant.inventory.findings import Finding, PluginCounts, ScanResult, Severity, Verdict
from replant.inventory.model import Inventory, source_of
from replant.translate import driver_of, plugin_of

CHECKS: tuple[Callable[[View], Iterator[Finding]], ...] = (
    reading.findings,
    volumes.findings,
    classes.findings,
    workloads.findings,
    drivers.findings,
    attachments.findings,
    portworx.findings,
    versions.findings,
    featuresets.findings,
    shoots.findings,
)

_DECISIVE = ("PersistentVolume", "StorageClass")
"""Without these nobody can say that there is nothing to do."""

_WORST_FIRST = {Severity.BLOCKER: 0, Severity.WARNING: 1, Severity.INFO: 2}


def scan(
    inventory: Inventory,
    *,
    target: Version | None = None,
    only: Collection[str] = (),
    skip: Collection[str] = (),
    complete: bool = True,
) -> ScanResult:
    """Everything that the checks say of an inventory; ids may be chosen or left out.

    Nobody is ready whose cluster or dump could not be read completely.
    """
    view = View(inventory, target)
    found = [
        finding
        for check in CHECKS
        for finding in check(view)
        if (not only or finding.id in only) and finding.id not in skip
    ]
    found.sort(key=_order)
    counts = _count(view)
    verdict, summary = _judge(view, counts, found)
    if not complete and verdict is not Verdict.NOT_READY:
        verdict, summary = Verdict.NOT_READY, "not everything could be read"
    return ScanResult(
        verdict=verdict,
        summary=summary,
        server_version=str(inventory.server) if inventory.server else "",
        target_version=target.of_minor if target else "",
        plugins=counts,
        findings=found,
        read=inventory.read,
    )


def counts_as_failure(finding: Finding) -> bool:
    """Whether a finding is about the cluster, and not about the scan itself."""
    return finding.id not in ABOUT_THE_SCAN


def _order(finding: Finding) -> tuple[int, str, str, str, str]:
    ref = finding.object
    return _WORST_FIRST[finding.severity], finding.id, ref.kind, ref.namespace, ref.name


def _judge(
    view: View, counts: dict[str, PluginCounts], found: list[Finding]
) -> tuple[Verdict, str]:
    blockers = sum(finding.severity is Severity.BLOCKER for finding in found)
    warnings = sum(finding.severity is Severity.WARNING for finding in found)
    version = f" for {view.horizon.of_minor}" if view.horizon else ""
    unread = [kind for kind in _DECISIVE if view.inventory.unknown.get(kind, ABSENT) != ABSENT]
    if unread:
        return Verdict.NOT_READY, f"{' and '.join(unread)} could not be read"
    if blockers:
        counted = f"{_plural(blockers, 'blocker')} and {_plural(warnings, 'warning')}"
        return Verdict.NOT_READY, f"{counted}{version}"
    if not counts and not warnings:
        return Verdict.NOTHING_TO_DO, "no in-tree volume, class or inline volume was found"
    return Verdict.READY, f"no blockers and {_plural(warnings, 'warning')}{version}"


def _plural(count: int, noun: str) -> str:
    return f"{count or 'no'} {noun}{'' if count == 1 else 's'}"


def _count(view: View) -> dict[str, PluginCounts]:
    inventory = view.inventory
    counts = {plugin: PluginCounts(driver_of(plugin)) for plugin in view.plugins}
    workloads_of: dict[str, set[object]] = {plugin: set() for plugin in counts}
    for volume in inventory.in_tree:
        assert volume.plugin is not None  # noqa: S101 - that is what in-tree means
        count = counts[volume.plugin]
        count.volumes += 1
        count.bytes += volume.capacity
        count.claims += volume.claim in inventory.claims
        workloads_of[volume.plugin].update(pod.top for pod in inventory.users(volume))
    for volume in inventory.volumes:
        if volume.without_driver:
            name = f"kubernetes.io/{volume.without_driver}"
            count = counts.setdefault(name, PluginCounts(driver=""))
            count.volumes += 1
            count.bytes += volume.capacity
            count.claims += volume.claim in inventory.claims
    for storage_class in inventory.classes:
        if storage_class.provisioner in counts:
            counts[storage_class.provisioner].classes += 1
    for use, inline in inventory.inline_uses():
        plugin = plugin_of(source_of(inline))
        if plugin:
            workloads_of[plugin].add(use.top)
    for plugin, count in counts.items():
        count.workloads = len(workloads_of.get(plugin, ()))
        count.nodes = len(view.nodes_by_plugin.get(plugin, {}))
    return counts
