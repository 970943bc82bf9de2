"""Records to an inventory: joins them, and narrows them down to what was asked for."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from msgspec.json import Decoder, encode
from msgspec.structs import astuple

from replant.gates.versions import Version
from replant.inventory.controlplane import control_plane_pod
from replant.inventory.findings import ObjectRef, ReadCount
from replant.inventory.metadata import OwnerReference
from replant.inventory.model import READY, Inventory, PodUse, Rollout, volume_of
from replant.inventory.node_records import CSINode, Node
from replant.inventory.platform_records import Cluster, FeatureGate, Shoot
from replant.inventory.pod_records import ContainerStatus, Pod, PodSpec, PodStatus, PodVolume
from replant.inventory.reclaimers import reclaimer_in
from replant.inventory.selectors import Selector
from replant.inventory.storage_records import (
    CSIDriver,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from replant.inventory.workload_records import (
    PodDisruptionBudget,
    RollingUpdate,
    UpdateStrategy,
    Workload,
)

_SCALABLE = ("Deployment", "StatefulSet", "ReplicaSet", "ReplicationController")
_FINISHED = ("Succeeded", "Failed")
_REPLICA_SET_HASH = re.compile(r"-[a-z0-9]{5,10}\Z")

_KEPT_IN = {
    "PersistentVolume": ("volumes",),
    "PersistentVolumeClaim": ("claims",),
    "StorageClass": ("classes",),
    "Pod": ("pods", "control_plane", "driver_pods", "reclaimers"),
    "StatefulSet": ("stateful_sets",),
    "Node": ("nodes",),
    "CSINode": ("csi_nodes",),
    "CSIDriver": ("drivers",),
    "VolumeAttachment": ("attachments",),
    "PodDisruptionBudget": ("budgets",),
    "FeatureGate": ("feature_gate",),
    "Shoot": ("shoots",),
    "Cluster": ("clusters",),
}
"""Where an inventory keeps what it has of a kind; templates of all kinds are kept together."""

_STATUSES = Decoder(list[ContainerStatus] | None)

_NO_SOURCE = len(PodVolume.__struct_fields__) - 1
"""So many fields are empty where a pod's volume is none of ours: all but its name."""


