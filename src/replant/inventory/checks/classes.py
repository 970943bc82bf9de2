"""StorageClasses, and who names them."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote
from typing import Any

from replant.errors import TranslationError, shown
from replant.gates.plugins import LIVES, REMOVED_WITHOUT_DRIVER
from replant.inventory.checks.view import View
from replant.inventory.findings import Finding, ObjectRef, Severity
from replant.inventory.storage_records import StorageClass
from replant.objects import DEFAULT_CLASS
from replant.translate import driver_of, dropped_parameters, storage_class_to_csi


def findings(view: View) -> Iterator[Finding]:
    """All that can be said of classes."""
    for storage_class in view.inventory.classes:
        if storage_class.provisioner in LIVES:
            yield from _in_tree(view, storage_class)
        else:
            yield from _without_driver(storage_class)
    yield from _defaults(view)
    yield from _stateful_sets(view)


def _ref(storage_class: StorageClass) -> ObjectRef:
    return ObjectRef("StorageClass", storage_class.metadata.name)


def _is_default(storage_class: StorageClass) -> bool:
    annotations = storage_class.metadata.annotations or {}
    return any(annotations.get(key) == "true" for key in DEFAULT_CLASS)


def _in_tree(view: View, storage_class: StorageClass) -> Iterator[Finding]:
    name, plugin = quote(storage_class.metadata.name), storage_class.provisioner
    driver = driver_of(plugin)
    default = "the default class, " if _is_default(storage_class) else ""
    gone = not view.servable_then(plugin)
    yield Finding(
        "RP201",
        Severity.BLOCKER if gone else Severity.WARNING,
        _ref(storage_class),
        f"It is {default}served by {plugin}: every new volume is an in-tree one again."
        + (" At the target version nobody provisions for it." if gone else ""),
        f"kubectl get sc {name} -o yaml | replant translate -f - | kubectl replace --force -f -",
    )
    beside = [it.metadata.name for it in view.inventory.classes if it.provisioner == driver]
    if beside:
        yield Finding(
            "RP203",
            Severity.INFO,
            _ref(storage_class),
            f"The CSI classes {shown(', '.join(sorted(beside)))} provision for the same driver.",
            "Make one of them the default, and leave the in-tree class to old claims.",
        )
    dropped = dropped_parameters(plugin, storage_class.parameters or {})
    if dropped:
        yield Finding(
            "RP206",
            Severity.WARNING,
            _ref(storage_class),
            f"The driver does not take {shown(', '.join(dropped))}; translation drops it.",
            f"kubectl get sc {name} -o yaml",
        )
    try:
        storage_class_to_csi(plugin, _as_object(storage_class))
    except TranslationError as error:
        yield Finding(
            "RP207",
            Severity.BLOCKER,
            _ref(storage_class),
            f"It cannot be translated: {error.field} {error.reason}.",
            f"kubectl get sc {name} -o yaml",
        )


def _as_object(storage_class: StorageClass) -> dict[str, Any]:
    return {
        "kind": "StorageClass",
        "metadata": {"name": storage_class.metadata.name},
        "provisioner": storage_class.provisioner,
        "parameters": storage_class.parameters,
        "allowedTopologies": storage_class.allowedTopologies,
    }


def _without_driver(storage_class: StorageClass) -> Iterator[Finding]:
    plugin = storage_class.provisioner.removeprefix("kubernetes.io/")
    if plugin != storage_class.provisioner and plugin in REMOVED_WITHOUT_DRIVER:
        version = REMOVED_WITHOUT_DRIVER[plugin].of_minor
        yield Finding(
            "RP205",
            Severity.BLOCKER,
            _ref(storage_class),
            f"{plugin} was removed in Kubernetes {version} and no CSI driver took over from it.",
            f"kubectl delete sc {quote(storage_class.metadata.name)}",
        )


def _defaults(view: View) -> Iterator[Finding]:
    defaults = [it for it in view.inventory.classes if _is_default(it)]
    if len(defaults) < 2:
        return
    names = ", ".join(sorted(it.metadata.name for it in defaults))
    for storage_class in defaults:
        name = quote(storage_class.metadata.name)
        yield Finding(
            "RP202",
            Severity.WARNING,
            _ref(storage_class),
            f"Several classes are the default ({shown(names)}); the newest wins, or none.",
            f"Keep one; for the others: kubectl annotate sc {name} {DEFAULT_CLASS[1]}- "
            f"--overwrite {DEFAULT_CLASS[0]}=false",
        )


def _stateful_sets(view: View) -> Iterator[Finding]:
    classes = view.inventory.classes
    for stateful_set in view.inventory.stateful_sets:
        metadata = stateful_set.metadata
        for template in stateful_set.spec.volumeClaimTemplates or ():
            name = template.spec.storageClassName
            if name is None:
                defaults = [it.metadata.name for it in classes if _is_default(it)]
                name = defaults[0] if len(defaults) == 1 else ""
            storage_class = view.inventory.class_by_name.get(name)
            if storage_class and storage_class.provisioner in LIVES:
                yield Finding(
                    "RP204",
                    Severity.WARNING,
                    ObjectRef("StatefulSet", metadata.name, metadata.namespace or ""),
                    f"Its claims {shown(template.metadata.name)} are of the in-tree class "
                    f"{shown(name)}, and its templates cannot be changed.",
                    "Recreate that class with the CSI provisioner, under the same name.",
                )
