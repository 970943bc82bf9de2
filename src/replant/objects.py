"""Names of kinds and fields, and small accessors. The objects themselves stay plain dicts.

Nothing here decides anything; what every package needs to call by one name lives here.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from replant.errors import shown

Object = dict[str, Any]
"""A Kubernetes object, or a part of one, as JSON gives it."""

PERSISTENT_VOLUME = "PersistentVolume"
PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
STORAGE_CLASS = "StorageClass"

DEFAULT_CLASS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
"""With one of them, where it says true, a class serves the claims that name none."""

GROUPS = {
    "PersistentVolume": "",
    "PersistentVolumeClaim": "",
    "StorageClass": "storage.k8s.io",
    "Pod": "",
    "PodTemplate": "",
    "Deployment": "apps",
    "StatefulSet": "apps",
    "DaemonSet": "apps",
    "ReplicaSet": "apps",
    "ReplicationController": "",
    "Job": "batch",
    "CronJob": "batch",
    "Node": "",
    "CSINode": "storage.k8s.io",
    "CSIDriver": "storage.k8s.io",
    "VolumeAttachment": "storage.k8s.io",
    "PodDisruptionBudget": "policy",
    "FeatureGate": "config.openshift.io",
    "Shoot": "core.gardener.cloud",
    "Cluster": "extensions.gardener.cloud",
}
"""The API group that each kind of ours comes from: others may use the same word."""

POD_SPEC_PATHS: dict[str, tuple[str, ...]] = {
    "Pod": ("spec",),
    "PodTemplate": ("template", "spec"),
    "Deployment": ("spec", "template", "spec"),
    "StatefulSet": ("spec", "template", "spec"),
    "DaemonSet": ("spec", "template", "spec"),
    "ReplicaSet": ("spec", "template", "spec"),
    "ReplicationController": ("spec", "template", "spec"),
    "Job": ("spec", "template", "spec"),
    "CronJob": ("spec", "jobTemplate", "spec", "template", "spec"),
}
"""Where each kind that makes pods keeps the pod's spec."""


def is_ours(kind: str, api_version: object) -> bool:
    """Whether this is a kind of ours; an object that does not say its version is taken for it."""
    if not isinstance(api_version, str):
        api_version = ""
    return _is_ours(kind, api_version)


@lru_cache(maxsize=256)
def _is_ours(kind: str, api_version: str) -> bool:
    if kind not in GROUPS:
        return False
    # Workloads were served by extensions before they had groups of their own.
    groups = (GROUPS[kind], "extensions")
    return not api_version or api_version.rpartition("/")[0] in groups


def name_of(obj: object, kind: str = "") -> str:
    """What a person calls ``obj``: ``Kind namespace/name``, as far as it can be told."""
    if not isinstance(obj, dict):
        return f"{kind or 'object'} (unnamed)"
    said_kind = obj.get("kind")
    label = shown(said_kind) if isinstance(said_kind, str) and said_kind else kind or "object"
    # A pod's volume has its name where an object has its metadata.
    metadata = obj.get("metadata", obj)
    if not isinstance(metadata, dict):
        return f"{label} (unnamed)"
    name, namespace = metadata.get("name"), metadata.get("namespace")
    called = shown(name) if isinstance(name, str) and name else "(unnamed)"
    if isinstance(namespace, str) and namespace:
        called = f"{shown(namespace)}/{called}"
    return f"{label} {called}"
