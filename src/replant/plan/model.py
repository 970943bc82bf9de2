"""A plan and its steps, as they are written to a file and read back.

Everything that a step needs is in it, and so is everything that its undoing needs: what a
component was given before, and the whole of each object that is replaced.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from replant.routing import AttachController

API_VERSION: Literal["replant.dev/v1alpha1"] = "replant.dev/v1alpha1"
KIND: Literal["MigrationPlan"] = "MigrationPlan"

GivenGates = dict[str, bool | None]
"""Gates as a component is given them; None is one that it is not given, and so has its default."""


class Goal(StrEnum):
    """What a plan is for."""

    ENABLE = "enable"
    DISABLE = "disable"
    COMPLETE = "complete"
    DOWNGRADE = "downgrade"
    CONVERT = "convert"
    UNDO = "undo"


class Weight(StrEnum):
    """What a preflight check found."""

    PASSED = "passed"
    WARNING = "warning"
    BLOCKER = "blocker"


class NodeMethod(StrEnum):
    """How a node comes to its new kubelet."""

    IN_PLACE = "in-place"
    REPLACE = "replace"
    """Its machine is replaced by a new one, as a rolling update does."""
    PLATFORM = "platform"
    """The platform cordons, drains and switches all nodes by itself, once it is asked."""


class _Part(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    rename="camel",
):
    """Part of a plan: a field that is not known is refused, not lost."""


class Check(_Part, frozen=True, kw_only=True):
    """One thing that was looked at before anything is touched."""

    check: str
    """What was looked at: a stable word."""
    result: Weight
    message: str
    object: str = ""
    fix: str = ""


class Component(_Part, frozen=True, kw_only=True):
    """A control-plane component that a step switches."""

    name: str
    why: str
    gates: GivenGates = field(default_factory=dict)
    before: GivenGates = field(default_factory=dict)
    remove_flags: dict[str, str] = field(default_factory=dict)
    """Flags that go, each with the value that it had."""
    add_flags: dict[str, str] = field(default_factory=dict)
    """Flags that come back, when their removal is undone."""


class NodeGroup(_Part, frozen=True, kw_only=True):
    """Nodes in the same situation, when the plan was made."""

    name: str
    version: str
    gates: GivenGates
    """What their kubelets are given, as far as it concerns the plan's plugins."""
    drivers: tuple[str, ...]
    """The plugins' drivers that are on every one of them."""
    nodes: Annotated[tuple[str, ...], Meta(min_length=1)]
    cordoned: tuple[str, ...] = ()
    """Those that somebody had cordoned: they stay so."""


class ControlPlane(_Part, frozen=True, kw_only=True):
    """The control plane, when the plan was made."""

    version: str
    gates: GivenGates
    """What kube-controller-manager is given, as far as it concerns the plan's plugins."""
    drivers: tuple[str, ...]
    """The plugins' drivers that are installed."""
    replicas: int
    """Of kube-controller-manager; 0 where they cannot be seen."""


class NodeChange(_Part, frozen=True, kw_only=True):
    """What the kubelets of one group are given."""

    group: str
    gates: GivenGates
    before: GivenGates


class VolumeAnnotations(_Part, frozen=True, kw_only=True):
    """Annotations that a volume is given; None is one that goes."""

    name: str
    annotations: dict[str, str | None]
    before: dict[str, str | None]


class ClassChange(_Part, frozen=True, kw_only=True):
    """A StorageClass that is deleted and made again under its name; both are whole."""

    before: dict[str, Any]
    after: dict[str, Any]


class VolumeSwap(_Part, frozen=True, kw_only=True):
    """A volume that is replaced by its twin."""

    name: str
    driver: str
    handle: str
    """What the driver calls the disk: a volume of this name that has another one is left alone."""
    claim: str = ""
    """With its namespace; nothing where no claim has it."""
    free_of: tuple[str, ...] = ()
    """Names by which no node may have it attached when it is replaced; where there is none, it
    may be in use all the while."""
    annotations: dict[str, str] = field(default_factory=dict)
    """What the native one says beyond what the in-tree one said."""
    retain: bool = False
    """Whether the native one gets the policy Retain, because nobody deletes the disk of this one
    although its policy is Delete."""
    accept_finalizers: tuple[str, ...] = ()
    """Finalizers that may be removed although it is not known what their controllers do."""


