"""OpenShift's own controllers: something is asked for by an object, and operators do the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from replant.objects import Object
from replant.sandbox.controllers.base import Controller, World
from replant.sandbox.controllers.controlplane import API_SERVER, CONTROLLER, SCHEDULER, ControlPlane
from replant.sandbox.controllers.kubelets import Kubelets
from replant.sandbox.controllers.openshift import objects
from replant.sandbox.controllers.openshift.credentials import CloudCredentials
from replant.sandbox.controllers.openshift.lifecycle import OperatorLifecycle
from replant.sandbox.controllers.openshift.machines import MachineConfigs
from replant.sandbox.controllers.openshift.operators import StaticPodOperator
from replant.sandbox.controllers.openshift.versions import VersionOperator
from replant.sandbox.resources import DEFINITIONS

COMPONENTS = {
    API_SERVER: "KubeAPIServer",
    CONTROLLER: "KubeControllerManager",
    SCHEDULER: "KubeScheduler",
}


@dataclass(frozen=True)
class Asked:
    """What an OpenShift of the sandbox's is to be like."""

    feature_sets: tuple[str, ...]
    """What the FeatureGate's definition allows besides what every one does."""
    gates: Mapping[str, bool]
    """What components are given while no feature set says otherwise."""
    pools: tuple[str, ...]
    platform: str = ""
    """What its Infrastructure calls the cloud; nothing where it does not say."""


def set_up(
    asked: Asked,
    world: World,
    control_plane: ControlPlane,
    kubelets: Kubelets,
    add: Callable[[Controller], None],
) -> None:
    """Have a cluster be OpenShift: its definitions, its objects, and those who act on them."""
    for definition in objects.definitions(asked.feature_sets):
        world.store.create(DEFINITIONS, definition)
    replicas = control_plane.components[CONTROLLER].all
    hosts, version = [it.host for it in replicas], replicas[0].process.version
    _put(world, objects.first(COMPONENTS, hosts, asked.gates, asked.pools, asked.platform, version))
    operators = [
        StaticPodOperator(world, kind, control_plane.components[component], asked.gates)
        for component, kind in COMPONENTS.items()
    ]
    machines = MachineConfigs(world, kubelets, asked.gates)
    for controller in (
        *operators,
        machines,
        VersionOperator(world, operators, machines),
        CloudCredentials(world),
        OperatorLifecycle(world),
    ):
        add(controller)


def _put(world: World, those: Iterable[Object]) -> None:
    for obj in those:
        resource = world.registry.of_kind(obj["apiVersion"], obj["kind"])
        assert resource is not None  # noqa: S101 - its definition was made before
        world.store.create(resource, obj, as_it_was=True)
