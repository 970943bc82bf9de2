"""A scenario: a small YAML that says what a sandbox comes up with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from replant.objects import Object
from replant.sandbox.controllers.parts import ENDS_AFTER
from replant.sandbox.sides import AttachController
from replant.sandbox.sources import in_tree_source

_Count = Annotated[int, Meta(ge=0, le=1_000_000)]
_Name = Annotated[str, Meta(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=40)]
_Driver = Annotated[str, Meta(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=63)]
_Gates = dict[str, bool]


class _Part(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Part of a scenario: a field that is not known is a mistake, and named as one."""


class ControlPlane(_Part, frozen=True, kw_only=True):
    """The controllers, all alike."""

    replicas: Annotated[int, Meta(ge=1, le=9)] = 1
    gates: _Gates = field(default_factory=dict)
    flags: dict[str, str] = field(default_factory=dict)
    """What kube-controller-manager is told besides, such as cloud-provider; undashed."""


class Pool(_Part, frozen=True, kw_only=True):
    """Nodes that are alike but for their zones."""

    name: _Name
    count: _Count = 1
    zones: Annotated[tuple[str, ...], Meta(min_length=1)] = ("zone-a",)
    version: str = ""
    gates: _Gates = field(default_factory=dict)
    drivers: tuple[_Driver, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)


class VolumeClass(_Part, frozen=True, kw_only=True):
    """A StorageClass of an in-tree plugin."""

    name: _Name
    plugin: str
    parameters: dict[str, str] = field(default_factory=dict)
    default: bool = False


class Workload(_Part, frozen=True, kw_only=True):
    """StatefulSets that are alike, each of whose pods writes to a volume of its own."""

    name: _Name
    namespace: _Name = "default"
    count: _Count = 1
    replicas: _Count = 1
    storage_class: str
    annotations: dict[str, str] = field(default_factory=dict)
    """What each of its volumes is annotated with."""
    max_unavailable: _Count | None = None
    """Where it is given, a PodDisruptionBudget keeps so many pods at most from running."""
    seconds_to_end: _Count | None = None
    """How long its pods take to end after SIGTERM, where that is more than a second."""


class Spare(_Part, frozen=True, kw_only=True):
    """Volumes with claims that no pod uses."""

    storage_class: str
    count: _Count
    namespace: _Name = "default"


class OpenShift(_Part, frozen=True, kw_only=True):
    """That OpenShift's operators switch gates, by what a FeatureGate says."""

    feature_sets: tuple[str, ...] = ()
    """What a FeatureGate may say besides what it may on every OpenShift."""
    platform: str = ""
    """What its Infrastructure calls the cloud, such as AWS."""


class Scenario(_Part, frozen=True, kw_only=True):
    """What a sandbox comes up with."""

    api_version: Literal["replant.dev/v1alpha1"]
    kind: Literal["Scenario"]
    description: str = ""
    kubernetes_version: str = "1.24.17"
    adc: AttachController = AttachController.UPSTREAM
    openshift: OpenShift | None = None
    cloud: _Name = "sandbox"
    """What providerIDs of nodes begin with, such as aws."""
    control_plane: ControlPlane = field(default_factory=ControlPlane)
    drivers: tuple[_Driver, ...] = ()
    """The drivers whose controllers run; pools say on which nodes they are."""
    pools: Annotated[tuple[Pool, ...], Meta(min_length=1)]
    classes: tuple[VolumeClass, ...] = ()
    workloads: tuple[Workload, ...] = ()
    spares: tuple[Spare, ...] = ()
    objects: tuple[dict[str, Any], ...] = ()
    """Whatever else there is, as manifests."""


def full_name(plugin: str) -> str:
    """A plugin's whole name."""
    return f"kubernetes.io/{plugin.removeprefix('kubernetes.io/')}"


def set_names(workload: Workload) -> list[str]:
    """What a workload's StatefulSets are called."""
    if workload.count == 1:
        return [workload.name]
    return [f"{workload.name}-{number}" for number in range(workload.count)]


