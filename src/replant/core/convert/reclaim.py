"""Whether the disk of a volume stays when its claim is deleted, before and after its conversion.

The in-tree plugin deletes the disk of a volume with the policy Delete that names no provisioner.
Once that plugin is gone, nobody does, and the volume only gets the phase Failed. Its native form
belongs to the csi-provisioner, which would delete the disk.
"""

from __future__ import annotations

from replant.objects import Object
from replant.routing import Process, Side, VolumeView, delete


def is_kept_only_in_tree(in_tree: Object, native: Object, controller: Process) -> bool:
    """Whether nobody would delete the disk for the in-tree volume, which names no provisioner, and
    its driver would for the native one; both with the policy Delete."""
    before, after = VolumeView.of(in_tree), VolumeView.of(native)
    if before.provisioner:
        return False
    return (
        delete(before, controller).served_by is Side.NOBODY
        and delete(after, controller).served_by is Side.CSI
    )
