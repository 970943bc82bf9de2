"""The external-attacher of each CSI driver: obeys VolumeAttachments."""

from __future__ import annotations

from functools import partial

from replant.objects import Object
from replant.sandbox.cloud import Done
from replant.sandbox.controllers import parts
from replant.sandbox.controllers.base import Controller, Queue, World, doubling
from replant.sandbox.resources import (
    CSI_NODES,
    PERSISTENT_VOLUMES,
    VOLUME_ATTACHMENTS,
    Resource,
)
from replant.sandbox.shelves import DELETED, Entry, Event
from replant.sandbox.sides import Side
from replant.sandbox.sides.attaching import driver_detaches_first

_FIRST_RETRY, _LAST_RETRY = 0.5, 64.0


class Attacher(Controller):
    """The attachers of all drivers that have one; each leaves alone what is another's."""

    hears = (VOLUME_ATTACHMENTS, CSI_NODES, PERSISTENT_VOLUMES)

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.drivers: set[str] = set()
        self._queue: Queue[str] = Queue()
        self._volumes: Queue[str] = Queue()
        self._waiting: dict[str, set[str]] = {}
        """What could not be attached, by node."""
        self._users: dict[str, set[str]] = {}
        """The VolumeAttachments for each PersistentVolume."""
        self._busy: set[str] = set()
        self._failures: dict[str, int] = {}

    def run(self, driver: str) -> None:
        """The attacher of a driver starts."""
        self.drivers.add(driver)
        self._queue.add_all(it.name for it in self.store.entries(VOLUME_ATTACHMENTS))

    def stop(self, driver: str) -> None:
        """It ends; what is asked of it from now on waits."""
        self.drivers.discard(driver)

    def heard(self, event: Event) -> None:
        """Note what is to be attached or detached."""
        entry = event.entry
        if entry.resource is VOLUME_ATTACHMENTS:
            self._hear_attachment(event)
        elif entry.resource is PERSISTENT_VOLUMES:
            if event.type != DELETED and b'"deletionTimestamp"' in entry.text:
                self._volumes.add(entry.name)
        elif waiting := self._waiting.pop(entry.name, None):
            self._queue.add_all(waiting)

    def _hear_attachment(self, event: Event) -> None:
        entry = event.entry
        if event.type != "MODIFIED":
            source = parts.read_attachment(entry.text).spec.source
            volume = (source.persistentVolumeName if source else "") or ""
            if event.type == DELETED:
                self._failures.pop(entry.name, None)
                self._users.get(volume, set()).discard(entry.name)
                self._volumes.add(volume)
                return
            self._users.setdefault(volume, set()).add(entry.name)
        self._queue.add(entry.name)

    def work(self) -> bool:
        """Ask the cloud for what is wanted."""
        if not (self._queue or self._volumes):
            return False
        for name in self._queue.take():
            found = self.store.find(VOLUME_ATTACHMENTS, name)
            if found is None or name in self._busy:
                continue
            read = parts.read_attachment(found.text)
            if read.spec.attacher not in self.drivers:
                continue
            if read.metadata.deletionTimestamp:
                self._detach(found, read)
            elif not (read.status and read.status.attached):
                self._attach(found, read)
        for name in self._volumes.take():
            self._release(name)
        return True

    def _disk(self, read: parts.Attachment) -> str:
        source = read.spec.source
        if source and source.persistentVolumeName:
            volume = self.world.volumes.of_pv(source.persistentVolumeName)
            return volume.disk if volume else ""
        csi = ((source.inlineVolumeSpec if source else None) or {}).get("csi") or {}
        return str(csi.get("volumeHandle", ""))

    def _attach(self, entry: Entry, read: parts.Attachment) -> None:
        driver, node, disk = read.spec.attacher, read.spec.nodeName, self._disk(read)
        found = self.store.find(CSI_NODES, node)
        if driver not in parts.node_view(found.text if found else None).drivers:
            # Before the finalizer: what was never begun keeps nobody from deleting it.
            self._waiting.setdefault(node, set()).add(entry.name)
            why = f"CSINode {node} does not contain driver {driver}"
            if found is None:
                why = f'node "{node}" has no CSINode'
            said = (read.status.attachError if read.status else None) or {}
            if said.get("message") != why:
                self._say(entry.name, error=why)
            return
        if not disk:
            self._say(entry.name, error="the volume is gone")
            return
        finalizer = _finalizer(driver)
        self._add_finalizer(VOLUME_ATTACHMENTS, entry.name, finalizer)
        if read.spec.source and (volume := read.spec.source.persistentVolumeName):
            self._add_finalizer(PERSISTENT_VOLUMES, volume, finalizer)
        self._busy.add(entry.name)
        attach = partial(self.world.cloud.attach, disk, node, Side.CSI, self._attached(entry.name))
        taken = self.world.cloud.taken_by(disk)
        if taken not in ("", node) and driver_detaches_first(driver):
            self.world.cloud.detach(disk, taken, Side.CSI, lambda _refusal: attach())
        else:
            attach()

    def _attached(self, name: str) -> Done:
        def done(refusal: str) -> None:
            self._busy.discard(name)
            self._say(name, error=refusal)
            if refusal:
                self._again(name)
            else:
                self._failures.pop(name, None)
            # It may have been deleted meanwhile.
            self._queue.add(name)

        return done

    def _again(self, name: str) -> None:
        failures = self._failures[name] = self._failures.get(name, 0) + 1
        self._busy.add(name)

        def again() -> None:
            self._busy.discard(name)
            self._queue.add(name)

        self.world.clock.after(doubling(_FIRST_RETRY, failures, _LAST_RETRY), again)

    def _detach(self, entry: Entry, read: parts.Attachment) -> None:
        finalizer = _finalizer(read.spec.attacher)
        name = entry.name
        if finalizer not in (read.metadata.finalizers or ()):
            return
        disk = self._disk(read)
        if not disk:
            # Without its PersistentVolume nobody can tell what to detach.
            self._again(name)
            return
        self._busy.add(name)

        def done(_refusal: str) -> None:
            self._busy.discard(name)

            def write(obj: Object) -> None:
                obj["metadata"]["finalizers"].remove(finalizer)

            self.world.change(VOLUME_ATTACHMENTS, ("", name), write)

        self.world.cloud.detach(disk, read.spec.nodeName, Side.CSI, done)

    def _say(self, name: str, error: str) -> None:
        time = self.store.time()

        def write(obj: Object) -> None:
            obj["status"] = {"attached": not error}
            if error:
                obj["status"]["attachError"] = {"message": error, "time": time}

        self.world.change(VOLUME_ATTACHMENTS, ("", name), write, "status")

    def _add_finalizer(self, resource: Resource, name: str, finalizer: str) -> None:
        def write(obj: Object) -> None:
            finalizers = obj["metadata"].setdefault("finalizers", [])
            if finalizer not in finalizers:
                finalizers.append(finalizer)

        self.world.change(resource, ("", name), write)

    def _release(self, name: str) -> None:
        """Let a PersistentVolume go that is to go, once nothing of it is attached."""
        found = self.store.find(PERSISTENT_VOLUMES, name)
        if found is None or self._users.get(name):
            return
        metadata = parts.read_volume(found.text).metadata
        ours = [_finalizer(it) for it in self.drivers]
        mine = [it for it in metadata.finalizers or () if it in ours]
        if not metadata.deletionTimestamp or not mine:
            return

        def write(obj: Object) -> None:
            kept = [it for it in obj["metadata"]["finalizers"] if it not in mine]
            obj["metadata"]["finalizers"] = kept

        self.world.change(PERSISTENT_VOLUMES, ("", name), write)


def _finalizer(driver: str) -> str:
    return f"external-attacher/{driver.replace('.', '-')}"
