"""Portworx with security: every call needs a token, and every volume must say where it is."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from replant.errors import shown
from replant.inventory.checks.view import View
from replant.inventory.findings import Finding, Severity
from replant.inventory.model import Inventory, Volume
from replant.translate.portworx import SECRET_NAME, SECRET_NAMESPACE, Portworx

_BEFORE_THE_START = ("ContainerCreating", "PodInitializing")
"""Containers that wait like this have not got their volumes yet."""

_PVC_NAMESPACE = "${pvc.namespace}"


def findings(view: View) -> Iterator[Finding]:
    """All that can be said of tokens; nothing where Portworx has no security."""
    volumes = [volume for volume in view.inventory.in_tree if volume.plugin == Portworx.name]
    if not secured(view.inventory):
        return
    for volume in volumes:
        missing = [key for key in (SECRET_NAME, SECRET_NAMESPACE) if key not in volume.annotations]
        if not missing:
            continue
        yield Finding(
            "RP701",
            Severity.BLOCKER,
            volume.ref,
            f"Portworx security is on, but the volume has no {' and no '.join(missing)}: "
            "the driver gets no token for it.",
            _patch(view, volume),
        )
        for pod in view.inventory.users(volume):
            if pod.waiting.startswith(_BEFORE_THE_START) or "token" in pod.waiting:
                yield Finding(
                    "RP702",
                    Severity.BLOCKER,
                    pod.owner,
                    f"It waits ({shown(pod.waiting)}) for {shown(volume.name)}, "
                    "which names no secret with a token.",
                    _patch(view, volume),
                )


def secured(inventory: Inventory) -> bool:
    """Whether Portworx has security on, as far as its classes and volumes tell."""
    classes = (it.parameters or {} for it in inventory.classes if it.provisioner == Portworx.name)
    return any(SECRET_NAME in it for it in classes) or any(
        SECRET_NAME in volume.annotations
        for volume in inventory.in_tree
        if volume.plugin == Portworx.name
    )


def secret_annotations(inventory: Inventory, volume: Volume) -> dict[str, str]:
    """What a volume must say of its secret; empty where neither it nor its class tells."""
    class_name = volume.as_object()["spec"].get("storageClassName")
    storage_class = inventory.class_by_name.get(str(class_name or ""))
    said = (storage_class.parameters if storage_class else None) or {}
    found = {
        key: volume.annotations.get(key) or said.get(key, "")
        for key in (SECRET_NAME, SECRET_NAMESPACE)
    }
    if found[SECRET_NAMESPACE] == _PVC_NAMESPACE and volume.claim:
        found[SECRET_NAMESPACE] = volume.claim[0]
    return {key: "" if "${" in value else value for key, value in found.items()}


def _patch(view: View, volume: Volume) -> str:
    """The command that adds the annotations, with what is known of the secret."""
    known = secret_annotations(view.inventory, volume)
    blanks = {SECRET_NAME: "SECRET", SECRET_NAMESPACE: "NAMESPACE"}
    pairs = (f"{key}={quote(value or blanks[key])}" for key, value in known.items())
    return f"kubectl annotate pv {quote(volume.name)} --overwrite {' '.join(pairs)}"
