"""Protection: a claim that a pod uses, and a volume that is bound, outlive their deletion."""

from __future__ import annotations

from replant.objects import Object
from replant.sandbox.controllers import parts
from replant.sandbox.controllers.base import Key, Led, Queue, World, key_of
from replant.sandbox.resources import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    Resource,
)
from replant.sandbox.shelves import DELETED, Event

_VOLUME, _CLAIM = "kubernetes.io/pv-protection", "kubernetes.io/pvc-protection"


class Protection(Led):
    """Takes the finalizers away that keep volumes and claims, once they may go."""

    hears = (PODS, PERSISTENT_VOLUMES, PERSISTENT_VOLUME_CLAIMS)

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._deleted: Queue[tuple[Resource, Key]] = Queue()
        self._users: dict[Key, set[str]] = {}
        """Which pods use each claim."""

    def heard(self, event: Event) -> None:
        """Note what is to go, and who uses it."""
        entry = event.entry
        if entry.resource is PODS:
            if event.type == "MODIFIED" and entry.fields["status.phase"] not in parts.OVER:
                return  # its volumes cannot have changed
            over = event.type == DELETED or entry.fields["status.phase"] in parts.OVER
            for claim in parts.claim_names(parts.read_pod(entry.text)):
                key = (entry.namespace, claim)
                if not over:
                    self._users.setdefault(key, set()).add(entry.name)
                elif users := self._users.get(key):
                    users.discard(entry.name)
                    if not users:
                        del self._users[key]
                        self._deleted.add((PERSISTENT_VOLUME_CLAIMS, key))
        elif event.type != DELETED and b'"deletionTimestamp"' in entry.text:
            self._deleted.add((entry.resource, key_of(entry)))

    def work(self) -> bool:
        """Let go what may go."""
        if self.process is None or not self._deleted:
            return False
        for resource, key in self._deleted.take():
            self._release(resource, key)
        return True

    def _release(self, resource: Resource, key: Key) -> None:
        found = self.store.find(resource, key[1], key[0])
        if found is None:
            return
        finalizer = _VOLUME if resource is PERSISTENT_VOLUMES else _CLAIM
        if resource is PERSISTENT_VOLUMES:
            read = parts.read_volume(found.text)
            metadata, used = read.metadata, read.status.phase == "Bound"
        else:
            metadata, used = parts.read_claim(found.text).metadata, key in self._users
        if not metadata.deletionTimestamp or used or finalizer not in (metadata.finalizers or ()):
            return

        def write(obj: Object) -> None:
            obj["metadata"]["finalizers"].remove(finalizer)

        self.world.change(resource, key, write)
