"""What an inventory needs of volumes: themselves, claims, classes, drivers and attachments."""

from __future__ import annotations

from typing import Any

from msgspec import Raw, Struct, field

from replant.inventory.metadata import Metadata, OwnerReference, Record, Strings


class VolumeStatus(Struct, gc=False):
    """Whether a claim has it."""

    phase: str | None = None


class VolumeMetadata(Metadata, gc=False):
    """What tells volumes apart, and who holds them."""

    finalizers: list[str] | None = None


class PersistentVolume(Record, gc=False, kw_only=True):
    """Its spec stays text: translating it needs all of it, and built up it is five times larger."""

    metadata: VolumeMetadata = field(default_factory=VolumeMetadata)
    spec: Raw = Raw(b"{}")
    status: VolumeStatus | None = None


class Resources(Struct, gc=False):
    """Requests of a claim."""

    requests: dict[str, Any] | None = None


class ClaimSpec(Struct, gc=False):
    """What a claim asks for."""

    storageClassName: str | None = None  # noqa: N815
    volumeName: str | None = None  # noqa: N815
    resources: Resources | None = None


class Condition(Struct, gc=False):
    """A condition of an object."""

    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None


class ModifyVolumeStatus(Struct, gc=False):
    """How far a change to another VolumeAttributesClass is."""

    status: str = ""


class ClaimStatus(Struct, gc=False):
    """What a claim has."""

    phase: str | None = None
    capacity: dict[str, Any] | None = None
    conditions: list[Condition] | None = None
    allocatedResourceStatuses: Strings | None = None  # noqa: N815
    """How far an expansion is; nothing where none is under way."""
    modifyVolumeStatus: ModifyVolumeStatus | None = None  # noqa: N815


class ClaimMetadata(Struct, gc=False):
    """What tells claims apart."""

    name: str = ""
    uid: str = ""
    namespace: str | None = None
    labels: Strings | None = None
    annotations: Strings | None = None
    """Of claims that have no volume yet: who is asked for one, and where it is wanted."""
    deletionTimestamp: str | None = None  # noqa: N815
    ownerReferences: list[OwnerReference] | None = None  # noqa: N815


class PersistentVolumeClaim(Struct, gc=False):
    """A claim."""

    metadata: ClaimMetadata = field(default_factory=ClaimMetadata)
    spec: ClaimSpec = field(default_factory=ClaimSpec)
    status: ClaimStatus | None = None

    @property
    def is_pending(self) -> bool:
        """Whether it says that it has no volume yet."""
        return self.status is not None and self.status.phase == "Pending"


class StorageClass(Record, gc=False, kw_only=True):
    """A class, with all that it takes to translate it and to make it again."""

    provisioner: str = ""
    parameters: Strings | None = None
    allowedTopologies: list[dict[str, Any]] | None = None  # noqa: N815
    reclaimPolicy: str | None = None  # noqa: N815
    mountOptions: list[str] | None = None  # noqa: N815
    volumeBindingMode: str | None = None  # noqa: N815
    allowVolumeExpansion: bool | None = None  # noqa: N815


class CSIDriverSpec(Struct, gc=False):
    """How a driver treats the group of files."""

    fsGroupPolicy: str | None = None  # noqa: N815


class CSIDriver(Record, gc=False, kw_only=True):
    """A CSI driver that is installed."""

    spec: CSIDriverSpec = field(default_factory=CSIDriverSpec)


class AttachmentSource(Struct, gc=False):
    """Which volume is attached."""

    persistentVolumeName: str | None = None  # noqa: N815
    inlineVolumeSpec: dict[str, Any] | None = None  # noqa: N815


class AttachmentSpec(Struct, gc=False):
    """Which volume is to be attached where, and by which driver."""

    attacher: str = ""
    nodeName: str = ""  # noqa: N815
    source: AttachmentSource = field(default_factory=AttachmentSource)


class AttachmentError(Struct, gc=False):
    """Why a volume could not be attached or detached."""

    message: str | None = None


class AttachmentStatus(Struct, gc=False):
    """Whether the volume is attached."""

    attached: bool = False
    attachError: AttachmentError | None = None  # noqa: N815
    detachError: AttachmentError | None = None  # noqa: N815


class VolumeAttachment(Record, gc=False, kw_only=True):
    """An attachment by a CSI driver."""

    spec: AttachmentSpec = field(default_factory=AttachmentSpec)
    status: AttachmentStatus | None = None
