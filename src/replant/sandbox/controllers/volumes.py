"""What Kubernetes calls a volume: by its in-tree name or by its CSI name, for one disk."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from replant.errors import TranslationError
from replant.inventory.quantities import amount
from replant.objects import Object
from replant.sandbox.controllers import parts
from replant.sandbox.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from replant.sandbox.shelves import Entry
from replant.sandbox.sides import Side, VolumeView
from replant.sandbox.sides.model import MIGRATED_TO, PROVISIONED_BY
from replant.sandbox.sides.names import CSI, csi_name, in_tree_name
from replant.sandbox.store import Store
from replant.translate import driver_of, inline_to_csi, plugin_of, pv_to_csi


class Volume(NamedTuple):
    """A volume, by all its names."""

    pv: str
    """The PersistentVolume; nothing for a pod's own volume."""
    view: VolumeView
    in_tree_name: str
    """Nothing for a native one."""
    csi_name: str
    disk: str
    """What the cloud calls it: the driver's handle."""
    inline: Object | None = None
    """What a pod's own volume comes to, for the attacher."""

    def called(self, side: Side) -> str:
        """The name under which a side attaches and mounts it."""
        return self.csi_name if side is Side.CSI else self.in_tree_name


class Name(NamedTuple):
    """What can be told from a volume's name alone."""

    side: Side
    view: VolumeView
    disk: str
    """As the side writes it."""


class _Known(NamedTuple):
    version: int
    said: tuple[str | None, ...]
    """All that names follow from, and that may differ from one version to another."""
    volume: Volume | None


@lru_cache(maxsize=100_000)
def parse(name: str) -> Name:
    """What a name says: nodes report names, and a controller that starts knows nothing else."""
    if name.startswith(CSI):
        driver, _, handle = name.removeprefix(CSI).partition("^")
        return Name(Side.CSI, VolumeView("", driver, native=True), handle)
    plugin = "/".join(name.split("/", 2)[:2])
    try:
        driver = driver_of(plugin)
    except TranslationError:
        driver = ""
    view = VolumeView(plugin, driver, native=False)
    return Name(Side.IN_TREE, view, name.removeprefix(f"{plugin}/"))


class Volumes:
    """Looks volumes up by the PersistentVolume, the claim or the pod that has them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, _Known] = {}
        self._disks: dict[str, str] = {}
        self._searched = -1

    def of_pv(self, name: str) -> Volume | None:
        """A PersistentVolume's; None if it is gone, or nothing that is attached or served here."""
        entry = self._store.find(PERSISTENT_VOLUMES, name)
        return self.of_entry(entry) if entry else None

    def forget(self, name: str) -> None:
        """A PersistentVolume is gone. Which disk its name meant is remembered: nodes may say it."""
        self._known.pop(name, None)

    def of_entry(self, entry: Entry) -> Volume | None:
        """The same for one that was looked up already."""
        known = self._known.get(entry.name)
        if known is not None and known.version == entry.version:
            return known.volume
        annotations = parts.read_volume(entry.text).metadata.annotations or {}
        said = (
            entry.uid,
            annotations.get(PROVISIONED_BY),
            annotations.get(MIGRATED_TO),
            entry.labels.get(parts.ZONE),
        )
        # A volume's source cannot change, so most changes leave its names as they are.
        same = known is not None and known.said == said
        volume = known.volume if known is not None and same else _volume(entry.value())
        self._known[entry.name] = _Known(entry.version, said, volume)
        if volume is not None and volume.in_tree_name:
            self._disks[volume.in_tree_name] = volume.disk
        return volume

    def claimed(self, namespace: str, claim: str) -> Entry | None:
        """The PersistentVolume of a claim that is bound to it, or None."""
        found = self._store.find(PERSISTENT_VOLUME_CLAIMS, claim, namespace)
        if found is None:
            return None
        read = parts.read_binding(found.text)
        if read.status.phase != "Bound":
            return None
        return self._store.find(PERSISTENT_VOLUMES, read.spec.volumeName)

    def of_pod(self, pod: parts.Pod) -> tuple[list[Volume], list[str]]:
        """All volumes of a pod that matter here, and the claims that are still without one."""
        found: list[Volume] = []
        unbound: list[str] = []
        for volume in pod.spec.volumes or ():
            if claim := volume.get("persistentVolumeClaim"):
                entry = self.claimed(pod.metadata.namespace, claim["claimName"])
                if entry is None:
                    unbound.append(claim["claimName"])
                elif known := self.of_entry(entry):
                    found.append(known)
            elif plugin_of(volume) and (known := _inline(volume, pod.metadata.namespace)):
                found.append(known)
                self._disks[known.in_tree_name] = known.disk
        return found, unbound

    def disk_called(self, name: str) -> str:
        """The disk behind a name."""
        parsed = parse(name)
        if parsed.side is Side.CSI:
            return parsed.disk
        if name not in self._disks and self._searched != self._store.version:
            # Only where objects come from elsewhere, with nodes that report what pods no longer use
            for entry in self._store.entries(PERSISTENT_VOLUMES):
                self.of_entry(entry)
            self._searched = self._store.version
        return self._disks.get(name, parsed.disk)


def size_of(pv: parts.Volume) -> int:
    """How large a volume is, in bytes."""
    return amount((pv.spec.capacity or {}).get("storage", "0"))


@lru_cache(maxsize=1024)
def _shared(view: VolumeView) -> VolumeView:
    """The first of all that are equal: what is remembered by it is found without comparing."""
    return view


def _volume(pv: Object) -> Volume | None:
    try:
        view = _shared(VolumeView.of(pv))
        twin = pv if view.native else pv_to_csi(pv)
    except TranslationError:
        return None
    csi = twin["spec"]["csi"]
    name = "" if view.native else in_tree_name(view.plugin, pv["spec"])
    handle = csi.get("volumeHandle", "")
    return Volume(pv["metadata"]["name"], view, name, csi_name(view.driver, handle), handle)


def _inline(volume: Object, namespace: str) -> Volume | None:
    try:
        twin = inline_to_csi(volume, namespace)
    except TranslationError:
        return None
    plugin = plugin_of(volume) or ""
    csi = twin["spec"]["csi"]
    view = VolumeView(plugin, csi["driver"], native=False)
    handle = csi.get("volumeHandle", "")
    name = in_tree_name(plugin, volume)
    return Volume("", view, name, csi_name(view.driver, handle), handle, twin["spec"])
