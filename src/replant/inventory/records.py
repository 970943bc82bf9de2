"""The fields of Kubernetes objects that an inventory needs, and no others.

Whoever reads decodes straight into these: what a scan does not need is never built up. A field
whose name is not here is skipped; a field of the wrong type makes the object unusable, and the
reader says so.
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw, Struct, field

Strings = dict[str, str]


class OwnerReference(Struct, gc=False):
    """What made an object."""

    kind: str = ""
    name: str = ""
    controller: bool | None = None


class Metadata(Struct, gc=False):
    """Names, and what tells the state of an object."""

    name: str = ""
    namespace: str | None = None
    labels: Strings | None = None
    annotations: Strings | None = None
    deletionTimestamp: str | None = None  # noqa: N815 - the API's own name, as below
    ownerReferences: list[OwnerReference] | None = None  # noqa: N815


class Record(Struct, gc=False, kw_only=True):
    """What all objects have."""

    metadata: Metadata = field(default_factory=Metadata)


class VolumeStatus(Struct, gc=False):
    """Whether a claim has it."""

    phase: str | None = None


class PersistentVolume(Record, gc=False, kw_only=True):
    """Its spec stays text: translating it needs all of it, and built up it is five times larger."""

    spec: Raw = Raw(b"{}")
    status: VolumeStatus | None = None


class Resources(Struct, gc=False):
    """Requests of a claim."""

    requests: dict[str, Any] | None = None


class ClaimSpec(Struct, gc=False):
    """What a claim asks for."""

    storageClassName: str | None = None  # noqa: N815
    volumeName: str | None = None  # noqa: N815
    resources: Resources | None = None


class Condition(Struct, gc=False):
    """A condition of an object."""

    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None


class ClaimStatus(Struct, gc=False):
    """What a claim has."""

    phase: str | None = None
    capacity: dict[str, Any] | None = None
    conditions: list[Condition] | None = None


class ClaimMetadata(Struct, gc=False):
    """What tells claims apart."""

    name: str = ""
    uid: str = ""
    namespace: str | None = None
    labels: Strings | None = None
    annotations: Strings | None = None
    """Of claims that have no volume yet: who is asked for one, and where it is wanted."""


class PersistentVolumeClaim(Struct, gc=False):
    """A claim."""

    metadata: ClaimMetadata = field(default_factory=ClaimMetadata)
    spec: ClaimSpec = field(default_factory=ClaimSpec)
    status: ClaimStatus | None = None

    @property
    def is_pending(self) -> bool:
        """Whether it says that it has no volume yet."""
        return self.status is not None and self.status.phase == "Pending"


class StorageClass(Record, gc=False, kw_only=True):
    """A class, with all that it takes to translate it and to make it again."""

    provisioner: str = ""
    parameters: Strings | None = None
    allowedTopologies: list[dict[str, Any]] | None = None  # noqa: N815
    reclaimPolicy: str | None = None  # noqa: N815
    mountOptions: list[str] | None = None  # noqa: N815
    volumeBindingMode: str | None = None  # noqa: N815
    allowVolumeExpansion: bool | None = None  # noqa: N815


class ClaimReference(Struct, gc=False):
    """A pod's reference to a claim."""

    claimName: str = ""  # noqa: N815


class Ephemeral(Struct, gc=False):
    """A claim that lives as long as its pod."""


class PodVolume(Struct, gc=False):
    """A volume of a pod: a claim, or one of the sources that concern us."""

    name: str = ""
    persistentVolumeClaim: ClaimReference | None = None  # noqa: N815
    ephemeral: Ephemeral | None = None
    awsElasticBlockStore: dict[str, Any] | None = None  # noqa: N815
    gcePersistentDisk: dict[str, Any] | None = None  # noqa: N815
    cinder: dict[str, Any] | None = None
    azureDisk: dict[str, Any] | None = None  # noqa: N815
    azureFile: dict[str, Any] | None = None  # noqa: N815
    vsphereVolume: dict[str, Any] | None = None  # noqa: N815
    portworxVolume: dict[str, Any] | None = None  # noqa: N815
    rbd: dict[str, Any] | None = None
    cephfs: dict[str, Any] | None = None
    flocker: dict[str, Any] | None = None
    glusterfs: dict[str, Any] | None = None
    photonPersistentDisk: dict[str, Any] | None = None  # noqa: N815
    quobyte: dict[str, Any] | None = None
    scaleIO: dict[str, Any] | None = None  # noqa: N815
    storageos: dict[str, Any] | None = None


class SecurityContext(Struct, gc=False):
    """Whether a pod wants its volumes' files to belong to a group."""

    fsGroup: int | None = None  # noqa: N815


