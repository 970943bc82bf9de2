"""Claims that change, and volumes that pods and templates name by themselves."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from replant.errors import TranslationError, shown
from replant.gates.plugins import REMOVED_WITHOUT_DRIVER
from replant.inventory.checks.view import View, without_driver
from replant.inventory.findings import Finding, ObjectRef, Severity
from replant.inventory.model import PodUse, source_of
from replant.inventory.quantities import amount
from replant.inventory.storage_records import PersistentVolumeClaim
from replant.translate import driver_of, inline_to_csi, plugin_of

_EXPANDING = ("Resizing", "FileSystemResizePending", "ControllerResizeError", "NodeResizeError")


def findings(view: View) -> Iterator[Finding]:
    """All that can be said of workloads and claims."""
    for use, volume in view.inventory.inline_uses():
        plugin = plugin_of(source_of(volume))
        if plugin:
            yield from _inline(view, use, plugin, source_of(volume))
        for _, gone in without_driver(volume):
            version = REMOVED_WITHOUT_DRIVER[gone].of_minor
            yield Finding(
                "RP302",
                Severity.BLOCKER,
                use.owner,
                f"Its volume {shown(volume.name)} is {gone}, removed in Kubernetes {version} "
                "without a CSI driver to take over.",
                "Copy the data to a volume of another kind before the upgrade.",
            )
    yield from _expanding(view)


def _inline(view: View, use: PodUse, plugin: str, volume: dict[str, object]) -> Iterator[Finding]:
    name = shown(str(volume["name"]))
    resource = use.owner.kind.lower()
    namespace = quote(use.owner.namespace or "default")
    gone = not view.servable_then(plugin)
    try:
        inline_to_csi(volume, use.owner.namespace)
    except TranslationError as error:
        yield Finding(
            "RP303",
            Severity.BLOCKER,
            use.owner,
            f"Its volume {name} cannot be translated: {error.field}: {error.reason}.",
            f"kubectl get {resource} -n {namespace} {quote(use.owner.name)} -o yaml",
        )
        return
    yield Finding(
        "RP301",
        Severity.BLOCKER if gone else Severity.WARNING,
        use.owner,
        f"Its volume {name} names a disk of {plugin} by itself, without a claim; "
        f"{driver_of(plugin)} takes over.",
        f"kubectl get {resource} -n {namespace} {quote(use.owner.name)} -o yaml "
        "| replant translate -f - -o diff",
    )


def _expanding(view: View) -> Iterator[Finding]:
    for (namespace, name), claim in view.inventory.claims.items():
        status = claim.status
        conditions = (status.conditions if status else None) or ()
        pending = [it.type for it in conditions if it.status == "True" and it.type in _EXPANDING]
        if not pending and not _wants_more(claim):
            continue
        volume = view.inventory.by_name.get(claim.spec.volumeName or "")
        if volume and volume.plugin:
            why = f" ({', '.join(pending)})" if pending else ""
            yield Finding(
                "RP113",
                Severity.WARNING,
                ObjectRef("PersistentVolumeClaim", name, namespace),
                f"It is being expanded{why}; a switch in the middle leaves that unfinished.",
                f"kubectl describe pvc -n {quote(namespace)} {quote(name)}",
            )


def _wants_more(claim: PersistentVolumeClaim) -> bool:
    requests = claim.spec.resources.requests if claim.spec.resources else None
    capacity = claim.status.capacity if claim.status else None
    wanted, given = (requests or {}).get("storage"), (capacity or {}).get("storage")
    return given is not None and wanted != given and amount(wanted) > amount(given)
