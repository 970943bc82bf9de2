"""The fields that a census needs beyond those of an inventory, and no others."""

from __future__ import annotations

from typing import Any

from msgspec import Raw, Struct, field

from replant.inventory.metadata import OwnerReference, Strings
from replant.inventory.node_records import NodeCondition
from replant.inventory.pod_records import PodVolume


class Metadata(Struct, gc=False):
    """Names, and what tells the state of an object."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: Strings | None = None
    annotations: Strings | None = None
    deletionTimestamp: str | None = None  # noqa: N815 - the API's own name, as below
    ownerReferences: list[OwnerReference] | None = None  # noqa: N815

    @property
    def key(self) -> str:
        """Namespace and name."""
        return f"{self.namespace}/{self.name}"


class _Record(Struct, gc=False, kw_only=True):
    metadata: Metadata = field(default_factory=Metadata)


class Phase(Struct, gc=False):
    """How far a volume or a claim is."""

    phase: str = ""


class PersistentVolume(_Record, gc=False, kw_only=True):
    """A volume, whole: its digest is of nearly all of it."""

    spec: dict[str, Any] = field(default_factory=dict)
    status: Phase | None = None


class ClaimSpec(Struct, gc=False):
    """Which volume a claim has."""

    volumeName: str | None = None  # noqa: N815


class PersistentVolumeClaim(_Record, gc=False, kw_only=True):
    """A claim."""

    spec: ClaimSpec = field(default_factory=ClaimSpec)
    status: Phase | None = None


class PodSpec(Struct, gc=False):
    """Where a pod is, and what it mounts."""

    nodeName: str | None = None  # noqa: N815
    volumes: list[PodVolume] | None = None
    containers: Raw = Raw(b"[]")
    """Wanted of drivers' pods alone, so left as they are written."""


class PodStatus(Struct, gc=False):
    """How a pod does."""

    phase: str | None = None
    conditions: list[NodeCondition] | None = None


class Pod(_Record, gc=False, kw_only=True):
    """A pod."""

    spec: PodSpec = field(default_factory=PodSpec)
    status: PodStatus | None = None


class WorkloadSpec(Struct, gc=False):
    """How many pods a workload is to have."""

    replicas: int | None = None


class WorkloadStatus(Struct, gc=False):
    """How many nodes are to have a DaemonSet's pod."""

    desiredNumberScheduled: int | None = None  # noqa: N815


class Workload(_Record, gc=False, kw_only=True):
    """Something that keeps a number of pods."""

    spec: WorkloadSpec = field(default_factory=WorkloadSpec)
    status: WorkloadStatus | None = None

    @property
    def wanted(self) -> int:
        """How many pods it is to have."""
        if self.status and self.status.desiredNumberScheduled is not None:
            return self.status.desiredNumberScheduled
        return 1 if self.spec.replicas is None else self.spec.replicas


class Involved(Struct, gc=False):
    """What an event is about."""

    namespace: str = ""
    name: str = ""
    uid: str = ""


class Series(Struct, gc=False):
    """How often an event was seen, where it is counted in the newer way."""

    count: int = 0


class Event(Struct, gc=False, kw_only=True):
    """What somebody told about a pod."""

    involvedObject: Involved = field(default_factory=Involved)  # noqa: N815
    reason: str | None = None
    message: str | None = None
    count: int | None = None
    series: Series | None = None

    @property
    def times(self) -> int:
        """How often it was seen."""
        return max(self.count or 0, self.series.count if self.series else 0, 1)
