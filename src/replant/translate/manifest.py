"""Any object that may hold a volume: PersistentVolumes, StorageClasses, pods and what makes pods.

Stored objects are meant here, not Kubernetes' translation in memory. So a class gets its driver
as provisioner, a pod's own volume becomes a PersistentVolume and a claim that must exist beside
it, and a form that would name no disk is refused.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from replant.errors import TranslationError, shown
from replant.objects import (
    PERSISTENT_VOLUME,
    POD_SPEC_PATHS,
    STORAGE_CLASS,
    Object,
    is_ours,
    name_of,
)
from replant.translate import api, registry
from replant.translate.fields import Fields, Root, root
from replant.translate.workloads import InlineDefaults, storable, translate_pod_volumes

WITHOUT_DRIVER = {
    "cephfs": "cephfs",
    "flocker": "flocker",
    "glusterfs": "glusterfs",
    "photonPersistentDisk": "photon-pd",
    "quobyte": "quobyte",
    "scaleIO": "scaleio",
    "storageos": "storageos",
}
"""Sources, and the plugins behind them, that left the tree with no driver to go to."""

_NAMES_THE_DISK = {
    "awsElasticBlockStore": "volumeID",
    "azureDisk": "diskURI",
    "azureFile": "shareName",
    "cinder": "volumeID",
    "gcePersistentDisk": "pdName",
    "portworxVolume": "volumeID",
    "rbd": "image",
    "vsphereVolume": "volumePath",
}


class Target(StrEnum):
    """The side to translate to."""

    CSI = "csi"
    IN_TREE = "in-tree"


_TO_CSI = Target.CSI
"""An enum's member is looked up slowly, and there are a hundred thousand volumes."""


class Translated(msgspec.Struct, frozen=True, gc=False):
    """What became of one object."""

    obj: Object
    """The very object that was given, where nothing had to change."""
    added: tuple[Object, ...] = ()
    """What must exist beside it."""
    notes: tuple[str, ...] = ()
    """What a person should know of it."""


def translate_object(obj: Object, kind: str, target: Target, inline: InlineDefaults) -> Translated:
    """Translate one object of any kind; a kind that holds no volumes stays as it is."""
    if not is_ours(kind, obj.get("apiVersion")):
        return Translated(obj)
    if kind == PERSISTENT_VOLUME:
        translated = _volume(obj, target)
        return Translated(translated, notes=_warnings(obj, translated, target))
    if kind == STORAGE_CLASS:
        return Translated(_storage_class(obj, target))
    if kind in POD_SPEC_PATHS and target is _TO_CSI:
        return _workload(obj, kind, inline)
    return Translated(obj)


def _volume(pv: Object, target: Target) -> Object:
    spec = pv.get("spec")
    if not isinstance(spec, dict):
        return pv
    if target is _TO_CSI:
        if api.plugin_of(pv):
            return storable(api.pv_to_csi(pv))
        _refuse_without_driver(spec, name_of(pv, PERSISTENT_VOLUME), "spec.")
        return pv
    csi = spec.get("csi")
    driver = csi.get("driver") if isinstance(csi, dict) else None
    if not isinstance(driver, str) or driver not in registry.BY_DRIVER:
        return pv
    translated = api.pv_to_in_tree(pv)
    source = registry.BY_DRIVER[driver].source
    field = _NAMES_THE_DISK[source]
    if not translated["spec"][source].get(field):
        raise TranslationError(
            "has no value in the CSI form, and without it the disk could not be found again",
            obj=name_of(pv, PERSISTENT_VOLUME),
            field=f"spec.{source}.{field}",
        )
    return translated


def _warnings(before: Object, after: Object, target: Target) -> tuple[str, ...]:
    if target is _TO_CSI or after is before or "rbd" not in after["spec"]:
        return ()
    why = "the in-tree plugin needs them, Kubernetes with migration on does not"
    return (f"{name_of(before)}: spec.rbd.monitors are not said by the CSI form: {why}",)


def _storage_class(storage_class: Object, target: Target) -> Object:
    fields = root(storage_class, STORAGE_CLASS)
    provisioner = fields.text("provisioner")
    if target is Target.IN_TREE:
        if provisioner in registry.BY_DRIVER:
            fields.refuse("provisioner", "has no way back: write the in-tree class by hand")
        return storage_class
    if provisioner in registry.BY_NAME:
        translated = api.storage_class_to_csi(provisioner, storage_class)
        return {**translated, "provisioner": api.driver_of(provisioner)}
    if provisioner.removeprefix(registry.PREFIX) in WITHOUT_DRIVER.values():
        fields.refuse("provisioner", f"{shown(provisioner)} left the tree without a CSI driver")
    return storage_class


def _workload(obj: Object, kind: str, inline: InlineDefaults) -> Translated:
    whole = root(obj, kind)
    notes = list(_left_alone(whole))
    steps = POD_SPEC_PATHS[kind]
    spec: Fields | None = whole
    for step in steps:
        spec = spec.structure(step) if spec else None
    if spec is None:
        return Translated(obj, notes=tuple(notes))
    for volume in spec.structures("volumes"):
        _refuse_without_driver(volume.data, volume.owner, f"{volume.path}.")
    pod = translate_pod_volumes(whole, spec, inline)
    if pod is None:
        return Translated(obj, notes=tuple(notes))
    return Translated(
        obj=_replaced(obj, steps, {**spec.data, "volumes": list(pod.volumes)}),
        added=pod.added,
        notes=(*notes, *pod.notes),
    )


def _left_alone(whole: Root) -> list[str]:
    spec = whole.structure("spec") if whole.kind == "StatefulSet" else None
    if spec is None or not spec.structures("volumeClaimTemplates"):
        return []
    why = "Kubernetes lets nobody change them, and the StorageClass that they name decides"
    return [f"{whole.owner}: volumeClaimTemplates are left alone: {why}"]


def _refuse_without_driver(holder: Object, owner: str, path: str) -> None:
    for source, plugin in WITHOUT_DRIVER.items():
        if holder.get(source) is not None:
            raise TranslationError(
                f"{plugin} left the tree without a CSI driver to take over",
                obj=owner,
                field=f"{path}{source}",
            )


def _replaced(obj: Object, steps: tuple[str, ...], value: Object) -> Object:
    step, *rest = steps
    return {**obj, step: _replaced(obj[step], tuple(rest), value) if rest else value}
