"""CSI drivers: whether they are where their volumes are."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from replant.gates.plugins import LIVES
from replant.gates.versions import Version
from replant.inventory.checks.view import View
from replant.inventory.findings import Finding, ObjectRef, Severity
from replant.routing import is_attached
from replant.routing.restarts import needs_driver, takes_for_in_tree
from replant.translate import driver_of


def findings(view: View) -> Iterator[Finding]:
    """All that can be said of drivers."""
    for plugin in view.plugins:
        driver = driver_of(plugin)
        needed = view.migrated_now(plugin) or view.migrated_then(plugin)
        severity = Severity.BLOCKER if needed else Severity.WARNING
        if view.inventory.knows("CSIDriver") and driver not in view.inventory.drivers:
            yield _not_installed(plugin, driver, severity)
        elif view.inventory.knows("CSINode", "Pod"):
            yield from _missing_on_nodes(view, plugin, driver, severity)
        if view.inventory.knows("CSINode"):
            yield from _redirected_without(view, plugin, driver)
            if view.server and not view.migrated_now(plugin):
                yield from _redirected_alone(view, plugin)
        if view.server and is_attached(plugin) and view.migrated_now(plugin):
            yield from _lost_by_a_restart(plugin, driver, view.server)


def _not_installed(plugin: str, driver: str, severity: Severity) -> Finding:
    return Finding(
        "RP401",
        severity,
        ObjectRef("CSIDriver", driver),
        f"The driver that takes over from {plugin} is not installed.",
        f"Install {driver} before anything is switched; then: kubectl get csidriver {driver}",
    )


def _lost_by_a_restart(plugin: str, driver: str, server: Version) -> Iterator[Finding]:
    ref = ObjectRef("Plugin", plugin)
    fix = "Take the control plane to the newest patch of its minor, or to a later minor, first."
    if takes_for_in_tree(server, redirects=True):
        yield Finding(
            "RP406",
            Severity.BLOCKER,
            ref,
            f"A kube-controller-manager {server} that starts takes what {driver} has attached for "
            "attached in-tree, and detaches it there while pods use it.",
            f"{fix} No release of 1.18 from 1.18.16 on is without this.",
        )
    if needs_driver(server):
        yield Finding(
            "RP405",
            Severity.WARNING,
            ref,
            f"A kube-controller-manager {server} that starts while {driver} is missing on a node "
            "forgets the pods there, and detaches their disks six minutes later.",
            f"{fix} Until then restart it only while the driver is on every node.",
        )


def _missing_on_nodes(
    view: View, plugin: str, driver: str, severity: Severity
) -> Iterator[Finding]:
    for node, pods in sorted(view.nodes_by_plugin.get(plugin, {}).items()):
        if driver not in view.inventory.drivers_on(node):
            yield Finding(
                "RP402",
                severity,
                ObjectRef("Node", node),
                f"{pods} pods here use volumes of {plugin}, but {driver} is not registered.",
                _look_at(node),
            )


def _redirected_alone(view: View, plugin: str) -> Iterator[Finding]:
    for node in sorted(view.inventory.csi_nodes):
        if plugin in view.inventory.migrated_on(node):
            yield Finding(
                "RP404",
                Severity.BLOCKER,
                ObjectRef("Node", node),
                f"Its kubelet redirects {plugin} to CSI, the controllers do not: pods that need "
                "such a volume never start here.",
                f"Switch kube-controller-manager first: {LIVES[plugin].migration_gate}=true",
            )


def _look_at(node: str) -> str:
    return (
        f"See whether the driver's DaemonSet runs here: kubectl get csinode {quote(node)} -o yaml"
    )


def _redirected_without(view: View, plugin: str, driver: str) -> Iterator[Finding]:
    for node in sorted(view.inventory.csi_nodes):
        migrated = plugin in view.inventory.migrated_on(node)
        if migrated and driver not in view.inventory.drivers_on(node):
            used = node in view.nodes_by_plugin.get(plugin, {})
            yield Finding(
                "RP403",
                Severity.BLOCKER if used else Severity.WARNING,
                ObjectRef("Node", node),
                f"Its kubelet redirects {plugin} to {driver}, which is not registered here: "
                "no such volume can be mounted.",
                _look_at(node),
            )
