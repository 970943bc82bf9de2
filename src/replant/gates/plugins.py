"""What became of each in-tree plugin: its gates, its phases, and when it left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from replant.gates.history import gate_at
from replant.gates.versions import Version

BASE_GATE = "CSIMigration"


class Phase(IntEnum):
    """How far a plugin is on its way out of the tree."""

    IN_TREE = 0
    REDIRECTED = 1
    PLUGIN_OFF = 2
    COMPILED_OUT = 3
    GONE = 4


PHASE_MEANS = {
    Phase.IN_TREE: "served by the in-tree plugin",
    Phase.REDIRECTED: "served by CSI where node and driver are ready, in-tree elsewhere",
    Phase.PLUGIN_OFF: "served by CSI only: the in-tree plugin is off",
    Phase.COMPILED_OUT: "served by CSI only: the in-tree plugin is compiled out",
    Phase.GONE: "served by CSI only: the in-tree plugin is no longer in Kubernetes",
}


@dataclass(frozen=True, slots=True)
class PluginLife:
    """One plugin's gates and the minor without its code."""

    suffix: str
    """What its gates are named after."""
    removed: Version
    """The first minor without the in-tree code."""
    translated: bool = True
    """Whether Kubernetes goes on translating its volumes after that."""

    @property
    def migration_gate(self) -> str:
        """Redirects operations to the driver."""
        return f"CSIMigration{self.suffix}"

    @property
    def off_gates(self) -> tuple[str, str]:
        """Take the in-tree plugin away: before 1.21 the first, from then on the second."""
        return f"CSIMigration{self.suffix}Complete", f"InTreePlugin{self.suffix}Unregister"


LIVES: dict[str, PluginLife] = {
    "kubernetes.io/aws-ebs": PluginLife("AWS", Version(1, 27)),
    "kubernetes.io/gce-pd": PluginLife("GCE", Version(1, 28)),
    "kubernetes.io/cinder": PluginLife("OpenStack", Version(1, 26)),
    "kubernetes.io/azure-disk": PluginLife("AzureDisk", Version(1, 27)),
    "kubernetes.io/azure-file": PluginLife("AzureFile", Version(1, 30)),
    "kubernetes.io/vsphere-volume": PluginLife("vSphere", Version(1, 30)),
    "kubernetes.io/portworx-volume": PluginLife("Portworx", Version(1, 36)),
    "kubernetes.io/rbd": PluginLife("RBD", Version(1, 31), translated=False),
}

REMOVED_WITHOUT_DRIVER: dict[str, Version] = {
    "photon-pd": Version(1, 16),
    "scaleio": Version(1, 22),
    "flocker": Version(1, 25),
    "quobyte": Version(1, 25),
    "storageos": Version(1, 25),
    "glusterfs": Version(1, 26),
    "cephfs": Version(1, 31),
}
"""Plugins that no driver took over from, and the first minor without them."""


def migrated(plugin: str, version: Version, gates: Mapping[str, bool] | None = None) -> bool:
    """Whether a component of this version, with these gates given to it, redirects to CSI."""
    life = LIVES[plugin]
    if version >= life.removed:
        return life.translated
    given = gates or {}
    if gate_at(life.migration_gate, version) is None:
        # Before the gate nothing was redirected; a gate that is gone is on for ever.
        return was_there_before(life.migration_gate, version)
    return _on(BASE_GATE, version, given, gone_means=True) and _on(
        life.migration_gate, version, given, gone_means=True
    )


def phase(plugin: str, version: Version, gates: Mapping[str, bool] | None = None) -> Phase:
    """The phase of a plugin in a component of this version, with these gates given to it."""
    life = LIVES[plugin]
    if version >= life.removed:
        return Phase.GONE
    if not migrated(plugin, version, gates):
        return Phase.IN_TREE
    given = gates or {}
    off = any(_on(gate, version, given, gone_means=False) for gate in life.off_gates)
    return Phase.PLUGIN_OFF if off else Phase.REDIRECTED


def servable(plugin: str, version: Version) -> bool:
    """Whether anyone can serve a stored in-tree volume of this plugin at this version."""
    life = LIVES[plugin]
    return version < life.removed or life.translated


def migrated_by_default_from(plugin: str) -> Version | None:
    """The first minor that redirects this plugin's volumes unless it is told not to."""
    minor = Version(1, 14)
    while minor <= Version(1, 36):
        if migrated(plugin, minor):
            return minor
        minor = minor.next_minor()
    return None


def _on(gate: str, version: Version, given: Mapping[str, bool], *, gone_means: bool) -> bool:
    spec = gate_at(gate, version)
    if spec is None:
        return gone_means and was_there_before(gate, version)
    return spec.default if spec.locked else given.get(gate, spec.default)


def was_there_before(gate: str, version: Version) -> bool:
    """Whether an earlier minor had a gate."""
    minor = Version(1, 14)
    while minor < version:
        if gate_at(gate, minor):
            return True
        minor = minor.next_minor()
    return False
