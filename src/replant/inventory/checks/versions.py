"""What stops working at the version that a person wants to go to, plugin by plugin."""

from __future__ import annotations

from collections.abc import Iterator

from replant.gates.plugins import LIVES, PHASE_MEANS
from replant.gates.versions import Version
from replant.inventory.checks.view import View
from replant.inventory.findings import Finding, ObjectRef, Severity
from replant.translate import driver_of


def findings(view: View) -> Iterator[Finding]:
    """One finding for each plugin that is used; nothing where no target was given."""
    if view.target:
        for plugin in view.plugins:
            yield _at(view, plugin, view.target)


def _at(view: View, plugin: str, target: Version) -> Finding:
    driver = driver_of(plugin)
    at = target.of_minor
    ref = ObjectRef("Plugin", plugin)
    missing = view.inventory.knows("CSIDriver") and driver not in view.inventory.drivers
    if not view.servable_then(plugin):
        return Finding(
            "RP601",
            Severity.BLOCKER,
            ref,
            f"At {at} neither the plugin nor its translation is in Kubernetes: its volumes stop "
            "working.",
            f"Before {at}: install {driver}, migrate every node, and convert every volume to a "
            "native CSI one.",
        )
    then = view.phase(plugin, target)
    removed = LIVES[plugin].removed
    code = f" Its code is gone since {removed.of_minor}." if target >= removed else ""
    if not view.migrated_then(plugin):
        text = f"At {at} it is still {PHASE_MEANS[then]}."
        return Finding("RP601", Severity.INFO, ref, text)
    text = f"At {at} its volumes are {PHASE_MEANS[then]}.{code}"
    if missing:
        fix = f"Before {at}: install {driver}; without it no volume of {plugin} is served."
        return Finding("RP601", Severity.BLOCKER, ref, text, fix)
    if view.migrated_now(plugin):
        return Finding("RP601", Severity.INFO, ref, text)
    fix = f"Before {at}: switch the control plane, then drain and switch every node."
    return Finding("RP601", Severity.WARNING, ref, text, fix)
