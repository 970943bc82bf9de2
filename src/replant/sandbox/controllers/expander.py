"""The expand controller: makes disks larger in-tree, or names the resizer whose work it is."""

from __future__ import annotations

from replant.inventory.quantities import amount
from replant.objects import Object
from replant.routing import Process, Side, expand, resizer
from replant.routing.claims import STORAGE_RESIZER
from replant.sandbox.controllers import parts
from replant.sandbox.controllers.base import Key, Led, Queue, World, key_of
from replant.sandbox.controllers.recorder import NORMAL, WARNING
from replant.sandbox.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from replant.sandbox.store import DELETED, Event

_COMPONENT = "volume_expand"


class Expander(Led):
    """Looks at bound claims that ask for more than they have."""

    hears = (PERSISTENT_VOLUME_CLAIMS,)

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._claims: Queue[Key] = Queue()
        self._waiting: dict[Key, None] = {}

    def lead(self, process: Process | None) -> None:
        """Look again at what still waits to be expanded."""
        super().lead(process)
        self._claims.add_all(self._waiting)

    def heard(self, event: Event) -> None:
        """Note claims that ask for more."""
        entry = event.entry
        if event.type == DELETED:
            self._waiting.pop(key_of(entry), None)
        elif wants_more(parts.read_claim(entry.text)):
            self._waiting[key_of(entry)] = None
            self._claims.add(key_of(entry))

    def work(self) -> bool:
        """Expand them, or name who does."""
        if self.process is None or not self._claims:
            return False
        for key in self._claims.take():
            self._expand(key, self.process)
        return True

    def _expand(self, key: Key, process: Process) -> None:
        entry = self.store.find(PERSISTENT_VOLUME_CLAIMS, key[1], key[0])
        read = parts.read_claim(entry.text) if entry else None
        if entry is None or read is None or not wants_more(read):
            self._waiting.pop(key, None)
            return
        volume = self.world.volumes.of_pv(read.spec.volumeName)
        if volume is None:
            return
        name = resizer(volume.view, process)
        said = (read.metadata.annotations or {}).get(STORAGE_RESIZER)
        if name and said != name:

            def write(obj: Object) -> None:
                obj["metadata"].setdefault("annotations", {})[STORAGE_RESIZER] = name

            self.world.change(PERSISTENT_VOLUME_CLAIMS, key, write)
        if expand(volume.view, process).served_by is Side.IN_TREE:
            enlarge(self.world, key, read, volume.disk, Side.IN_TREE, _COMPONENT)
        else:
            message = "waiting for an external controller to expand this PVC"
            self.world.recorder.record(entry, _COMPONENT, NORMAL, "ExternalExpanding", message)


def wants_more(claim: parts.Claim) -> bool:
    """Whether a bound claim asks for more than it has."""
    wanted, there = claim.spec.storage, (claim.status.capacity or {}).get("storage", "0")
    if claim.status.phase != "Bound" or wanted == there:
        return False
    return amount(wanted) > amount(there)


def enlarge(
    world: World, key: Key, read: parts.Claim, disk: str, side: Side, component: str
) -> None:
    """Make a claim's disk as large as it asks for, and say so on the volume and the claim."""
    wanted = read.spec.storage
    if refusal := world.cloud.resize(disk, amount(wanted), side):
        if entry := world.store.find(PERSISTENT_VOLUME_CLAIMS, key[1], key[0]):
            world.recorder.record(entry, component, WARNING, "VolumeResizeFailed", refusal)
        return

    def on_volume(obj: Object) -> None:
        obj["spec"]["capacity"]["storage"] = wanted

    def on_claim(obj: Object) -> None:
        # The file system grows with it, as it does under a pod that runs.
        obj["status"].setdefault("capacity", {})["storage"] = wanted

    world.change(PERSISTENT_VOLUMES, ("", read.spec.volumeName), on_volume)
    world.change(PERSISTENT_VOLUME_CLAIMS, key, on_claim, "status")
