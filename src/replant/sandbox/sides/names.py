"""What each side calls a volume that is attached: two names for one disk."""

from __future__ import annotations

from typing import Final

from replant.objects import Object

CSI: Final = "kubernetes.io/csi/"
"""How the names of all drivers' volumes begin."""
_NAMED_BY: Final = {
    "kubernetes.io/aws-ebs": ("awsElasticBlockStore", ("volumeID",)),
    "kubernetes.io/azure-disk": ("azureDisk", ("diskURI",)),
    "kubernetes.io/azure-file": ("azureFile", ("shareName",)),
    "kubernetes.io/cinder": ("cinder", ("volumeID",)),
    "kubernetes.io/gce-pd": ("gcePersistentDisk", ("pdName",)),
    "kubernetes.io/portworx-volume": ("portworxVolume", ("volumeID",)),
    "kubernetes.io/rbd": ("rbd", ("pool", "image")),
    "kubernetes.io/vsphere-volume": ("vsphereVolume", ("volumePath",)),
}
"""The source of each plugin's volumes, and the fields that its GetVolumeName returns."""


def in_tree_name(plugin: str, holder: Object) -> str:
    """The plugin's name for a volume, whose source is in ``holder``: a spec or a pod's volume."""
    source, fields = _NAMED_BY[plugin]
    return f"{plugin}/{':'.join(str(holder[source].get(field, '')) for field in fields)}"


def csi_name(driver: str, handle: str) -> str:
    """The name of a driver's volume, native or translated."""
    return f"{CSI}{driver}^{handle}"
