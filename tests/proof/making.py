"""Orders and courses, in few words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from replant.gates.versions import Version
from replant.proof import Course, NodeGroup, NodesMove, SwitchMove
from replant.proof.orders import read_order
from replant.routing import Process

GATE, UNREGISTER, COMPLETE = (
    "CSIMigrationAWS",
    "InTreePluginAWSUnregister",
    "CSIMigrationAWSComplete",
)
BASE = "CSIMigration"
ON, OFF = {GATE: True}, {GATE: False}
UNREGISTERED = {GATE: True, UNREGISTER: True}
STANDALONE = {GATE: False, UNREGISTER: True}
COMPLETED = {GATE: True, COMPLETE: True}

Given = dict[str, Any]
SEEN = Version(1, 24, 17)
"""The version whose orders were recorded."""


def order(*steps: Given, plugin: str = "aws-ebs", version: str = "1.24", **more: Any) -> Given:
    """A MigrationOrder; ``cp`` and ``nodes`` are what it begins with.

    Drivers stay where they are, unless it says otherwise.
    """
    more.setdefault("driversStay", True)
    sides = {"controlPlane": more.pop("cp", {}), "nodes": more.pop("nodes", {})}
    return {
        "apiVersion": "replant.dev/v1alpha1",
        "kind": "MigrationOrder",
        "plugin": plugin,
        "kubernetesVersion": version,
        "from": sides,
        "steps": list(steps),
        **more,
    }


def cp(given: Given | str) -> Given:
    """The control plane is given gates, or a version with its defaults."""
    return {"controlPlane": _given(given)}


def drained(given: Given | str, *, restricts: bool = True, restarts: bool = True) -> Given:
    kept = {"restartControllers": restarts, "restrictScheduling": restricts}
    return {"nodes": {"drain": True, **kept, **_of_nodes(given)}}


def in_place(given: Given | str) -> Given:
    return {"nodes": {"drain": False, **_of_nodes(given)}}


def closed(given: Given) -> Course:
    """The course of an order by somebody whose cordons no pod tolerates."""
    course = read_order(given)
    moves = (replace(it, closes=True) if isinstance(it, NodesMove) else it for it in course.moves)
    return replace(course, moves=tuple(moves))


def _given(given: Given | str) -> Given:
    return {"kubernetesVersion": given} if isinstance(given, str) else given


def _of_nodes(given: Given | str) -> Given:
    return _given(given) if isinstance(given, str) else {"gates": given}


@dataclass(frozen=True)
class Making:
    """What courses of a plugin are made of: components of one version, given gates."""

    version: Version = SEEN
    plugin: str = "kubernetes.io/aws-ebs"

    def group(
        self, name: str, gates: dict[str, bool], *, driver: bool = True, size: int = 2
    ) -> NodeGroup:
        return NodeGroup(name, self.process(gates), driver, size)

    def process(self, gates: dict[str, bool]) -> Process:
        return Process(self.version, gates)

    def switch(self, gates: dict[str, bool]) -> SwitchMove:
        return SwitchMove(self.process(gates), told(gates))

    def nodes(
        self,
        gates: dict[str, bool],
        *names: str,
        drain: bool = True,
        forgets: bool = True,
        restricts: bool = True,
    ) -> NodesMove:
        to = dict.fromkeys(names, self.process(gates))
        return NodesMove(
            to, drain, told(gates), forgets and drain, restricts and drain, closes=drain
        )

    def course(
        self, gates: dict[str, bool], groups: tuple[NodeGroup, ...], *moves: Any, **more: Any
    ) -> Course:
        return Course(self.plugin, self.process(gates), groups, moves, **more)


def told(gates: dict[str, bool]) -> str:
    return ", ".join(f"{gate}={str(on).lower()}" for gate, on in gates.items())