def objects(scenario: Scenario) -> Iterator[Object]:
    """What classes, workloads and spares come to, as it is once everything is bound."""
    namespaces = {it.namespace for it in scenario.workloads}
    namespaces |= {it.namespace for it in scenario.spares}
    for namespace in sorted(namespaces - {"default"}):
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    classes = {it.name: it for it in scenario.classes}
    for it in scenario.classes:
        yield _class(it)
    zones = sorted({zone for pool in scenario.pools for zone in pool.zones})
    serial = 0
    for workload in scenario.workloads:
        volume_class = classes[workload.storage_class]
        for name in set_names(workload):
            for ordinal in range(workload.replicas):
                claim = f"data-{name}-{ordinal}"
                zone = zones[serial % len(zones)]
                yield from _bound(volume_class, claim, workload.namespace, serial, zone,
                                  workload.annotations)  # fmt: skip
                serial += 1
            yield _stateful_set(workload, name)
            if workload.max_unavailable is not None:
                yield _budget(workload, name)
    for spare in scenario.spares:
        for number in range(spare.count):
            zone = zones[serial % len(zones)]
            claim = f"spare-{spare.storage_class}-{number}"
            yield from _bound(
                classes[spare.storage_class], claim, spare.namespace, serial, zone, {}
            )
            serial += 1


def _class(volume_class: VolumeClass) -> Object:
    metadata: Object = {"name": volume_class.name}
    if volume_class.default:
        metadata["annotations"] = {"storageclass.kubernetes.io/is-default-class": "true"}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": metadata,
        "provisioner": full_name(volume_class.plugin),
        "parameters": volume_class.parameters,
        "allowVolumeExpansion": True,
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def _bound(
    volume_class: VolumeClass,
    claim: str,
    namespace: str,
    serial: int,
    zone: str,
    annotations: dict[str, str],
) -> Iterator[Object]:
    """A claim and the volume that it is bound to, each naming the other."""
    plugin = full_name(volume_class.plugin)
    name = f"pvc-{serial:08x}-{namespace}"
    size = {"storage": "10Gi"}
    modes = ["ReadWriteOnce"]
    yield {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": claim,
            "namespace": namespace,
            "annotations": {
                "pv.kubernetes.io/bind-completed": "yes",
                "volume.beta.kubernetes.io/storage-provisioner": plugin,
            },
            "finalizers": ["kubernetes.io/pvc-protection"],
        },
        "spec": {
            "accessModes": modes,
            "resources": {"requests": size},
            "storageClassName": volume_class.name,
            "volumeMode": "Filesystem",
            "volumeName": name,
        },
        "status": {"phase": "Bound", "accessModes": modes, "capacity": size},
    }
    source, labels = in_tree_source(plugin, serial, zone)
    yield {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": name,
            "labels": labels,
            "annotations": {"pv.kubernetes.io/provisioned-by": plugin, **annotations},
            "finalizers": ["kubernetes.io/pv-protection"],
        },
        "spec": {
            **source,
            "accessModes": modes,
            "capacity": size,
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "name": claim,
                "namespace": namespace,
            },
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": volume_class.name,
            "volumeMode": "Filesystem",
        },
        "status": {"phase": "Bound"},
    }


def _stateful_set(workload: Workload, name: str) -> Object:
    labels = {"app": name}
    container = {
        "name": "writer",
        "image": "registry.example.org/writer:1",
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "10Gi"}},
            "storageClassName": workload.storage_class,
        },
    }
    template: Object = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    if workload.seconds_to_end is not None:
        template["metadata"]["annotations"] = {ENDS_AFTER: str(workload.seconds_to_end)}
        template["spec"]["terminationGracePeriodSeconds"] = max(30, workload.seconds_to_end)
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name, "namespace": workload.namespace, "labels": labels},
        "spec": {
            "replicas": workload.replicas,
            "serviceName": name,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": labels},
            "template": template,
            "volumeClaimTemplates": [claim],
        },
    }


def _budget(workload: Workload, name: str) -> Object:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": workload.namespace},
        "spec": {
            "maxUnavailable": workload.max_unavailable,
            "selector": {"matchLabels": {"app": name}},
        },
    }
