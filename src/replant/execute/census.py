"""Takes a census: each list once, page by page, and of each object only what is compared later.

It is taken before anything is touched, and again afterwards; ``verification`` compares the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Generic, TypeVar

import msgspec

from replant.cluster.ports import (
    CSI_NODES,
    DAEMON_SETS,
    EVENTS,
    EVERYTHING,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
    Reader,
    Resource,
    Selected,
)
from replant.errors import Final, shown
from replant.execute import census_records as parts
from replant.execute.census_model import (
    Attachment,
    Census,
    Disk,
    Node,
    Pod,
    Trouble,
    Volume,
    baseline,
    disk_of,
    inline_disk,
)
from replant.inventory import node_records, pod_records, storage_records
from replant.inventory.driverpods import DriverPods
from replant.inventory.model import MIGRATED_PLUGINS, READY, source_of
from replant.objects import Object
from replant.routing.model import MIGRATED_TO, PROVISIONED_BY
from replant.routing.names import csi_name
from replant.translate.portworx import SECRET_NAME, SECRET_NAMESPACE

__all__ = ["Census", "baseline", "class_digest", "take_census"]

TROUBLES = ("FailedAttachVolume", "FailedMount", "FailedMapVolume")
"""The reasons of events that say that a pod does not get its volume."""

_SHARED = frozenset(("ReadOnlyMany", "ReadWriteMany"))
_WRITTEN = (SECRET_NAME, SECRET_NAMESPACE)
"""The annotations that a plan may write on volumes."""

_OF_CONTROLLERS = frozenset({"claimRef", "capacity", "volumeAttributesClassName"})
"""What controllers change in the spec of a volume by themselves: binding writes the claim with its
uid and version, enlarging the capacity. All else counts: Kubernetes lets nobody change a source or
an affinity, so that another one means that the volume was made again, and the reclaim policy
decides whether the disk is deleted."""

_CLASS_DEFAULTS = {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}
_IS_DEFAULT_CLASS = "is-default-class"
_SUCCEEDED = "Succeeded"
_OVER = (_SUCCEEDED, "Failed")
_MIRROR = "kubernetes.io/config.mirror"
_BOUND = "Bound"
_LOST = "Lost"
_ABOUT_PODS = Selected(fields="involvedObject.kind=Pod,type=Warning")

_Record = TypeVar("_Record")


class _Page(msgspec.Struct, Generic[_Record], gc=False):
    items: list[_Record] | None = None


async def take_census(reader: Reader) -> Census:
    """What the cluster has now. Errors: those of the reader.

    The lists are not of one moment: who sees something that is about to change looks again.
    """
    taker = _Taker()
    for list_ in taker.lists():
        await _read(reader, list_)
    return taker.finish()


@dataclass(frozen=True, slots=True)
class _List:
    resource: Resource
    page: Any
    """What its pages are decoded to."""
    take: Callable[[Any], None]
    restart: Callable[[], None]
    selected: Selected = EVERYTHING


async def _read(reader: Reader, wanted: _List) -> None:
    decoder = msgspec.json.Decoder(wanted.page)
    async for page in reader.list_pages(wanted.resource, selected=wanted.selected):
        if page.first:
            wanted.restart()
        try:
            items = decoder.decode(page.body).items
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            # Half a census would pass for a cluster that has lost the other half.
            what = wanted.resource.kind
            raise Final(f"a page of the list of {what} cannot be read: {error}") from error
        for item in items or ():
            wanted.take(item)


@dataclass
class _Taker:
    """Collects, list by list."""

    volumes: list[Volume] = field(default_factory=list)
    claims: dict[str, tuple[str, str]] = field(default_factory=dict)
    """The volume that each claim names, and its phase."""
    classes: dict[str, str] = field(default_factory=dict)
    pods: list[Pod] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    uids: dict[str, str] = field(default_factory=dict)
    wanted: dict[str, int] = field(default_factory=dict)
    nodes: list[node_records.Node] = field(default_factory=list)
    csi_nodes: dict[str, node_records.CSINode] = field(default_factory=dict)
    attachments: list[Attachment] = field(default_factory=list)
    events: list[parts.Event] = field(default_factory=list)
    driver_pods: DriverPods = field(default_factory=DriverPods)

    def lists(self) -> Iterator[_List]:
        """What is read, in this order: pods, nodes and attachments close to each other."""
        yield self._list(PERSISTENT_VOLUMES, _Page[parts.PersistentVolume], self._volume, "volumes")
        yield self._list(
            PERSISTENT_VOLUME_CLAIMS, _Page[parts.PersistentVolumeClaim], self._claim, "claims"
        )
        yield self._list(
            STORAGE_CLASSES, _Page[storage_records.StorageClass], self._class, "classes"
        )
        for resource in (STATEFUL_SETS, REPLICA_SETS, REPLICATION_CONTROLLERS, DAEMON_SETS):
            yield self._workloads(resource)
        yield self._list(PODS, _Page[parts.Pod], self._pod, "pods", "ended", "uids", "driver_pods")
        yield self._list(NODES, _Page[node_records.Node], self.nodes.append, "nodes")
        yield self._list(VOLUME_ATTACHMENTS, _Page[storage_records.VolumeAttachment],
                         self._attachment, "attachments")  # fmt: skip
        yield self._list(CSI_NODES, _Page[node_records.CSINode], self._csi_node, "csi_nodes")
        yield self._list(EVENTS, _Page[parts.Event], self._event, "events", selected=_ABOUT_PODS)

    def _list(
        self,
        resource: Resource,
        page: Any,
        take: Callable[[Any], None],
        *kept_in: str,
        selected: Selected = EVERYTHING,
    ) -> _List:
        def restart() -> None:
            for name in kept_in:
                getattr(self, name).clear()

        return _List(resource, page, take, restart, selected)

    def _workloads(self, resource: Resource) -> _List:
        mine: set[str] = set()

        def take(record: parts.Workload) -> None:
            if record.wanted:
                key = workload_key(
                    record.metadata.namespace, f"{resource.kind}/{record.metadata.name}"
                )
                mine.add(key)
                self.wanted[key] = record.wanted

        def restart() -> None:
            for key in mine:
                del self.wanted[key]
            mine.clear()

        return _List(resource, _Page[parts.Workload], take, restart)

    def finish(self) -> Census:
        """All of it, joined."""
        claimed = {volume: claim for claim, (volume, phase) in self.claims.items()
                   if phase == _BOUND}  # fmt: skip
        there = {it.name for it in self.volumes}
        return Census(
            volumes=tuple(
                msgspec.structs.replace(it, claim=claimed.get(it.name, "")) for it in self.volumes
            ),
            lost=tuple(
                (claim, volume)
                for claim, (volume, phase) in self.claims.items()
                if phase == _LOST or (phase == _BOUND and volume not in there)
            ),
            classes=self.classes,
            pods=tuple(self.pods),
            ended=tuple(self.ended),
            wanted=self.wanted,
            nodes=tuple(map(self._node, self.nodes)),
            attachments=tuple(self.attachments),
            troubles=tuple(self._troubles()),
            driver_pods=self.driver_pods,
        )

    def _volume(self, record: parts.PersistentVolume) -> None:
        metadata, annotations = record.metadata, record.metadata.annotations or {}
        # Labels say in which zone a disk is, and that is part of some drivers' names for it.
        named = {"name": metadata.name, "labels": metadata.labels or {}, "annotations": annotations}
        self.volumes.append(
            Volume(
                metadata.name,
                volume_digest(record.spec),
                record.status.phase if record.status else "",
                provisioned_by=annotations.get(PROVISIONED_BY),
                migrated_to=annotations.get(MIGRATED_TO),
                annotations={key: annotations[key] for key in _WRITTEN if key in annotations},
                disk=disk_of({"metadata": named, "spec": record.spec}),
                shared=not _SHARED.isdisjoint(record.spec.get("accessModes") or ()),
            )
        )

    def _claim(self, record: parts.PersistentVolumeClaim) -> None:
        phase = record.status.phase if record.status else ""
        self.claims[record.metadata.key] = (record.spec.volumeName or "", phase)

    def _class(self, record: storage_records.StorageClass) -> None:
        self.classes[record.metadata.name] = class_digest(record)

    def _pod(self, record: parts.Pod) -> None:
        metadata, spec, status = record.metadata, record.spec, record.status
        if status and status.phase in _OVER:
            if status.phase == _SUCCEEDED and not _owner(record):
                self.ended.append(metadata.key)
            return
        conditions = (status.conditions if status else None) or ()
        volumes = spec.volumes or ()
        self.uids[metadata.key] = metadata.uid
        self.pods.append(
            Pod(
                metadata.key,
                _owner(record),
                ready=any(it.type == READY and it.status == "True" for it in conditions),
                leaving=metadata.deletionTimestamp is not None,
                node=spec.nodeName or "",
                uid=metadata.uid,
                claims=tuple(f"{metadata.namespace}/{it}" for it in _claims(metadata, volumes)),
                inline=tuple(_inline(metadata, volumes)),
            )
        )
        self.driver_pods.take(
            metadata.namespace, metadata.name, spec.nodeName or "", bytes(spec.containers)
        )

    def _csi_node(self, record: node_records.CSINode) -> None:
        self.csi_nodes[record.metadata.name] = record

    def _node(self, record: node_records.Node) -> Node:
        status, csi_node = record.status, self.csi_nodes.get(record.metadata.name)
        conditions = (status.conditions if status else None) or ()
        listed = (csi_node.metadata.annotations or {}).get(MIGRATED_PLUGINS, "") if csi_node else ""
        drivers = (csi_node.spec.drivers if csi_node else None) or ()
        return Node(
            record.metadata.name,
            ready=any(it.type == READY and it.status == "True" for it in conditions),
            cordoned=bool(record.spec and record.spec.unschedulable),
            attached=tuple(it.name for it in (status.volumesAttached if status else None) or ()),
            in_use=tuple((status.volumesInUse if status else None) or ()),
            csi_node=csi_node is not None,
            migrated=tuple(filter(None, listed.split(","))),
            drivers=tuple(it.name for it in drivers),
        )

    def _attachment(self, record: storage_records.VolumeAttachment) -> None:
        spec, status = record.spec, record.status
        error = (status.detachError or status.attachError) if status else None
        csi = (spec.source.inlineVolumeSpec or {}).get("csi") or {}
        self.attachments.append(
            Attachment(
                record.metadata.name,
                spec.attacher,
                spec.nodeName,
                spec.source.persistentVolumeName or "",
                csi_name(csi.get("driver", ""), csi.get("volumeHandle", "")) if csi else "",
                attached=status is not None and status.attached,
                deleting=record.metadata.deletionTimestamp is not None,
                error=shown(error.message or "") if error else "",
            )
        )

    def _event(self, record: parts.Event) -> None:
        if record.reason in TROUBLES:
            self.events.append(record)

    def _troubles(self) -> Iterator[Trouble]:
        """What was told about pods that are still there: of others nobody can tell what became."""
        for event in self.events:
            about = event.involvedObject
            pod = f"{about.namespace}/{about.name}"
            if self.uids.get(pod) == about.uid:
                message = shown(f"{event.reason}: {event.message or ''}")
                yield Trouble(pod, about.uid, event.times, message)


def workload_key(namespace: str, owner: str) -> str:
    """How a census calls a workload that is named Kind/name."""
    return f"{namespace}/{owner}"


def volume_digest(spec: Object) -> str:
    """Of the spec of a volume, without what controllers change by themselves."""
    return _digest({key: it for key, it in spec.items() if key not in _OF_CONTROLLERS})


def class_digest(storage_class: storage_records.StorageClass) -> str:
    """Of a class, whether it was read or stands in a plan: what the API would add is added."""
    fields = msgspec.to_builtins(storage_class)
    annotations = fields.pop("metadata").get("annotations") or {}
    given = {key: value for key, value in fields.items() if value not in (None, {}, [], False)}
    default = [it for key, it in annotations.items() if key.endswith(_IS_DEFAULT_CLASS)]
    return _digest({**_CLASS_DEFAULTS, **given, "default": "true" in default})


def _digest(value: Object) -> str:
    return sha256(msgspec.json.encode(value, order="sorted")).hexdigest()[:16]


def _owner(pod: parts.Pod) -> str:
    if _MIRROR in (pod.metadata.annotations or {}):
        # A static pod: older kubelets name no owner.
        return f"{NODES.kind}/{pod.spec.nodeName}"
    owners = (it for it in pod.metadata.ownerReferences or () if it.controller)
    return next((f"{it.kind}/{it.name}" for it in owners), "")


def _claims(metadata: parts.Metadata, volumes: Iterable[pod_records.PodVolume]) -> Iterator[str]:
    for volume in volumes:
        if volume.persistentVolumeClaim:
            yield volume.persistentVolumeClaim.claimName
        elif volume.ephemeral is not None:
            # Kubernetes makes the claim, under this name.
            yield f"{metadata.name}-{volume.name}"


def _inline(metadata: parts.Metadata, volumes: Iterable[pod_records.PodVolume]) -> Iterator[Disk]:
    for volume in volumes:
        if disk := inline_disk(source_of(volume), metadata.namespace):
            yield disk
