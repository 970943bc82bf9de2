"""OpenShift's feature sets for the migration, and how long they mean anything."""

from __future__ import annotations

from collections.abc import Iterable

from replant.gates.history import gate_at
from replant.gates.plugins import BASE_GATE, LIVES, was_there_before
from replant.gates.versions import Version

CONTROL_PLANE_SET, NODE_SET = "CSIMigrationControlPlane", "CSIMigrationNode"
CUSTOM = "CustomNoUpgrade"

_OF_THE_SETS = ("AWS", "GCE", "AzureDisk", "AzureFile", "vSphere", "OpenStack")
SET_GATES = (BASE_GATE, *(f"CSIMigration{it}" for it in _OF_THE_SETS))
"""What both feature sets turn on."""
PLUGINS = tuple(plugin for plugin, life in LIVES.items() if life.suffix in _OF_THE_SETS)


def is_settled(gate: str, version: Version) -> bool:
    """Whether a gate is on for good at a version: locked, or no longer there."""
    spec = gate_at(gate, version)
    return spec.locked if spec else was_there_before(gate, version)


def are_inert(version: Version) -> bool:
    """Whether the feature sets change nothing any more: all that they turn on is on for good."""
    return all(is_settled(gate, version) for gate in SET_GATES)


def inert(gates: Iterable[str], version: Version) -> str:
    """How to say that gates are on for good."""
    return (
        f"{', '.join(gates)} is on for good at Kubernetes {version.of_minor}: the feature sets "
        f"{CONTROL_PLANE_SET} and {NODE_SET} are no longer operational, and nothing is done."
    )
