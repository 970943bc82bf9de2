"""An operator of a component of the control plane: what it is to be given becomes a revision, and
node by node that is installed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from replant.gates.versions import Version
from replant.objects import Object
from replant.sandbox.controllers.base import Controller, World
from replant.sandbox.controllers.controlplane import Replicas
from replant.sandbox.controllers.openshift.objects import (
    CLUSTER,
    CONFIG,
    OPERATOR,
    gates_of,
    observed_config,
    operator_conditions,
)
from replant.sandbox.resources import Resource
from replant.sandbox.shelves import Event

OBSERVING = 4.0
"""Seconds until an operator has understood a FeatureGate."""
REVISING = 6.0
"""And until that is a revision: meanwhile all it says is about the one before."""
INSTALLING = 20.0
"""Seconds for a node to have it."""


class StaticPodOperator(Controller):
    """The operator of one component."""

    hears_all = True

    def __init__(
        self, world: World, kind: str, replicas: Replicas, defaults: Mapping[str, bool]
    ) -> None:
        super().__init__(world)
        self._component = replicas.component
        self._replicas = replicas
        self._defaults = defaults
        self._mine = served(world, OPERATOR, kind)
        self._features = served(world, CONFIG, "FeatureGate")
        self._cluster_operators = served(world, CONFIG, "ClusterOperator")
        self._heard = False
        self._installing = False
        self._version = replicas.all[0].process.version
        self._wanted: Mapping[str, bool] = {}
        """What the last revision gives."""

    def heard(self, event: Event) -> None:
        """Note that the FeatureGate says something else."""
        self._heard = self._heard or event.entry.resource == self._features

    def work(self) -> bool:
        """Understand it after a while."""
        heard, self._heard = self._heard, False
        if heard:
            self.world.clock.after(OBSERVING, self._observe)
        return heard

    def is_at(self, version: Version) -> bool:
        """Whether every replica is of a version, and none on its way."""
        there = all(it.up and it.process.version == version for it in self._replicas.all)
        return there and not self._installing

    def go_to(self, version: Version) -> None:
        """Have every replica come to a version, as a revision of its own."""
        if version != self._version:
            self._version = version
            self._observe(anew=True)

    def _observe(self, *, anew: bool = False) -> None:
        features = self.store.get(self._features, CLUSTER)
        gates = gates_of(features, self._defaults, self._version, nodes=False)
        config = observed_config(self._component, gates)
        same = self.store.get(self._mine, CLUSTER)["spec"].get("observedConfig") == config
        if same and not anew:
            return

        def write(obj: Object) -> None:
            obj["spec"]["observedConfig"] = config

        self.world.change(self._mine, ("", CLUSTER), write)
        self.world.clock.after(REVISING, lambda: self._revise(gates))

    def _revise(self, gates: Mapping[str, bool]) -> None:
        def write(obj: Object) -> None:
            obj["status"]["latestAvailableRevision"] += 1

        self._write(write)
        self._say(progressing=True)
        self._wanted = dict(gates)
        self._install()

    def _install(self) -> None:
        """Have the next node come to the last revision, if none is on its way."""
        if self._installing:
            return
        status = self.store.get(self._mine, CLUSTER)["status"]
        latest = status["latestAvailableRevision"]
        behind = [it for it in status["nodeStatuses"] if it["currentRevision"] != latest]
        if not behind:
            self._say(progressing=False)
            return
        host, gates = behind[0]["nodeName"], self._wanted
        self._installing = True
        self._write(lambda obj: _node(obj, host).update(targetRevision=latest))
        replica = next(it for it in self._replicas.all if it.host == host)
        told = replica.wanted.with_gates(gates)
        told = replace(told, process=replace(told.process, version=self._version))
        self._replicas.restart(replica, told)

        def installed() -> None:
            self._installing = False
            there = {"currentRevision": latest, "targetRevision": 0}
            self._write(lambda obj: _node(obj, host).update(there))
            self._install()

        self.world.clock.after(INSTALLING, installed)

    def _write(self, change: Callable[[Object], None]) -> None:
        self.world.change(self._mine, ("", CLUSTER), change, "status")

    def _say(self, *, progressing: bool) -> None:
        def write(obj: Object) -> None:
            obj["status"]["conditions"] = operator_conditions(progressing=progressing)

        self.world.change(self._cluster_operators, ("", self._component), write, "status")


def _node(operator: Object, host: str) -> Object:
    found: Object = next(it for it in operator["status"]["nodeStatuses"] if it["nodeName"] == host)
    return found


def served(world: World, api_version: str, kind: str) -> Resource:
    """What a definition has added."""
    found = world.registry.of_kind(api_version, kind)
    assert found is not None  # noqa: S101 - its definition was made before
    return found
