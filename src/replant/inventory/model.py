"""What a cluster has, joined: volumes with their claims, claims with the pods that use them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import msgspec

from replant.gates.plugins import LIVES, migrated
from replant.gates.versions import Version
from replant.inventory.controlplane import ControlPlanePod, merged_gates
from replant.inventory.driverpods import DriverPods
from replant.inventory.findings import ObjectRef, ReadCount
from replant.inventory.metadata import Strings
from replant.inventory.node_records import CSINode, Node, NodeStatus
from replant.inventory.platform_records import Cluster, FeatureGate, Shoot
from replant.inventory.pod_records import PodVolume
from replant.inventory.quantities import amount
from replant.inventory.selectors import Selector
from replant.inventory.storage_records import (
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
    VolumeMetadata,
    VolumeStatus,
)
from replant.inventory.workload_records import PodDisruptionBudget, Workload
from replant.translate import driver_of, plugin_of
from replant.translate.manifest import WITHOUT_DRIVER

MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"
"""The annotation with which a kubelet says what it redirects to CSI."""

READY = "Ready"
"""The condition with which a node says that it takes pods."""

_CONTROL_PLANE_ROLES = (
    "node-role.kubernetes.io/control-plane",
    "node-role.kubernetes.io/master",
)

ClaimKey = tuple[str, str]
"""Namespace and name."""


class Volume(msgspec.Struct, frozen=True, gc=False):
    """A PersistentVolume, and what the joins need of it; the rest is built up when asked for."""

    metadata: VolumeMetadata
    text: bytes
    """Its spec, as it was read."""
    plugin: str | None
    """The in-tree plugin that serves it, if one with a driver does."""
    driver: str
    """The CSI driver that serves it, or will."""
    without_driver: str
    """The plugin that serves it, if one does that no driver took over from."""
    claim: ClaimKey | None
    """The claim that it is bound to, or kept for."""
    capacity: int
    deletes: bool
    """Whether its disk is to be deleted with its claim."""
    phase: str
    """Such as Bound, where it was said."""

    @property
    def name(self) -> str:
        """Its name."""
        return self.metadata.name

    @property
    def ref(self) -> ObjectRef:
        """What a finding about it names."""
        return ObjectRef("PersistentVolume", self.name)

    @property
    def labels(self) -> dict[str, str]:
        """Its labels."""
        return self.metadata.labels or {}

    @property
    def annotations(self) -> dict[str, str]:
        """Its annotations."""
        return self.metadata.annotations or {}

    def as_object(self) -> dict[str, Any]:
        """What the translator takes."""
        metadata = self.metadata
        return {
            "kind": "PersistentVolume",
            "metadata": {
                "name": metadata.name,
                "labels": metadata.labels,
                "annotations": metadata.annotations,
            },
            "spec": _SPEC.decode(self.text),
        }


_SPEC = msgspec.json.Decoder(dict[str, Any])
_LABELS = msgspec.json.Decoder(Strings)

_PHASES = {it: it for it in ("Available", "Bound", "Released", "Failed", "Pending")}
"""One text for all that say the same: there are many volumes."""

IN_TREE_SOURCES = (
    "awsElasticBlockStore",
    "gcePersistentDisk",
    "cinder",
    "azureDisk",
    "azureFile",
    "vsphereVolume",
    "portworxVolume",
    "rbd",
)


class PodUse(msgspec.Struct, frozen=True, gc=False):
    """A pod, or a template of pods, and the volumes that it uses."""

    owner: ObjectRef
    """The pod, or the workload that has the template."""
    top: ObjectRef
    """The workload that a person would name: the pod's, as far as its owners tell."""
    node: str
    claims: tuple[str, ...]
    inline: tuple[PodVolume, ...]
    fs_group: bool
    waiting: str
    """Why its containers wait, where they do."""
    label_text: bytes = b"{}"
    """A pod's labels, as JSON: built up they are more than twice as large."""

    @property
    def labels(self) -> dict[str, str]:
        """A pod's labels; those of a template are not kept."""
        return _LABELS.decode(self.label_text)


class Rollout(msgspec.Struct, frozen=True, gc=False):
    """How a workload takes a new template, and whose it is."""

    type: str
    """Such as RollingUpdate; nothing where it does not say."""
    unavailable: int | str | None
    surge: int | str | None
    partition: int
    paused: bool
    marks: frozenset[str]
    """The keys of its labels and annotations."""


