"""What an inventory needs of what makes pods, and of the budgets that keep them."""

from __future__ import annotations

from msgspec import Struct, field

from replant.inventory.metadata import LabelSelector, Metadata, Record
from replant.inventory.pod_records import TemplateSpec
from replant.inventory.storage_records import ClaimSpec


class PodTemplate(Struct, gc=False):
    """What a workload makes pods of."""

    spec: TemplateSpec | None = None


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


class ClaimRetention(Struct, gc=False):
    """What becomes of a StatefulSet's claims."""

    whenScaled: str | None = None  # noqa: N815


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
    persistentVolumeClaimRetentionPolicy: ClaimRetention | None = None  # noqa: N815


class Workload(Record, gc=False, kw_only=True):
    """Anything that makes pods."""

    kind: str = ""
    spec: WorkloadSpec = field(default_factory=WorkloadSpec)


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
