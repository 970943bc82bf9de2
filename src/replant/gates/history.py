"""Every gate of the migration and its life: from which minor on it has which stage and default.

Taken from the feature lists of the release tags 1.14 to 1.36; the tests compare this table with
that record, minor by minor.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from replant.gates.versions import Version

FIRST, LAST = Version(1, 14), Version(1, 36)
"""The minors that this table knows."""


class Stage(StrEnum):
    """How settled a gate is."""

    ALPHA = "alpha"
    BETA = "beta"
    GA = "ga"
    DEPRECATED = "deprecated"


@dataclass(frozen=True, slots=True)
class GateSpec:
    """A gate at one version."""

    stage: Stage
    default: bool
    locked: bool = False


_ALPHA = GateSpec(Stage.ALPHA, default=False)
_BETA_OFF = GateSpec(Stage.BETA, default=False)
_BETA_ON = GateSpec(Stage.BETA, default=True)
_GA = GateSpec(Stage.GA, default=True)
_GA_LOCKED = GateSpec(Stage.GA, default=True, locked=True)
_DEPRECATED = GateSpec(Stage.DEPRECATED, default=False)
_GONE = None

_Life = dict[tuple[int, ...], GateSpec | None]

_COMPLETE: _Life = {(1, 17): _ALPHA, (1, 21): _GONE}
_UNREGISTER: _Life = {(1, 21): _ALPHA, (1, 31): _GONE}

_LIVES: dict[str, _Life] = {
    "CSIMigration": {(1, 14): _ALPHA, (1, 17): _BETA_ON, (1, 25): _GA_LOCKED, (1, 27): _GONE},
    "CSIMigrationAWS": {
        (1, 14): _ALPHA,
        (1, 17): _BETA_OFF,
        (1, 23): _BETA_ON,
        (1, 25): _GA_LOCKED,
        (1, 27): _GONE,
    },
    "CSIMigrationAzureDisk": {
        (1, 15): _ALPHA,
        (1, 19): _BETA_OFF,
        (1, 23): _BETA_ON,
        (1, 24): _GA,
        (1, 25): _GA_LOCKED,
        (1, 27): _GONE,
    },
    "CSIMigrationAzureFile": {
        (1, 15): _ALPHA,
        (1, 21): _BETA_OFF,
        (1, 24): _BETA_ON,
        (1, 26): _GA,
        (1, 27): _GA_LOCKED,
        (1, 30): _GONE,
    },
    "CSIMigrationGCE": {
        (1, 14): _ALPHA,
        (1, 17): _BETA_OFF,
        (1, 23): _BETA_ON,
        (1, 25): _GA_LOCKED,
        (1, 28): _GONE,
    },
    "CSIMigrationOpenStack": {
        (1, 14): _ALPHA,
        (1, 18): _BETA_OFF,
        (1, 21): _BETA_ON,
        (1, 24): _GA_LOCKED,
        (1, 26): _GONE,
    },
    "CSIMigrationPortworx": {
        (1, 23): _ALPHA,
        (1, 25): _BETA_OFF,
        (1, 31): _BETA_ON,
        (1, 33): _GA_LOCKED,
        (1, 36): _GONE,
    },
    "CSIMigrationRBD": {(1, 23): _ALPHA, (1, 28): _DEPRECATED, (1, 31): _GONE},
    "CSIMigrationvSphere": {
        (1, 19): _BETA_OFF,
        (1, 25): _BETA_ON,
        (1, 26): _GA_LOCKED,
        (1, 26, 4): _GA,  # the lock was taken back in a patch release, and came again with 1.27
        (1, 27): _GA_LOCKED,
        (1, 29): _GONE,
    },
    "CSIMigrationAWSComplete": _COMPLETE,
    "CSIMigrationAzureDiskComplete": _COMPLETE,
    "CSIMigrationAzureFileComplete": _COMPLETE,
    "CSIMigrationGCEComplete": _COMPLETE,
    "CSIMigrationOpenStackComplete": _COMPLETE,
    "CSIMigrationvSphereComplete": {(1, 19): _BETA_OFF, (1, 22): _GONE},
    "InTreePluginAWSUnregister": _UNREGISTER,
    "InTreePluginAzureDiskUnregister": _UNREGISTER,
    "InTreePluginAzureFileUnregister": _UNREGISTER,
    "InTreePluginGCEUnregister": _UNREGISTER,
    "InTreePluginOpenStackUnregister": _UNREGISTER,
    "InTreePluginvSphereUnregister": _UNREGISTER,
    "InTreePluginPortworxUnregister": {(1, 23): _ALPHA, (1, 36): _GONE},
    "InTreePluginRBDUnregister": {(1, 23): _ALPHA, (1, 28): _DEPRECATED, (1, 31): _GONE},
}


def known_gates() -> tuple[str, ...]:
    """All gates, whenever they were there."""
    return tuple(_LIVES)


def gates_at(version: Version) -> dict[str, GateSpec]:
    """The gates that exist at a version."""
    found = {gate: gate_at(gate, version) for gate in _LIVES}
    return {gate: spec for gate, spec in found.items() if spec}


def gate_at(gate: str, version: Version) -> GateSpec | None:
    """What a gate is at a version, or None where it does not exist."""
    spec = None
    for since, change in _LIVES.get(gate, {}).items():
        if version >= Version(*since):
            spec = change
    return spec