@dataclass
class Inventory:
    """All that was read, joined. What was not read is unknown, not absent."""

    server: Version | None = None
    control_plane: list[ControlPlanePod] = field(default_factory=list)
    """The replicas of each component, where they run as pods."""
    node_gates: dict[str, dict[str, bool]] = field(default_factory=dict)
    """The gates of each kubelet that was asked."""
    volumes: list[Volume] = field(default_factory=list)
    claims: dict[ClaimKey, PersistentVolumeClaim] = field(default_factory=dict)
    classes: list[StorageClass] = field(default_factory=list)
    pods: list[PodUse] = field(default_factory=list)
    templates: list[PodUse] = field(default_factory=list)
    driver_pods: DriverPods = field(default_factory=DriverPods)
    """The pods of CSI drivers, for those who have to read logs."""
    reclaimers: dict[str, str] = field(default_factory=dict)
    """Controllers that delete the storage of deleted volumes, each with a pod of it."""
    tolerant: set[ObjectRef] = field(default_factory=set)
    """Workloads whose pods tolerate every taint."""
    pinned: set[ObjectRef] = field(default_factory=set)
    """The workloads whose template names the node itself: no scheduler is asked."""
    deleting_claims: set[ObjectRef] = field(default_factory=set)
    """The StatefulSets that delete their claims when they are scaled down."""
    stateful_sets: list[Workload] = field(default_factory=list)
    replicas: dict[ObjectRef, int] = field(default_factory=dict)
    """How many pods each workload is to have, of those that can be told so."""
    rollouts: dict[ObjectRef, Rollout] = field(default_factory=dict)
    """How each workload takes a new template, of those whose template names a disk by itself."""
    nodes: dict[str, Node] = field(default_factory=dict)
    csi_nodes: dict[str, CSINode] = field(default_factory=dict)
    drivers: dict[str, str] = field(default_factory=dict)
    """The CSI drivers that are installed, and their fsGroupPolicy."""
    attachments: list[VolumeAttachment] = field(default_factory=list)
    budgets: list[PodDisruptionBudget] = field(default_factory=list)
    feature_gate: FeatureGate | None = None
    """OpenShift's."""
    shoots: list[Shoot] = field(default_factory=list)
    """The shoots of a garden of Gardener."""
    clusters: list[Cluster] = field(default_factory=list)
    """The shoots of a seed, each as it embeds them."""
    read: dict[str, ReadCount] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)
    """The kinds that were not read, and why."""

    @property
    def gates(self) -> dict[str, dict[str, bool]]:
        """The gates given to each component, where its flags are visible."""
        return merged_gates(self.control_plane)

    @cached_property
    def in_tree(self) -> list[Volume]:
        """The volumes that a driver can take over."""
        return [volume for volume in self.volumes if volume.plugin]

    @cached_property
    def by_name(self) -> dict[str, Volume]:
        """Volumes by their name."""
        return {volume.name: volume for volume in self.volumes}

    @cached_property
    def pods_by_claim(self) -> dict[ClaimKey, list[PodUse]]:
        """The pods that mount each claim."""
        found: dict[ClaimKey, list[PodUse]] = defaultdict(list)
        for pod in self.pods:
            for claim in pod.claims:
                found[pod.owner.namespace, claim].append(pod)
        return found

    @cached_property
    def class_by_name(self) -> dict[str, StorageClass]:
        """Classes by their name."""
        return {storage_class.metadata.name: storage_class for storage_class in self.classes}

    @cached_property
    def _budgets_by_namespace(
        self,
    ) -> dict[str, list[tuple[Selector, PodDisruptionBudget]]]:
        found = defaultdict(list)
        for budget in self.budgets:
            selector = budget.spec.selector
            if selector is not None:
                meant = Selector.of(selector), budget
                found[budget.metadata.namespace or ""].append(meant)
        return found

    def budgets_of(self, pod: PodUse) -> list[PodDisruptionBudget]:
        """The budgets that have a say when a pod is to be evicted."""
        budgets = self._budgets_by_namespace.get(pod.owner.namespace)
        if not budgets:
            return []
        labels = pod.labels
        return [budget for selector, budget in budgets if selector.matches(labels)]

    def users(self, volume: Volume) -> list[PodUse]:
        """The pods that mount a volume through its claim."""
        return self.pods_by_claim.get(volume.claim, []) if volume.claim else []

    def knows(self, *kinds: str) -> bool:
        """Whether all of these kinds were read."""
        return not any(kind in self.unknown for kind in kinds)

    def announced_by(self, node: str) -> frozenset[str]:
        """The plugins that a node says it redirects to CSI."""
        csi_node = self.csi_nodes.get(node)
        said = (csi_node.metadata.annotations or {}).get(MIGRATED_PLUGINS, "") if csi_node else ""
        return frozenset(filter(None, said.split(",")))

    def migrated_on(self, node: str) -> frozenset[str]:
        """The plugins that a node redirects to CSI: what it says, and what its gates say."""
        return self.announced_by(node) | self._gates_redirect(node)

    def _gates_redirect(self, node: str) -> frozenset[str]:
        gates = self.node_gates.get(node)
        version = self.kubelet_version(node) if gates is not None else None
        if version is None:
            return frozenset()
        return frozenset(plugin for plugin in LIVES if migrated(plugin, version, gates))

    def kubelet_version(self, node: str) -> Version | None:
        """The version of a node's kubelet, where the node says it."""
        status = self._status(node)
        said = status.nodeInfo.kubeletVersion if status and status.nodeInfo else None
        try:
            return Version.parse(said) if said else None
        except ValueError:
            return None

    def ready(self, node: str) -> bool:
        """Whether a node is known to be ready; one that was not heard of lately is not."""
        status = self._status(node)
        conditions = (status.conditions if status else None) or ()
        return any(it.type == READY and it.status == "True" for it in conditions)

    def cordoned(self, node: str) -> bool:
        """Whether a node takes no new pods, because somebody said so."""
        record = self.nodes.get(node)
        return bool(record and record.spec and record.spec.unschedulable)

    def is_control_plane(self, node: str) -> bool:
        """Whether a node has the role of the control plane, by its new name or its old one."""
        record = self.nodes.get(node)
        labels = (record.metadata.labels if record else None) or {}
        return any(role in labels for role in _CONTROL_PLANE_ROLES)

    def _status(self, node: str) -> NodeStatus | None:
        record = self.nodes.get(node)
        return record.status if record else None

    def drivers_on(self, node: str) -> frozenset[str]:
        """The CSI drivers that are registered on a node."""
        csi_node = self.csi_nodes.get(node)
        drivers = csi_node.spec.drivers if csi_node else None
        return frozenset(driver.name for driver in drivers or ())

    def inline_uses(self) -> Iterator[tuple[PodUse, PodVolume]]:
        """The volumes that pods and templates name by themselves.

        What another template makes is left out: it says the same again.
        """
        owners = {use.owner for use in self.templates}
        for use in (*self.templates, *self.pods):
            if use.top == use.owner or use.top not in owners:
                for volume in use.inline:
                    yield use, volume


