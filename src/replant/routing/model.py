"""What is asked about a volume, of whom, and what is answered."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache

from replant.errors import TranslationError
from replant.gates.history import gate_at
from replant.gates.plugins import BASE_GATE, LIVES, migrated
from replant.gates.settings import Gates, effective
from replant.gates.versions import Version
from replant.objects import Object, name_of
from replant.translate import driver_of, plugin_for_driver, plugin_of

FIRST = Version(1, 17)
"""The first minor whose routes are known here."""

PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
MIGRATED_TO = "pv.kubernetes.io/migrated-to"

_NEEDS_NO_ATTACH = frozenset({"kubernetes.io/portworx-volume", "kubernetes.io/azure-file"})

_COMPLETE_SINCE = {
    plugin: Version(1, 36) if plugin == "kubernetes.io/portworx-volume" else Version(1, 31)
    for plugin, life in LIVES.items()
    if life.translated
}
"""From here on the controller no longer asks nodes, whatever its gates."""


class Side(StrEnum):
    """Who serves an operation."""

    IN_TREE = "in-tree"
    CSI = "csi"
    NOBODY = "nobody"


class Operation(StrEnum):
    """What can be asked for a volume."""

    PROVISION = "provision"
    DELETE = "delete"
    ATTACH = "attach"
    DETACH = "detach"
    MOUNT = "mount"
    UNMOUNT = "unmount"
    EXPAND = "expand"
    COUNT = "limit counting"


class AttachController(StrEnum):
    """Whose attach/detach controller it is."""

    UPSTREAM = "upstream"
    NODE_DRIVEN = "node-driven"
    """OpenShift's: it listens to the node, not to the plugin's gates."""


@dataclass(frozen=True, slots=True)
class Process:
    """A component: the version that it runs and the gates it was given."""

    version: Version
    gates: Gates
    _hash: int = field(init=False, repr=False, compare=False)
    """What is asked of a process is remembered by it, so it is looked up all the time."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.version, frozenset(self.gates.items()))))

    def __hash__(self) -> int:
        return self._hash

    def migrates(self, plugin: str) -> bool:
        """Whether it redirects the plugin's volumes to CSI."""
        return _standing(self, plugin).migrates

    def complete(self, plugin: str) -> bool:
        """Whether it takes the migration for finished, on every node."""
        return _standing(self, plugin).complete

    def registered(self, plugin: str) -> bool:
        """Whether the in-tree plugin is in its code, and was probed when it started."""
        return _standing(self, plugin).registered

    def could_migrate(self, plugin: str) -> bool:
        """Whether it would redirect the plugin if the plugin's own gate were on."""
        return _standing(self, plugin).could_migrate

    def why_not_redirected(self, plugin: str) -> str:
        """What keeps it from redirecting the plugin's volumes."""
        life = LIVES.get(plugin)
        if life is None:
            return f"{plugin} is never redirected"
        if self.could_migrate(plugin):
            return f"{life.migration_gate} is off"
        if not effective(self.version, self.gates).get(BASE_GATE, True):
            return f"{BASE_GATE} is off"
        still = "no longer translates" if self.version >= life.removed else "cannot yet redirect"
        return f"Kubernetes {self.version.of_minor} {still} {plugin}"

    def why_not_registered(self, plugin: str) -> str:
        """What keeps the in-tree plugin from being asked."""
        life = LIVES.get(plugin)
        if life and self.version < life.removed:
            values = effective(self.version, self.gates)
            return f"{next(it for it in life.off_gates if values.get(it))} is on"
        if life:
            return f"its in-tree code left Kubernetes with {life.removed.of_minor}"
        return "there is no such in-tree plugin"


@dataclass(frozen=True, slots=True)
class _Standing:
    migrates: bool
    could_migrate: bool
    complete: bool
    registered: bool


@lru_cache(maxsize=4096)
def _standing(process: Process, plugin: str) -> _Standing:
    version, given = process.version, process.gates
    life = LIVES.get(plugin)
    if life is None:
        return _Standing(migrates=False, could_migrate=False, complete=False, registered=False)
    migrates = migrated(plugin, version, given)
    values = effective(version, given)
    complete_gate, unregister_gate = life.off_gates
    # Complete, the older gate, does nothing by itself; Unregister stands alone. At 1.21 vSphere has
    # both.
    complete = migrates and values.get(complete_gate, False)
    unregistered = values.get(unregister_gate, False)
    always = plugin in _COMPLETE_SINCE and version >= _COMPLETE_SINCE[plugin]
    return _Standing(
        migrates=migrates,
        could_migrate=migrated(plugin, version, {**given, life.migration_gate: True}),
        complete=complete or (migrates and (unregistered or always)),
        registered=version < life.removed and not (complete or unregistered),
    )


def gate_is_asked(plugin: str, version: Version) -> bool:
    """Whether a component of this version still has, and reads, the plugin's migration gate."""
    # Cinder's was locked with 1.24, and from then on nobody read it.
    read = plugin != "kubernetes.io/cinder" or version < Version(1, 24)
    return read and gate_at(LIVES[plugin].migration_gate, version) is not None


@dataclass(frozen=True, slots=True)
class NodeView:
    """What a node's CSINode says."""

    csi_node: bool
    """Whether it has a CSINode at all."""
    migrated: frozenset[str] = frozenset()
    """The plugins in its annotation."""
    drivers: frozenset[str] = frozenset()
    """The drivers that are registered on it."""


def is_attached(plugin: str) -> bool:
    """Whether volumes of a plugin have to be attached to a node before they are mounted."""
    return plugin not in _NEEDS_NO_ATTACH


@dataclass(frozen=True, slots=True)
class VolumeView:
    """What the components ask of a volume."""

    plugin: str
    """The in-tree plugin, or the one whose driver serves it; empty for other drivers."""
    driver: str
    native: bool
    """Whether it is stored as a CSI volume."""
    provisioned: bool
    """Whether it says who provisioned it; a volume that a person made does not."""
    provisioned_by: str = ""
    """Who did, where that is not the plugin of an in-tree volume or the driver of a native one."""
    migrated_to: str = ""
    """The driver that it is marked with already."""

    @property
    def attachable(self) -> bool:
        """Whether it has to be attached to a node before it is mounted."""
        return is_attached(self.plugin)

    @property
    def provisioner(self) -> str:
        """Who provisioned it, or nobody."""
        if not self.provisioned:
            return ""
        return self.provisioned_by or (self.driver if self.native else self.plugin)

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
            provisioned=PROVISIONED_BY in annotations,
            provisioned_by=annotations.get(PROVISIONED_BY, ""),
            migrated_to=annotations.get(MIGRATED_TO, ""),
        )


def _plugin_behind(driver: str) -> str:
    try:
        return plugin_for_driver(driver)
    except TranslationError:
        return ""


@dataclass(frozen=True, slots=True)
class Route:
    """Who serves an operation, and why."""

    operation: Operation
    served_by: Side
    reason: str
    """One sentence for a person."""
    rule: str
    """The rule that it follows from, by its id in the catalogue."""
