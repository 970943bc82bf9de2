"""Whether an object is built as its kind is, as far as the sandbox looks into it.

Real Kubernetes decodes a body into the types of its kind, and refuses what does not fit. The
sandbox keeps objects as they are, so it looks at the parts that it will rely on.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterator
from typing import Any

from replant.inventory.quantities import exact
from replant.objects import POD_SPEC_PATHS, Object
from replant.sandbox.resources import Path
from replant.sandbox.validation.volume_sources import OF_VOLUMES

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
    return (
        _texts_by_name(labels)
        and _EXPRESSIONS(expressions)
        and all("key" in it for it in expressions)
    )


def _is_truth(value: Any) -> bool:
    return isinstance(value, bool)


def _quantities(value: Any) -> bool:
    return isinstance(value, dict) and all(exact(it) is not None for it in value.values())


def _bytes_by_name(value: Any) -> bool:
    return _texts_by_name(value) and all(map(_is_base64, value.values()))


def _is_base64(text: str) -> bool:
    try:
        b64decode(text.replace("\r", "").replace("\n", ""), validate=True)
    except ValueError:
        return False
    return True


def _each(parts: dict[str, Check]) -> Check:
    """A list of objects, of which each is built so as far as it says anything."""

    def check(value: Any) -> bool:
        return _maps(value) and all(_has(it, parts) for it in value)

    return check


def _part(parts: dict[str, Check]) -> Check:
    """An object that is built so as far as it says anything."""
    return lambda value: isinstance(value, dict) and _has(value, parts)


def _has(value: Object, parts: dict[str, Check]) -> bool:
    return all(value.get(name) is None or check(value[name]) for name, check in parts.items())


_OWNER: dict[str, Check] = {
    "apiVersion": _is_text, "kind": _is_text, "name": _is_text, "uid": _is_text,
    "controller": _is_truth, "blockOwnerDeletion": _is_truth,
}  # fmt: skip
_EXPRESSIONS = _each({"key": _is_text, "operator": _is_text, "values": _texts})
_MOUNTS = _each({"name": _is_text, "mountPath": _is_text, "devicePath": _is_text})
_CONTAINERS = _each({
    "name": _is_text,
    "image": _is_text,
    "imagePullPolicy": _is_text,
    "ports": _each({"containerPort": _is_number}),
    "env": _each({"name": _is_text}),
    "volumeMounts": _MOUNTS,
    "volumeDevices": _MOUNTS,
    "resources": _part({"limits": _quantities, "requests": _quantities}),
})  # fmt: skip
_TOLERATIONS = _each({"key": _is_text, "operator": _is_text, "effect": _is_text})
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
    ("metadata", "ownerReferences"): _each(_OWNER),
    ("metadata", "managedFields"): _maps,
}
_NO_QUANTITY = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
_CLAIM_RESOURCES = _part({"requests": _quantities, "limits": _quantities})
_WORDS: dict[Check, str] = {
    _quantities: _NO_QUANTITY,
    _CLAIM_RESOURCES: _NO_QUANTITY,
    _bytes_by_name: "illegal base64 data at input byte 0",
}
_MOST: dict[Path, Check] = {
    ("spec",): _is_map,
    ("status",): _is_map,
    ("status", "conditions"): _maps,
}
"""Of all kinds that are built in; others may call what they like so."""
_POD_SPEC: dict[Path, Check] = {
    ("containers",): _CONTAINERS,
    ("initContainers",): _CONTAINERS,
    ("volumes",): _each({"name": _is_text}),
    ("tolerations",): _TOLERATIONS,
    ("restartPolicy",): _is_text,
    ("dnsPolicy",): _is_text,
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
    "ConfigMap": {
        ("data",): _texts_by_name,
        ("binaryData",): _bytes_by_name,
        ("immutable",): _is_truth,
    },
    "Secret": {
        ("data",): _bytes_by_name,
        ("stringData",): _texts_by_name,
        ("immutable",): _is_truth,
        ("type",): _is_text,
    },
    "Node": {("spec", "taints"): _maps, ("status", "addresses"): _maps},
    "Namespace": {("spec", "finalizers"): _texts},
    "PersistentVolume": {
        ("spec", "accessModes"): _texts,
        ("spec", "capacity"): _quantities,
        ("spec", "claimRef"): _is_map,
        ("spec", "volumeMode"): _is_text,
        ("spec", "storageClassName"): _is_text,
        ("spec", "persistentVolumeReclaimPolicy"): _is_text,
        ("spec", "nodeAffinity"): _is_map,
        ("spec", "nodeAffinity", "required"): _is_map,
        ("spec", "nodeAffinity", "required", "nodeSelectorTerms"): _each(
            {"matchExpressions": _EXPRESSIONS}
        ),
        **{("spec", source): _is_map for source in OF_VOLUMES},
    },
    "PersistentVolumeClaim": {
        ("spec", "accessModes"): _texts,
        ("spec", "resources"): _CLAIM_RESOURCES,
        ("spec", "volumeMode"): _is_text,
        ("spec", "storageClassName"): _is_text,
        ("spec", "volumeName"): _is_text,
    },
    "StorageClass": {
        ("provisioner",): _is_text,
        ("parameters",): _texts_by_name,
        ("reclaimPolicy",): _is_text,
        ("volumeBindingMode",): _is_text,
        ("allowVolumeExpansion",): _is_truth,
        ("allowedTopologies",): _each({"matchLabelExpressions": _EXPRESSIONS}),
    },
    "VolumeAttachment": {
        ("spec", "attacher"): _is_text,
        ("spec", "nodeName"): _is_text,
        ("spec", "source"): _part({"persistentVolumeName": _is_text, "inlineVolumeSpec": _is_map}),
    },
    "CSINode": {
        ("spec", "drivers"): _each(
            {
                "name": _is_text,
                "nodeID": _is_text,
                "topologyKeys": _texts,
                "allocatable": _part({"count": _is_number}),
            }
        )
    },
    "CSIDriver": {
        ("spec", "volumeLifecycleModes"): _texts,
        ("spec", "fsGroupPolicy"): _is_text,
    },
    "PodDisruptionBudget": {
        ("spec", "selector"): _is_selector,
        ("spec", "minAvailable"): _is_amount,
        ("spec", "maxUnavailable"): _is_amount,
    },
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
            ("spec", "podManagementPolicy"): _is_text,
            ("spec", "template", "metadata"): _part({"labels": _texts_by_name}),
            ("spec", "volumeClaimTemplates"): _each(
                {"spec": _part({"resources": _CLAIM_RESOURCES})}
            ),
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
            if check in _WORDS:
                return _WORDS[check]
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