class Builder:
    """Takes records one by one; ``finish`` gives the inventory."""

    def __init__(self) -> None:
        self._inventory = Inventory()
        self._seen: dict[str, set[object]] = {}
        self._take: dict[str, Callable[[str, Any], None]] = {
            "PersistentVolume": self._volume,
            "PersistentVolumeClaim": self._claim,
            "StorageClass": self._class,
            "Pod": self._pod,
            "Node": self._node,
            "CSINode": self._csi_node,
            "CSIDriver": self._driver,
            "VolumeAttachment": self._attachment,
            "PodDisruptionBudget": self._budget,
            "FeatureGate": self._feature_gate,
            "Shoot": self._shoot,
            "Cluster": self._cluster,
        }

    def counts(self, kind: str) -> ReadCount:
        """What was read of a kind so far, to be counted on."""
        read = self._inventory.read
        if kind not in read:
            read[kind] = ReadCount()
        return read[kind]

    def seen_any(self) -> bool:
        """Whether anything was read at all."""
        return any(count.seen for count in self._inventory.read.values())

    def forget(self, kind: str) -> None:
        """Drop what was read of a kind: its list begins again."""
        inventory, fresh = self._inventory, Inventory()
        for name in _KEPT_IN.get(kind, ()):
            setattr(inventory, name, getattr(fresh, name))
        inventory.templates = [use for use in inventory.templates if use.owner.kind != kind]
        inventory.pinned = {it for it in inventory.pinned if it.kind != kind}
        inventory.tolerant = {it for it in inventory.tolerant if it.kind != kind}
        inventory.deleting_claims = {it for it in inventory.deleting_claims if it.kind != kind}
        inventory.rollouts = {it: how for it, how in inventory.rollouts.items() if it.kind != kind}
        inventory.replicas = {it: n for it, n in inventory.replicas.items() if it.kind != kind}
        self._seen.pop(kind, None)
        inventory.read.pop(kind, None)

    def add(self, kind: str, record: Any) -> bool:
        """Take a record in; False where an object of that kind and name was there already."""
        metadata = record.metadata
        seen = self._seen.setdefault(kind, set())
        key = (metadata.namespace, metadata.name)
        # Pods are many and a pod more or less changes nothing, so a hash of it is enough.
        mark = hash(key) if kind == "Pod" else key
        if mark in seen and metadata.name:
            return False
        seen.add(mark)
        take = self._take.get(kind)
        if take:
            take(kind, record)
        else:
            self._workload(kind, record)
        return True

    def finish(
        self,
        *,
        server: Version | None,
        unknown: dict[str, str],
        namespace: str = "",
        selector: Selector | None = None,
    ) -> Inventory:
        """The inventory, narrowed down to a namespace and a selector where they are given."""
        inventory = self._inventory
        inventory.server = server
        inventory.unknown = unknown
        if namespace:
            _narrow_to_namespace(inventory, namespace)
        if selector:
            _narrow_to_labels(inventory, selector)
        return inventory

    def _volume(self, kind: str, record: PersistentVolume) -> None:  # noqa: ARG002
        self._inventory.volumes.append(volume_of(record))

    def _claim(self, kind: str, record: PersistentVolumeClaim) -> None:  # noqa: ARG002
        if not record.is_pending:
            # There are many, and nobody asks for them once there is a volume.
            record.metadata.annotations = None
        self._inventory.claims[record.metadata.namespace or "", record.metadata.name] = record

    def _class(self, kind: str, record: StorageClass) -> None:  # noqa: ARG002
        self._inventory.classes.append(record)

    def _node(self, kind: str, record: Node) -> None:  # noqa: ARG002
        status = record.status
        if status and status.conditions:
            # The others say nothing that concerns volumes, and there are many nodes.
            status.conditions = [it for it in status.conditions if it.type == READY]
        self._inventory.nodes[record.metadata.name] = record

    def _feature_gate(self, kind: str, record: FeatureGate) -> None:  # noqa: ARG002
        if record.metadata.name == "cluster":  # any other means nothing
            self._inventory.feature_gate = record

    def _csi_node(self, kind: str, record: CSINode) -> None:  # noqa: ARG002
        self._inventory.csi_nodes[record.metadata.name] = record

    def _driver(self, kind: str, record: CSIDriver) -> None:  # noqa: ARG002
        self._inventory.drivers[record.metadata.name] = record.spec.fsGroupPolicy or ""

    def _attachment(self, kind: str, record: VolumeAttachment) -> None:  # noqa: ARG002
        self._inventory.attachments.append(record)

    def _budget(self, kind: str, record: PodDisruptionBudget) -> None:  # noqa: ARG002
        self._inventory.budgets.append(record)

    def _shoot(self, kind: str, record: Shoot) -> None:  # noqa: ARG002
        self._inventory.shoots.append(record)

    def _cluster(self, kind: str, record: Cluster) -> None:  # noqa: ARG002
        self._inventory.clusters.append(record)

    def _pod(self, kind: str, record: Pod) -> None:
        metadata = record.metadata
        component = control_plane_pod(record)
        if component:
            self._inventory.control_plane.append(component)
        spec = record.spec
        self._inventory.driver_pods.take(
            metadata.namespace or "", metadata.name, spec.nodeName or "", bytes(spec.containers)
        )
        if reclaimer := reclaimer_in(bytes(spec.containers)):
            where = f"{metadata.namespace}/{metadata.name}"
            self._inventory.reclaimers.setdefault(reclaimer, where)
        claims, inline = _uses(spec, metadata.name)
        finished = record.status is not None and record.status.phase in _FINISHED
        if (claims or inline) and not finished:
            owner = ObjectRef(kind, metadata.name, metadata.namespace or "")
            self._inventory.pods.append(
                PodUse(
                    owner=owner,
                    top=_top(owner, metadata.ownerReferences),
                    node=spec.nodeName or "",
                    claims=claims,
                    inline=inline,
                    fs_group=_has_group(spec),
                    waiting=_waiting(record.status),
                    label_text=encode(metadata.labels or {}),
                )
            )

    def _workload(self, kind: str, record: Workload) -> None:
        spec = record.spec
        if kind == "StatefulSet" and spec.volumeClaimTemplates:
            self._inventory.stateful_sets.append(record)
        template = spec.template
        if spec.jobTemplate and spec.jobTemplate.spec:
            template = spec.jobTemplate.spec.template
        pod = template.spec if template else None
        if pod is None:
            return
        metadata = record.metadata
        owner = ObjectRef(kind, metadata.name, metadata.namespace or "")
        if kind in _SCALABLE:
            self._inventory.replicas[owner] = 1 if spec.replicas is None else spec.replicas
        retention = spec.persistentVolumeClaimRetentionPolicy
        if retention and retention.whenScaled == "Delete":
            self._inventory.deleting_claims.add(owner)
        if pod.nodeName:
            self._inventory.pinned.add(owner)
        if pod.tolerates_everything:
            self._inventory.tolerant.add(owner)
        claims, inline = _uses(pod)
        if inline:
            top = _top(owner, metadata.ownerReferences)
            self._inventory.rollouts[owner] = _rollout(record)
            self._inventory.templates.append(
                PodUse(owner, top, "", claims, inline, _has_group(pod), "")
            )


