"""What controllers read of objects: only these fields are decoded, and next to nothing is kept.

What is read is shared, so nobody may change it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Generic, TypeVar

from msgspec import Struct, field
from msgspec.json import Decoder

from replant.inventory.metadata import LabelSelector
from replant.objects import Object
from replant.sandbox.sides import NodeView

MANAGED_ATTACH = "volumes.kubernetes.io/controller-managed-attach-detach"
MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
ZONE = "topology.kubernetes.io/zone"
ENDS_AFTER = "sandbox.replant.dev/ends-after"
"""The annotation of a pod that takes so many seconds to end after SIGTERM."""
OVER = ("Succeeded", "Failed")

Strings = dict[str, str]
Part = TypeVar("Part")


class Owner(Struct, gc=False):
    """Who made an object."""

    apiVersion: str = ""  # noqa: N815
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    blockOwnerDeletion: bool | None = None  # noqa: N815


def controller(owners: list[Owner] | None) -> Owner | None:
    """The one that makes an object again when it goes."""
    return next((it for it in owners or () if it.controller), None)


class Kin(Struct, gc=False):
    """To whom an object belongs, and what keeps it."""

    ownerReferences: list[Owner] | None = None  # noqa: N815
    finalizers: list[str] | None = None
    deletionTimestamp: str | None = None  # noqa: N815


class Relative(Struct, gc=False):
    """An object of any kind."""

    metadata: Kin


class Metadata(Struct, gc=False):
    """What an object says of itself, besides what its entry tells and to whom it belongs."""

    namespace: str = ""
    annotations: Strings | None = None
    finalizers: list[str] | None = None
    creationTimestamp: str = ""  # noqa: N815
    deletionTimestamp: str | None = None  # noqa: N815
    deletionGracePeriodSeconds: int | None = None  # noqa: N815


class PodSpec(Struct, gc=False):
    """What a pod wants."""

    volumes: list[Object] | None = None
    nodeSelector: Strings | None = None  # noqa: N815
    affinity: Object | None = None
    tolerations: list[Object] | None = None
    schedulerName: str = "default-scheduler"  # noqa: N815


class Condition(Struct, gc=False):
    """One thing that is so, or not."""

    type: str = ""
    status: str = ""
    lastTransitionTime: str | None = None  # noqa: N815


class Status(Struct, gc=False):
    """How a pod, a node or a volume is."""

    phase: str = ""
    conditions: list[Condition] | None = None
    volumesInUse: list[str] | None = None  # noqa: N815
    volumesAttached: list[Object] | None = None  # noqa: N815

    @property
    def ready(self) -> bool:
        """Whether it says so of itself."""
        return any(it.type == "Ready" and it.status == "True" for it in self.conditions or ())

    @property
    def ready_since(self) -> str:
        """When it last became so, or nothing."""
        said = (it.lastTransitionTime for it in self.conditions or () if it.type == "Ready")
        return next(said, None) or ""


class Pod(Struct, gc=False):
    """A pod, but for its state."""

    metadata: Metadata
    spec: PodSpec


class PodState(Struct, gc=False):
    """How a pod is."""

    metadata: Metadata
    status: Status


class NodeSpec(Struct, gc=False):
    """What keeps pods away from a node."""

    unschedulable: bool = False
    taints: list[Strings] | None = None


class Node(Struct, gc=False):
    """A node."""

    metadata: Metadata
    spec: NodeSpec = field(default_factory=NodeSpec)
    status: Status = field(default_factory=Status)

    @property
    def attached(self) -> set[str]:
        """The names of what it is told to be attached."""
        return {it["name"] for it in self.status.volumesAttached or ()}


class ClaimReference(Struct, gc=False):
    """The claim that a volume belongs to."""

    namespace: str = ""
    name: str = ""
    uid: str = ""


class ClaimSpec(Struct, gc=False):
    """What a claim asks for."""

    volumeName: str = ""  # noqa: N815
    storageClassName: str | None = None  # noqa: N815
    accessModes: list[str] | None = None  # noqa: N815
    selector: LabelSelector | None = None
    resources: Object | None = None
    volumeMode: str = "Filesystem"  # noqa: N815

    @property
    def storage(self) -> str:
        """How much."""
        return str(((self.resources or {}).get("requests") or {}).get("storage", "0"))


class ClaimStatus(Struct, gc=False):
    """How far a claim is."""

    phase: str = ""
    capacity: Strings | None = None


class Claim(Struct, gc=False):
    """A claim."""

    metadata: Metadata
    spec: ClaimSpec
    status: ClaimStatus


class BindingSpec(Struct, gc=False):
    """The volume that a claim names."""

    volumeName: str = ""  # noqa: N815


class BindingStatus(Struct, gc=False):
    """Whether it has it."""

    phase: str = ""


class Binding(Struct, gc=False):
    """A claim for those who ask only for its volume, which is most of what is asked of claims."""

    spec: BindingSpec
    status: BindingStatus


class OfferSpec(Struct, gc=False):
    """The claim that a volume names, and its class."""

    claimRef: ClaimReference | None = None  # noqa: N815
    storageClassName: str = ""  # noqa: N815


class Offer(Struct, gc=False):
    """A PersistentVolume for those who ask only whose it is."""

    spec: OfferSpec


class VolumeSpec(Struct, gc=False):
    """What a PersistentVolume offers, but for its source."""

    claimRef: ClaimReference | None = None  # noqa: N815
    capacity: Strings | None = None
    accessModes: list[str] | None = None  # noqa: N815
    storageClassName: str = ""  # noqa: N815
    persistentVolumeReclaimPolicy: str = "Retain"  # noqa: N815
    volumeMode: str = "Filesystem"  # noqa: N815
    nodeAffinity: Object | None = None  # noqa: N815


class Volume(Struct, gc=False):
    """A PersistentVolume, but for its source."""

    metadata: Metadata
    spec: VolumeSpec
    status: Status


class AttachmentSource(Struct, gc=False):
    """What is to be attached."""

    persistentVolumeName: str | None = None  # noqa: N815
    inlineVolumeSpec: Object | None = None  # noqa: N815


class AttachmentSpec(Struct, gc=False):
    """Who is to attach it, and where."""

    attacher: str = ""
    nodeName: str = ""  # noqa: N815
    source: AttachmentSource | None = None


class AttachmentStatus(Struct, gc=False):
    """How far that is."""

    attached: bool = False
    attachError: Object | None = None  # noqa: N815


class Attachment(Struct, gc=False):
    """A VolumeAttachment."""

    metadata: Metadata
    spec: AttachmentSpec
    status: AttachmentStatus | None = None


class DriverOnNode(Struct, gc=False):
    """A driver, as a node knows it."""

    name: str = ""
    nodeID: str = ""  # noqa: N815
    allocatable: dict[str, int] | None = None


class CsiNodeSpec(Struct, gc=False):
    """The drivers of a node."""

    drivers: list[DriverOnNode] | None = None


class CsiNode(Struct, gc=False):
    """A CSINode."""

    metadata: Metadata
    spec: CsiNodeSpec


class _Reader(Generic[Part]):
    """Decodes a text, and once only while it is the one that everybody is told of."""

    def __init__(self, part: type[Part]) -> None:
        self._decode = Decoder(part).decode
        self._text: bytes = b""
        self._part: Part | None = None

    def __call__(self, text: bytes) -> Part:
        part = self._part
        if part is None or text is not self._text:
            part = self._part = self._decode(text)
            self._text = text
        return part


read_kin = _Reader(Relative)
read_pod = _Reader(Pod)
read_pod_state = _Reader(PodState)
read_node = _Reader(Node)
read_claim = _Reader(Claim)
read_binding = _Reader(Binding)
read_volume = _Reader(Volume)
read_offer = _Reader(Offer)
read_attachment = _Reader(Attachment)
read_csi_node = _Reader(CsiNode)


def node_view(text: bytes | None) -> NodeView:
    """What a CSINode says, or that there is none."""
    if text is None:
        return NodeView(csi_node=False)
    found = read_csi_node(text)
    listed = (found.metadata.annotations or {}).get(MIGRATED_PLUGINS, "")
    return _node_view(listed, tuple(it.name for it in found.spec.drivers or ()))


@lru_cache(maxsize=1024)
def _node_view(listed: str, drivers: tuple[str, ...]) -> NodeView:
    """One for all nodes that say the same: what is remembered by it is found without comparing."""
    migrated = frozenset(it for it in listed.split(",") if it)
    return NodeView(csi_node=True, migrated=migrated, drivers=frozenset(drivers))


def claim_names(pod: Pod) -> list[str]:
    """The claims that a pod has among its volumes."""
    return [
        claim["claimName"]
        for volume in pod.spec.volumes or ()
        if (claim := volume.get("persistentVolumeClaim"))
    ]


def condition(kind: str, status: str, time: str, **more: Any) -> Object:
    """One condition, as objects have them."""
    return {"type": kind, "status": status, "lastTransitionTime": time, **more}


def put_condition(obj: Object, new: Object) -> None:
    """Have an object say that, in place of what it said about the same."""
    conditions = obj.setdefault("status", {}).setdefault("conditions", [])
    conditions[:] = [*(it for it in conditions if it.get("type") != new["type"]), new]
