"""The external-resizer of each CSI driver."""

from __future__ import annotations

from replant.sandbox.controllers.base import Controller, World
from replant.sandbox.controllers.growth import Growing, GrowingClaims, enlarge
from replant.sandbox.resources import PERSISTENT_VOLUME_CLAIMS
from replant.sandbox.shelves import Event
from replant.sandbox.sides import Side
from replant.sandbox.sides.claims import STORAGE_RESIZER


class Resizer(Controller):
    """Makes the disks of its drivers larger: of native volumes, and of those it is named on."""

    hears = (PERSISTENT_VOLUME_CLAIMS,)

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.drivers: set[str] = set()
        self._claims = GrowingClaims(world)

    def run(self, driver: str) -> None:
        """The resizer of a driver starts."""
        self.drivers.add(driver)
        self._claims.look_again()

    def stop(self, driver: str) -> None:
        """It ends; what is asked of it from now on waits."""
        self.drivers.discard(driver)

    def heard(self, event: Event) -> None:
        """Note claims that ask for more."""
        self._claims.heard(event)

    def work(self) -> bool:
        """Enlarge what is of these drivers."""
        if not self._claims:
            return False
        for growing in self._claims.take():
            self._look_at(growing)
        return True

    def _look_at(self, growing: Growing) -> None:
        key, _entry, claim, volume = growing
        named = (claim.metadata.annotations or {}).get(STORAGE_RESIZER)
        driver = volume.view.driver if volume.view.native else named
        if driver in self.drivers and driver == volume.view.driver:
            enlarge(self.world, key, claim, volume.disk, Side.CSI, f"external-resizer {driver}")
