"""The cloud behind a sandbox: which disk is attached where. What it says is the truth.

It serves all plugins alike. A disk's id is the handle by which a CSI driver knows it; an in-tree
plugin's own way to write it leads there through translation. The cloud does not know under which
name Kubernetes thinks of a disk: whoever detaches it takes it from everybody.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from replant.sandbox.clock import Clock
from replant.sandbox.sides import Side

Done = Callable[[str], None]
"""Told how a call ended: with nothing, or why it was refused."""
Changed = Callable[[str], None]
"""Told the id of a disk that is somewhere else now."""

ATTACH, DETACH = "AttachVolume", "DetachVolume"
CREATE, DELETE, RESIZE = "CreateVolume", "DeleteVolume", "ModifyVolume"


@dataclass(slots=True)
class Disk:
    """A disk, and the one node that it is attached to, if any."""

    id: str
    size: int
    zone: str = ""
    attached_to: str = ""
    attaching_to: str = ""
    detaching: bool = False
    waiting: list[Done] = field(default_factory=list)
    """Who is told when the attach or detach that is under way has ended."""


class Call(NamedTuple):
    """One call, by which side, and whether it was refused."""

    action: str
    disk: str
    node: str
    side: Side
    refused: bool


class Cloud:
    """Disks, and what can be done with them. Attaching and detaching take time."""

    def __init__(
        self, clock: Clock, *, attach_seconds: float = 2, detach_seconds: float = 2
    ) -> None:
        self._clock = clock
        self.attach_seconds = attach_seconds
        self.detach_seconds = detach_seconds
        self.disks: dict[str, Disk] = {}
        self.counts: Counter[tuple[str, Side]] = Counter()
        """How often each side has called for what, refused or not."""
        self.kept_calls: dict[str, list[Call]] | None = None
        """All calls by disk, once ``keep_calls`` was called."""
        self._deleted: set[str] = set()
        self._listeners: list[Changed] = []

    def keep_calls(self) -> None:
        """Remember every call, and not only how many there were: for those who look closely."""
        self.kept_calls = {}

    def calls(self, disk: str) -> list[Call]:
        """The calls for a disk, oldest first, as far as they are kept."""
        return (self.kept_calls or {}).get(disk, [])

    def listen(self, changed: Changed) -> None:
        """Have ``changed`` called whenever a disk was attached or detached."""
        self._listeners.append(changed)

    def attached_to(self, disk: str) -> str:
        """The node that a disk is attached to, or nothing."""
        found = self.disks.get(disk)
        return found.attached_to if found else ""

    def taken_by(self, disk: str) -> str:
        """The node that a disk is attached to or about to be, or nothing."""
        found = self.disks.get(disk)
        return (found.attached_to or found.attaching_to) if found else ""

    def place(self, disk: str, size: int = 0, zone: str = "", node: str = "") -> Disk:
        """Have a disk be there, as if it had always been."""
        self._deleted.discard(disk)
        return self.disks.setdefault(disk, Disk(disk, size, zone, node))

    def attach(self, disk: str, node: str, side: Side, done: Done) -> None:
        """Attach a disk to a node. One that another node has is refused."""
        found = self._find(disk)
        taken = "" if found is None else found.attached_to or found.attaching_to
        refusal = ""
        if found is None:
            refusal = f"{disk} does not exist"
        elif taken and taken != node:
            refusal = f"{disk} is already attached to {taken}"
        self._count(ATTACH, disk, node, side, refused=bool(refusal))
        if found is None or refusal:
            self._clock.after(0, lambda: done(refusal))
        elif found.attached_to:
            # Even while another detaches it: so it was seen, and it is how a disk is lost.
            self._clock.after(0, lambda: done(""))
        elif found.attaching_to:
            found.waiting.append(done)
        else:
            found.attaching_to = node
            found.waiting.append(done)
            self._clock.after(self.attach_seconds, lambda: self._attached(found, node))

    def detach(self, disk: str, node: str, side: Side, done: Done) -> None:
        """Detach a disk from a node. One that is not there counts as detached."""
        found = self._find(disk)
        there = found is not None and node in (found.attached_to, found.attaching_to)
        self._count(DETACH, disk, node, side, refused=not there)
        if found is None or not there:
            self._clock.after(0, lambda: done(""))
        elif found.detaching:
            found.waiting.append(done)
        else:
            self._end_waiting(found, f"{disk} is being detached")
            found.attached_to, found.attaching_to, found.detaching = node, "", True
            found.waiting.append(done)
            self._clock.after(self.detach_seconds, lambda: self._detached(found))

    def create(self, size: int, zone: str, side: Side, disk: str) -> Disk:
        """A new disk, or the one that was made before under this id."""
        made = self.place(disk, size, zone)
        self._count(CREATE, made.id, "", side, refused=False)
        return made

    def delete(self, disk: str, side: Side) -> str:
        """Delete a disk, or say why not. One that is not there counts as deleted."""
        found = self._find(disk)
        held = found is not None and (found.attached_to or found.attaching_to)
        self._count(DELETE, disk, "", side, refused=bool(held))
        if held:
            return f"{disk} is attached to {held}"
        self.disks.pop(disk, None)
        self._deleted.add(disk)
        return ""

    def resize(self, disk: str, size: int, side: Side) -> str:
        """Make a disk larger, or say why not."""
        found = self._find(disk)
        self._count(RESIZE, disk, "", side, refused=found is None)
        if found is None:
            return f"{disk} does not exist"
        found.size = max(found.size, size)
        return ""

    def attachments(self) -> Iterable[tuple[str, str]]:
        """Every disk that is attached, with its node."""
        return ((it.id, it.attached_to) for it in self.disks.values() if it.attached_to)

    def _find(self, disk: str) -> Disk | None:
        # Whoever wrote a volume had a disk for it: it comes to be when it is first asked for.
        if disk in self._deleted:
            return None
        return self.disks.get(disk) or self.place(disk)

    def _count(self, action: str, disk: str, node: str, side: Side, *, refused: bool) -> None:
        self.counts[action, side] += 1
        if self.kept_calls is not None:
            call = Call(action, disk, node, side, refused)
            self.kept_calls.setdefault(disk, []).append(call)

    def _attached(self, disk: Disk, node: str) -> None:
        if disk.attaching_to != node:
            return  # it was detached before it was there
        disk.attached_to, disk.attaching_to = node, ""
        self._tell(disk)

    def _detached(self, disk: Disk) -> None:
        disk.attached_to, disk.detaching = "", False
        self._tell(disk)

    def _tell(self, disk: Disk) -> None:
        for changed in self._listeners:
            changed(disk.id)
        self._end_waiting(disk, "")

    def _end_waiting(self, disk: Disk, refusal: str) -> None:
        waiting, disk.waiting = disk.waiting, []
        for done in waiting:
            done(refusal)
