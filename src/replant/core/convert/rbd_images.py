"""RBD images that ceph-csi would take for others.

A volume that was provisioned in-tree has a handle `mig_mons-HASH_image-SUFFIX_POOL`. To delete or
expand it, ceph-csi makes the image's name from the handle: `kubernetes-dynamic-pvc-` and SUFFIX, of
the parts between underscores. For an image of another name that is another image.
"""

from __future__ import annotations

from typing import Final

from replant.objects import Object

_MIGRATED: Final = "mig_"
_PREFIX: Final = "kubernetes-dynamic-pvc-"


def misread_image(csi: Object) -> str:
    """Why ceph-csi would delete and expand another image than that of a native volume, if so."""
    handle = csi.get("volumeHandle", "")
    if csi.get("driver") != "rbd.csi.ceph.com" or not handle.startswith(_MIGRATED):
        return ""
    image = (csi.get("volumeAttributes") or {}).get("imageName", "")
    if image.startswith(_PREFIX) and "_" not in image:
        return ""
    return (
        f"Its image is {image}. To delete or expand it, ceph-csi would address another one: it "
        f"makes the name from the volume handle, as {_PREFIX} and what stands between underscores."
    )
