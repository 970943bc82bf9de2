"""Attaches that take a disk from the node that has it under its other name.

The attach/detach controller keeps a volume off a second node by its unique name. The in-tree plugin
and the driver call the same disk by different names, so this does not help where one node has it by
one name and another node wants it by the other (docs/observed.md).

Facts are of kubernetes/legacy-cloud-providers and of the drivers' sources.
"""

from __future__ import annotations

from typing import Final

from replant.gates.versions import Version

_IN_TREE_SINCE: Final = {
    "kubernetes.io/aws-ebs": Version(1, 17),
    "kubernetes.io/azure-disk": Version(1, 17),
    "kubernetes.io/cinder": Version(1, 17),
    "kubernetes.io/vsphere-volume": Version(1, 19, 16),
}
"""The first version of kube-controller-manager, of those known here, with each of them. It stays
until the plugin is removed."""
_DRIVERS: Final = frozenset({"kubernetes.io/azure-disk"})
"""azuredisk-csi-driver since v0.9.0. Since v1.34.1 it spares a node that has a VolumeAttachment for
a native PersistentVolume, and no other."""


def attach_may_detach(plugin: str, controller: Version) -> bool:
    """Whether an in-tree attach that fails may take the disk from another node.

    The plugin returns a DanglingAttachError that names the node which has the disk. The controller
    takes the disk for attached there under its in-tree name, finds no pod that wants it there under
    that name, and detaches it.
    """
    since = _IN_TREE_SINCE.get(plugin)
    return since is not None and controller >= since


def driver_attach_detaches(plugin: str) -> bool:
    """Whether the driver's attach detaches the disk from another node first."""
    return plugin in _DRIVERS


def is_taken_from_other_nodes(plugin: str, controller: Version) -> bool:
    """Whether a pod's disk can be taken by its successor on a node of the other kind."""
    return attach_may_detach(plugin, controller) or driver_attach_detaches(plugin)
