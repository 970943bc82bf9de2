"""The expand controller: makes disks larger in-tree, or names the resizer whose work it is."""

from __future__ import annotations

from replant.objects import Object
from replant.sandbox.controllers.base import Led, World
from replant.sandbox.controllers.growth import Growing, GrowingClaims, enlarge
from replant.sandbox.controllers.recorder import NORMAL
from replant.sandbox.resources import PERSISTENT_VOLUME_CLAIMS
from replant.sandbox.shelves import Event
from replant.sandbox.sides import Process, Side, expand_side, resizer
from replant.sandbox.sides.claims import STORAGE_RESIZER

_COMPONENT = "volume_expand"


class Expander(Led):
    """Looks at bound claims that ask for more than they have."""

    hears = (PERSISTENT_VOLUME_CLAIMS,)

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._claims = GrowingClaims(world)

    def lead(self, process: Process | None) -> None:
        """Look again at what still waits to be expanded."""
        super().lead(process)
        self._claims.look_again()

    def heard(self, event: Event) -> None:
        """Note claims that ask for more."""
        self._claims.heard(event)

    def work(self) -> bool:
        """Expand them, or name who does."""
        if self.process is None or not self._claims:
            return False
        for growing in self._claims.take():
            self._expand(growing, self.process)
        return True

    def _expand(self, growing: Growing, process: Process) -> None:
        key, entry, claim, volume = growing
        name = resizer(volume.view, process)
        said = (claim.metadata.annotations or {}).get(STORAGE_RESIZER)
        if name and said != name:

            def write(obj: Object) -> None:
                obj["metadata"].setdefault("annotations", {})[STORAGE_RESIZER] = name

            self.world.change(PERSISTENT_VOLUME_CLAIMS, key, write)
        if expand_side(volume.view, process) is Side.IN_TREE:
            enlarge(self.world, key, claim, volume.disk, Side.IN_TREE, _COMPONENT)
        else:
            message = "waiting for an external controller to expand this PVC"
            self.world.recorder.record(entry, _COMPONENT, NORMAL, "ExternalExpanding", message)
