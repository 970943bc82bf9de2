"""What is attached, by whom, and whether it will come off again."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from replant.errors import shown
from replant.gates.plugins import LIVES
from replant.inventory.checks.view import View
from replant.inventory.findings import Finding, ObjectRef, Severity
from replant.inventory.storage_records import VolumeAttachment


def findings(view: View) -> Iterator[Finding]:
    """All that can be said of attachments."""
    for attachment in view.inventory.attachments:
        yield from _orphaned(view, attachment)
        yield from _stuck(attachment)
        yield from _stranded_by_csi(view, attachment)
    yield from _stranded_in_tree(view)


def _ref(attachment: VolumeAttachment) -> ObjectRef:
    return ObjectRef("VolumeAttachment", attachment.metadata.name)


def _orphaned(view: View, attachment: VolumeAttachment) -> Iterator[Finding]:
    volume = attachment.spec.source.persistentVolumeName
    node = attachment.spec.nodeName
    missing = []
    if volume and view.inventory.knows("PersistentVolume") and volume not in view.inventory.by_name:
        missing.append(f"volume {shown(volume)}")
    if node and view.inventory.knows("Node") and node not in view.inventory.nodes:
        missing.append(f"node {shown(node)}")
    if missing:
        yield Finding(
            "RP501",
            Severity.WARNING,
            _ref(attachment),
            f"Its {' and its '.join(missing)} is not there.",
            "When the cloud shows the disk detached: kubectl delete volumeattachment "
            + quote(attachment.metadata.name),
        )


def _stuck(attachment: VolumeAttachment) -> Iterator[Finding]:
    status = attachment.status
    error = (status.detachError or status.attachError) if status else None
    deleting = attachment.metadata.deletionTimestamp is not None
    if error or deleting:
        doing = "detached" if deleting or (status and status.detachError) else "attached"
        why = f": {shown(error.message)}" if error and error.message else ""
        yield Finding(
            "RP502",
            Severity.WARNING,
            _ref(attachment),
            f"It is being {doing}; if that does not come to an end, it is stuck{why}.",
            f"kubectl describe volumeattachment {quote(attachment.metadata.name)}",
        )


def _stranded_by_csi(view: View, attachment: VolumeAttachment) -> Iterator[Finding]:
    volume = view.inventory.by_name.get(attachment.spec.source.persistentVolumeName or "")
    attached = attachment.status is not None and attachment.status.attached
    if not attached or volume is None or volume.plugin is None:
        return
    node = attachment.spec.nodeName
    if view.server and not view.migrated_now(volume.plugin):
        why = f"the controllers do not redirect {volume.plugin}"
    elif node in view.inventory.csi_nodes and volume.plugin not in view.inventory.migrated_on(node):
        why = f"node {shown(node)} no longer redirects {volume.plugin}"
    else:
        return
    yield Finding(
        "RP503",
        Severity.BLOCKER,
        _ref(attachment),
        f"CSI attached {shown(volume.name)}, but {why}: the in-tree side will not detach it.",
        f"Drain node {shown(node)} while CSI still serves it, or switch it back first.",
    )


def _stranded_in_tree(view: View) -> Iterator[Finding]:
    for name, node in view.inventory.nodes.items():
        migrated = view.inventory.migrated_on(name)
        for attached in (node.status.volumesAttached if node.status else None) or ():
            plugin = "/".join(attached.name.split("/", 2)[:2])
            if plugin in LIVES and plugin in migrated and view.migrated_now(plugin):
                yield Finding(
                    "RP503",
                    Severity.BLOCKER,
                    ObjectRef("Node", name),
                    f"The in-tree plugin attached {shown(attached.name)}, but the node redirects "
                    f"{plugin} to CSI: at its next restart the controller may detach it in use.",
                    f"kubectl drain {quote(name)} --ignore-daemonsets && "
                    f"kubectl uncordon {quote(name)}",
                )
