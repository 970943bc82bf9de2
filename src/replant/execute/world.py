"""What is known of a cluster while a plan is carried out: the few kinds that change by themselves.

Fed with what lists and watches say, and with fresh looks; asked by those who decide. What is older
than what is known already is passed over, so it does not matter which of them comes first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from msgspec import Struct, field
from msgspec.json import Decoder

from replant.cluster.ports import CSI_NODES, NODES, PODS, VOLUME_ATTACHMENTS, Resource
from replant.gates.versions import Version

MIRROR = "kubernetes.io/config.mirror"
MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"
SUCCEEDED = "Succeeded"
OVER = (SUCCEEDED, "Failed")

Key = tuple[str, str]
"""Namespace, which may be empty, and name."""


class _Fields(Struct, gc=False, rename="camel"):
    """Fields by the API's own names; what is not named is skipped."""


class Owner(_Fields, gc=False):
    """What made an object."""

    kind: str = ""
    name: str = ""
    controller: bool | None = None


class Metadata(_Fields, gc=False):
    """Names, and what tells one state of an object from another."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[Owner] | None = None

    @property
    def key(self) -> Key:
        """Where it is found."""
        return self.namespace, self.name

    def annotation(self, name: str) -> str | None:
        """One of its annotations, if it has it."""
        return (self.annotations or {}).get(name)

    @property
    def owner(self) -> Owner | None:
        """What would make it again."""
        return next((it for it in self.owner_references or () if it.controller), None)


class Record(_Fields, gc=False, kw_only=True):
    """What all objects have."""

    metadata: Metadata = field(default_factory=Metadata)


class Condition(_Fields, gc=False):
    """One of an object's conditions."""

    type: str = ""
    status: str = ""


class _Named(_Fields, gc=False):
    name: str = ""


