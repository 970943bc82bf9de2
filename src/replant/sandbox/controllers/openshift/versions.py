"""The version operator: up or down, the control plane first and the nodes after it."""

from __future__ import annotations

from collections.abc import Sequence

from replant.gates.versions import Version
from replant.objects import Object
from replant.sandbox.controllers.base import Controller, World
from replant.sandbox.controllers.openshift.machines import MachineConfigs
from replant.sandbox.controllers.openshift.objects import (
    CLUSTER,
    CONFIG,
    VERSION,
    kubernetes_of,
)
from replant.sandbox.controllers.openshift.operators import StaticPodOperator, served
from replant.sandbox.shelves import Event

LOOKING = 5.0
"""Seconds between two looks at how far the part is that is on its way."""


class VersionOperator(Controller):
    """Has each part come to the version that is wanted, one after the other."""

    hears_all = True

    def __init__(
        self, world: World, operators: Sequence[StaticPodOperator], machines: MachineConfigs
    ) -> None:
        super().__init__(world)
        self._parts: tuple[StaticPodOperator | MachineConfigs, ...] = (*operators, machines)
        self._mine = served(world, CONFIG, "ClusterVersion")
        self._features = served(world, CONFIG, "FeatureGate")
        self._heard = False
        self._at_work = False

    def heard(self, event: Event) -> None:
        """Note that another version is wanted."""
        self._heard = self._heard or event.entry.resource == self._mine

    def work(self) -> bool:
        """Begin, if it is something new and may be."""
        heard, self._heard = self._heard, False
        if heard and not self._at_work and self._wanted() is not None:
            self._at_work = True
            self._go_on()
        return heard

    def _wanted(self) -> Version | None:
        """Where to go, if not all is there, and nothing holds the cluster where it is."""
        obj = self.store.get(self._mine, VERSION)
        release = (obj["spec"].get("desiredUpdate") or {}).get("version", "")
        if not release:
            return None
        wanted = kubernetes_of(release)
        if release == obj["status"]["desired"]["version"]:
            return wanted if self._behind(wanted) else None
        held = self._is_held()
        self._say(obj["status"]["desired"]["version"] if held else release, upgradeable=not held)
        return None if held else wanted

    def _behind(self, wanted: Version) -> StaticPodOperator | MachineConfigs | None:
        return next((it for it in self._parts if not it.is_at(wanted)), None)

    def _is_held(self) -> bool:
        spec = self.store.get(self._features, CLUSTER).get("spec") or {}
        return str(spec.get("featureSet") or "").endswith("NoUpgrade")

    def _go_on(self) -> None:
        wanted = self._wanted()
        if wanted is None or (behind := self._behind(wanted)) is None:
            self._at_work = False
            return
        behind.go_to(wanted)
        self.world.clock.after(LOOKING, self._go_on)

    def _say(self, release: str, *, upgradeable: bool) -> None:
        said = {"type": "Upgradeable", "status": str(upgradeable)}

        def write(obj: Object) -> None:
            obj["status"] = {"desired": {"version": release}, "conditions": [said]}

        self.world.change(self._mine, ("", VERSION), write, "status")
