"""The external-resizer of each CSI driver."""

from __future__ import annotations

from replant.routing import Side
from replant.routing.claims import STORAGE_RESIZER
from replant.sandbox.controllers import parts
from replant.sandbox.controllers.base import Controller, Key, Queue, World, key_of
from replant.sandbox.controllers.expander import enlarge, wants_more
from replant.sandbox.resources import PERSISTENT_VOLUME_CLAIMS
from replant.sandbox.store import DELETED, Event


class Resizer(Controller):
    """Makes the disks of its drivers larger: of native volumes, and of those it is named on."""

    hears = (PERSISTENT_VOLUME_CLAIMS,)

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._drivers: set[str] = set()
        self._claims: Queue[Key] = Queue()
        self._waiting: dict[Key, None] = {}

    def run(self, driver: str) -> None:
        """The resizer of a driver starts."""
        self._drivers.add(driver)
        self._claims.add_all(self._waiting)

    def stop(self, driver: str) -> None:
        """It ends; what is asked of it from now on waits."""
        self._drivers.discard(driver)

    def heard(self, event: Event) -> None:
        """Note claims that ask for more."""
        entry = event.entry
        if event.type == DELETED:
            self._waiting.pop(key_of(entry), None)
        elif wants_more(parts.read_claim(entry.text)):
            self._waiting[key_of(entry)] = None
            self._claims.add(key_of(entry))

    def work(self) -> bool:
        """Enlarge what is of these drivers."""
        if not self._claims:
            return False
        for key in self._claims.take():
            self._look(key)
        return True

    def _look(self, key: Key) -> None:
        entry = self.store.find(PERSISTENT_VOLUME_CLAIMS, key[1], key[0])
        read = parts.read_claim(entry.text) if entry else None
        if read is None or not wants_more(read):
            self._waiting.pop(key, None)
            return
        volume = self.world.volumes.of_pv(read.spec.volumeName)
        if volume is None:
            return
        named = (read.metadata.annotations or {}).get(STORAGE_RESIZER)
        driver = volume.view.driver if volume.view.native else named
        if driver in self._drivers and driver == volume.view.driver:
            enlarge(self.world, key, read, volume.disk, Side.CSI, f"external-resizer {driver}")
