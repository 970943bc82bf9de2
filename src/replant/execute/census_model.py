"""What a cluster has at one moment, as far as a migration could harm it: small, to be kept."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

from msgspec import Struct, field

from replant.errors import TranslationError
from replant.inventory.driverpods import DriverPods
from replant.objects import Object
from replant.routing import VolumeView
from replant.routing.names import csi_name, in_tree_name
from replant.translate import inline_to_csi, plugin_of, pv_to_csi


class Disk(Struct, frozen=True, array_like=True, gc=False):
    """What a volume is called: its disk is one, its names are two."""

    plugin: str
    native: bool
    in_tree: str
    """The name in the tree; nothing for a native one."""
    csi: str


def disk_of(pv: Object) -> Disk | None:
    """The disk of a PersistentVolume; None where no plugin of the migration has to do with it."""
    try:
        view = VolumeView.of(pv)
        csi = (pv if view.native else pv_to_csi(pv))["spec"]["csi"]
    except TranslationError:
        return None  # no driver serves it, or ever will: a scan has said so
    if not view.plugin:
        return None
    in_tree = "" if view.native else in_tree_name(view.plugin, pv["spec"])
    name = csi_name(view.driver, csi.get("volumeHandle", ""))
    return Disk(view.plugin, view.native, in_tree, name)


def inline_disk(source: Object, namespace: str) -> Disk | None:
    """The disk that a pod's volume names by itself; None where it names none of a plugin."""
    plugin = plugin_of(source)
    if plugin is None:
        return None
    try:
        csi = inline_to_csi(source, namespace)["spec"]["csi"]
    except TranslationError:
        return None
    name = csi_name(csi["driver"], csi.get("volumeHandle", ""))
    return Disk(plugin, native=False, in_tree=in_tree_name(plugin, source), csi=name)


class Volume(Struct, frozen=True, array_like=True, gc=False):
    """A PersistentVolume."""

    name: str
    digest: str
    """Of its spec, without what controllers change."""
    phase: str = ""
    claim: str = ""
    """The claim that says it has this volume."""
    provisioned_by: str | None = None
    migrated_to: str | None = None
    annotations: dict[str, str] = {}
    """Those that a plan may write."""
    disk: Disk | None = None
    """None for a volume that no plugin of the migration has to do with."""
    shared: bool = False
    """Whether more than one node may have it."""


class Pod(Struct, frozen=True, array_like=True, gc=False):
    """A pod that has not ended."""

    key: str
    """Namespace and name."""
    owner: str
    """What makes it again, as Kind/name; nothing for one that nobody does."""
    ready: bool
    leaving: bool = False
    node: str = ""
    uid: str = ""
    claims: tuple[str, ...] = ()
    """With their namespace."""
    inline: tuple[Disk, ...] = ()

    @property
    def namespace(self) -> str:
        """Where it is."""
        return self.key.partition("/")[0]


class Node(Struct, frozen=True, array_like=True, gc=False):
    """A node, and what it says of volumes."""

    name: str
    ready: bool
    cordoned: bool
    attached: tuple[str, ...] = ()
    in_use: tuple[str, ...] = ()
    csi_node: bool = False
    migrated: tuple[str, ...] = ()
    drivers: tuple[str, ...] = ()


class Attachment(Struct, frozen=True, array_like=True, gc=False):
    """A VolumeAttachment."""

    name: str
    attacher: str
    node: str
    volume: str
    """The PersistentVolume; nothing for a pod's own volume."""
    csi: str
    """The name of a pod's own volume."""
    attached: bool
    deleting: bool
    error: str = ""


class Trouble(Struct, frozen=True, array_like=True, gc=False):
    """What was told about a pod that does not get its volume."""

    pod: str
    uid: str
    count: int
    message: str


