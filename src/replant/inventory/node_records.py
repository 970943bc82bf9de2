"""What an inventory needs of nodes: their kubelets, and what is attached and registered there."""

from __future__ import annotations

from msgspec import Struct, field

from replant.inventory.metadata import Record


class NodeSpec(Struct, gc=False):
    """Where a node lives, and whether it takes new pods."""

    providerID: str | None = None  # noqa: N815
    unschedulable: bool | None = None


class VolumeAttached(Struct, gc=False):
    """A volume that a node's status says is attached."""

    name: str = ""


class NodeInfo(Struct, gc=False):
    """Which kubelet a node runs."""

    kubeletVersion: str | None = None  # noqa: N815


class NodeCondition(Struct, gc=False):
    """A condition of a node, without its reason and message, which nobody asks for."""

    type: str = ""
    status: str = ""


class NodeStatus(Struct, gc=False):
    """How a node does, what is attached to it, and which kubelet runs there."""

    conditions: list[NodeCondition] | None = None
    volumesAttached: list[VolumeAttached] | None = None  # noqa: N815
    volumesInUse: list[str] | None = None  # noqa: N815
    nodeInfo: NodeInfo | None = None  # noqa: N815


class Node(Record, gc=False, kw_only=True):
    """A node."""

    spec: NodeSpec | None = None
    status: NodeStatus | None = None


class NodeDriver(Struct, gc=False):
    """A CSI driver that is registered on a node."""

    name: str = ""
    topologyKeys: list[str] | None = None  # noqa: N815


class CSINodeSpec(Struct, gc=False):
    """The CSI drivers of a node."""

    drivers: list[NodeDriver] | None = None


class CSINode(Record, gc=False, kw_only=True):
    """What a node says of CSI."""

    spec: CSINodeSpec = field(default_factory=CSINodeSpec)
