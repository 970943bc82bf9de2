"""What one in-tree plugin must be able to say of itself. One file per plugin implements it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from replant.objects import Object
from replant.translate.drafts import ClassDraft, VolumeDraft
from replant.translate.fields import Fields

READ_WRITE_ONCE = "ReadWriteOnce"
READ_ONLY_MANY = "ReadOnlyMany"
READ_WRITE_MANY = "ReadWriteMany"

SECRET_REFERENCES = frozenset(
    {
        "controllerExpandSecretRef",
        "controllerPublishSecretRef",
        "nodeExpandSecretRef",
        "nodePublishSecretRef",
        "nodeStageSecretRef",
    }
)
"""The fields of a CSI source that name a secret."""


@dataclass(frozen=True, slots=True)
class InlineVolume:
    """What becomes of a volume that a pod names by itself, without a claim."""

    name: str
    """Unique for the disk: the kubelet makes the staging path of it."""
    csi: Object
    access_mode: str


class Plugin(ABC):
    """One in-tree plugin and the CSI driver that takes over."""

    name: ClassVar[str]
    driver: ClassVar[str]
    source: ClassVar[str]
    """The field of a PersistentVolume's spec, and of a pod's volume, that names the disk."""
    parameters: ClassVar[frozenset[str] | None] = None
    """The class parameters that survive, in lower case; None where all do."""

    @abstractmethod
    def pv_to_csi(self, source: Fields, draft: VolumeDraft) -> Object:
        """The CSI source; what else must change is changed in ``draft``."""

    @abstractmethod
    def pv_to_in_tree(self, csi: Fields, draft: VolumeDraft) -> Object:
        """The in-tree source; what else must change is changed in ``draft``."""

    @abstractmethod
    def inline_to_csi(self, source: Fields, volume: str, namespace: str) -> InlineVolume:
        """The CSI source of a pod's own volume, called ``volume`` in the pod."""

    @abstractmethod
    def class_to_csi(self, draft: ClassDraft) -> None:
        """Change the parameters and topologies of a StorageClass."""

    def csi_source(
        self, handle: str, source: Fields, attributes: dict[str, str] | None = None
    ) -> Object:
        """A CSI source with what every plugin says in the same way."""
        csi: Object = {"driver": self.driver, "volumeHandle": handle}
        fs_type = source.text("fsType")
        if fs_type:
            csi["fsType"] = fs_type
        if source.flag("readOnly"):
            csi["readOnly"] = True
        if attributes:
            csi["volumeAttributes"] = attributes
        return csi

    def repair_handle(self, handle: str, node_id: str) -> str:  # noqa: ARG002
        """Complete a handle from the ID of the node; most handles are complete."""
        return handle
