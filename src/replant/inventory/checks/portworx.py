"""Portworx with security: every call needs a token, and every volume must say where it is."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from replant.errors import shown
from replant.inventory.checks.view import View
from replant.inventory.findings import Finding, Severity
from replant.inventory.model import Volume
from replant.translate.portworx import SECRET_NAME, SECRET_NAMESPACE, Portworx

_BEFORE_THE_START = ("ContainerCreating", "PodInitializing")
"""Containers that wait like this have not got their volumes yet."""

_PVC_NAMESPACE = "${pvc.namespace}"


def findings(view: View) -> Iterator[Finding]:
    """All that can be said of tokens; nothing where Portworx has no security."""
    volumes = [volume for volume in view.inventory.in_tree if volume.plugin == Portworx.name]
    if not _is_secured(view, volumes):
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


def _is_secured(view: View, volumes: list[Volume]) -> bool:
    classes = (
        it.parameters or {} for it in view.inventory.classes if it.provisioner == Portworx.name
    )
    return any(SECRET_NAME in it for it in classes) or any(
        SECRET_NAME in volume.annotations for volume in volumes
    )


def _patch(view: View, volume: Volume) -> str:
    """The command that adds the annotations, with what the volume's class says of the secret."""
    class_name = volume.as_object()["spec"].get("storageClassName")
    storage_class = view.inventory.class_by_name.get(str(class_name or ""))
    said = (storage_class.parameters if storage_class else None) or {}
    name = volume.annotations.get(SECRET_NAME) or said.get(SECRET_NAME, "SECRET")
    namespace = volume.annotations.get(SECRET_NAMESPACE) or said.get(SECRET_NAMESPACE, "NAMESPACE")
    if namespace == _PVC_NAMESPACE and volume.claim:
        namespace = volume.claim[0]
    name = "SECRET" if "${" in name else name
    namespace = "NAMESPACE" if "${" in namespace else namespace
    return (
        f"kubectl annotate pv {quote(volume.name)} --overwrite "
        f"{SECRET_NAME}={quote(name)} {SECRET_NAMESPACE}={quote(namespace)}"
    )
