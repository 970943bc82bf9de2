"""What is attached where, as the controller knows it; the truth is the cloud's."""

from __future__ import annotations

from collections.abc import Iterable

from replant.sandbox.controllers import parts
from replant.sandbox.controllers.attachdetach.decisions import Hold, attachment_name
from replant.sandbox.controllers.base import discard
from replant.sandbox.controllers.volumes import Volumes, parse
from replant.sandbox.sides import Side

Place = tuple[str, str]
"""A node, and a volume's name there."""


class Held:
    """The names that are held on each node, and the VolumeAttachments that stand for them."""

    def __init__(self, volumes: Volumes) -> None:
        self._volumes = volumes
        self.on_nodes: dict[str, dict[str, Hold]] = {}
        self.places: dict[str, set[str]] = {}
        """On which nodes each name is held."""
        self.attachments: dict[str, Place] = {}
        """The VolumeAttachments that stand for a name on a node."""

    def hold(self, node: str, name: str, hold: Hold) -> None:
        """So far a name is on a node from now on."""
        self.on_nodes.setdefault(node, {})[name] = hold
        self.places.setdefault(name, set()).add(node)

    def drop(self, node: str, name: str) -> Hold | None:
        """A name is off a node; tells how far it was."""
        held = self.on_nodes.get(node, {})
        was = held.pop(name, None)
        if not held:
            self.on_nodes.pop(node, None)
        discard(self.places, name, node)
        return was

    def take_over(self, node: str, names: Iterable[str]) -> None:
        """Begin with what a node says to be attached.

        What a driver is said to have attached counts only with its VolumeAttachment, but that
        counts even while its volume is gone.
        """
        for name in names:
            if parse(name).side is Side.IN_TREE:
                self.hold(node, name, Hold.HELD)
            else:
                self.attachments[attachment_name(name, node)] = (node, name)

    def stands_for(self, attachment: str, read: parts.Attachment) -> Place | None:
        """What a VolumeAttachment is about, which is remembered; None if nobody knows."""
        known = self.attachments.get(attachment) or self._said_by(read)
        if known is not None:
            self.attachments[attachment] = known
        return known

    def _said_by(self, read: parts.Attachment) -> Place | None:
        """By its PersistentVolume. One of a pod's own volume names none: it is passed over."""
        source = read.spec.source
        name = source.persistentVolumeName if source else None
        volume = self._volumes.of_pv(name) if name else None
        return (read.spec.nodeName, volume.csi_name) if volume else None
