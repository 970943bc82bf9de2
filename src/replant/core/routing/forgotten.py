"""Attachments that a kube-controller-manager which starts knows nothing of.

It finds what is attached in each Node's volumesAttached, and then in VolumeAttachments, but there
only in those that name a PersistentVolume. The VolumeAttachment of an inline volume names none. If
the controller is killed after it took the volume out of volumesAttached, and before it deletes the
VolumeAttachment, the next one never deletes it: the disk stays attached, and no other node gets it.
"""

from __future__ import annotations

from collections.abc import Iterable

from replant.routing.names import CSI, named


def is_forgotten(name: str, on_node: Iterable[str]) -> bool:
    """Whether nothing on a node has the disk of an inline VolumeAttachment.

    ``on_node`` has the names of all volumes that the node lists or that its pods use. Both sides'
    names count, and so does one that differs only in what comes before the disk's own name, such
    as a zone: whoever detaches the VolumeAttachment detaches the disk under each of them.
    """
    return _disk(name) not in map(_disk, on_node)


def _disk(name: str) -> tuple[str, str]:
    """The plugin, and what it calls the disk at the end of its name."""
    handle = name.partition("^")[2] if name.startswith(CSI) else name
    return named(name).plugin, handle.rpartition("/")[2]
