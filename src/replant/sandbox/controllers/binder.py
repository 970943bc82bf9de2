"""The controller of claims and volumes: binds them, provisions, reclaims, and marks them.

Who provisions and deletes is asked of ``sides``; what is another's is only marked as that.
"""

from __future__ import annotations

from functools import lru_cache

from msgspec.json import Decoder

from replant.inventory.quantities import amount
from replant.inventory.selectors import Selector
from replant.objects import Object
from replant.sandbox.controllers import parts
from replant.sandbox.controllers.base import Key, Led, Queue, World, key_of
from replant.sandbox.controllers.making import new_volume, refusal_to_make
from replant.sandbox.controllers.recorder import NORMAL, WARNING
from replant.sandbox.refusals import ApiError
from replant.sandbox.resources import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
    Resource,
)
from replant.sandbox.shelves import DELETED, Entry, Event
from replant.sandbox.sides import (
    Process,
    Side,
    delete_side,
    migrated_to,
    provision_side,
    provisioner_annotations,
)
from replant.sandbox.sides.claims import BETA_STORAGE_PROVISIONER, STORAGE_PROVISIONER
from replant.sandbox.sides.model import MIGRATED_TO, PROVISIONED_BY
from replant.translate import driver_of

RESYNC = 15.0
"""So often claims and volumes that wait are looked at again, in seconds."""
BOUND_COMPLETELY = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
_COMPONENT = "persistentvolume-controller"
_read_class: Decoder[Object] = Decoder(dict)


