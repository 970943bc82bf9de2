"""What is decided about one volume on one node, from what is known of both."""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple

from replant.sandbox.controllers import parts
from replant.sandbox.controllers.base import doubling
from replant.sandbox.controllers.volumes import Volume, parse
from replant.sandbox.sides import (
    AttachController,
    NodeView,
    Process,
    Side,
    VolumeView,
    attach_side,
    can_detach,
)

_FIRST_RETRY, _LAST_RETRY = 0.5, 122.0


class Hold(Enum):
    """How far a volume is on a node."""

    ATTACHING = "attaching"
    HELD = "held"
    LETTING_GO = "letting go"
    UNCERTAIN = "uncertain"
    """An attach to another node failed because this one has the disk: it is taken for attached here
    under the name by which that attach was asked for, and the node is not told."""


class NodeReport(NamedTuple):
    """What a node reports of itself."""

    healthy: bool
    managed: bool
    """Whether it leaves attaching to this controller."""
    in_use: frozenset[str]


def read_report(text: bytes) -> NodeReport:
    """What a node reports, out of the object as it is stored."""
    read = parts.read_node(text)
    managed = (read.metadata.annotations or {}).get(parts.MANAGED_ATTACH) == "true"
    return NodeReport(read.status.ready, managed, frozenset(read.status.volumesInUse or ()))


def wanted_name(volume: Volume, process: Process, node: NodeView, kind: AttachController) -> str:
    """The name under which a volume is wanted, or nothing where nobody serves it."""
    side = _side(volume.view, process, node, kind)
    return "" if side is Side.NOBODY else volume.called(side)


@lru_cache(maxsize=4096)
def _side(volume: VolumeView, process: Process, node: NodeView, kind: AttachController) -> Side:
    return attach_side(volume, process, node, kind)


def can_detach_name(name: str, hold: Hold, process: Process) -> bool:
    """Whether a name that is held could be detached now, by whoever serves it."""
    parsed = parse(name)
    if hold is Hold.ATTACHING and parsed.side is Side.IN_TREE:
        return False  # one operation at a time: it is looked at again when this one ends
    return can_detach(parsed.side, parsed.view.plugin, process)


def attachment_name(name: str, node: str) -> str:
    """What the VolumeAttachment of a volume on a node is called."""
    parsed = parse(name)
    text = f"{parsed.disk}{parsed.view.driver}{node}"
    return f"csi-{sha256(text.encode()).hexdigest()}"


def retry_pause(failures: int) -> float:
    """So many seconds pass before what has failed so often is tried again."""
    return doubling(_FIRST_RETRY, failures - 1, _LAST_RETRY)
