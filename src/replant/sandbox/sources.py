"""Disks as each in-tree plugin writes them down."""

from __future__ import annotations

from replant.objects import Object

_ZONE = "topology.kubernetes.io/zone"
_AZURE = "/subscriptions/00000000/resourceGroups/sandbox/providers/Microsoft.Compute/disks"


def in_tree_source(plugin: str, serial: int, zone: str) -> tuple[Object, dict[str, str]]:
    """A volume's source for a disk, and the labels that go with it."""
    disk = f"disk-{serial:08x}"
    zoned = {_ZONE: zone}
    sources: dict[str, tuple[Object, dict[str, str]]] = {
        "kubernetes.io/aws-ebs": (
            {"awsElasticBlockStore": {"volumeID": f"aws://{zone}/vol-{serial:017x}"}},
            zoned,
        ),
        "kubernetes.io/gce-pd": ({"gcePersistentDisk": {"pdName": disk}}, zoned),
        "kubernetes.io/cinder": ({"cinder": {"volumeID": f"{serial:08x}-0000-4000-8000-0"}}, zoned),
        "kubernetes.io/azure-disk": (
            {"azureDisk": {"diskName": disk, "diskURI": f"{_AZURE}/{disk}", "kind": "Managed"}},
            {},
        ),
        "kubernetes.io/azure-file": (
            {
                "azureFile": {
                    "secretName": "storage-account",
                    "secretNamespace": "default",
                    "shareName": disk,
                }
            },
            {},
        ),
        "kubernetes.io/vsphere-volume": (
            {"vsphereVolume": {"volumePath": f"[datastore1] kubevols/{disk}.vmdk"}},
            {},
        ),
        "kubernetes.io/portworx-volume": ({"portworxVolume": {"volumeID": disk}}, {}),
        "kubernetes.io/rbd": (
            {"rbd": {"monitors": ["10.0.0.1:6789"], "image": disk, "pool": "rbd"}},
            {},
        ),
    }
    return sources[plugin]