class Container(Struct, gc=False):
    """The flags of a component that runs as a pod."""

    command: list[str] | None = None
    args: list[str] | None = None


class PodSpec(Struct, gc=False):
    """What a pod mounts, and where it runs."""

    nodeName: str | None = None  # noqa: N815
    volumes: list[PodVolume] | None = None
    securityContext: SecurityContext | None = None  # noqa: N815
    containers: Raw = Raw(b"[]")
    """Wanted of control-plane components alone, so left as they are written."""


class Waiting(Struct, gc=False):
    """Why a container does not run yet."""

    reason: str | None = None
    message: str | None = None


class ContainerState(Struct, gc=False):
    """The state of a container, where it waits."""

    waiting: Waiting | None = None


class ContainerStatus(Struct, gc=False):
    """The status of one container."""

    state: ContainerState | None = None


class PodStatus(Struct, gc=False):
    """How a pod does."""

    phase: str | None = None
    containerStatuses: Raw = Raw(b"[]")  # noqa: N815
    """Wanted of pods that do not run, so left as they are written."""


class PodMetadata(Struct, gc=False):
    """What tells pods apart, and what selects them."""

    name: str = ""
    namespace: str | None = None
    labels: Strings | None = None
    ownerReferences: list[OwnerReference] | None = None  # noqa: N815


class Pod(Struct, gc=False):
    """A pod."""

    metadata: PodMetadata = field(default_factory=PodMetadata)
    spec: PodSpec = field(default_factory=PodSpec)
    status: PodStatus | None = None


class PodTemplate(Struct, gc=False):
    """What a workload makes pods of."""

    spec: PodSpec | None = None


class ClaimTemplate(Struct, gc=False):
    """What a StatefulSet makes claims of."""

    metadata: Metadata = field(default_factory=Metadata)
    spec: ClaimSpec = field(default_factory=ClaimSpec)


class JobSpec(Struct, gc=False):
    """A job's pods."""

    template: PodTemplate | None = None


class JobTemplate(Struct, gc=False):
    """What a CronJob makes jobs of."""

    spec: JobSpec | None = None


class RollingUpdate(Struct, gc=False):
    """How many pods may be missing, or too many, and which stay, while others are replaced."""

    maxUnavailable: int | str | None = None  # noqa: N815
    maxSurge: int | str | None = None  # noqa: N815
    partition: int | None = None


class UpdateStrategy(Struct, gc=False):
    """How a workload's pods are replaced when its template changes."""

    type: str | None = None
    rollingUpdate: RollingUpdate | None = None  # noqa: N815


class WorkloadSpec(Struct, gc=False):
    """The pods that a workload makes, wherever its kind keeps them, how many, and how anew."""

    replicas: int | None = None
    paused: bool | None = None
    strategy: UpdateStrategy | None = None
    """A Deployment's; others call it updateStrategy."""
    updateStrategy: UpdateStrategy | None = None  # noqa: N815
    template: PodTemplate | None = None
    jobTemplate: JobTemplate | None = None  # noqa: N815
    volumeClaimTemplates: list[ClaimTemplate] | None = None  # noqa: N815


class Workload(Record, gc=False, kw_only=True):
    """Anything that makes pods."""

    kind: str = ""
    spec: WorkloadSpec = field(default_factory=WorkloadSpec)


class NodeSpec(Struct, gc=False):
    """Where a node lives, and whether it takes new pods."""

    providerID: str | None = None  # noqa: N815
    unschedulable: bool | None = None


class VolumeAttached(Struct, gc=False):
    """A volume that a node's status says is attached."""

    name: str = ""


class NodeInfo(Struct, gc=False):
    """Which kubelet a node runs."""

    kubeletVersion: str | None = None  # noqa: N815


class NodeCondition(Struct, gc=False):
    """A condition of a node, without its reason and message, which nobody asks for."""

    type: str = ""
    status: str = ""


class NodeStatus(Struct, gc=False):
    """How a node does, what is attached to it, and which kubelet runs there."""

    conditions: list[NodeCondition] | None = None
    volumesAttached: list[VolumeAttached] | None = None  # noqa: N815
    volumesInUse: list[str] | None = None  # noqa: N815
    nodeInfo: NodeInfo | None = None  # noqa: N815


class Node(Record, gc=False, kw_only=True):
    """A node."""

    spec: NodeSpec | None = None
    status: NodeStatus | None = None


class NodeDriver(Struct, gc=False):
    """A CSI driver that is registered on a node."""

    name: str = ""
    topologyKeys: list[str] | None = None  # noqa: N815


class CSINodeSpec(Struct, gc=False):
    """The CSI drivers of a node."""

    drivers: list[NodeDriver] | None = None