class Binder(Led):
    """Binds claims to volumes, and sees to it that each is served by the right side."""

    hears = (PERSISTENT_VOLUMES, PERSISTENT_VOLUME_CLAIMS, STORAGE_CLASSES)

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._claims: Queue[Key] = Queue()
        self._volumes: Queue[str] = Queue()
        self._waiting: set[Key] = set()
        self._failed: set[str] = set()
        self._resyncing = False
        self._free: dict[str, dict[str, None]] = {}
        """Volumes without a claim, by class."""
        self._meant: dict[Key, dict[str, None]] = {}
        """Volumes that name a claim."""
        self._filed: dict[str, tuple[str, Key | None]] = {}
        self._told: dict[str, str] = {}
        """What was said last of each claim that waits, by its uid."""

    def lead(self, process: Process | None) -> None:
        """Look at everything again: what was marked may be another's now."""
        super().lead(process)
        self._told.clear()
        if process is not None:
            self._volumes.add_all(it.name for it in self.store.entries(PERSISTENT_VOLUMES))
            claims = self.store.entries(PERSISTENT_VOLUME_CLAIMS)
            self._claims.add_all(key_of(it) for it in claims)

    def heard(self, event: Event) -> None:
        """Note claims and volumes that have changed."""
        entry = event.entry
        if entry.resource is PERSISTENT_VOLUMES:
            self._hear_volume(event)
        elif entry.resource is PERSISTENT_VOLUME_CLAIMS:
            self._claims.add(key_of(entry))
            if event.type == DELETED:
                self._waiting.discard(key_of(entry))
                self._told.pop(entry.uid, None)
                self._volumes.add_all(self._meant.get(key_of(entry), ()))
        elif self._waiting:
            self._claims.add_all(self._waiting)

    def _hear_volume(self, event: Event) -> None:
        name = event.entry.name
        class_name, claim = self._filed.pop(name, ("", None))
        self._free.get(class_name, {}).pop(name, None)
        if claim is not None:
            self._meant.get(claim, {}).pop(name, None)
        if event.type == DELETED:
            self.world.volumes.forget(name)
            self._failed.discard(name)
            if claim is not None:
                self._claims.add(claim)
            return
        self._volumes.add(name)
        spec = parts.read_offer(event.entry.text).spec
        reference = spec.claimRef
        claim = (reference.namespace, reference.name) if reference else None
        self._filed[name] = (spec.storageClassName, claim)
        if claim is None:
            self._free.setdefault(spec.storageClassName, {})[name] = None
        else:
            self._meant.setdefault(claim, {})[name] = None
        if self._waiting:
            # A real one finds such claims when it looks at all of them again.
            self._resync_later()

    def work(self) -> bool:
        """Look at volumes, then at claims."""
        process = self.process
        if process is None or not (self._volumes or self._claims):
            return False
        for name in self._volumes.take():
            if found := self.store.find(PERSISTENT_VOLUMES, name):
                self._sync_volume(found, process)
        for key in self._claims.take():
            if found := self.store.find(PERSISTENT_VOLUME_CLAIMS, key[1], key[0]):
                self._sync_claim(found, process)
        return True

    def _wait(self, key: Key) -> None:
        self._waiting.add(key)
        self._resync_later()

    def _resync_later(self) -> None:
        if not self._resyncing:
            self._resyncing = True
            self.world.clock.after(RESYNC, self._resync)

    def _resync(self) -> None:
        self._resyncing = False
        self._claims.add_all(self._waiting)
        self._volumes.add_all(self._failed)

    # Volumes

    def _sync_volume(self, entry: Entry, process: Process) -> None:
        read = parts.read_volume(entry.text)
        annotations = read.metadata.annotations or {}
        said = annotations.get(MIGRATED_TO)
        mark = _volume_mark(annotations.get(PROVISIONED_BY), said, process)
        if said != mark:
            self._mark(PERSISTENT_VOLUMES, ("", entry.name), mark)
            return  # that it changed is heard, and it is looked at once more
        reference = read.spec.claimRef
        if reference is None:
            self._say_volume(entry.name, read, "Available")
            return
        claim = self.store.find(PERSISTENT_VOLUME_CLAIMS, reference.name, reference.namespace)
        if not reference.uid:
            if claim is None:
                self._say_volume(entry.name, read, "Available")
            else:
                self._claims.add(key_of(claim))
            return
        if claim is not None and claim.uid == reference.uid:
            bound_to = parts.read_binding(claim.text).spec.volumeName
            if bound_to == entry.name:
                self._failed.discard(entry.name)
                self._say_volume(entry.name, read, "Bound")
                return
            if not bound_to:
                self._claims.add(key_of(claim))
                return
        self._reclaim(entry, read, process)

    def _reclaim(self, entry: Entry, read: parts.Volume, process: Process) -> None:
        if read.status.phase != "Failed":
            self._say_volume(entry.name, read, "Released")
        if read.spec.persistentVolumeReclaimPolicy != "Delete" or read.metadata.deletionTimestamp:
            return
        known = self.world.volumes.of_entry(entry)
        if known is None:
            return
        side = delete_side(known.view, process)
        if side is Side.CSI:
            return
        refusal = f'error getting deleter volume plugin for volume "{entry.name}"'
        if side is Side.IN_TREE:
            refusal = self.world.cloud.delete(known.disk, Side.IN_TREE)
        if not refusal:
            self._failed.discard(entry.name)
            self.world.remove(PERSISTENT_VOLUMES, ("", entry.name), entry.uid)
            return
        self._failed.add(entry.name)
        self._resync_later()
        if read.status.phase != "Failed":
            self._say_volume(entry.name, read, "Failed", refusal)
            self.world.recorder.record(entry, _COMPONENT, WARNING, "VolumeFailedDelete", refusal)

    def _say_volume(self, name: str, read: parts.Volume, phase: str, message: str = "") -> None:
        if read.status.phase == phase:
            return

        def write(obj: Object) -> None:
            obj["status"] = {"phase": phase} | ({"message": message} if message else {})

        self.world.change(PERSISTENT_VOLUMES, ("", name), write, "status")

    def _mark(self, resource: Resource, key: Key, mark: str | None) -> None:
        def write(obj: Object) -> None:
            annotations = obj["metadata"].setdefault("annotations", {})
            annotations.pop(MIGRATED_TO, None)
            if mark:
                annotations[MIGRATED_TO] = mark

        self.world.change(resource, key, write)

    # Claims

    def _sync_claim(self, entry: Entry, process: Process) -> None:
        read = parts.read_claim(entry.text)
        if self._mark_claim(entry, read, process):
            return
        key = key_of(entry)
        if read.spec.volumeName:
            self._sync_bound(entry, read)
            return
        if read.metadata.deletionTimestamp:
            return
        if volume := self._match(key, entry, read):
            self._bind(entry, volume, by_controller=True)
            return
        class_name = read.spec.storageClassName
        found = self.store.find(STORAGE_CLASSES, class_name) if class_name else None
        self._wait(key)
        if found is not None:
            self._provision(entry, read, _read_class.decode(found.text), process)

    def _mark_claim(self, entry: Entry, read: parts.Claim, process: Process) -> bool:
        """Have a claim say who took over from the plugin that was to provision for it."""
        annotations = read.metadata.annotations or {}
        provisioner = annotations.get(STORAGE_PROVISIONER) or annotations.get(
            BETA_STORAGE_PROVISIONER
        )
        mark = _claim_mark(provisioner, process) if provisioner else None
        if annotations.get(MIGRATED_TO) == mark:
            return False
        self._mark(PERSISTENT_VOLUME_CLAIMS, key_of(entry), mark)
        return True

    def _sync_bound(self, entry: Entry, read: parts.Claim) -> None:
        key = key_of(entry)
        volume = self.store.find(PERSISTENT_VOLUMES, read.spec.volumeName)
        bound_before = BOUND_COMPLETELY in (read.metadata.annotations or {})
        if volume is None:
            self._wait(key)
            if bound_before:
                message = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
                self._say_lost(entry, read, "ClaimLost", message)
            return
        reference = parts.read_offer(volume.text).spec.claimRef
        theirs = reference is not None and (
            (reference.namespace, reference.name) != key or reference.uid not in ("", entry.uid)
        )
        if theirs:
            self._wait(key)
            if bound_before:
                message = "Two claims are bound to the same volume, this one is bound incorrectly"
                self._say_lost(entry, read, "ClaimMisbound", message)
            return
        self._waiting.discard(key)
        if reference is None or not reference.uid or read.status.phase != "Bound":
            self._bind(entry, volume, by_controller=False)

    def _say_lost(self, entry: Entry, read: parts.Claim, reason: str, message: str) -> None:
        if read.status.phase == "Lost":
            return

        def write(obj: Object) -> None:
            obj["status"] = {"phase": "Lost"}

        self.world.change(PERSISTENT_VOLUME_CLAIMS, key_of(entry), write, "status")
        self.world.recorder.record(entry, _COMPONENT, WARNING, reason, message)

    def _match(self, key: Key, entry: Entry, read: parts.Claim) -> Entry | None:
        """The volume that names the claim, or else the smallest one that will do."""
        for name in self._meant.get(key, ()):
            found = self.store.find(PERSISTENT_VOLUMES, name)
            reference = parts.read_volume(found.text).spec.claimRef if found else None
            if found and reference and reference.uid in ("", entry.uid):
                return found
        wanted = amount(read.spec.storage)
        selector = Selector.of(read.spec.selector) if read.spec.selector else None
        best: tuple[int, Entry] | None = None
        for name in self._free.get(read.spec.storageClassName or "", ()):
            found = self.store.find(PERSISTENT_VOLUMES, name)
            if found is None or (selector and not selector.matches(found.labels)):
                continue
            size = _suits(parts.read_volume(found.text), read, wanted)
            if size and (best is None or size < best[0]):
                best = (size, found)
        return best[1] if best else None

    def _bind(self, entry: Entry, volume: Entry, *, by_controller: bool) -> None:
        key = key_of(entry)
        read = parts.read_volume(volume.text)
        reference = read.spec.claimRef

        def claim_volume(obj: Object) -> None:
            if reference is None:
                annotations = obj["metadata"].setdefault("annotations", {})
                annotations[BOUND_BY_CONTROLLER] = "yes"
            obj["spec"]["claimRef"] = {
                "kind": "PersistentVolumeClaim",
                "apiVersion": "v1",
                "namespace": key[0],
                "name": key[1],
                "uid": entry.uid,
                "resourceVersion": str(entry.version),
            }

        def name_volume(obj: Object) -> None:
            annotations = obj["metadata"].setdefault("annotations", {})
            annotations[BOUND_COMPLETELY] = "yes"
            if by_controller:
                annotations[BOUND_BY_CONTROLLER] = "yes"
            obj["spec"]["volumeName"] = volume.name

        def say_bound(obj: Object) -> None:
            status = obj.setdefault("status", {})
            status["phase"] = "Bound"
            status["accessModes"] = read.spec.accessModes or []
            status["capacity"] = dict(read.spec.capacity or {})

        if reference is None or not reference.uid:
            self.world.change(PERSISTENT_VOLUMES, ("", volume.name), claim_volume)
        self._say_volume(volume.name, read, "Bound")
        self.world.change(PERSISTENT_VOLUME_CLAIMS, key, name_volume)
        self.world.change(PERSISTENT_VOLUME_CLAIMS, key, say_bound, "status")
        self._waiting.discard(key)

    # Provisioning

    def _provision(
        self, entry: Entry, read: parts.Claim, storage_class: Object, process: Process
    ) -> None:
        annotations = read.metadata.annotations or {}
        waits = storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"
        if waits and parts.SELECTED_NODE not in annotations:
            message = "waiting for first consumer to be created before binding"
            self._say(entry, NORMAL, "WaitForFirstConsumer", message)
            return
        plugin = str(storage_class["provisioner"])
        if plugin == "kubernetes.io/no-provisioner":
            return
        side = _provisioned_by(plugin, process)
        said = provisioner_annotations(plugin, process)
        if any(annotations.get(name) != value for name, value in said.items()):

            def write(obj: Object) -> None:
                obj["metadata"].setdefault("annotations", {}).update(said)

            self.world.change(PERSISTENT_VOLUME_CLAIMS, key_of(entry), write)
        if side is Side.NOBODY:
            told = (WARNING, "ProvisioningFailed", f"no volume plugin matched name: {plugin}")
        elif side is Side.CSI:
            driver = said.get(STORAGE_PROVISIONER) or said.get(BETA_STORAGE_PROVISIONER, plugin)
            message = (
                "waiting for a volume to be created, either by external provisioner "
                f'"{driver}" or manually created by system administrator'
            )
            told = (NORMAL, "ExternalProvisioning", message)
        else:
            told = self._provision_in_tree(entry, read, storage_class)
        self._say(entry, *told)

    def _say(self, entry: Entry, kind: str, reason: str, message: str) -> None:
        """Tell it once for each state of a claim, and not at each resync."""
        if self._told.get(entry.uid) != reason:
            self._told[entry.uid] = reason
            self.world.recorder.record(entry, _COMPONENT, kind, reason, message)

    def _provision_in_tree(
        self, entry: Entry, read: parts.Claim, storage_class: Object
    ) -> tuple[str, str, str]:
        if refusal := refusal_to_make(read, storage_class):
            return WARNING, "ProvisioningFailed", refusal
        volume = new_volume(self.world, entry, read, storage_class, Side.IN_TREE)
        try:
            self.store.create(PERSISTENT_VOLUMES, volume)
        except ApiError as error:
            return WARNING, "ProvisioningFailed", error.message
        name = volume["metadata"]["name"]
        message = f"Successfully provisioned volume {name} using {storage_class['provisioner']}"
        return NORMAL, "ProvisioningSucceeded", message


@lru_cache(maxsize=1024)
def _provisioned_by(plugin: str, process: Process) -> Side:
    return provision_side(plugin, process)


@lru_cache(maxsize=1024)
def _volume_mark(provisioner: str | None, said: str | None, process: Process) -> str | None:
    """What a volume is marked with: that follows from who provisioned it, and from nothing else."""
    return migrated_to(provisioner or "", said or "", process) or None


@lru_cache(maxsize=1024)
def _claim_mark(provisioner: str, process: Process) -> str | None:
    return driver_of(provisioner) if process.migrates(provisioner) else None


def _suits(volume: parts.Volume, claim: parts.Claim, wanted: int) -> int:
    """How large a volume is that a claim may have, or 0 if it may not."""
    size = amount((volume.spec.capacity or {}).get("storage", "0"))
    modes = set(claim.spec.accessModes or ()) <= set(volume.spec.accessModes or ())
    same = volume.spec.volumeMode == claim.spec.volumeMode
    there = not volume.metadata.deletionTimestamp
    return size if size >= wanted and modes and same and there else 0