def volume_of(record: PersistentVolume) -> Volume:
    """A volume with what the joins need of it; msgspec's error where its spec is no object."""
    spec = _SPEC.decode(record.spec)
    plugin = plugin_of({"spec": spec})
    capacity = spec.get("capacity")
    return Volume(
        metadata=record.metadata,
        text=bytes(record.spec),
        plugin=plugin,
        driver=driver_of(plugin) if plugin else _text(spec.get("csi"), "driver"),
        without_driver=next(
            (gone for source, gone in WITHOUT_DRIVER.items() if spec.get(source) is not None), ""
        ),
        claim=_claim(spec.get("claimRef")),
        capacity=amount(capacity.get("storage") if isinstance(capacity, dict) else None),
        deletes=spec.get("persistentVolumeReclaimPolicy") == "Delete",
        phase=_phase(record.status),
    )


def _phase(status: VolumeStatus | None) -> str:
    said = (status.phase if status else None) or ""
    return _PHASES.get(said, said)


def _claim(reference: object) -> ClaimKey | None:
    key = _text(reference, "namespace"), _text(reference, "name")
    return key if all(key) else None


def _text(holder: object, key: str) -> str:
    value = holder.get(key) if isinstance(holder, dict) else None
    return value if isinstance(value, str) else ""


def source_of(volume: PodVolume) -> dict[str, Any]:
    """A pod's own volume as the translator takes it."""
    sources: Iterable[str] = IN_TREE_SOURCES
    found = {name: value for name in sources if (value := getattr(volume, name)) is not None}
    return {"name": volume.name, **found}