class CSINode(Record, gc=False, kw_only=True):
    """What a node says of CSI."""

    spec: CSINodeSpec = field(default_factory=CSINodeSpec)


class CSIDriverSpec(Struct, gc=False):
    """How a driver treats the group of files."""

    fsGroupPolicy: str | None = None  # noqa: N815


class CSIDriver(Record, gc=False, kw_only=True):
    """A CSI driver that is installed."""

    spec: CSIDriverSpec = field(default_factory=CSIDriverSpec)


class AttachmentSource(Struct, gc=False):
    """Which volume is attached."""

    persistentVolumeName: str | None = None  # noqa: N815
    inlineVolumeSpec: dict[str, Any] | None = None  # noqa: N815


class AttachmentSpec(Struct, gc=False):
    """Which volume is to be attached where, and by which driver."""

    attacher: str = ""
    nodeName: str = ""  # noqa: N815
    source: AttachmentSource = field(default_factory=AttachmentSource)


class AttachmentError(Struct, gc=False):
    """Why a volume could not be attached or detached."""

    message: str | None = None


class AttachmentStatus(Struct, gc=False):
    """Whether the volume is attached."""

    attached: bool = False
    attachError: AttachmentError | None = None  # noqa: N815
    detachError: AttachmentError | None = None  # noqa: N815


class VolumeAttachment(Record, gc=False, kw_only=True):
    """An attachment by a CSI driver."""

    spec: AttachmentSpec = field(default_factory=AttachmentSpec)
    status: AttachmentStatus | None = None


class LabelRequirement(Struct, gc=False):
    """One of a selector's expressions."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class LabelSelector(Struct, gc=False):
    """Which objects are meant, by their labels."""

    matchLabels: Strings | None = None  # noqa: N815
    matchExpressions: list[LabelRequirement] | None = None  # noqa: N815


class BudgetSpec(Struct, gc=False):
    """Which pods a budget protects, and how many of them may be missing."""

    selector: LabelSelector | None = None
    minAvailable: int | str | None = None  # noqa: N815
    maxUnavailable: int | str | None = None  # noqa: N815


class BudgetStatus(Struct, gc=False):
    """How many pods may be evicted now, and what that was reckoned from."""

    disruptionsAllowed: int = 0  # noqa: N815
    currentHealthy: int = 0  # noqa: N815
    desiredHealthy: int = 0  # noqa: N815
    expectedPods: int = 0  # noqa: N815


class PodDisruptionBudget(Record, gc=False, kw_only=True):
    """What keeps pods from being evicted."""

    spec: BudgetSpec = field(default_factory=BudgetSpec)
    status: BudgetStatus | None = None


class CustomGates(Struct, gc=False):
    """Gates that a FeatureGate lists by themselves."""

    enabled: list[str] | None = None
    disabled: list[str] | None = None


class FeatureGateSpec(Struct, gc=False, rename="camel"):
    """Which features a whole OpenShift has."""

    feature_set: str | None = None
    custom_no_upgrade: CustomGates | None = None


class FeatureGate(Record, gc=False, kw_only=True):
    """OpenShift's only one."""

    spec: FeatureGateSpec | None = None


class Shoot(Record, gc=False, kw_only=True):
    """A cluster that Gardener keeps. Its spec is judged as an object, as webhooks are given it."""

    spec: dict[str, Any] | None = None


class ClusterSpec(Struct, gc=False):
    """What a seed knows of a shoot, without its cloud's profile, which is large."""

    shoot: dict[str, Any] | None = None


class Cluster(Record, gc=False, kw_only=True):
    """A shoot, as its seed has it."""

    spec: ClusterSpec = field(default_factory=ClusterSpec)


TYPES: dict[str, type[Struct]] = {
    "PersistentVolume": PersistentVolume,
    "PersistentVolumeClaim": PersistentVolumeClaim,
    "StorageClass": StorageClass,
    "Pod": Pod,
    "Deployment": Workload,
    "StatefulSet": Workload,
    "DaemonSet": Workload,
    "ReplicaSet": Workload,
    "ReplicationController": Workload,
    "Job": Workload,
    "CronJob": Workload,
    "Node": Node,
    "CSINode": CSINode,
    "CSIDriver": CSIDriver,
    "VolumeAttachment": VolumeAttachment,
    "PodDisruptionBudget": PodDisruptionBudget,
    "FeatureGate": FeatureGate,
    "Shoot": Shoot,
    "Cluster": Cluster,
}
"""How each kind that an inventory needs is read."""

OF_PLATFORMS = frozenset({"FeatureGate", "Shoot", "Cluster"})
"""Kinds that most clusters do not have: nobody misses them."""
