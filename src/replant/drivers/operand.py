"""What a driver consists of: objects, in the order in which they are applied.

Its StorageClasses come after them, and are decided about in ``classes``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from replant.drivers.catalog import Driver
from replant.drivers.credentials import request
from replant.drivers.kinds import made
from replant.drivers.naming import OPERAND, Names
from replant.drivers.programs import PROGRAMS, config_name
from replant.drivers.rbac import rbac
from replant.drivers.settings import Settings
from replant.drivers.values import Values
from replant.drivers.workloads import daemon_set, deployment
from replant.objects import Object


class Part(Enum):
    """Where an object belongs if controllers run in another cluster than nodes (Gardener)."""

    CONTROLLER = "with the controllers"
    NODE = "with the nodes"


_WITH_CONTROLLERS = frozenset({"Deployment", "PodDisruptionBudget", "Secret", "CredentialsRequest"})


def part_of(kind: str) -> Part:
    """Where an object of a kind belongs."""
    return Part.CONTROLLER if kind in _WITH_CONTROLLERS else Part.NODE


@dataclass(frozen=True, slots=True)
class Split:
    """Controllers run in another cluster than nodes: Gardener's seed and shoot."""

    namespace: str
    """Of the controllers, in their cluster."""
    kubeconfig: str
    """A Secret there whose key ``kubeconfig`` leads controllers to the cluster of the nodes."""


def part_in(kind: str, namespace: str, split: Split | None) -> Part:
    """Where one object belongs: what is in the controllers' namespace is beside them."""
    if split is not None and namespace == split.namespace:
        return Part.CONTROLLER
    return part_of(kind)


@dataclass(frozen=True, slots=True)
class Facts:
    """What an operand depends on, apart from its settings."""

    names: Names
    credentials: str = ""
    """Which ones; "" where rights come from the machine."""
    asks: bool = False
    """Whether credentials are asked for by a CredentialsRequest."""
    snapshots: bool = False
    """Whether the cluster serves VolumeSnapshotClasses."""
    openshift: bool = False
    replicas: int = 2
    region: str = ""
    split: Split | None = None


PRIVILEGED = {
    f"pod-security.kubernetes.io/{it}": "privileged" for it in ("enforce", "audit", "warn")
}


def before_credentials(driver: Driver, facts: Facts) -> tuple[Object, ...]:
    """What is there while credentials are waited for: the namespace is where they are to be."""
    objects = [csi_driver(driver, facts.names)]
    if facts.names.namespace == driver.namespace:
        objects.insert(0, made("Namespace", driver.namespace, labels=PRIVILEGED))
    if facts.asks:
        objects.append(request(driver, facts.names))
    return tuple(objects)


def operand(driver: Driver, settings: Settings, values: Values, facts: Facts) -> tuple[Object, ...]:
    """All objects of a driver."""
    objects = [*before_credentials(driver, facts)]
    objects += rbac(driver, facts.names, snapshots=facts.snapshots, openshift=facts.openshift)
    if config := PROGRAMS[driver.name].config:
        # Pods of both kinds read it, wherever they run.
        for place in dict.fromkeys((facts.names.namespace, facts.names.controller_namespace)):
            objects.append(made("ConfigMap", config_name(driver), place, data=config))
    objects.append(deployment(driver, settings, values, facts))
    if facts.replicas > 1:
        objects.append(_budget(facts.names))
    objects.append(daemon_set(driver, settings, values, facts))
    if facts.snapshots:
        objects.append(_snapshot_class(driver, facts.names))
    return tuple(objects)


def csi_driver(driver: Driver, names: Names) -> Object:
    """What tells Kubernetes how to treat the driver. It keeps the names of what was adopted."""
    return made(
        "CSIDriver",
        driver.name,
        annotations={OPERAND: names.written()} if names.adopted else {},
        spec={
            "attachRequired": driver.attach,
            "podInfoOnMount": driver.pod_info,
            "fsGroupPolicy": driver.fs_group,
        },
    )


def _budget(names: Names) -> Object:
    return made(
        "PodDisruptionBudget",
        names.controller,
        names.controller_namespace,
        spec={
            "maxUnavailable": 1,
            "selector": {"matchLabels": dict(names.controller_labels)},
        },
    )


def _snapshot_class(driver: Driver, names: Names) -> Object:
    secrets = secret_parameters(driver, names, "snapshotter")
    obj = made(
        "VolumeSnapshotClass",
        f"{driver.backend}-csi",
        driver=driver.name,
        deletionPolicy="Delete",
    )
    return {**obj, "parameters": secrets} if secrets else obj


def secret_parameters(driver: Driver, names: Names, *uses: str) -> dict[str, str]:
    """What a class has to say for a driver that is told its secret with every request."""
    if driver.kind != "ManilaDriver":
        return {}
    prefix = "csi.storage.k8s.io"
    return {
        f"{prefix}/{use}-secret-{field}": value
        for use in uses
        for field, value in (("name", driver.secret), ("namespace", names.namespace))
    }
