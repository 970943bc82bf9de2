"""What a driver consists of: objects, in the order in which they are applied."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from replant.drivers.catalog import Driver
from replant.drivers.kinds import made
from replant.drivers.settings import Settings
from replant.drivers.values import Values
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


@dataclass(frozen=True, slots=True)
class Facts:
    """What an operand depends on, apart from its settings."""


def operand(driver: Driver, settings: Settings, values: Values, facts: Facts) -> tuple[Object, ...]:
    """All objects of a driver."""
    del settings, values, facts
    return (
        made("Namespace", driver.namespace),
        made(
            "CSIDriver",
            driver.name,
            spec={
                "attachRequired": driver.attach,
                "podInfoOnMount": driver.pod_info,
                "fsGroupPolicy": driver.fs_group,
            },
        ),
    )
