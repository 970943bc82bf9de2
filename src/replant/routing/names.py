"""What each side calls a volume that is attached: two names for one disk.

A node's status lists what is attached and in use by these names, and nothing else ties them to a
volume. That they differ is why a disk can be held twice, or be left behind by one side.
"""

from __future__ import annotations

from typing import NamedTuple

from replant.objects import Object
from replant.routing.model import Side
from replant.translate import driver_of, plugins

CSI = "kubernetes.io/csi/"
"""How the names of all drivers' volumes begin."""
_IDENTIFIED_BY: dict[str, tuple[str, tuple[str, ...]]] = {
    "kubernetes.io/aws-ebs": ("awsElasticBlockStore", ("volumeID",)),
    "kubernetes.io/gce-pd": ("gcePersistentDisk", ("pdName",)),
    "kubernetes.io/cinder": ("cinder", ("volumeID",)),
    "kubernetes.io/azure-disk": ("azureDisk", ("diskURI",)),
    "kubernetes.io/azure-file": ("azureFile", ("shareName",)),
    "kubernetes.io/vsphere-volume": ("vsphereVolume", ("volumePath",)),
    "kubernetes.io/portworx-volume": ("portworxVolume", ("volumeID",)),
    "kubernetes.io/rbd": ("rbd", ("pool", "image")),
}
"""Where each plugin finds what it calls a disk."""
_BEHIND = {driver_of(plugin): plugin for plugin in plugins()}


class Named(NamedTuple):
    """What a name tells by itself."""

    side: Side
    plugin: str
    """The plugin, or the one whose driver it is; empty for anything else."""


def in_tree_name(plugin: str, holder: Object) -> str:
    """The plugin's name for a volume, whose source is in ``holder``: a spec or a pod's volume."""
    source, fields = _IDENTIFIED_BY[plugin]
    return f"{plugin}/{':'.join(str(holder[source].get(field, '')) for field in fields)}"


def csi_name(driver: str, handle: str) -> str:
    """The name of a driver's volume, native or translated."""
    return f"{CSI}{driver}^{handle}"


def named(name: str) -> Named:
    """Whose name it is."""
    if name.startswith(CSI):
        driver = name.removeprefix(CSI).partition("^")[0]
        return Named(Side.CSI, _BEHIND.get(driver, ""))
    plugin = "/".join(name.split("/", 2)[:2])
    return Named(Side.IN_TREE, plugin if plugin in _IDENTIFIED_BY else "")
