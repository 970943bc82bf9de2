"""Shoots of Gardener: their control plane is seen in the seed, and Gardener itself switches gates.

Nothing is switched from here. The version of a Shoot, and webhooks, decide what its components are
given, and Gardener replaces machines: what is to be done is said, and seen when it is so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from replant.cluster.ports import DEPLOYMENTS, Reader
from replant.errors import Final, Missing, printable
from replant.execute.actuators import Place, Replica, Wanted
from replant.inventory.controlplane import told
from replant.plan.courses import CONTROLLER
from replant.platforms.observe import instruction
from replant.platforms.seen import Seen


@dataclass(frozen=True)
class Seat:
    """Where a shoot's control plane is: a namespace of a seed."""

    seed: Reader
    namespace: str
    shoot: str
    """The Shoot in the garden cluster, as a person calls it."""


class _Meta(msgspec.Struct, rename="camel"):
    generation: int = 0


class _PodSpec(msgspec.Struct):
    containers: msgspec.Raw = msgspec.Raw(b"[]")


class _Template(msgspec.Struct):
    spec: _PodSpec = msgspec.field(default_factory=_PodSpec)


class _Spec(msgspec.Struct):
    replicas: int = 1
    template: _Template = msgspec.field(default_factory=_Template)


class _Status(msgspec.Struct, rename="camel"):
    observed_generation: int = 0
    updated_replicas: int = 0
    available_replicas: int = 0
    replicas: int = 0


class _Deployment(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


async def component_of(seat: Seat, component: str) -> Replica | None:
    """A component of a shoot's control plane; None if the seed has none of that name."""
    try:
        body = await seat.seed.get(DEPLOYMENTS, component, namespace=seat.namespace)
        found = msgspec.json.decode(body, type=_Deployment)
        gates, flags = told(found.spec.template.spec.containers)
    except Missing:
        return None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        why = printable(str(error))
        raise Final(f"Deployment {seat.namespace}/{component} cannot be read: {why}") from error
    why = _unready(found)
    return Replica(component, gates, flags, ready=not why, why=why)


async def controller_gates(seat: Seat) -> dict[str, bool] | None:
    """What kube-controller-manager is given; None if it is not there."""
    found = await component_of(seat, CONTROLLER)
    return None if found is None else dict(found.gates)


class Gardener:
    """Says what Gardener is to be asked for, and sees in the seed when it is so."""

    def __init__(self, shoot: Reader, seat: Seat, tell: Callable[[str], None]) -> None:
        self._kubelets = Seen(shoot)
        self._seat = seat
        self._tell = tell
        self._told: dict[Place, Wanted] = {}

    async def observe(self, place: Place) -> tuple[Replica, ...] | None:
        """A Deployment of the seed, or what a kubelet tells; see Actuator."""
        if place.node:
            return await self._kubelets.observe(place)
        found = await component_of(self._seat, place.component)
        return () if found is None else (found,)

    async def switch(self, place: Place, wanted: Wanted) -> None:
        """Say what is to be done, once."""
        if self._told.get(place) == wanted:
            return
        self._told[place] = wanted
        seat = self._seat
        if place.node:
            gates = ", ".join(
                f"{gate} {'not given' if on is None else 'on' if on else 'off'}"
                for gate, on in wanted.gates.items()
            )
            how = (
                f"Shoot {seat.shoot}: {place.node} is drained. Have Gardener replace its machine "
                f"by one whose kubelet has {gates}."
            )
        else:
            how = (
                f"Shoot {seat.shoot}: have its version, or the annotation of a minor of its own, "
                f"make the webhook change the Deployments in {seat.namespace} of the seed. "
                f"{instruction(place, wanted)}"
            )
        self._tell(printable(how))

    async def aclose(self) -> None:
        """There is nothing to leave behind."""


def _unready(found: _Deployment) -> str:
    status, wanted = found.status, found.spec.replicas
    if status.observed_generation < found.metadata.generation:
        return "its change has not been seen yet"
    if not wanted:
        return "it is scaled down: is the shoot hibernated?"
    if status.updated_replicas < wanted or status.replicas > status.updated_replicas:
        return f"{status.updated_replicas} of {wanted} replicas have the change"
    if status.available_replicas < wanted:
        return f"{status.available_replicas} of {wanted} replicas are available"
    return ""
