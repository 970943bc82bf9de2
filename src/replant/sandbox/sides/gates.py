"""What a component's gates come to, as pkg/volume/csimigration and the plugin lists have it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from replant.gates.history import gate_at
from replant.gates.versions import Version

BASE_GATE: Final = "CSIMigration"
_BASE_GATE_ASKED_BEFORE: Final = Version(1, 25)


class _Plugin(NamedTuple):
    gates: str
    """What its gates are named after."""
    without_code: Version
    """The first minor without the in-tree plugin."""
    redirected: Version | None
    """From here on it is redirected, and its gate is not asked; None if never."""
    complete: Version | None
    """From here on no gate is asked whether nodes still have to be looked at; None if never."""


_PLUGINS: Final = {
    "kubernetes.io/aws-ebs": _Plugin("AWS", Version(1, 27), Version(1, 27), Version(1, 31)),
    "kubernetes.io/gce-pd": _Plugin("GCE", Version(1, 28), Version(1, 28), Version(1, 31)),
    "kubernetes.io/cinder": _Plugin("OpenStack", Version(1, 26), Version(1, 24), Version(1, 31)),
    "kubernetes.io/azure-disk": _Plugin(
        "AzureDisk", Version(1, 27), Version(1, 27), Version(1, 31)
    ),
    "kubernetes.io/azure-file": _Plugin(
        "AzureFile", Version(1, 30), Version(1, 30), Version(1, 31)
    ),
    "kubernetes.io/vsphere-volume": _Plugin(
        "vSphere", Version(1, 30), Version(1, 29), Version(1, 31)
    ),
    "kubernetes.io/portworx-volume": _Plugin(
        "Portworx", Version(1, 36), Version(1, 36), Version(1, 36)
    ),
    "kubernetes.io/rbd": _Plugin("RBD", Version(1, 31), None, None),
}


def has_gates(plugin: str) -> bool:
    """Whether it is a plugin that a driver took over from."""
    return plugin in _PLUGINS


def is_on(gate: str, version: Version, given: Mapping[str, bool]) -> bool:
    """Whether a gate is on. One that the version does not have is not."""
    spec = gate_at(gate, version)
    if spec is None:
        return False
    return spec.default if spec.locked else given.get(gate, spec.default)


def is_base_gate_on(version: Version, given: Mapping[str, bool]) -> bool:
    """Whether the gate for all plugins is on; from some version on nobody asks."""
    return version >= _BASE_GATE_ASKED_BEFORE or is_on(BASE_GATE, version, given)


def is_redirected(plugin: str, version: Version, given: Mapping[str, bool]) -> bool:
    """Whether operations on the plugin's volumes go to its driver: IsMigrationEnabledForPlugin."""
    found = _PLUGINS.get(plugin)
    if found is None:
        return False
    if not is_base_gate_on(version, given):
        return False
    if found.redirected and version >= found.redirected:
        return True
    return is_on(f"CSIMigration{found.gates}", version, given)


def may_be_redirected(plugin: str, version: Version, given: Mapping[str, bool]) -> bool:
    """The same if its own gate were on."""
    found = _PLUGINS.get(plugin)
    gate = f"CSIMigration{found.gates}" if found else ""
    return is_redirected(plugin, version, {**given, gate: True})


def is_complete(plugin: str, version: Version, given: Mapping[str, bool]) -> bool:
    """Whether nodes are not asked any more: IsMigrationCompleteForPlugin."""
    if not is_redirected(plugin, version, given):
        return False
    complete = _PLUGINS[plugin].complete
    if complete and version >= complete:
        return True
    return _is_off(plugin, version, given) or _is_complete_by_old_gate(plugin, version, given)


def is_registered(plugin: str, version: Version, given: Mapping[str, bool]) -> bool:
    """Whether the in-tree plugin is there to be asked: appendPluginBasedOnFeatureFlags."""
    found = _PLUGINS.get(plugin)
    if found is None or version >= found.without_code or _is_off(plugin, version, given):
        return False
    redirected = is_redirected(plugin, version, given)
    return not (redirected and _is_complete_by_old_gate(plugin, version, given))


def _is_off(plugin: str, version: Version, given: Mapping[str, bool]) -> bool:
    return is_on(f"InTreePlugin{_PLUGINS[plugin].gates}Unregister", version, given)


def _is_complete_by_old_gate(plugin: str, version: Version, given: Mapping[str, bool]) -> bool:
    """By the gate that most plugins had up to 1.20, and vSphere up to 1.21."""
    return is_on(f"CSIMigration{_PLUGINS[plugin].gates}Complete", version, given)
