"""The external-provisioner of each CSI driver: makes disks for claims, and deletes them again.

It is of version 5 or later: a bound volume of its driver whose reclaim policy is Delete has its
finalizer, whoever made that volume, and the disk is deleted with the claim.
"""

from __future__ import annotations

from replant.objects import Object
from replant.sandbox.controllers import parts
from replant.sandbox.controllers.base import Controller, Key, Queue, World, key_of
from replant.sandbox.controllers.making import new_volume, refusal_to_make
from replant.sandbox.controllers.recorder import NORMAL, WARNING
from replant.sandbox.controllers.volumes import Volume
from replant.sandbox.refusals import ApiError
from replant.sandbox.resources import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
)
from replant.sandbox.shelves import DELETED, Entry, Event
from replant.sandbox.sides import Side, VolumeView
from replant.sandbox.sides.claims import BETA_STORAGE_PROVISIONER, STORAGE_PROVISIONER
from replant.sandbox.sides.model import MIGRATED_TO

FINALIZER = "external-provisioner.volume.kubernetes.io/finalizer"
_AGAIN = 15.0


class Provisioner(Controller):
    """Serves claims that name one of its drivers, and volumes that are theirs."""

    hears = (PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES)

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.drivers: set[str] = set()
        self._claims: Queue[Key] = Queue()
        self._volumes: Queue[str] = Queue()
        self._unbound: dict[Key, None] = {}

    def run(self, driver: str) -> None:
        """The provisioner of a driver starts."""
        self.drivers.add(driver)
        self._claims.add_all(self._unbound)
        self._volumes.add_all(it.name for it in self.store.entries(PERSISTENT_VOLUMES))

    def stop(self, driver: str) -> None:
        """It ends; what is asked of it from now on waits."""
        self.drivers.discard(driver)

    def heard(self, event: Event) -> None:
        """Note claims without a volume, and volumes without a claim."""
        entry = event.entry
        key = key_of(entry)
        if entry.resource is PERSISTENT_VOLUMES:
            if event.type != DELETED and _is_due(entry.text):
                self._volumes.add(entry.name)
        elif event.type == DELETED or parts.read_claim(entry.text).spec.volumeName:
            self._unbound.pop(key, None)
        else:
            self._unbound[key] = None
            self._claims.add(key)

    def work(self) -> bool:
        """Provision, and delete."""
        if not (self._claims or self._volumes):
            return False
        for key in self._claims.take():
            self._provision(key)
        for name in self._volumes.take():
            self._look_at(name)
        return True

    def _provision(self, key: Key) -> None:
        entry = self.store.find(PERSISTENT_VOLUME_CLAIMS, key[1], key[0])
        if entry is None:
            return
        read = parts.read_claim(entry.text)
        said = read.metadata.annotations or {}
        named = said.get(STORAGE_PROVISIONER) or said.get(BETA_STORAGE_PROVISIONER)
        driver = said.get(MIGRATED_TO) or named
        found = self.store.find(STORAGE_CLASSES, read.spec.storageClassName or "")
        if driver not in self.drivers or found is None or read.spec.volumeName:
            return
        storage_class = found.value()
        waits = storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"
        if (waits and parts.SELECTED_NODE not in said) or self.store.find(
            PERSISTENT_VOLUMES, f"pvc-{entry.uid}"
        ):
            return
        component = f"{driver}_external-provisioner"
        if refusal := refusal_to_make(read, storage_class):
            self.world.recorder.record(entry, component, WARNING, "ProvisioningFailed", refusal)
            return
        volume = new_volume(self.world, entry, read, storage_class, Side.CSI)
        try:
            self.store.create(PERSISTENT_VOLUMES, volume)
        except ApiError as error:
            told = (WARNING, "ProvisioningFailed", error.message)
        else:
            name = volume["metadata"]["name"]
            told = (NORMAL, "ProvisioningSucceeded", f"Successfully provisioned volume {name}")
        self.world.recorder.record(entry, component, *told)

    def _look_at(self, name: str) -> None:
        entry = self.store.find(PERSISTENT_VOLUMES, name)
        volume = self.world.volumes.of_entry(entry) if entry else None
        if entry is None or volume is None or not self._serves(volume.view):
            return
        read = parts.read_volume(entry.text)
        kept = FINALIZER in (read.metadata.finalizers or ())
        leaves = read.metadata.deletionTimestamp is not None
        if read.spec.persistentVolumeReclaimPolicy != "Delete":
            if kept:
                self._release(name)
        elif read.status.phase == "Released" and (kept or not leaves):
            self._delete(entry, volume)
        elif read.status.phase == "Bound" and not kept and not leaves:
            self.world.change(PERSISTENT_VOLUMES, ("", name), _keep)

    def _serves(self, view: VolumeView) -> bool:
        """Whether a volume is theirs: by who provisioned it, or if nobody did by what it is."""
        if view.driver not in self.drivers:
            return False
        by_hand = view.native and not view.provisioner
        return by_hand or view.driver in (view.provisioner, view.migrated_to)

    def _delete(self, entry: Entry, volume: Volume) -> None:
        name = entry.name
        if refusal := self.world.cloud.delete(volume.disk, Side.CSI):
            component = f"{volume.view.driver}_external-provisioner"
            self.world.recorder.record(entry, component, WARNING, "VolumeFailedDelete", refusal)
            self.world.clock.after(_AGAIN, lambda: self._volumes.add(name))
            return
        self.world.remove(PERSISTENT_VOLUMES, ("", name), entry.uid)
        self._release(name)

    def _release(self, name: str) -> None:
        def write(obj: Object) -> None:
            finalizers = obj["metadata"].get("finalizers") or []
            obj["metadata"]["finalizers"] = [it for it in finalizers if it != FINALIZER]

        self.world.change(PERSISTENT_VOLUMES, ("", name), write)


def _keep(volume: Object) -> None:
    volume["metadata"].setdefault("finalizers", []).append(FINALIZER)


def _is_due(volume: bytes) -> bool:
    """Whether something may have to be done about a volume: there are thousands of others."""
    if b'"Released"' in volume:
        return True
    kept, deletes = FINALIZER.encode() in volume, b'"Delete"' in volume
    return kept != deletes
