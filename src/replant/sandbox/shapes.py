"""Whether an object is built as its kind is, as far as the sandbox looks into it.

Real Kubernetes decodes a body into the types of its kind, and refuses what does not fit. The
sandbox keeps objects as they are, so it looks at the parts that it will rely on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from replant.objects import POD_SPEC_PATHS, Object
from replant.sandbox.resources import Path

Check = Callable[[Any], bool]


def _is_map(value: Any) -> bool:
    return isinstance(value, dict)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_amount(value: Any) -> bool:
    return _is_number(value) or _is_text(value)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _maps(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_map, value))


def _texts_by_name(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_text, value.values()))


def _is_selector(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    labels, expressions = value.get("matchLabels", {}), value.get("matchExpressions", [])
    return _texts_by_name(labels) and _maps(expressions) and all("key" in it for it in expressions)


def _is_truth(value: Any) -> bool:
    return isinstance(value, bool)


_OWNER_PARTS: dict[str, Check] = {
    "apiVersion": _is_text, "kind": _is_text, "name": _is_text, "uid": _is_text,
    "controller": _is_truth, "blockOwnerDeletion": _is_truth,
}  # fmt: skip


def _owners(value: Any) -> bool:
    return _maps(value) and all(
        it.get(part) is None or check(it[part])
        for it in value
        for part, check in _OWNER_PARTS.items()
    )


_ALL: dict[Path, Check] = {
    ("metadata",): _is_map,
    ("metadata", "name"): _is_text,
    ("metadata", "generateName"): _is_text,
    ("metadata", "namespace"): _is_text,
    ("metadata", "uid"): _is_text,
    ("metadata", "resourceVersion"): _is_text,
    ("metadata", "labels"): _texts_by_name,
    ("metadata", "annotations"): _texts_by_name,
    ("metadata", "finalizers"): _texts,
    ("metadata", "ownerReferences"): _owners,
    ("metadata", "managedFields"): _maps,
}
_MOST: dict[Path, Check] = {
    ("spec",): _is_map,
    ("status",): _is_map,
    ("status", "conditions"): _maps,
}
"""Of all kinds that are built in; others may call what they like so."""
_POD_SPEC: dict[Path, Check] = {
    ("containers",): _maps,
    ("initContainers",): _maps,
    ("volumes",): _maps,
    ("tolerations",): _maps,
    ("nodeName",): _is_text,
    ("serviceAccountName",): _is_text,
    ("terminationGracePeriodSeconds",): _is_number,
}
_STRATEGY: dict[Path, Check] = {
    (): _is_map,
    ("type",): _is_text,
    ("rollingUpdate",): _is_map,
    ("rollingUpdate", "maxSurge"): _is_amount,
    ("rollingUpdate", "maxUnavailable"): _is_amount,
    ("rollingUpdate", "partition"): _is_number,
}
_OWN: dict[str, dict[Path, Check]] = {
    "ConfigMap": {("data",): _texts_by_name},
    "Secret": {("data",): _texts_by_name, ("stringData",): _texts_by_name},
    "Node": {("spec", "taints"): _maps, ("status", "addresses"): _maps},
    "Namespace": {("spec", "finalizers"): _texts},
    "PersistentVolume": {
        ("spec", "accessModes"): _texts,
        ("spec", "capacity"): _is_map,
        ("spec", "claimRef"): _is_map,
    },
    "PersistentVolumeClaim": {("spec", "accessModes"): _texts, ("spec", "resources"): _is_map},
    "StorageClass": {("provisioner",): _is_text, ("parameters",): _texts_by_name},
    "CSINode": {("spec", "drivers"): _maps},
    "PodDisruptionBudget": {("spec", "selector"): _is_selector},
    "Service": {("spec", "ports"): _maps, ("spec", "selector"): _texts_by_name},
    "Event": {("involvedObject",): _is_map},
    "ReplicationController": {("spec", "selector"): _texts_by_name},
    "DeleteOptions": {
        ("gracePeriodSeconds",): _is_number,
        ("propagationPolicy",): _is_text,
        ("orphanDependents",): _is_truth,
        ("preconditions",): _is_map,
        ("dryRun",): _texts,
    },
    "Scale": {("spec", "replicas"): _is_number},
    "CustomResourceDefinition": {
        ("spec", "group"): _is_text,
        ("spec", "names"): _is_map,
        ("spec", "names", "kind"): _is_text,
        ("spec", "names", "plural"): _is_text,
        ("spec", "scope"): _is_text,
        ("spec", "versions"): _maps,
    },
    "ControllerRevision": {("revision",): _is_number},
    **{
        kind: {
            ("spec", "replicas"): _is_number,
            ("spec", "selector"): _is_selector,
            ("spec", "minReadySeconds"): _is_number,
            ("spec", "revisionHistoryLimit"): _is_number,
            ("spec", "progressDeadlineSeconds"): _is_number,
            ("spec", "paused"): _is_truth,
            **{
                ("spec", strategy, *path): check
                for strategy in ("strategy", "updateStrategy")
                for path, check in _STRATEGY.items()
            },
        }
        for kind in ("Deployment", "StatefulSet", "ReplicaSet", "DaemonSet", "Job")
    },
}


def without_nulls(value: Any) -> Any:
    """A value in which what is said to be null is not said: to Kubernetes it is the same."""
    if isinstance(value, dict):
        return {name: without_nulls(it) for name, it in value.items() if it is not None}
    if isinstance(value, list):
        return [without_nulls(it) for it in value]
    return value


def wrong(obj: Object, kind: str) -> str:
    """What is not built as it must be, or nothing."""
    for path, check in _checks(obj, kind):
        value, there = _at(obj, path)
        if there and value is not None and not check(value):
            kinds = {dict: "object", list: "array", str: "string", bool: "bool"}
            found = kinds.get(type(value), "number")
            field = ".".join(path)
            return f"json: cannot unmarshal {found} into Go struct field {kind}.{field}"
    return ""


def _checks(obj: Object, kind: str) -> Iterator[tuple[Path, Check]]:
    yield from _ALL.items()
    # A kind of somebody's own in a group of its own may be built in any way.
    group = str(obj.get("apiVersion") or "v1").rpartition("/")[0]
    if "." in group and not group.endswith(".k8s.io"):
        return
    yield from _MOST.items()
    yield from _OWN.get(kind, {}).items()
    if prefix := POD_SPEC_PATHS.get(kind):
        for depth in range(1, len(prefix) + 1):
            yield prefix[:depth], _is_map
        for path, check in _POD_SPEC.items():
            yield prefix + path, check


def _at(obj: Any, path: Path) -> tuple[Any, bool]:
    for name in path:
        if not isinstance(obj, dict) or name not in obj:
            return None, False
        obj = obj[name]
    return obj, True
