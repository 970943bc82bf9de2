"""Disks as each in-tree plugin writes them down."""

from __future__ import annotations

from collections.abc import Callable

from replant.objects import Object

_ZONE = "topology.kubernetes.io/zone"
_AZURE = "/subscriptions/00000000/resourceGroups/sandbox/providers/Microsoft.Compute/disks"


def in_tree_source(plugin: str, serial: int, zone: str) -> tuple[Object, dict[str, str]]:
    """A volume's source for a disk, and the labels that go with it."""
    labels = {_ZONE: zone} if plugin in _ZONED else {}
    return _SOURCES[plugin](serial, zone), labels


def _disk(serial: int) -> str:
    return f"disk-{serial:08x}"


def _aws(serial: int, zone: str) -> Object:
    return {"awsElasticBlockStore": {"volumeID": f"aws://{zone}/vol-{serial:017x}"}}


def _gce(serial: int, _zone: str) -> Object:
    return {"gcePersistentDisk": {"pdName": _disk(serial)}}


def _cinder(serial: int, _zone: str) -> Object:
    return {"cinder": {"volumeID": f"{serial:08x}-0000-4000-8000-0"}}


def _azure_disk(serial: int, _zone: str) -> Object:
    disk = _disk(serial)
    return {"azureDisk": {"diskName": disk, "diskURI": f"{_AZURE}/{disk}", "kind": "Managed"}}


def _azure_file(serial: int, _zone: str) -> Object:
    share = {"secretName": "storage-account", "secretNamespace": "default"}
    return {"azureFile": {**share, "shareName": _disk(serial)}}


def _vsphere(serial: int, _zone: str) -> Object:
    return {"vsphereVolume": {"volumePath": f"[datastore1] kubevols/{_disk(serial)}.vmdk"}}


def _portworx(serial: int, _zone: str) -> Object:
    return {"portworxVolume": {"volumeID": _disk(serial)}}


def _rbd(serial: int, _zone: str) -> Object:
    return {"rbd": {"monitors": ["10.0.0.1:6789"], "image": _disk(serial), "pool": "rbd"}}


_SOURCES: dict[str, Callable[[int, str], Object]] = {
    "kubernetes.io/aws-ebs": _aws,
    "kubernetes.io/gce-pd": _gce,
    "kubernetes.io/cinder": _cinder,
    "kubernetes.io/azure-disk": _azure_disk,
    "kubernetes.io/azure-file": _azure_file,
    "kubernetes.io/vsphere-volume": _vsphere,
    "kubernetes.io/portworx-volume": _portworx,
    "kubernetes.io/rbd": _rbd,
}
_ZONED = {"kubernetes.io/aws-ebs", "kubernetes.io/gce-pd", "kubernetes.io/cinder"}
"""Whose volumes say by a label where their disk is."""
