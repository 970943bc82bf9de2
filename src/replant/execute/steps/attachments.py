"""Deletes the VolumeAttachments of inline volumes that the attach/detach controller has forgotten.

Every restart of kube-controller-manager may leave one (``core.routing.forgotten``): a restart that
a run asks for, a switch of its gates, or a crash. So they are looked for all the time, and a step
does not end before those that were found are gone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from replant.core.routing.forgotten import is_forgotten
from replant.execute.acts import Act, Decision, Wait
from replant.execute.emptying import FRESH
from replant.execute.world import Attachment, World
from replant.objects import Object
from replant.routing.names import csi_name

FORGOTTEN = 60.0
"""So many seconds it has to look forgotten: the controller deletes a VolumeAttachment right after
it has updated the node's status, and puts the volume back there if that fails."""
_TIMEOUT = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _AttachmentAct(Act):
    attachment: str
    node: str

    @property
    def target(self) -> str:
        """What it is done to."""
        return f"attachment {self.attachment}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LookAtAttachment(_AttachmentAct):
    """See a VolumeAttachment, its node, the pods there and their volumes."""

    changes: ClassVar[bool] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteAttachment(_AttachmentAct):
    """Delete a VolumeAttachment, so that the driver detaches the disk."""

    before: Object

    @property
    def backup(self) -> Object | None:
        """The VolumeAttachment as it is."""
        return self.before


@dataclass(frozen=True, slots=True)
class FreshAttachment:
    """A VolumeAttachment as it was at one moment; empty if it or its node is gone, or if the look
    was not fresh."""

    attachment: Object = field(default_factory=dict)
    on_node: frozenset[str] = frozenset()
    """The names of all volumes that the node lists or that its pods use."""


class ForgottenAttachments:
    """Since when a VolumeAttachment looks forgotten, and what a look at it has shown."""

    def __init__(self, haste: float) -> None:
        self._haste = haste
        self._since: dict[str, float] = {}
        """By uid."""
        self._used: set[str] = set()
        """By uid, those that a look has shown in use."""
        self._looked: dict[str, tuple[float, FreshAttachment]] = {}
        """By name."""

    def decide(self, world: World, now: float) -> Decision:
        """What to do about those that look forgotten."""
        decision = Decision()
        found = {it.metadata.uid: it for it in _suspects(world)}
        self._since = {uid: self._since.get(uid, now) for uid in found}
        self._used &= found.keys()
        for uid, attachment in found.items():
            self._consider(attachment, now, decision)
            if uid not in self._used:
                name, node = attachment.metadata.name, attachment.spec.node_name
                decision.waits.append(
                    Wait(
                        f"attachment {name} to be detached from {node}: no pod uses it, and the "
                        "controller may have forgotten it",
                        f"forgotten {uid}",
                        _TIMEOUT,
                        "kube-controller-manager, and the driver's attacher",
                    )
                )
        return decision

    def learn(self, act: Act, outcome: object, now: float) -> None:
        """Note what a look has shown; what was deleted, or not, is looked at again."""
        match act, outcome:
            case LookAtAttachment(), FreshAttachment():
                self._looked[act.attachment] = now, outcome
            case DeleteAttachment(), _:
                self._looked.pop(act.attachment, None)

    def _consider(self, attachment: Attachment, now: float, decision: Decision) -> None:
        uid, name, node = (
            attachment.metadata.uid, attachment.metadata.name, attachment.spec.node_name,
        )  # fmt: skip
        until = self._since[uid] + FORGOTTEN
        if now < until:
            decision.wake = min(decision.wake, until - now)
            return
        at, fresh = self._looked.pop(name, (0.0, None))
        if fresh is None or now > at + FRESH * self._haste:
            why = "the controller may have forgotten it"
            decision.acts.append(LookAtAttachment(why=why, attachment=name, node=node))
        elif _is_deletable(fresh, attachment):
            self._looked[name] = at, fresh
            decision.acts.append(
                DeleteAttachment(
                    why=f"nothing on {node} uses its volume, and the controller has forgotten it",
                    attachment=name,
                    node=node,
                    before=fresh.attachment,
                )
            )
        else:
            self._used.add(uid)
            self._since[uid] = now


def _suspects(world: World) -> Iterator[Attachment]:
    """Those of inline volumes that their node does not list, by what watches say."""
    for it in world.inline_attachments():
        node = world.node(it.spec.node_name)
        if node and not it.metadata.deletion_timestamp and is_forgotten(_name(it), node.volumes):
            yield it


def _is_deletable(fresh: FreshAttachment, attachment: Attachment) -> bool:
    metadata = fresh.attachment.get("metadata", {})
    is_same = metadata.get("uid") == attachment.metadata.uid
    is_deleted = metadata.get("deletionTimestamp")
    return is_same and not is_deleted and is_forgotten(_name(attachment), fresh.on_node)


def _name(attachment: Attachment) -> str:
    inline = attachment.spec.source.inline_volume_spec
    csi = inline.csi if inline else None
    return csi_name(csi.driver, csi.volume_handle) if csi else ""
