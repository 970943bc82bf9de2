"""How parts of objects are merged: lists that are maps in disguise, maps that are one value.

A path names fields and leaves the places in lists out: a container's ports are
``spec.containers.ports`` of a Pod.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from replant.objects import POD_SPEC_PATHS
from replant.sandbox.resources import Path, Resource


@dataclass(frozen=True)
class Structure:
    """How objects of one kind are merged. A list that is not named here is one value."""

    keyed: Mapping[Path, tuple[str, ...]] = field(default_factory=dict)
    """Lists whose items are told apart by these of their fields."""
    sets: frozenset[Path] = frozenset()
    """Lists whose items are told apart by their value."""
    patched: Mapping[Path, str] = field(default_factory=dict)
    """The one key of lists that a strategic merge patch merges."""
    patched_sets: frozenset[Path] = frozenset()
    whole: frozenset[Path] = frozenset()
    """Maps that a strategic merge patch replaces."""

    def is_one_value(self, path: Path) -> bool:
        """Whether the map there has one owner for all that is in it."""
        return bool(path) and path[-1] in ONE_VALUE


ONE_VALUE = frozenset(
    {
        "selector", "labelSelector", "namespaceSelector", "nodeSelector", "fieldRef",
        "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "nodeSelectorTerms", "secretRef",
        "controllerExpandSecretRef", "controllerPublishSecretRef", "nodePublishSecretRef",
        "nodeStageSecretRef", "scaleTargetRef", "dataSource",
    }
)  # fmt: skip
"""Maps that are owned as a whole, by the name of their field."""

MAPS = frozenset(
    {
        "labels", "annotations", "data", "binaryData", "stringData", "capacity", "allocatable",
        "requests", "limits", "parameters", "volumeAttributes",
    }
)  # fmt: skip
"""Maps whose keys people make up: that there is one is itself a fact that has an owner."""

_CONTAINER: dict[Path, tuple[str, ...]] = {
    ("env",): ("name",),
    ("ports",): ("containerPort", "protocol"),
    ("volumeDevices",): ("devicePath",),
    ("volumeMounts",): ("mountPath",),
}
_POD_SPEC: dict[Path, tuple[str, ...]] = {
    ("hostAliases",): ("ip",),
    ("imagePullSecrets",): ("name",),
    ("schedulingGates",): ("name",),
    ("topologySpreadConstraints",): ("topologyKey", "whenUnsatisfiable"),
    ("volumes",): ("name",),
}
for _containers in ("containers", "initContainers", "ephemeralContainers"):
    _POD_SPEC[_containers,] = ("name",)
    for _path, _keys in _CONTAINER.items():
        _POD_SPEC[(_containers, *_path)] = _keys

_METADATA: dict[Path, tuple[str, ...]] = {("metadata", "ownerReferences"): ("uid",)}
_FINALIZERS: Path = ("metadata", "finalizers")
_CONDITIONS: dict[Path, tuple[str, ...]] = {("status", "conditions"): ("type",)}

_OWN: dict[str, dict[Path, tuple[str, ...]]] = {
    "Node": {("status", "addresses"): ("type",)},
    "Pod": {("status", "podIPs"): ("ip",)},
    "Service": {("spec", "ports"): ("port", "protocol")},
    "ServiceAccount": {("secrets",): ("name",), ("imagePullSecrets",): ("name",)},
    "CSINode": {("spec", "drivers"): ("name",)},
    "CustomResourceDefinition": {("spec", "versions"): ("name",)},
}
_ONLY_PATCHED: dict[str, dict[Path, str]] = {"Node": {("spec", "taints"): "key"}}
"""Merged by a patch, and yet owned as a whole."""
_ONLY_OWNED = {"CustomResourceDefinition"}
_SETS: dict[str, frozenset[Path]] = {
    "Node": frozenset({("spec", "podCIDRs")}),
    "CSIDriver": frozenset({("spec", "volumeLifecycleModes")}),
}
_PATCHED_SETS: dict[str, frozenset[Path]] = {"Node": frozenset({("spec", "podCIDRs")})}
_WHOLE: dict[str, frozenset[Path]] = {"PodDisruptionBudget": frozenset({("spec", "selector")})}


@cache
def structure_of(resource: Resource) -> Structure:
    """How objects of a resource are merged."""
    if resource.custom:
        return _from_schema(resource)
    kind = resource.kind
    keyed = {**_METADATA, **_CONDITIONS, **_OWN.get(kind, {})}
    if kind in POD_SPEC_PATHS:
        prefix = POD_SPEC_PATHS[kind]
        keyed |= {prefix + path: keys for path, keys in _POD_SPEC.items()}
    patched = {} if kind in _ONLY_OWNED else {path: keys[0] for path, keys in keyed.items()}
    return Structure(
        keyed=keyed,
        sets=_SETS.get(kind, frozenset()) | {_FINALIZERS},
        patched=patched | _ONLY_PATCHED.get(kind, {}),
        patched_sets=_PATCHED_SETS.get(kind, frozenset()) | {_FINALIZERS},
        whole=_WHOLE.get(kind, frozenset()),
    )


def _from_schema(resource: Resource) -> Structure:
    keyed, sets = dict(_METADATA), {_FINALIZERS}
    found: list[tuple[Path, object]] = [((), resource.schema)]
    while found:
        path, schema = found.pop()
        if not isinstance(schema, dict):
            continue
        match schema.get("x-kubernetes-list-type"):
            case "map":
                keyed[path] = tuple(schema.get("x-kubernetes-list-map-keys") or ())
            case "set":
                sets.add(path)
        found.append((path, schema.get("items")))
        found += [((*path, name), it) for name, it in (schema.get("properties") or {}).items()]
    return Structure(keyed=keyed, sets=frozenset(sets))
