"""The machine-config operator: pools are rolled, one node of each at a time.

A node is cordoned and drained, and its kubelet starts anew. Nobody waits for its volumes to be
detached, as the real one does not; there is only the time that a reboot takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from replant.gates.versions import Version
from replant.objects import Object
from replant.sandbox import evicting
from replant.sandbox.changes import Deletion
from replant.sandbox.controllers.base import Controller, World
from replant.sandbox.controllers.kubelets import Kubelets
from replant.sandbox.controllers.openshift.objects import (
    CLUSTER,
    CONFIG,
    MACHINES,
    gates_of,
    role,
)
from replant.sandbox.controllers.openshift.operators import served
from replant.sandbox.refusals import ApiError
from replant.sandbox.resources import NODES, PODS
from replant.sandbox.shelves import Event
from replant.sandbox.sides import Process

RENDERING = 5.0
"""Seconds until a FeatureGate has become a configuration."""
DRAINING = 5.0
"""Seconds until pods that were not let go are asked again."""
REBOOTING = 30.0
"""Seconds from an empty node to a kubelet that starts."""
STARTING = 10.0

CURRENT = "machineconfiguration.openshift.io/currentConfig"


@dataclass(frozen=True)
class _Rendered:
    """What a configuration makes of kubelets."""

    gates: Mapping[str, bool]
    version: Version | None


class MachineConfigs(Controller):
    """All pools."""

    hears_all = True

    def __init__(self, world: World, kubelets: Kubelets, defaults: Mapping[str, bool]) -> None:
        super().__init__(world)
        self._kubelets = kubelets
        self._defaults = defaults
        self._pools = served(world, MACHINES, "MachineConfigPool")
        self._features = served(world, CONFIG, "FeatureGate")
        self._heard = True
        self._rolling: dict[str, str] = {}
        """By pool, the node that is on its way."""
        self._version: Version | None = None
        """Where the version operator leads; before it does, kubelets are what they are."""
        self._rendered: dict[str, _Rendered] = {}
        """By the name of a configuration, what it makes of kubelets."""

    def heard(self, event: Event) -> None:
        """Note what concerns pools."""
        mine = (self._features, self._pools, NODES)
        self._heard = self._heard or event.entry.resource in mine

    def work(self) -> bool:
        """Look at all pools, and render what is new after a while."""
        heard, self._heard = self._heard, False
        if heard:
            for entry in self.store.entries(self._pools):
                self._look_at(entry.name)
        return heard

    def _look_at(self, pool: str) -> None:
        """Render, roll, and tell."""
        obj = self.store.get(self._pools, pool)
        name, rendered = self._wanted(pool)
        told = (obj["spec"].get("configuration") or {}).get("name")
        if told is None:
            # The first one: its nodes are so already.
            self._rendered[name] = rendered
            self._set_configuration(pool, name)
            for node in self._nodes(pool):
                self._annotate(node, name)
        elif told != name:
            self.world.clock.after(RENDERING, partial(self._render, pool))
        if not obj["spec"].get("paused") and pool not in self._rolling:
            self._begin_next(pool)
        self._tell(pool)

    def is_at(self, version: Version) -> bool:
        """Whether every kubelet is of a version, and no node is on its way."""
        found = (self._kubelets.all[it.name].process.version for it in self.store.entries(NODES))
        return not self._rolling and all(it == version for it in found)

    def go_to(self, version: Version) -> None:
        """Have all pools come to a version."""
        self._heard = self._heard or version != self._version
        self._version = version

    def _wanted(self, pool: str) -> tuple[str, _Rendered]:
        features = self.store.get(self._features, CLUSTER)
        found: dict[str, bool] = {}
        for node in self._nodes(pool):
            version = self._version or self._kubelets.all[node].process.version
            found |= gates_of(features, self._defaults, version, nodes=True)
        wanted = _Rendered(found, self._version)
        same = (name for name, it in self._rendered.items() if it == wanted)
        return next(same, f"rendered-{len(self._rendered) + 1:08x}"), wanted

    def _render(self, pool: str) -> None:
        """What is wanted by now; it may be something else than when this was begun."""
        name, rendered = self._wanted(pool)
        self._rendered[name] = rendered
        self._set_configuration(pool, name)

    def _set_configuration(self, pool: str, name: str) -> None:
        def write(obj: Object) -> None:
            obj["spec"]["configuration"] = {"name": name}

        self.world.change(self._pools, ("", pool), write)

    def _nodes(self, pool: str) -> list[str]:
        label = role(pool)
        return [it.name for it in self.store.entries(NODES) if label in it.labels]

    # One node

    def _begin_next(self, pool: str) -> None:
        wanted = self.store.get(self._pools, pool)["spec"].get("configuration", {}).get("name")
        for node in self._nodes(pool):
            if self._config_of(node) != wanted:
                self._rolling[pool] = node
                self._cordon(node, on=True)
                self.world.clock.after(1.0, partial(self._drain, pool, node))
                return

    def _drain(self, pool: str, node: str) -> None:
        left = self.store.list(PODS, "", lambda it: it.fields["spec.nodeName"] == node)
        for pod in left:
            metadata = pod["metadata"]
            if not metadata.get("deletionTimestamp"):
                try:
                    evicting.evict(self.store, metadata["name"], metadata["namespace"], Deletion())
                except ApiError:
                    continue  # its budget does not let it go now
        if left:
            self.world.clock.after(DRAINING, partial(self._drain, pool, node))
        else:
            self.world.clock.after(REBOOTING, partial(self._reboot, pool, node))

    def _reboot(self, pool: str, node: str) -> None:
        name = self.store.get(self._pools, pool)["spec"]["configuration"]["name"]
        rendered = self._rendered[name]
        version = rendered.version or self._kubelets.all[node].process.version
        process = Process(version, dict(rendered.gates))
        self._kubelets.restart(node, process, STARTING)
        self.world.clock.after(2 * STARTING, partial(self._finish, pool, node, name))

    def _finish(self, pool: str, node: str, name: str) -> None:
        self._annotate(node, name)
        self._cordon(node, on=False)
        del self._rolling[pool]
        self._heard = True

    def _cordon(self, node: str, *, on: bool) -> None:
        def write(obj: Object) -> None:
            obj["spec"].pop("unschedulable", None)
            if on:
                obj["spec"]["unschedulable"] = True

        self.world.change(NODES, ("", node), write)

    def _annotate(self, node: str, name: str) -> None:
        def write(obj: Object) -> None:
            obj["metadata"].setdefault("annotations", {})[CURRENT] = name

        self.world.change(NODES, ("", node), write)

    def _config_of(self, node: str) -> str:
        obj = self.store.get(NODES, node)
        return str((obj["metadata"].get("annotations") or {}).get(CURRENT, ""))

    # What is told

    def _tell(self, pool: str) -> None:
        obj = self.store.get(self._pools, pool)
        wanted = obj["spec"].get("configuration", {}).get("name", "")
        nodes = self._nodes(pool)
        updated = [it for it in nodes if self._config_of(it) == wanted]
        away = int(pool in self._rolling)
        done = len(updated) == len(nodes) and not away
        before = ((obj.get("status") or {}).get("configuration") or {}).get("name", "")
        paused = bool(obj["spec"].get("paused"))
        conditions = {
            "Updated": done,
            "Updating": not done and not paused,
            "Degraded": False,
            "NodeDegraded": False,
            "RenderDegraded": False,
        }
        status = {
            "observedGeneration": obj["metadata"]["generation"],
            "configuration": {"name": wanted if done else before},
            "machineCount": len(nodes),
            "updatedMachineCount": len(updated),
            "readyMachineCount": len(updated),
            "unavailableMachineCount": away,
            "degradedMachineCount": 0,
            "conditions": [{"type": kind, "status": str(on)} for kind, on in conditions.items()],
        }

        def write(it: Object) -> None:
            it["status"] = status

        self.world.change(self._pools, ("", pool), write, "status")