class Census(Struct, frozen=True, kw_only=True):
    """What a cluster has."""

    volumes: tuple[Volume, ...] = ()
    lost: tuple[tuple[str, str], ...] = ()
    """Claims whose volume is gone, and what it was called."""
    classes: dict[str, str] = {}
    """The digest of each."""
    pods: tuple[Pod, ...] = ()
    ended: tuple[str, ...] = ()
    """Pods that nobody made, and that have ended well."""
    wanted: dict[str, int] = {}
    """How many pods each workload is to have, by namespace/Kind/name; none that is to have none."""
    nodes: tuple[Node, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    """About pods that are there."""
    driver_pods: DriverPods = field(default_factory=DriverPods)
    """Whose logs to read."""


Place = tuple[str, str]
"""A node, and the name of a volume there."""


@dataclass(frozen=True)
class Joined:
    """A census, with what belongs together found once."""

    census: Census

    @cached_property
    def volumes(self) -> dict[str, Volume]:
        """Volumes by their name."""
        return {it.name: it for it in self.census.volumes}

    @cached_property
    def nodes(self) -> dict[str, Node]:
        """Nodes by their name."""
        return {it.name: it for it in self.census.nodes}

    @cached_property
    def pods(self) -> dict[str, Pod]:
        """Pods by namespace and name."""
        return {it.key: it for it in self.census.pods}

    @cached_property
    def _claimed(self) -> dict[str, Volume]:
        return {it.claim: it for it in self.census.volumes if it.claim}

    @cached_property
    def titles(self) -> dict[str, str]:
        """What a person calls the volume behind a name."""
        found = {}
        for volume in self.census.volumes:
            if disk := volume.disk:
                found[disk.csi] = found[disk.in_tree] = volume.name
        return found

    def disks_of(self, pod: Pod) -> list[Disk]:
        """The disks of a pod that have to do with a plugin of the migration."""
        volumes = (self._claimed.get(claim) for claim in pod.claims)
        return [it.disk for it in volumes if it and it.disk] + list(pod.inline)

    @cached_property
    def places(self) -> frozenset[Place]:
        """Where pods are, with the names that their disks may be attached by there."""
        return frozenset(
            (pod.node, name)
            for pod in self.census.pods
            if pod.node
            for disk in self.disks_of(pod)
            for name in (disk.csi, disk.in_tree)
        )

    @cached_property
    def held(self) -> dict[Place, Attachment]:
        """The VolumeAttachments, by where they are and what they are about."""
        return {(it.node, self.called(it)): it for it in self.census.attachments}

    def called(self, attachment: Attachment) -> str:
        """The name of the volume that an attachment is about; its own where that is gone."""
        volume = self.volumes.get(attachment.volume)
        if volume and volume.disk:
            return volume.disk.csi
        return attachment.csi or attachment.name

    @cached_property
    def unused(self) -> frozenset[Place]:
        """What is attached where no pod has it."""
        told = {(node.name, name) for node in self.census.nodes for name in node.attached}
        return frozenset((told | self.held.keys()) - self.places)


def baseline(census: Census) -> Census:
    """As much of a census as a later one is compared with: what is worth keeping in a journal.

    Of what is attached only that stays which nobody used even then: it is not the plan's fault.
    """
    joined, grouped = Joined(census), defaultdict(list)
    for node, name in sorted(joined.unused):
        grouped[node].append(name)
    return Census(
        volumes=tuple(Volume(it.name, it.digest, it.phase) for it in census.volumes),
        lost=census.lost,
        classes=census.classes,
        pods=tuple(
            Pod(it.key, it.owner, it.ready, uid=it.uid if disks else "")
            for it in census.pods
            if (disks := joined.disks_of(it)) or it.ready
        ),
        nodes=(
            *(
                Node(
                    it.name,
                    it.ready,
                    it.cordoned,
                    attached=tuple(grouped.pop(it.name, ())),
                    migrated=it.migrated,
                )
                for it in census.nodes
            ),
            # What is left hangs on nodes that are gone.
            *(
                Node(name, ready=False, cordoned=False, attached=tuple(names))
                for name, names in grouped.items()
            ),
        ),
        troubles=census.troubles,
    )
