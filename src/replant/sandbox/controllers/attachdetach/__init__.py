"""The attach/detach controller: what is to be attached where, and under which name.

It does what was seen of the real one. What a pod wants is decided when the pod is looked at, and
remembered: looking again, which happens when the pod changes and every three minutes, can add a
second name but never takes the first away. One that starts to lead has forgotten all of it. It
finds what is attached in the nodes' status and in VolumeAttachments, and what is wanted in the
pods; a name that nobody wants then, and no kubelet reports as in use, it detaches.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from replant.objects import Object
from replant.sandbox.cloud import Done
from replant.sandbox.controllers import parts
from replant.sandbox.controllers.attachdetach.decisions import (
    Hold,
    NodeReport,
    attachment_name,
    can_detach_name,
    read_report,
    retry_pause,
)
from replant.sandbox.controllers.attachdetach.held import Held
from replant.sandbox.controllers.attachdetach.telling import Telling
from replant.sandbox.controllers.attachdetach.wanted import Wanted
from replant.sandbox.controllers.base import Key, Led, Queue, World, key_of
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
from replant.sandbox.sides import AttachController, Process, Side
from replant.sandbox.sides.attaching import blames_the_other_node, detaches_from_healthy_nodes

LOOK_AGAIN = 180.0
"""So often all pods are looked at again, in seconds."""
HEARTBEAT = 5.0
"""So many seconds until the node that has the disk updates its status. Until then the controller
takes what it is uncertain of for mounted there."""
WAIT_FOR_UNMOUNT = timedelta(minutes=6)
"""So long a node is waited for that reports a volume as in use."""
_PATIENT = "kubernetes.io/aws-ebs"
_LOOKS = (5.0, *(2.0**it for it in range(1, 11)))
"""The pauses after which this plugin looks whether a detach has come to its end: 34 minutes in all.
A disk that is attached, to whichever node, it takes for one that is not detached yet."""


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
        self._looking: Queue[Key] = Queue()
        self._dirty: Queue[str] = Queue()
        self._unreported: Queue[str] = Queue()
        self._nodes: dict[str, NodeReport] = {}
        self._wanted = Wanted(self.world, self._kind, self._nodes, self._dirty)
        self._held = Held(self.world.volumes)
        self._telling = Telling(self.world, self._wanted, self._held)
        self._failures: dict[tuple[str, str], int] = {}
        self._resting: set[tuple[str, str]] = set()
        """What has failed and is not yet to be tried again."""

    # What is heard

    def lead(self, process: Process | None) -> None:
        """Forget everything, and find it anew in what nodes and pods say."""
        super().lead(process)
        self._forget()
        if process is None:
            return
        for entry in self.store.entries(NODES):
            self._hear_node(entry.name, entry.text)
            self._held.take_over(entry.name, parts.read_node(entry.text).attached)
            self._unreported.add(entry.name)
        for entry in self.store.entries(VOLUME_ATTACHMENTS):
            self._hear_attachment(entry.name, entry.text)
        bound = (it for it in self.store.entries(PODS) if it.fields["spec.nodeName"])
        self._looking.add_all(key_of(it) for it in bound)
        self._after(LOOK_AGAIN, self._look_again)

    def heard(self, event: Event) -> None:
        """Note pods to look at, and nodes on which something may be done now."""
        if self.process is None:
            return
        entry = event.entry
        text = None if event.type == DELETED else entry.text
        if entry.resource is PODS:
            if entry.fields["spec.nodeName"] or key_of(entry) in self._wanted.pods:
                self._looking.add(key_of(entry))
        elif entry.resource is NODES:
            self._hear_node(entry.name, text)
        elif entry.resource is CSI_NODES:
            self._wanted.csi_node_changed(entry.name)
        elif entry.resource is PERSISTENT_VOLUMES:
            if event.type == ADDED:
                self._wanted.volume_added(entry.name)
        elif entry.resource is VOLUME_ATTACHMENTS:
            self._hear_attachment(entry.name, text)
        elif waiting := self._wanted.awaiting.pop(key_of(entry), None):
            self._looking.add_all(waiting)

    def _hear_node(self, node: str, text: bytes | None) -> None:
        if text is None:
            self._nodes.pop(node, None)
            return
        report = read_report(text)
        known = self._nodes.get(node)
        if known is None:
            # Pods may have come before their node was known.
            self._looking.add_all(self._wanted.pods_on({node}))
        if known != report:
            self._nodes[node] = report
            self._dirty.add(node)

    def _hear_attachment(self, attachment: str, text: bytes | None) -> None:
        if text is None:
            if known := self._held.attachments.pop(attachment, None):
                self._let_go(*known)
            return
        read = parts.read_attachment(text)
        known = self._held.stands_for(attachment, read)
        if known is None:
            return
        node, name = known
        if read.metadata.deletionTimestamp:
            self._held.hold(node, name, Hold.LETTING_GO)
        elif read.status and read.status.attached:
            if self._held.on_nodes.get(node, {}).get(name) is not Hold.HELD:
                self._attached(node, name)
        else:
            self._held.hold(node, name, Hold.ATTACHING)
            if read.status and (error := read.status.attachError):
                self._failed(node, name, str(error.get("message", "")))

    def _look_again(self) -> None:
        self._looking.add_all(self._wanted.take_outdated())
        self._after(LOOK_AGAIN, self._look_again)

    def _after(self, seconds: float, act: Callable[[], None]) -> None:
        """Do something later; nothing if another has led since."""
        term = self._term

        def now() -> None:
            if term == self._term:
                act()

        self.world.clock.after(seconds, now)

    # What is done

    def work(self) -> bool:
        """Look at pods, then let go what nobody wants, then attach, then tell the nodes."""
        if self.process is None:
            return False
        if not (self._looking or self._dirty or self._unreported):
            return False
        for pod in self._looking.take():
            self._wanted.look_at(pod, self.process)
        for node in self._dirty.take():
            self._reconcile(node, self.process)
        for node in self._unreported.take():
            self._telling.report(node)
        return True

    def _reconcile(self, node: str, process: Process) -> None:
        held, wanted = self._held.on_nodes.get(node, {}), self._wanted.on_nodes.get(node, {})
        leaving = [
            name
            for name, hold in held.items()
            if hold is not Hold.LETTING_GO
            and name not in wanted
            and can_detach_name(name, hold, process)
            and self._may_detach(node, name, process)
        ]
        for name in leaving:
            self._held.hold(node, name, Hold.LETTING_GO)
        if leaving:
            # First the node is told that it is gone, then it is made so.
            self._telling.report(node)
        for name in leaving:
            self._detach(node, name)
        for name in [it for it in wanted if held.get(it) in (None, Hold.UNCERTAIN)]:
            self._attach(node, name)

    def _may_detach(self, node: str, name: str, process: Process) -> bool:
        """Whether a node has it in use no longer, or was waited for long enough."""
        report = self._nodes.get(node)
        if report is None or name not in report.in_use:
            return True
        now = self.world.clock.now()
        since = self._wanted.unwanted_since.setdefault((node, name), now)
        if since == now:
            self._after(WAIT_FOR_UNMOUNT.total_seconds(), lambda: self._dirty.add(node))
        spared = report.healthy and not detaches_from_healthy_nodes(process.version)
        return not spared and now - since >= WAIT_FOR_UNMOUNT

    # Detaching

    def _detach(self, node: str, name: str) -> None:
        self._wanted.unwanted_since.pop((node, name), None)
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

        def look() -> None:
            if not self.world.cloud.taken_by(disk):
                self._let_go(node, name)
            elif pauses[1:]:
                self._await_detach(node, name, disk, pauses[1:])
            else:
                self._detach(node, name)

        self._after(pauses[0], look)

    def _let_go(self, node: str, name: str) -> None:
        if self._held.drop(node, name) is Hold.HELD:
            self._unreported.add(node)
        self._dirty.add(node)
        self._dirty.add_all(self._wanted.seekers.get(name, ()))

    # Attaching

    def _attach(self, node: str, name: str) -> None:
        if (node, name) in self._resting or node not in self._nodes:
            return
        if self._held.places.get(name, set()) - {node}:
            self._telling.held_elsewhere(node, name)
            return  # it is looked at again when the volume is free there
        volume = self._wanted.volumes[name]
        self._held.hold(node, name, Hold.ATTACHING)
        if parse(name).side is Side.CSI:
            self._ask_driver(node, name, volume)
            return
        done = self._ended(node, name, attaching=True)
        self.world.cloud.attach(volume.disk, node, Side.IN_TREE, done)

    def _ask_driver(self, node: str, name: str, volume: Volume) -> None:
        attachment = attachment_name(name, node)
        self._held.attachments[attachment] = (node, name)
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
                self._blame(node, name)
            else:
                self._attached(node, name)

        return done

    def _blame(self, node: str, name: str) -> None:
        """Take a disk for attached to the node that kept it from being attached elsewhere."""
        plugin = parse(name).view.plugin
        other = self.world.cloud.taken_by(self.world.volumes.disk_called(name))
        if self.process is None or not other or other == node:
            return
        if blames_the_other_node(plugin, self.process.version):
            self._held.hold(other, name, Hold.UNCERTAIN)
            self._after(HEARTBEAT, lambda: self._dirty.add(other))

    def _attached(self, node: str, name: str) -> None:
        self._failures.pop((node, name), None)
        self._held.hold(node, name, Hold.HELD)
        self._unreported.add(node)
        self._dirty.add(node)
        self._telling.attached(node, name)

    def _failed(self, node: str, name: str, why: str) -> None:
        self._telling.failed(node, name, why)
        if parse(name).side is Side.CSI:
            return  # its attacher tries again
        failures = self._failures[node, name] = self._failures.get((node, name), 0) + 1
        self._resting.add((node, name))

        def again() -> None:
            self._resting.discard((node, name))
            self._dirty.add(node)

        self._after(retry_pause(failures), again)


def _unheard(_refusal: str) -> None:
    """Nobody listens: whoever asked looks for itself."""
