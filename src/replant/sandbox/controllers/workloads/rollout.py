"""A Deployment and its ReplicaSets at one moment."""

from __future__ import annotations

from dataclasses import dataclass

from replant.objects import Object
from replant.sandbox.controllers.workloads import pods
from replant.sandbox.shelves import Entry

TEMPLATE_HASH = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
_DESIRED, _MOST = (
    "deployment.kubernetes.io/desired-replicas",
    "deployment.kubernetes.io/max-replicas",
)


@dataclass
class ReplicaSet:
    """A ReplicaSet, as its Deployment sees it."""

    entry: Entry
    obj: Object

    @property
    def wanted(self) -> int:
        """How many pods it is to have."""
        return int(self.obj["spec"].get("replicas", 1))

    @property
    def available(self) -> int:
        """How many of them can be counted on."""
        return self.count("availableReplicas")

    @property
    def revision(self) -> int:
        """The place of its template among those of the Deployment."""
        annotations = self.obj["metadata"].get("annotations") or {}
        return int(annotations.get(REVISION, 0))

    def count(self, field: str) -> int:
        """What its status says."""
        return int((self.obj.get("status") or {}).get(field, 0))


@dataclass
class Rollout:
    """A Deployment at one moment."""

    obj: Object
    sets: list[ReplicaSet]
    """The oldest first."""
    new: ReplicaSet | None

    @property
    def spec(self) -> Object:
        """What is wanted of it."""
        spec: Object = self.obj["spec"]
        return spec

    @property
    def replicas(self) -> int:
        """How many pods it is to have in the end."""
        return int(self.spec.get("replicas", 1))

    @property
    def old(self) -> list[ReplicaSet]:
        """All but the newest."""
        return [it for it in self.sets if it is not self.new]

    @property
    def recreates(self) -> bool:
        """Whether all old pods go before the first new one comes."""
        return bool((self.spec.get("strategy") or {}).get("type") == "Recreate")

    @property
    def surge(self) -> int:
        """How many pods more than wanted there may be."""
        return self._limits[0]

    @property
    def missing(self) -> int:
        """How many pods less than wanted may be available."""
        return self._limits[1]

    @property
    def _limits(self) -> tuple[int, int]:
        if self.recreates:
            return 0, 0
        rolling = (self.spec.get("strategy") or {}).get("rollingUpdate") or {}
        surge = pods.share(rolling.get("maxSurge", "25%"), self.replicas, up=True)
        missing = pods.share(rolling.get("maxUnavailable", "25%"), self.replicas, up=False)
        # With neither, nothing could ever move.
        return surge, min(missing, self.replicas) if surge or missing else 1

    def total(self, field: str) -> int:
        """What the status of all its ReplicaSets says, together."""
        return sum(it.count(field) for it in self.sets)


def sizes(rollout: Rollout) -> dict[str, str]:
    """What a Deployment notes on its ReplicaSets: how many pods it wants, and bears."""
    return {_DESIRED: str(rollout.replicas), _MOST: str(rollout.replicas + rollout.surge)}


def bare(template: Object) -> Object:
    """A template without what a Deployment adds to it."""
    metadata = dict(template.get("metadata") or {})
    labels = metadata.pop("labels", None) or {}
    metadata["labels"] = {key: it for key, it in labels.items() if key != TEMPLATE_HASH}
    return {**template, "metadata": metadata}