class SavedVolume(_Part, frozen=True, kw_only=True):
    """A volume and its claim, whole, as they were before the volume was replaced."""

    volume: dict[str, Any]
    claim: dict[str, Any] | None = None


class Scaling(_Part, frozen=True, kw_only=True):
    """A workload that is without pods for a while."""

    kind: str
    namespace: str
    name: str
    replicas: Annotated[int, Meta(ge=0)]
    """Those that it has before, and again afterwards."""


class TemplateVolume(_Part, frozen=True, kw_only=True):
    """A volume of a pod's template, whole, as it is and as it will be; its name stays."""

    before: dict[str, Any]
    after: dict[str, Any]


class TemplateChange(_Part, frozen=True, kw_only=True):
    """A workload whose pods are to name claims instead of disks."""

    kind: str
    namespace: str
    name: str
    volumes: tuple[TemplateVolume, ...]
    free_of: tuple[str, ...] = ()
    """Names by which no node may have a disk attached when the template is changed; where there
    is none, both sides call it the same, and pods are replaced one after the other."""


class _Step(_Part, frozen=True, kw_only=True, tag_field="kind"):
    id: Annotated[str, Meta(min_length=1)]
    title: Annotated[str, Meta(min_length=1)]
    why: str
    done_when: str
    """What is to be observed for it to count as done."""
    undo: str
    """How it is taken back."""
    after: tuple[str, ...] = ()
    """The steps that must be done before it."""


class AnnotateVolumes(_Step, frozen=True, kw_only=True, tag="AnnotateVolumes"):
    """Gives volumes annotations that their driver needs."""

    volumes: tuple[VolumeAnnotations, ...]


class SwitchControlPlane(_Step, frozen=True, kw_only=True, tag="SwitchControlPlane"):
    """Gives control-plane components other flags, on all replicas."""

    components: tuple[Component, ...]
    by_name: bool = False
    """Whether the gates have to be given although they are on by default: so they stay on at
    versions where they are not."""


class RollNodes(_Step, frozen=True, kw_only=True, tag="RollNodes"):
    """Gives kubelets other gates, node by node."""

    changes: tuple[NodeChange, ...]
    method: NodeMethod
    drain: bool
    max_unavailable: Annotated[int, Meta(ge=1)]
    settle_seconds: Annotated[int, Meta(ge=0)]
    """How long to wait beyond what can be seen: the cloud ends a detach after the node's status
    says so, and the controllers hear of an annotation after it is written."""
    each_node: tuple[str, ...]
    """What is done for each node, in this order."""
    restart_controllers_seconds: Annotated[int, Meta(ge=0)] = 0
    """So long at most one kube-controller-manager leads while nodes are rolled, and none of those
    that did leads afterwards. 0 where it does not matter who leads."""
    restrict_scheduling: bool = False
    """Whether, while nodes differ, a pod is kept from nodes of the other kind than those that hold
    its volumes: by a taint on each node, and tolerations that pods get once that is safe."""
    by_name: bool = False
    """As in SwitchControlPlane."""


class ChangeVersion(_Step, frozen=True, kw_only=True, tag="ChangeVersion"):
    """Has the platform take the cluster to another version: the control plane, then the nodes."""

    version: Annotated[str, Meta(min_length=1)]
    """Of Kubernetes; only its minor counts."""
    before: Annotated[str, Meta(min_length=1)]
    restart_controllers_seconds: Annotated[int, Meta(ge=0)] = 0
    restrict_scheduling: bool = False
    """Both as in RollNodes."""


class ReplaceClasses(_Step, frozen=True, kw_only=True, tag="ReplaceClasses"):
    """Makes StorageClasses again under their names, with the driver as provisioner."""

    classes: tuple[ClassChange, ...]


class CreateObjects(_Step, frozen=True, kw_only=True, tag="CreateObjects"):
    """Makes objects, in this order, that are not there yet."""

    objects: tuple[dict[str, Any], ...]