def _uses(spec: PodSpec, pod: str = "") -> tuple[tuple[str, ...], tuple[PodVolume, ...]]:
    claims: list[str] = []
    inline: list[PodVolume] = []
    for volume in spec.volumes or ():
        if volume.persistentVolumeClaim:
            claims.append(volume.persistentVolumeClaim.claimName)
        elif volume.ephemeral is not None:
            # Kubernetes makes the claim, under this name.
            claims.append(f"{pod}-{volume.name}")
        elif astuple(volume).count(None) < _NO_SOURCE:
            inline.append(volume)
    return tuple(claims), tuple(inline)


def _rollout(record: Workload) -> Rollout:
    spec, metadata = record.spec, record.metadata
    strategy = spec.strategy or spec.updateStrategy or UpdateStrategy()
    rolling = strategy.rollingUpdate or RollingUpdate()
    return Rollout(
        type=strategy.type or "",
        unavailable=rolling.maxUnavailable,
        surge=rolling.maxSurge,
        partition=rolling.partition or 0,
        paused=bool(spec.paused),
        marks=frozenset((*(metadata.labels or ()), *(metadata.annotations or ()))),
    )


def _has_group(spec: PodSpec) -> bool:
    return spec.securityContext is not None and spec.securityContext.fsGroup is not None


def _waiting(status: PodStatus | None) -> str:
    if status is None or status.phase == "Running":
        return ""
    for container in _STATUSES.decode(status.containerStatuses) or ():
        waiting = container.state.waiting if container.state else None
        if waiting:
            return ": ".join(part for part in (waiting.reason, waiting.message) if part)
    return ""


def _top(owner: ObjectRef, references: list[OwnerReference] | None) -> ObjectRef:
    """Whom a person would name: a ReplicaSet's pod belongs to the Deployment of its name."""
    for reference in references or ():
        if not reference.controller:
            continue
        if reference.kind == "ReplicaSet" and _REPLICA_SET_HASH.search(reference.name):
            name = _REPLICA_SET_HASH.sub("", reference.name)
            return ObjectRef("Deployment", name, owner.namespace)
        return ObjectRef(reference.kind, reference.name, owner.namespace)
    return owner


def _narrow_to_namespace(inventory: Inventory, namespace: str) -> None:
    inventory.claims = {key: it for key, it in inventory.claims.items() if key[0] == namespace}
    inventory.volumes = [v for v in inventory.volumes if v.claim and v.claim[0] == namespace]
    inventory.pods = [use for use in inventory.pods if use.owner.namespace == namespace]
    inventory.templates = [use for use in inventory.templates if use.owner.namespace == namespace]
    inventory.stateful_sets = [
        it for it in inventory.stateful_sets if it.metadata.namespace == namespace
    ]
    inventory.budgets = [it for it in inventory.budgets if it.metadata.namespace == namespace]
    inventory.shoots = [it for it in inventory.shoots if it.metadata.namespace == namespace]
    # A Cluster is named after the namespace that its control plane is in.
    inventory.clusters = [it for it in inventory.clusters if it.metadata.name == namespace]
    _keep_attachments(inventory)


def _narrow_to_labels(inventory: Inventory, selector: Selector) -> None:
    inventory.claims = {
        key: it for key, it in inventory.claims.items() if selector.matches(it.metadata.labels)
    }
    inventory.volumes = [
        volume
        for volume in inventory.volumes
        if selector.matches(volume.labels) or volume.claim in inventory.claims
    ]
    _keep_attachments(inventory)


def _keep_attachments(inventory: Inventory) -> None:
    kept = {volume.name for volume in inventory.volumes}
    inventory.attachments = [
        it for it in inventory.attachments if it.spec.source.persistentVolumeName in kept
    ]
