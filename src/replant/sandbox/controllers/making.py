"""New volumes, as plugins and provisioners make them."""

from __future__ import annotations

from hashlib import sha256

from replant.inventory.quantities import amount
from replant.objects import Object
from replant.sandbox.controllers import parts
from replant.sandbox.controllers.base import World
from replant.sandbox.resources import NODES
from replant.sandbox.shelves import Entry
from replant.sandbox.sides import Side
from replant.sandbox.sides.model import PROVISIONED_BY
from replant.translate import driver_of, plugins, pv_to_csi, pv_to_in_tree

NO_ZONE = "us-east-1a"
"""Where a disk is made that nobody has chosen a place for."""


def refusal_to_make(read: parts.Claim, storage_class: Object) -> str:
    """Why neither a plugin nor a provisioner makes a disk for a claim, or nothing.

    Which labels a disk that is yet to be made will have, nobody can promise.
    """
    if read.spec.selector is None:
        return ""
    name = storage_class["metadata"]["name"]
    return f'failed to provision volume with StorageClass "{name}": claim Selector is not supported'


def new_volume(
    world: World, claim: Entry, read: parts.Claim, storage_class: Object, side: Side
) -> Object:
    """A disk for a claim, and the PersistentVolume for it.

    Where the class is in-tree so is the volume, whichever side makes it: a driver's provisioner
    translates it back, so that the way back stays open.
    """
    provisioner = str(storage_class["provisioner"])
    in_tree = provisioner in plugins()
    driver = driver_of(provisioner) if in_tree else provisioner
    zone = _zone(world, read)
    name = f"pvc-{claim.uid}"
    volume: Object = {
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: provisioner}},
        "spec": {
            "capacity": {"storage": read.spec.storage},
            "accessModes": read.spec.accessModes,
            "volumeMode": read.spec.volumeMode,
            "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy", "Delete"),
            "storageClassName": storage_class["metadata"]["name"],
            "csi": {"driver": driver, "volumeHandle": _handle(driver, name, zone)},
            "claimRef": {
                "kind": "PersistentVolumeClaim",
                "apiVersion": "v1",
                "namespace": claim.namespace,
                "name": claim.name,
                "uid": claim.uid,
            },
        },
    }
    csi = volume["spec"]["csi"]
    if driver == "csi.vsphere.vmware.com":
        # By this the driver tells whoever translates it back under which path it is.
        csi["volumeAttributes"] = {"initialvolumefilepath": csi["volumeHandle"]}
    if driver == "rbd.csi.ceph.com":
        csi["volumeAttributes"] = {"imageName": csi["volumeHandle"]}
    if in_tree:
        volume = pv_to_in_tree(volume)
    if not _needs_no_zone(provisioner):
        volume["spec"]["nodeAffinity"] = _in_zone(zone)
        volume["metadata"]["labels"] = {parts.ZONE: zone}
    if in_tree:
        # What a plugin does not keep of a handle, the disk must not be called by either.
        csi = pv_to_csi(volume)["spec"]["csi"]
    world.cloud.create(amount(read.spec.storage), zone, side, csi["volumeHandle"])
    return volume


def _zone(world: World, read: parts.Claim) -> str:
    node = (read.metadata.annotations or {}).get(parts.SELECTED_NODE, "")
    found = world.store.find(NODES, node) if node else None
    labels = found.labels if found else {}
    return labels.get(parts.ZONE, NO_ZONE)


def _in_zone(zone: str) -> Object:
    expression = {"key": parts.ZONE, "operator": "In", "values": [zone]}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


def _needs_no_zone(provisioner: str) -> bool:
    """Shares and storage of one's own are wherever the cluster is."""
    return any(it in provisioner for it in ("azure-file", "file.csi", "portworx", "rbd"))


def _handle(driver: str, name: str, zone: str) -> str:
    """A disk's id, in the form that a driver has for it."""
    forms = {
        "pd.csi.storage.gke.io": f"projects/UNSPECIFIED/zones/{zone}/disks/{name}",
        "disk.csi.azure.com": "/subscriptions/sandbox/resourceGroups/sandbox/providers/"
        f"Microsoft.Compute/disks/{name}",
        "file.csi.azure.com": f"sandbox#account#{name}#",
        "csi.vsphere.vmware.com": f"[datastore] kubevols/{name}.vmdk",
    }
    return forms.get(driver, f"vol-{sha256(name.encode()).hexdigest()[:17]}")
