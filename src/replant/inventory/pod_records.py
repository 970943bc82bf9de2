"""What an inventory needs of pods: what they mount, where they run and how they do."""

from __future__ import annotations

from typing import Any

from msgspec import Raw, Struct, field

from replant.inventory.metadata import OwnerReference, Strings


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


class Toleration(Struct, gc=False):
    """A taint that a pod tolerates; without a key, all of them."""

    key: str = ""
    operator: str = ""


class TemplateSpec(PodSpec, gc=False):
    """What a workload makes pods of."""

    tolerations: list[Toleration] | None = None

    @property
    def tolerates_everything(self) -> bool:
        """Whether no taint keeps such a pod from a node."""
        return any(not it.key and it.operator == "Exists" for it in self.tolerations or ())


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
