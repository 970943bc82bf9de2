"""What a cluster has, joined: volumes with their claims, claims with the pods that use them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from replant.gates.versions import Version
from replant.inventory import records
from replant.inventory.findings import ObjectRef, ReadCount
from replant.translate import driver_of, plugin_of

MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"
"""The annotation with which a kubelet says what it redirects to CSI."""

ClaimKey = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True, slots=True)
class Volume:
    """A PersistentVolume, and the plugin that serves it in the tree, if one does."""

    record: records.PersistentVolume
    plugin: str | None

    @property
    def name(self) -> str:
        """Its name."""
        return self.record.metadata.name

    @property
    def ref(self) -> ObjectRef:
        """What a finding about it names."""
        return ObjectRef("PersistentVolume", self.name)

    @property
    def spec(self) -> dict[str, Any]:
        """Its spec, as it is stored."""
        return self.record.spec

    @property
    def labels(self) -> dict[str, str]:
        """Its labels."""
        return self.record.metadata.labels or {}

    @property
    def annotations(self) -> dict[str, str]:
        """Its annotations."""
        return self.record.metadata.annotations or {}

    @property
    def driver(self) -> str:
        """The CSI driver that serves it, or will."""
        if self.plugin:
            return driver_of(self.plugin)
        csi = self.spec.get("csi")
        driver = csi.get("driver") if isinstance(csi, dict) else None
        return driver if isinstance(driver, str) else ""

    @property
    def source(self) -> dict[str, Any]:
        """Its in-tree source."""
        for value in (self.spec.get(name) for name in IN_TREE_SOURCES):
            if isinstance(value, dict):
                return value
        return {}

    @property
    def claim(self) -> ClaimKey | None:
        """The claim that it is bound to, or kept for."""
        reference = self.spec.get("claimRef")
        if not isinstance(reference, dict):
            return None
        namespace, name = reference.get("namespace"), reference.get("name")
        if isinstance(namespace, str) and isinstance(name, str):
            return namespace, name
        return None

    def as_object(self) -> dict[str, Any]:
        """What the translator takes."""
        metadata = self.record.metadata
        return {
            "kind": "PersistentVolume",
            "metadata": {
                "name": metadata.name,
                "labels": metadata.labels,
                "annotations": metadata.annotations,
            },
            "spec": self.spec,
        }


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


@dataclass(frozen=True, slots=True)
class PodUse:
    """A pod, or a template of pods, and the volumes that it uses."""

    owner: ObjectRef
    """The pod, or the workload that has the template."""
    top: ObjectRef
    """The workload that a person would name: the pod's, as far as its owners tell."""
    node: str
    claims: tuple[str, ...]
    inline: tuple[records.PodVolume, ...]
    fs_group: bool
    waiting: str
    """Why its containers wait, where they do."""


@dataclass
class Inventory:
    """All that was read, joined. What was not read is unknown, not absent."""

    server: Version | None = None
    gates: dict[str, dict[str, bool]] = field(default_factory=dict)
    """The gates given to each component, where its flags are visible."""
    volumes: list[Volume] = field(default_factory=list)
    claims: dict[ClaimKey, records.PersistentVolumeClaim] = field(default_factory=dict)
    classes: list[records.StorageClass] = field(default_factory=list)
    pods: list[PodUse] = field(default_factory=list)
    templates: list[PodUse] = field(default_factory=list)
    stateful_sets: list[records.Workload] = field(default_factory=list)
    nodes: dict[str, records.Node] = field(default_factory=dict)
    csi_nodes: dict[str, records.CSINode] = field(default_factory=dict)
    drivers: set[str] = field(default_factory=set)
    attachments: list[records.VolumeAttachment] = field(default_factory=list)
    read: dict[str, ReadCount] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)
    """The kinds that were not read, and why."""

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
    def class_by_name(self) -> dict[str, records.StorageClass]:
        """Classes by their name."""
        return {storage_class.metadata.name: storage_class for storage_class in self.classes}

    def users(self, volume: Volume) -> list[PodUse]:
        """The pods that mount a volume through its claim."""
        return self.pods_by_claim.get(volume.claim, []) if volume.claim else []

    def knows(self, *kinds: str) -> bool:
        """Whether all of these kinds were read."""
        return not any(kind in self.unknown for kind in kinds)

    def migrated_on(self, node: str) -> frozenset[str]:
        """The plugins that a node says it redirects to CSI."""
        csi_node = self.csi_nodes.get(node)
        said = (csi_node.metadata.annotations or {}).get(MIGRATED_PLUGINS, "") if csi_node else ""
        return frozenset(filter(None, said.split(",")))

    def drivers_on(self, node: str) -> frozenset[str]:
        """The CSI drivers that are registered on a node."""
        csi_node = self.csi_nodes.get(node)
        drivers = csi_node.spec.drivers if csi_node else None
        return frozenset(driver.name for driver in drivers or ())

    def inline_uses(self) -> Iterator[tuple[PodUse, records.PodVolume]]:
        """The volumes that pods and templates name by themselves; of owned pods the template."""
        for use in self.templates:
            for volume in use.inline:
                yield use, volume
        for use in self.pods:
            if use.owner == use.top:
                for volume in use.inline:
                    yield use, volume


def volume_of(record: records.PersistentVolume) -> Volume:
    """A volume with its plugin."""
    return Volume(record, plugin_of({"spec": record.spec}))


def source_of(volume: records.PodVolume) -> dict[str, Any]:
    """A pod's own volume as the translator takes it."""
    sources: Iterable[str] = IN_TREE_SOURCES
    found = {name: value for name in sources if (value := getattr(volume, name)) is not None}
    return {"name": volume.name, **found}