class Taint(_Fields, gc=False, omit_defaults=True):
    """What keeps pods from a node that do not tolerate it."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class NodeSpec(_Fields, gc=False):
    """Whether a node takes pods."""

    unschedulable: bool = False
    taints: list[Taint] | None = None


class _NodeInfo(_Fields, gc=False):
    kubelet_version: str = ""


class NodeStatus(_Fields, gc=False):
    """What kubelet and attach/detach controller say of a node."""

    node_info: _NodeInfo | None = None

    conditions: list[Condition] | None = None
    volumes_attached: list[_Named] | None = None
    volumes_in_use: list[str] | None = None


class Node(Record, gc=False, kw_only=True):
    """A node."""

    spec: NodeSpec = field(default_factory=NodeSpec)
    status: NodeStatus = field(default_factory=NodeStatus)

    @property
    def ready(self) -> bool:
        """Whether its kubelet says that it is well."""
        return _is_true(self.status.conditions, "Ready")

    @property
    def kubelet(self) -> Version | None:
        """The version of its kubelet, where it says one."""
        said = self.status.node_info.kubelet_version if self.status.node_info else ""
        try:
            return Version.parse(said)
        except ValueError:
            return None

    @property
    def volumes(self) -> set[str]:
        """The unique names of the volumes that are attached or in use there."""
        status = self.status
        return {it.name for it in status.volumes_attached or ()} | set(status.volumes_in_use or ())


class CsiNodeSpec(_Fields, gc=False):
    """The drivers of a node."""

    drivers: list[_Named] | None = None


class CsiNode(Record, gc=False, kw_only=True):
    """What a kubelet says of CSI."""

    spec: CsiNodeSpec = field(default_factory=CsiNodeSpec)

    @property
    def migrated(self) -> frozenset[str]:
        """The plugins that the kubelet redirects."""
        listed = self.metadata.annotation(MIGRATED_PLUGINS) or ""
        return frozenset(filter(None, listed.split(",")))

    @property
    def drivers(self) -> frozenset[str]:
        """The drivers that are registered with it."""
        return frozenset(it.name for it in self.spec.drivers or ())


class _Claim(_Fields, gc=False):
    claim_name: str = ""


class _Anything(_Fields, gc=False):
    """Something that is there, whatever is in it."""


class PodVolume(_Fields, gc=False):
    """A volume of a pod, as far as a drain needs to know it."""

    name: str = ""
    persistent_volume_claim: _Claim | None = None
    ephemeral: _Anything | None = None
    empty_dir: _Anything | None = None


class PodSpec(_Fields, gc=False):
    """Where a pod is, and what it has."""

    node_name: str = ""
    volumes: list[PodVolume] | None = None


class _Container(_Fields, gc=False):
    restart_count: int = 0


class PodStatus(_Fields, gc=False):
    """How a pod is."""

    phase: str = ""
    conditions: list[Condition] | None = None
    container_statuses: list[_Container] | None = None


class Pod(Record, gc=False, kw_only=True):
    """A pod."""

    spec: PodSpec = field(default_factory=PodSpec)
    status: PodStatus = field(default_factory=PodStatus)

    @property
    def name(self) -> str:
        """What a person calls it."""
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def serves(self) -> bool:
        """Whether it does its work, and is not about to end."""
        return not self.metadata.deletion_timestamp and _is_true(self.status.conditions, "Ready")

    @property
    def restarts(self) -> int:
        """How often its containers were started anew."""
        return sum(it.restart_count for it in self.status.container_statuses or ())

    @property
    def claims(self) -> tuple[str, ...]:
        """The claims that it uses, with their namespace."""
        found = []
        for volume in self.spec.volumes or ():
            if volume.persistent_volume_claim:
                found.append(volume.persistent_volume_claim.claim_name)
            elif volume.ephemeral:
                found.append(f"{self.metadata.name}-{volume.name}")
        return tuple(f"{self.metadata.namespace}/{it}" for it in found)


class _Csi(_Fields, gc=False):
    driver: str = ""
    volume_handle: str = ""


class _InlineVolume(_Fields, gc=False):
    csi: _Csi | None = None


class _Source(_Fields, gc=False):
    persistent_volume_name: str | None = None
    inline_volume_spec: _InlineVolume | None = None


class AttachmentSpec(_Fields, gc=False):
    """Which volume is wanted where, and by which driver."""

    attacher: str = ""
    node_name: str = ""
    source: _Source = field(default_factory=_Source)


class Attachment(Record, gc=False, kw_only=True):
    """A VolumeAttachment."""

    spec: AttachmentSpec = field(default_factory=AttachmentSpec)


WATCHED: dict[Resource, type[Record]] = {
    NODES: Node,
    CSI_NODES: CsiNode,
    PODS: Pod,
    VOLUME_ATTACHMENTS: Attachment,
}

DECODERS: dict[Resource, Decoder[Record]] = {
    resource: Decoder(record) for resource, record in WATCHED.items()
}

_Kind = TypeVar("_Kind", bound=Record)
PodsChanged = Callable[[Pod | None, Pod | None], None]
"""Told of a pod as it was and as it is; None where there is none."""
NodesChanged = Callable[[Node | None, Node | None], None]
"""The same of a node."""


class World:
    """The objects by name, pods and attachments also by node."""

    def __init__(self) -> None:
        self._objects: dict[Resource, dict[Key, Record]] = {it: {} for it in WATCHED}
        self._pods_on: dict[str, dict[Key, Pod]] = defaultdict(dict)
        self._pods_using: dict[str, dict[Key, Pod]] = defaultdict(dict)
        self._attachments_on: dict[str, dict[Key, Attachment]] = defaultdict(dict)
        self._attachments_of: dict[str, dict[Key, Attachment]] = defaultdict(dict)
        self._listeners: list[PodsChanged] = []
        self._node_listeners: list[NodesChanged] = []
        self._touched: set[str] = set()

    def listen_to_nodes(self, changed: NodesChanged) -> None:
        """Have ``changed`` called for every node that there is, and that is not what it was."""
        for node in self.nodes():
            changed(None, node)
        self._node_listeners.append(changed)

    def listen(self, changed: PodsChanged) -> None:
        """Have ``changed`` called for every pod that is not what it was."""
        self._listeners.append(changed)

    def take_touched(self) -> set[str]:
        """The nodes about which something is news since this was last asked."""
        touched, self._touched = self._touched, set()
        return touched

    def node(self, name: str) -> Node | None:
        """A node, if it is there."""
        found = self._objects[NODES].get(("", name))
        return found if isinstance(found, Node) else None

    def nodes(self) -> Iterator[Node]:
        """All nodes."""
        return self._all(NODES, Node)

    def pods(self) -> Iterator[Pod]:
        """All pods."""
        return self._all(PODS, Pod)

    def pod(self, key: Key) -> Pod | None:
        """A pod, if it is there."""
        found = self._objects[PODS].get(key)
        return found if isinstance(found, Pod) else None

    def csi_node(self, name: str) -> CsiNode:
        """What a kubelet says of CSI: nothing, where there is no CSINode."""
        found = self._objects[CSI_NODES].get(("", name))
        return found if isinstance(found, CsiNode) else CsiNode()

    def pods_on(self, node: str) -> Iterable[Pod]:
        """The pods of a node; those that are on none yet, for no name."""
        return self._pods_on.get(node, {}).values()

    def pods_using(self, claim: str) -> Iterable[Pod]:
        """The pods that name a claim, which is given with its namespace."""
        return self._pods_using.get(claim, {}).values()

    def attachments(self) -> Iterator[Attachment]:
        """All VolumeAttachments."""
        return self._all(VOLUME_ATTACHMENTS, Attachment)

    def attachments_on(self, node: str) -> Iterable[Attachment]:
        """The VolumeAttachments to a node."""
        return self._attachments_on.get(node, {}).values()

    def attachments_of(self, volume: str) -> Iterable[Attachment]:
        """The VolumeAttachments of a PersistentVolume."""
        return self._attachments_of.get(volume, {}).values()

    def inline_attachments(self) -> Iterable[Attachment]:
        """The VolumeAttachments of volumes that pods name by themselves."""
        without_volume = self._attachments_of.get("", {}).values()
        return (it for it in without_volume if it.spec.source.inline_volume_spec)

    def put(self, resource: Resource, record: Record) -> bool:
        """Take an object as it is said to be; tells whether that was news."""
        known = self._objects[resource]
        key = record.metadata.key
        before = known.get(key)
        if before is not None and _is_older(record, before):
            return False
        known[key] = record
        self._index(before, record)
        return True

    def remove(self, resource: Resource, record: Record) -> None:
        """Forget an object that is said to have gone; not one that took its name meanwhile."""
        before = self._objects[resource].get(record.metadata.key)
        if before is None or before.metadata.uid not in ("", record.metadata.uid):
            return
        del self._objects[resource][record.metadata.key]
        self._index(before, None)

    def replace(self, resource: Resource, records: Iterable[Record]) -> None:
        """Take a whole list: what is not in it has gone."""
        listed = {record.metadata.key: record for record in records}
        for record in list(self._objects[resource].values()):
            if record.metadata.key not in listed:
                self.remove(resource, record)
        for record in listed.values():
            self.put(resource, record)

    def refresh_pods(self, node: str, pods: Iterable[Pod], version: str) -> None:
        """Take a list of a node's pods, made at a version: what it lacks has gone, unless newer."""
        listed = {pod.metadata.key for pod in pods}
        for known in list(self.pods_on(node)):
            newer = precedes(version, known.metadata.resource_version)
            if known.metadata.key not in listed and not newer:
                self.remove(PODS, known)
        for pod in pods:
            self.put(PODS, pod)

    def _all(self, resource: Resource, kind: type[_Kind]) -> Iterator[_Kind]:
        return (it for it in self._objects[resource].values() if isinstance(it, kind))

    def _index(self, before: Record | None, after: Record | None) -> None:
        either = after or before
        if isinstance(either, Node | CsiNode):
            self._touched.add(either.metadata.name)
            self._tell_of_node(before, after)
        elif isinstance(either, Pod):
            was = before if isinstance(before, Pod) else None
            now = after if isinstance(after, Pod) else None
            if was is not None:
                self._pods_on[was.spec.node_name].pop(was.metadata.key, None)
                self._touched.add(was.spec.node_name)
                self._forget_claims(was)
            if now is not None:
                for claim in now.claims:
                    self._pods_using[claim][now.metadata.key] = now
                self._pods_on[now.spec.node_name][now.metadata.key] = now
                self._touched.add(now.spec.node_name)
            for changed in self._listeners:
                changed(was, now)
        elif isinstance(either, Attachment):
            self._touched.add(either.spec.node_name)
            volume = either.spec.source.persistent_volume_name or ""
            places = self._attachments_on[either.spec.node_name], self._attachments_of[volume]
            for there in places:
                if isinstance(after, Attachment):
                    there[after.metadata.key] = after
                else:
                    there.pop(either.metadata.key, None)

    def _tell_of_node(self, before: Record | None, after: Record | None) -> None:
        was = before if isinstance(before, Node) else None
        now = after if isinstance(after, Node) else None
        if was or now:
            for changed in self._node_listeners:
                changed(was, now)

    def _forget_claims(self, pod: Pod) -> None:
        for claim in pod.claims:
            self._pods_using[claim].pop(pod.metadata.key, None)
            if not self._pods_using[claim]:
                del self._pods_using[claim]


def _is_older(record: Record, known: Record) -> bool:
    """Whether one state of an object came before another, as far as versions tell."""
    new, old = record.metadata.resource_version, known.metadata.resource_version
    return precedes(new, old)


def precedes(version: str, other: str) -> bool:
    """Whether one version came before another. They are numbers, wherever etcd makes them."""
    return version.isdigit() and other.isdigit() and int(version) < int(other)


def _is_true(conditions: list[Condition] | None, type_: str) -> bool:
    return any(it.type == type_ and it.status == "True" for it in conditions or ())
