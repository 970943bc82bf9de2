"""Which finalizers of a PersistentVolume a conversion may remove.

A finalizer says that its controller wants to act when the volume is deleted. Those of Kubernetes
and of the CSI sidecars leave the disk of a Retain volume alone. Of any other nobody knows: its
controller may delete the disk when it sees the deletionTimestamp.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

_KNOWN: Final = frozenset(
    {
        "kubernetes.io/pv-protection",
        "kubernetes.io/pv-controller",
        "external-provisioner.volume.kubernetes.io/finalizer",
    }
)
_ATTACHERS: Final = "external-attacher/"
"""Followed by the name of a driver."""


def unknown_finalizers(
    finalizers: Iterable[str] | None, accepted: Collection[str] = ()
) -> tuple[str, ...]:
    """Those of a volume's finalizers that are not known, and that nobody has accepted."""
    return tuple(
        it
        for it in finalizers or ()
        if it not in _KNOWN and not it.startswith(_ATTACHERS) and it not in accepted
    )
