"""What the rest of Replant calls: translations and names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from replant.errors import TranslationError
from replant.objects import Object
from replant.translate import registry
from replant.translate.drafts import ClassDraft, VolumeDraft
from replant.translate.fields import Fields, mistyped, root
from replant.translate.plugin import Plugin


def pv_to_csi(pv: Object) -> Object:
    """A PersistentVolume with an in-tree source, as its CSI twin."""
    draft = VolumeDraft(pv)
    plugin, source = _in_tree_source(draft.spec)
    if draft.spec.data.get("csi") is not None:
        draft.spec.refuse("csi", f"stands beside {plugin.source}: only one source is allowed")
    csi = plugin.pv_to_csi(source, draft)
    return draft.finish(plugin.source, "csi", csi)


def pv_to_in_tree(pv: Object) -> Object:
    """A PersistentVolume of a migrated CSI driver, as its in-tree twin."""
    draft = VolumeDraft(pv)
    csi = draft.spec.structure("csi")
    if csi is None:
        draft.spec.refuse("csi", "is missing: this is not a CSI volume")
    driver = csi.text("driver")
    plugin = registry.BY_DRIVER.get(driver)
    if plugin is None:
        csi.refuse("driver", "took over from no in-tree plugin" if driver else "is missing")
    for field in registry.BY_SOURCE:
        if draft.spec.data.get(field) is not None:
            draft.spec.refuse(field, "stands beside csi: only one source is allowed")
    source = plugin.pv_to_in_tree(csi, draft)
    return draft.finish("csi", plugin.source, source)


def inline_to_csi(volume: Object, pod_namespace: str = "") -> Object:
    """A volume of a pod's own, as a PersistentVolume with the equivalent CSI source."""
    fields = root(volume, "volume")
    if not isinstance(pod_namespace, str):
        raise mistyped(pod_namespace, "a string", owner=fields.owner, field="pod namespace")
    return inline_volume(fields, pod_namespace)


def inline_volume(volume: Fields, pod_namespace: str) -> Object:
    """The same for a volume that stands somewhere in an object that errors must name."""
    plugin, source = _in_tree_source(volume)
    inline = plugin.inline_to_csi(source, volume.text("name"), pod_namespace)
    return {
        "metadata": {"name": inline.name},
        "spec": {
            "accessModes": [inline.access_mode],
            "csi": inline.csi,
            "volumeMode": "Filesystem",
        },
    }


def storage_class_to_csi(plugin_name: str, storage_class: Object) -> Object:
    """An in-tree StorageClass with the parameters and topologies that the driver takes.

    The provisioner stays in-tree where the reference leaves it so: Kubernetes itself tells the
    driver of the claim. Whoever stores the class sets ``driver_of(plugin_name)``.
    """
    plugin = registry.by_name(plugin_name)
    draft = ClassDraft(storage_class)
    plugin.class_to_csi(draft)
    return draft.finish()


def dropped_parameters(plugin_name: str, parameters: Mapping[str, str]) -> list[str]:
    """The parameters of a class that its translation leaves out."""
    kept = registry.by_name(plugin_name).parameters
    return [] if kept is None else sorted(key for key in parameters if key.lower() not in kept)


def repair_volume_handle(driver: str, handle: str, node_id: str) -> str:
    """A volume handle completed with what only the node knows."""
    plugin = registry.by_driver(driver)
    for field, value in (("volumeHandle", handle), ("nodeID", node_id)):
        if not isinstance(value, str):
            raise mistyped(value, "a string", owner=driver, field=field)
    return plugin.repair_handle(handle, node_id)


def plugins() -> tuple[str, ...]:
    """The full names of all plugins that have a CSI driver to go to."""
    return tuple(registry.BY_NAME)


def plugin_of(obj: Any) -> str | None:
    """The plugin that serves a PersistentVolume, a pod's volume or a StorageClass in the tree."""
    if not isinstance(obj, dict):
        return None
    if "provisioner" in obj:
        provisioner = obj["provisioner"]
        known = isinstance(provisioner, str) and provisioner in registry.BY_NAME
        return provisioner if known else None
    holder = obj.get("spec", obj)
    if not isinstance(holder, dict):
        return None
    for field in holder.keys() & registry.BY_SOURCE.keys():
        if holder[field] is not None:
            return registry.BY_SOURCE[field].name
    return None


def driver_of(plugin_name: str) -> str:
    """The CSI driver that takes over from a plugin."""
    return registry.by_name(plugin_name).driver


def plugin_for_driver(driver: str) -> str:
    """The full name of the plugin that a CSI driver takes over from."""
    return registry.by_driver(driver).name


def is_migratable(obj: Any) -> bool:
    """Whether a PersistentVolume, a pod's volume or a StorageClass has a driver to go to."""
    return plugin_of(obj) is not None


def _in_tree_source(holder: Fields) -> tuple[Plugin, Fields]:
    found = ""
    for field, value in holder.data.items():
        if field in registry.BY_SOURCE and value is not None:
            if found:
                holder.refuse(field, f"stands beside {found}: only one source is allowed")
            found = field
    source = holder.structure(found) if found else None
    if source is None:
        known = ", ".join(registry.BY_SOURCE)
        reason = f"has no in-tree source that a CSI driver takes over; known are {known}"
        raise TranslationError(reason, obj=holder.owner, field=holder.path)
    return registry.BY_SOURCE[found], source
