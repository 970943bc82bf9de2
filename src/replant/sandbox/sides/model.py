"""What is asked about a volume, and of whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Final

from replant.errors import TranslationError
from replant.gates.versions import Version
from replant.objects import Object, name_of
from replant.sandbox.sides import gates
from replant.translate import driver_of, plugin_for_driver, plugin_of

PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
MIGRATED_TO: Final = "pv.kubernetes.io/migrated-to"

_WITHOUT_ATTACH: Final = frozenset({"kubernetes.io/azure-file", "kubernetes.io/portworx-volume"})
"""Neither the plugin nor its driver attaches anything."""


class Side(StrEnum):
    """Who serves an operation."""

    IN_TREE = "in-tree"
    CSI = "csi"
    NOBODY = "nobody"


class AttachController(StrEnum):
    """Whose attach/detach controller it is."""

    UPSTREAM = "upstream"
    NODE_DRIVEN = "node-driven"
    """OpenShift's: it listens to the node, not to the plugin's gates."""


@dataclass(frozen=True, slots=True)
class Process:
    """A component: the version that it runs and the gates it was given."""

    version: Version
    gates: Mapping[str, bool]
    _hash: int = field(init=False, repr=False, compare=False)
    """What is asked of a process is remembered by it, so it is looked up all the time."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.version, frozenset(self.gates.items()))))

    def __hash__(self) -> int:
        return self._hash

    def migrates(self, plugin: str) -> bool:
        """Whether it redirects the plugin's volumes to CSI."""
        return _redirected(self, plugin)

    def could_migrate(self, plugin: str) -> bool:
        """Whether it would if the plugin's own gate were on."""
        return gates.may_be_redirected(plugin, self.version, self.gates)

    def complete(self, plugin: str) -> bool:
        """Whether it does so without asking nodes."""
        return gates.is_complete(plugin, self.version, self.gates)

    def registered(self, plugin: str) -> bool:
        """Whether it has the in-tree plugin."""
        return gates.is_registered(plugin, self.version, self.gates)


@lru_cache(maxsize=4096)
def _redirected(process: Process, plugin: str) -> bool:
    return gates.is_redirected(plugin, process.version, process.gates)


@dataclass(frozen=True, slots=True)
class NodeView:
    """What a node's CSINode says."""

    csi_node: bool
    """Whether it has a CSINode at all."""
    migrated: frozenset[str] = frozenset()
    """The plugins in its annotation."""
    drivers: frozenset[str] = frozenset()
    """The drivers that are registered on it."""


@dataclass(frozen=True, slots=True)
class VolumeView:
    """What the components ask of a volume."""

    plugin: str
    """The in-tree plugin, or the one whose driver serves it; empty for other drivers."""
    driver: str
    native: bool
    """Whether it is stored as a CSI volume."""
    provisioner: str = ""
    """Who provisioned it, by its annotation; a volume that a person made does not say so."""
    migrated_to: str = ""
    """The driver that it is marked with already."""

    @property
    def attachable(self) -> bool:
        """Whether it has to be attached to a node before it is mounted."""
        return self.plugin not in _WITHOUT_ATTACH

    @classmethod
    def of(cls, pv: Object) -> VolumeView:
        """A PersistentVolume; TranslationError for one that no driver serves, or ever will."""
        annotations = (pv.get("metadata") or {}).get("annotations") or {}
        plugin = plugin_of(pv)
        csi = (pv.get("spec") or {}).get("csi") or {}
        driver = driver_of(plugin) if plugin else csi.get("driver", "")
        if not driver:
            raise TranslationError(
                "is not a CSI volume, nor one that a CSI driver took over",
                obj=name_of(pv, "PersistentVolume"),
            )
        return cls(
            plugin=plugin or _plugin_behind(driver),
            driver=driver,
            native=plugin is None,
            provisioner=annotations.get(PROVISIONED_BY, ""),
            migrated_to=annotations.get(MIGRATED_TO, ""),
        )


def _plugin_behind(driver: str) -> str:
    try:
        return plugin_for_driver(driver)
    except TranslationError:
        return ""
