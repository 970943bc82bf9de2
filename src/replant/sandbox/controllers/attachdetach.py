"""The attach/detach controller: what is to be attached where, and under which name.

It does what was seen of the real one. What a pod wants is decided when the pod is looked at, and
remembered: looking again, which happens when the pod changes and every three minutes, can add a
second name but never takes the first away. One that starts to lead has forgotten all of it. It
finds what is attached in the nodes' status and in VolumeAttachments, and what is wanted in the
pods; a name that nobody wants then, and no kubelet reports as in use, it detaches.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import Enum
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple, TypeVar

from replant.objects import Object
from replant.routing import AttachController, NodeView, Process, Side, VolumeView, attach, detach
from replant.sandbox.cloud import Done
from replant.sandbox.controllers import parts
from replant.sandbox.controllers.base import Key, Led, Queue, World, key_of
from replant.sandbox.controllers.recorder import NORMAL, WARNING
from replant.sandbox.controllers.volumes import Volume, parse
from replant.sandbox.refusals import ApiError
from replant.sandbox.resources import (
    CSI_NODES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    VOLUME_ATTACHMENTS,
)
from replant.sandbox.shelves import ADDED, DELETED, Event

LOOK_AGAIN = 180.0
"""So often all pods are looked at again, in seconds."""
WAIT_FOR_UNMOUNT = timedelta(minutes=6)
"""So long a node that is not ready is waited for."""
_FIRST_RETRY, _LAST_RETRY = 0.5, 122.0
_PATIENT = "kubernetes.io/aws-ebs"
_LOOKS = (5.0, *(2.0**it for it in range(1, 11)))
"""The pauses after which this plugin looks whether a detach has come to its end: 34 minutes in all.
A disk that is attached, to whichever node, it takes for one that is not detached yet."""
_COMPONENT = "attachdetach-controller"
Member = TypeVar("Member")


class Hold(Enum):
    """How far a volume is on a node."""

    ATTACHING = "attaching"
    HELD = "held"
    LETTING_GO = "letting go"


class Looked(NamedTuple):
    """A pod that was looked at: where it is, and the names that were wanted for it so far."""

    uid: str
    node: str
    names: tuple[str, ...]
    volumes: tuple[str, ...]
    """Its PersistentVolumes."""


class NodeReport(NamedTuple):
    """What a node reports of itself."""

    healthy: bool
    managed: bool
    """Whether it leaves attaching to this controller."""
    in_use: frozenset[str]


class AttachDetach(Led):
    """Has volumes attached for pods that come, and detached when they have gone."""

    hears = (
        PODS,
        NODES,
        CSI_NODES,
        PERSISTENT_VOLUMES,
        PERSISTENT_VOLUME_CLAIMS,
        VOLUME_ATTACHMENTS,
    )

    def __init__(self, world: World, kind: AttachController = AttachController.UPSTREAM) -> None:
        super().__init__(world)
        self._kind = kind
        self._term = 0
        self._forget()

    def _forget(self) -> None:
        self._term += 1
        self._pods: dict[Key, Looked] = {}
        self._awaiting: dict[Key, set[Key]] = {}
        """Claims that are not bound yet, and the pods that wait for them."""
        self._wanted: dict[str, dict[str, set[Key]]] = {}
        self._held: dict[str, dict[str, Hold]] = {}
        self._volumes: dict[str, Volume] = {}
        self._places: dict[str, set[str]] = {}
        """On which nodes each name is held."""
        self._seekers: dict[str, set[str]] = {}
        """On which nodes each name is wanted."""
        self._nodes: dict[str, NodeReport] = {}
        self._views: dict[str, NodeView] = {}
        self._users: dict[str, set[Key]] = {}
        """The pods that were looked at with each PersistentVolume."""
        self._outdated_nodes: set[str] = set()
        self._outdated_volumes: set[str] = set()
        """What has changed since pods were looked at: others would look the same again."""
        self._attachments: dict[str, tuple[str, str]] = {}
        """The VolumeAttachments that stand for a name on a node."""
        self._unwanted_since: dict[tuple[str, str], datetime] = {}
        self._failures: dict[tuple[str, str], int] = {}
        self._resting: set[tuple[str, str]] = set()
        """What has failed and is not yet to be tried again."""
        self._looking: Queue[Key] = Queue()
        self._dirty: Queue[str] = Queue()
        self._unreported: Queue[str] = Queue()

    # What is heard

    def lead(self, process: Process | None) -> None:
        """Forget everything, and find it anew in what nodes and pods say."""
        super().lead(process)
        self._forget()
        if process is None:
            return
        for entry in self.store.entries(NODES):
            self._hear_node(entry.name, entry.text)
            for name in parts.read_node(entry.text).attached:
                if parse(name).side is Side.IN_TREE:
                    self._hold(entry.name, name, Hold.HELD)
                else:
                    # What a driver is said to have attached counts only with its
                    # VolumeAttachment, but that counts even while its volume is gone.
                    self._attachments[attachment_name(name, entry.name)] = (entry.name, name)
            self._unreported.add(entry.name)
        for entry in self.store.entries(VOLUME_ATTACHMENTS):
            self._hear_attachment(entry.name, entry.text)
        bound = (it for it in self.store.entries(PODS) if it.fields["spec.nodeName"])
        self._looking.add_all(key_of(it) for it in bound)
        self._look_again_later(self._term)

    def heard(self, event: Event) -> None:
        """Note pods to look at, and nodes on which something may be done now."""
        if self.process is None:
            return
        entry = event.entry
        text = None if event.type == DELETED else entry.text
        if entry.resource is PODS:
            if entry.fields["spec.nodeName"] or key_of(entry) in self._pods:
                self._looking.add(key_of(entry))
        elif entry.resource is NODES:
            self._hear_node(entry.name, text)
        elif entry.resource is CSI_NODES:
            # What it says counts when a pod is looked at the next time, and not before.
            self._views.pop(entry.name, None)
            self._outdated_nodes.add(entry.name)
        elif entry.resource is PERSISTENT_VOLUMES:
            # It may have been replaced by another of its name.
            if event.type == ADDED and entry.name in self._users:
                self._outdated_volumes.add(entry.name)
        elif entry.resource is VOLUME_ATTACHMENTS:
            self._hear_attachment(entry.name, text)
        elif waiting := self._awaiting.pop(key_of(entry), None):
            self._looking.add_all(waiting)

    def _hear_node(self, node: str, text: bytes | None) -> None:
        if text is None:
            self._nodes.pop(node, None)
            return
        read = parts.read_node(text)
        managed = (read.metadata.annotations or {}).get(parts.MANAGED_ATTACH) == "true"
        report = NodeReport(read.status.ready, managed, frozenset(read.status.volumesInUse or ()))
        known = self._nodes.get(node)
        if known is None:
            # Pods may have come before their node was known.
            self._looking.add_all(key for key, it in self._pods.items() if it.node == node)
        if known != report:
            self._nodes[node] = report
            self._dirty.add(node)

    def _hear_attachment(self, name: str, text: bytes | None) -> None:
        if text is None:
            if known := self._attachments.pop(name, None):
                self._let_go(*known)
            return
        read = parts.read_attachment(text)
        known = self._attachments.get(name) or self._stands_for(read)
        if known is None:
            return
        self._attachments[name] = known
        if read.metadata.deletionTimestamp:
            self._hold(*known, Hold.LETTING_GO)
        elif read.status and read.status.attached:
            if self._held.get(known[0], {}).get(known[1]) is not Hold.HELD:
                self._attached(*known)
        else:
            self._hold(*known, Hold.ATTACHING)
            if read.status and (error := read.status.attachError):
                self._failed(*known, str(error.get("message", "")))

    def _stands_for(self, read: parts.Attachment) -> tuple[str, str] | None:
        source = read.spec.source
        if source is None:
            return None
        if source.persistentVolumeName:
            volume = self.world.volumes.of_pv(source.persistentVolumeName)
            return (read.spec.nodeName, volume.csi_name) if volume else None
        csi = (source.inlineVolumeSpec or {}).get("csi") or {}
        return (
            read.spec.nodeName,
            f"kubernetes.io/csi/{csi.get('driver')}^{csi.get('volumeHandle')}",
        )

    # What is done

    def work(self) -> bool:
        """Look at pods, then let go what nobody wants, then attach, then tell the nodes."""
        if self.process is None:
            return False
        if not (self._looking or self._dirty or self._unreported):
            return False
        for pod in self._looking.take():
            self._look_at(pod, self.process)
        for node in self._dirty.take():
            self._reconcile(node, self.process)
        for node in self._unreported.take():
            self._report(node)
        return True

    def _look_again_later(self, term: int) -> None:
        def look_again() -> None:
            if term != self._term:
                return
            if nodes := self._outdated_nodes:
                self._looking.add_all(key for key, it in self._pods.items() if it.node in nodes)
            for volume in self._outdated_volumes:
                self._looking.add_all(self._users.get(volume, ()))
            self._outdated_nodes, self._outdated_volumes = set(), set()
            self._look_again_later(term)

        self.world.clock.after(LOOK_AGAIN, look_again)

    def _look_at(self, key: Key, process: Process) -> None:
        entry = self.store.find(PODS, key[1], key[0])
        known = self._pods.get(key)
        if known is not None and (entry is None or known.uid != entry.uid):
            self._pod_gone(key)  # another one of the same name remembers nothing of it
            known = None
        node = entry.fields["spec.nodeName"] if entry else ""
        if entry is None or not node or entry.fields["status.phase"] in parts.OVER:
            self._pod_gone(key)
            return
        names = known.names if known else ()
        volumes, unbound = self.world.volumes.of_pod(parts.read_pod(entry.text))
        for claim in unbound:
            self._awaiting.setdefault((key[0], claim), set()).add(key)
        report = self._nodes.get(node)
        if report is not None and report.managed:
            view = self._view(node)
            for volume in volumes:
                name = _wanted_name(volume, process, view, self._kind)
                if name and name not in names:
                    names = (*names, name)
                    self._volumes[name] = volume
        looked = Looked(entry.uid, node, names, tuple(it.pv for it in volumes if it.pv))
        self._pods[key] = looked
        for pv in looked.volumes:
            self._users.setdefault(pv, set()).add(key)
        wanted = self._wanted.setdefault(node, {})
        for name in names:
            wanted.setdefault(name, set()).add(key)
            self._seekers.setdefault(name, set()).add(node)
            self._unwanted_since.pop((node, name), None)
        self._dirty.add(node)

    def _pod_gone(self, key: Key) -> None:
        known = self._pods.pop(key, None)
        if known is None:
            return
        for pv in known.volumes:
            _discard(self._users, pv, key)
        wanted = self._wanted.get(known.node, {})
        for name in known.names:
            pods = wanted.get(name, set())
            pods.discard(key)
            if not pods:
                wanted.pop(name, None)
                _discard(self._seekers, name, known.node)
        if not wanted:
            self._wanted.pop(known.node, None)
        self._dirty.add(known.node)

    def _view(self, node: str) -> NodeView:
        if node not in self._views:
            found = self.store.find(CSI_NODES, node)
            self._views[node] = parts.node_view(found.text if found else None)
        return self._views[node]

    def _reconcile(self, node: str, process: Process) -> None:
        held, wanted = self._held.get(node, {}), self._wanted.get(node, {})
        leaving = [
            name
            for name, hold in held.items()
            if hold is not Hold.LETTING_GO
            and name not in wanted
            and self._may_detach(node, name, hold, process)
        ]
        for name in leaving:
            self._hold(node, name, Hold.LETTING_GO)
        if leaving:
            # First the node is told that it is gone, then it is made so.
            self._report(node)
        for name in leaving:
            self._detach(node, name)
        for name in [it for it in wanted if it not in held]:
            self._attach(node, name)

    def _may_detach(self, node: str, name: str, hold: Hold, process: Process) -> bool:
        parsed = parse(name)
        if hold is Hold.ATTACHING and parsed.side is Side.IN_TREE:
            return False  # one operation at a time: it is looked at again when this one ends
        if detach(parsed.view, process, parsed.side).served_by is Side.NOBODY:
            return False
        report = self._nodes.get(node)
        if report is None or name not in report.in_use:
            return True
        now = self.world.clock.now()
        since = self._unwanted_since.setdefault((node, name), now)
        if since == now:
            self._later(WAIT_FOR_UNMOUNT.total_seconds(), node)
        return not report.healthy and now - since >= WAIT_FOR_UNMOUNT

    def _detach(self, node: str, name: str) -> None:
        self._unwanted_since.pop((node, name), None)
        if parse(name).side is Side.CSI:
            attachment = attachment_name(name, node)
            if self.store.find(VOLUME_ATTACHMENTS, attachment):
                self.world.remove(VOLUME_ATTACHMENTS, ("", attachment))
            else:
                self._let_go(node, name)
            return
        disk = self.world.volumes.disk_called(name)
        done = self._ended(node, name, attaching=False)
        if name.startswith(_PATIENT) and self.world.cloud.taken_by(disk) == node:
            self._await_detach(node, name, disk, _LOOKS)
            done = _unheard
        self.world.cloud.detach(disk, node, Side.IN_TREE, done)

    def _await_detach(self, node: str, name: str, disk: str, pauses: tuple[float, ...]) -> None:
        """Look again and again until a disk is free, and begin anew if it never is."""
        term = self._term

        def look() -> None:
            if term != self._term:
                return
            if not self.world.cloud.taken_by(disk):
                self._let_go(node, name)
            elif pauses[1:]:
                self._await_detach(node, name, disk, pauses[1:])
            else:
                self._detach(node, name)

        self.world.clock.after(pauses[0], look)

    def _attach(self, node: str, name: str) -> None:
        if (node, name) in self._resting or node not in self._nodes:
            return
        if self._places.get(name, set()) - {node}:
            message = (
                f'Multi-Attach error for volume "{self._title(name)}" Volume is already '
                f"exclusively attached to one node and can't be attached to another"
            )
            self._tell(node, name, WARNING, "FailedAttachVolume", message)
            return  # it is looked at again when the volume is free there
        volume = self._volumes[name]
        self._hold(node, name, Hold.ATTACHING)
        if parse(name).side is Side.CSI:
            self._ask_driver(node, name, volume)
            return
        done = self._ended(node, name, attaching=True)
        self.world.cloud.attach(volume.disk, node, Side.IN_TREE, done)

    def _ask_driver(self, node: str, name: str, volume: Volume) -> None:
        attachment = attachment_name(name, node)
        self._attachments[attachment] = (node, name)
        source: Object = {"persistentVolumeName": volume.pv}
        if volume.inline is not None:
            source = {"inlineVolumeSpec": volume.inline}
        spec = {"attacher": volume.view.driver, "nodeName": node, "source": source}
        try:
            self.store.create(VOLUME_ATTACHMENTS, {"metadata": {"name": attachment}, "spec": spec})
        except ApiError:
            # It is there already: what it says counts.
            if found := self.store.find(VOLUME_ATTACHMENTS, attachment):
                self._hear_attachment(attachment, found.text)

    def _ended(self, node: str, name: str, *, attaching: bool) -> Done:
        """What to do when the cloud is done; nothing if another has led since."""
        term = self._term

        def done(refusal: str) -> None:
            if term != self._term:
                return
            if not attaching:
                self._let_go(node, name)
            elif refusal:
                self._let_go(node, name)
                self._failed(node, name, refusal)
            else:
                self._attached(node, name)

        return done

    def _attached(self, node: str, name: str) -> None:
        self._failures.pop((node, name), None)
        self._hold(node, name, Hold.HELD)
        self._unreported.add(node)
        self._dirty.add(node)
        message = f'AttachVolume.Attach succeeded for volume "{self._title(name)}" '
        self._tell(node, name, NORMAL, "SuccessfulAttachVolume", message)

    def _failed(self, node: str, name: str, why: str) -> None:
        message = f'AttachVolume.Attach failed for volume "{self._title(name)}" : {why}'
        self._tell(node, name, WARNING, "FailedAttachVolume", message)
        if parse(name).side is Side.CSI:
            return  # its attacher tries again
        failures = self._failures[node, name] = self._failures.get((node, name), 0) + 1
        self._resting.add((node, name))
        pause = min(_FIRST_RETRY * 2 ** (failures - 1), _LAST_RETRY)
        term = self._term

        def again() -> None:
            if term == self._term:
                self._resting.discard((node, name))
                self._dirty.add(node)

        self.world.clock.after(pause, again)

    def _later(self, seconds: float, node: str) -> None:
        term = self._term

        def again() -> None:
            if term == self._term:
                self._dirty.add(node)

        self.world.clock.after(seconds, again)

    def _hold(self, node: str, name: str, hold: Hold) -> None:
        self._held.setdefault(node, {})[name] = hold
        self._places.setdefault(name, set()).add(node)

    def _let_go(self, node: str, name: str) -> None:
        held = self._held.get(node, {})
        was = held.pop(name, None)
        if not held:
            self._held.pop(node, None)
        _discard(self._places, name, node)
        if was is Hold.HELD:
            self._unreported.add(node)
        self._dirty.add(node)
        self._dirty.add_all(self._seekers.get(name, ()))

    def _title(self, name: str) -> str:
        volume = self._volumes.get(name)
        return volume.pv if volume and volume.pv else name

    def _tell(self, node: str, name: str, kind: str, reason: str, message: str) -> None:
        for pod in sorted(self._wanted.get(node, {}).get(name, ())):
            if entry := self.store.find(PODS, pod[1], pod[0]):
                self.world.recorder.record(entry, _COMPONENT, kind, reason, message)

    def _report(self, node: str) -> None:
        names = [it for it, hold in self._held.get(node, {}).items() if hold is Hold.HELD]
        found = self.store.find(NODES, node)
        if found is None or parts.read_node(found.text).attached == set(names):
            return

        def write(obj: Object) -> None:
            attached = [{"name": it, "devicePath": ""} for it in names]
            obj["status"].pop("volumesAttached", None)
            if attached:
                obj["status"]["volumesAttached"] = attached

        self.world.change(NODES, ("", node), write, "status")


def attachment_name(name: str, node: str) -> str:
    """What the VolumeAttachment of a volume on a node is called."""
    parsed = parse(name)
    text = f"{parsed.disk}{parsed.view.driver}{node}"
    return f"csi-{sha256(text.encode()).hexdigest()}"


@lru_cache(maxsize=4096)
def _side(volume: VolumeView, process: Process, node: NodeView, kind: AttachController) -> Side:
    return attach(volume, process, node, kind).served_by


def _wanted_name(volume: Volume, process: Process, node: NodeView, kind: AttachController) -> str:
    """The name under which a volume is wanted, or nothing where nobody serves it."""
    if not volume.view.attachable:
        return ""
    side = _side(volume.view, process, node, kind)
    return "" if side is Side.NOBODY else volume.called(side)


def _unheard(_refusal: str) -> None:
    """Nobody listens: whoever asked looks for itself."""


def _discard(sets: dict[str, set[Member]], name: str, member: Member) -> None:
    members = sets.get(name, set())
    members.discard(member)
    if not members:
        sets.pop(name, None)