class RemoveObjects(_Step, frozen=True, kw_only=True, tag="RemoveObjects"):
    """Deletes objects that the same run has made, the last first, unless a pod uses them."""

    objects: tuple[dict[str, Any], ...]


class SwapVolumes(_Step, frozen=True, kw_only=True, tag="SwapVolumes"):
    """Replaces stored in-tree volumes by native ones, under their names."""

    volumes: tuple[VolumeSwap, ...]
    settle_seconds: Annotated[int, Meta(ge=0)] = 0
    """How long those that must be free have to be so: the cloud ends a detach after the node's
    status says so."""
    restart_controllers: bool = False
    """Whether another kube-controller-manager has to lead between their detach and their being
    replaced, one that cannot wait for a detach which the driver overtakes."""
    accept_controllers: tuple[str, ...] = ()
    """Controllers that may run although they are known to delete the storage of deleted volumes."""


class RestoreVolumes(_Step, frozen=True, kw_only=True, tag="RestoreVolumes"):
    """Replaces native volumes by the in-tree ones that they came from."""

    volumes: tuple[VolumeSwap, ...]
    settle_seconds: Annotated[int, Meta(ge=0)] = 0
    restart_controllers: bool = False
    """Both as of the step that it takes back."""
    accept_controllers: tuple[str, ...] = ()
    saved: tuple[SavedVolume, ...] = ()
    """What the journals of earlier runs have of them; the run's own journal has the rest."""


class RewriteTemplates(_Step, frozen=True, kw_only=True, tag="RewriteTemplates"):
    """Has workloads name claims instead of disks, and waits until their pods are replaced."""

    workloads: tuple[TemplateChange, ...]
    settle_seconds: Annotated[int, Meta(ge=0)] = 0
    """How long disks that must be free have to be so: the cloud ends a detach after the node's
    status says so, and would end it under a pod that has it there by its other name."""
    restart_controllers: bool = False
    """As in SwapVolumes."""


class ScaleWorkloads(_Step, frozen=True, kw_only=True, tag="ScaleWorkloads"):
    """Takes the pods of workloads away, or gives them back in the same order."""

    workloads: tuple[Scaling, ...]
    down: bool


Step = (
    AnnotateVolumes
    | SwitchControlPlane
    | RollNodes
    | ChangeVersion
    | ReplaceClasses
    | CreateObjects
    | RemoveObjects
    | SwapVolumes
    | RestoreVolumes
    | RewriteTemplates
    | ScaleWorkloads
)


class Proof(_Part, frozen=True, kw_only=True):
    """What the search over everything that may happen found."""

    safe: bool
    bad_state: str | None
    states: int
    plugin: str = ""
    """Whose volumes come to harm, where any do."""
    story: tuple[str, ...] = ()


class Plan(_Part, frozen=True, kw_only=True):
    """What to do about some plugins of one cluster, in this order."""

    api_version: Literal["replant.dev/v1alpha1"]
    kind: Literal["MigrationPlan"]
    goal: Goal
    plugins: Annotated[tuple[str, ...], Meta(min_length=1)]
    platform: str
    attach_controller: AttachController
    fingerprint: str
    """Of the inventory that it was made from; on another it is refused."""
    empty: bool = False
    """Whether the cluster has no volume of these plugins: then nothing needs a drain."""
    one_pod_per_volume: bool = False
    """Whether whoever made the plan vouches that no pod is started for a volume while another pod
    uses it."""
    control_plane: ControlPlane
    groups: Annotated[tuple[NodeGroup, ...], Meta(min_length=1)]
    preflight: tuple[Check, ...]
    steps: tuple[Step, ...]
    proof: Proof | None = None
    """Made last, of everything above."""

    @property
    def blockers(self) -> tuple[Check, ...]:
        """What keeps the plan from being carried out."""
        return tuple(it for it in self.preflight if it.result is Weight.BLOCKER)

    @property
    def done_as_far_as_possible(self) -> bool:
        """Whether there is no step although not all is as it was asked for.

        A conversion warns of what it leaves as it is; what else is warned of may need no step.
        """
        warned = any(it.result is Weight.WARNING for it in self.preflight)
        refused = self.blockers or (self.goal is Goal.CONVERT and warned)
        return not self.steps and bool(refused)
