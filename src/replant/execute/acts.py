"""What can be done next, and what is waited for: the vocabulary of those who decide."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from replant.execute.actuators import Place, Wanted
from replant.objects import Object

CORDONED = "replant.dev/cordoned-by"
"""On a node: the run that cordoned it, and that will let it take pods again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Act(ABC):
    """Something to be done once; ``why`` goes to the journal."""

    changes: ClassVar[bool] = True
    """Whether it changes anything, and so must be in the journal before it is done."""
    why: str

    @property
    @abstractmethod
    def target(self) -> str:
        """What it is done to. Nothing else is done to that meanwhile."""

    @property
    def backup(self) -> Object | None:
        """What is needed to take it back, where the plan does not have it."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAct(Act):
    """Something that is done to a node."""

    node: str

    @property
    def target(self) -> str:
        """What it is done to."""
        return f"node {self.node}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cordon(NodeAct):
    """Have a node take no more pods."""

    uid: str
    version: str
    run: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncordon(NodeAct):
    """Have it take pods again."""

    uid: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LookAtNode(NodeAct):
    """See a node, and the pods on it, as they are at this moment and not as a watch has told."""

    changes: ClassVar[bool] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Evict(Act):
    """Have a pod leave its node."""

    namespace: str
    pod: str
    uid: str
    node: str

    @property
    def target(self) -> str:
        """What it is done to."""
        return f"pod {self.namespace}/{self.pod}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _PlaceAct(Act):
    place: Place

    @property
    def target(self) -> str:
        """The component, or the node whose kubelet it is."""
        return f"node {self.place.node}" if self.place.node else self.place.component


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch(_PlaceAct):
    """Give a component or a kubelet other gates."""

    wanted: Wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservePlace(_PlaceAct):
    """See which gates a component or a kubelet has."""

    changes: ClassVar[bool] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _LeaderAct(Act):
    component: str

    @property
    def target(self) -> str:
        """The component whose leader it is."""
        return self.component


@dataclass(frozen=True, slots=True, kw_only=True)
class LookAtLeader(_LeaderAct):
    """See which replica of a component leads."""

    changes: ClassVar[bool] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartLeader(_LeaderAct):
    """Take a component's Lease from its leader, which ends and is started anew."""

    holder: str
    version: str

    @property
    def backup(self) -> Object | None:
        """Who led: another process can tell by it whether another leads."""
        return {"holder": self.holder, "version": self.version}


@dataclass(frozen=True, slots=True, kw_only=True)
class LookAtObjects(Act):
    """See all volumes, or all classes."""

    changes: ClassVar[bool] = False

    kind: str

    @property
    def target(self) -> str:
        """What it is done to."""
        return f"all of {self.kind}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotate(Act):
    """Give a volume annotations."""

    volume: str
    uid: str
    version: str
    annotations: Mapping[str, str | None]

    @property
    def target(self) -> str:
        """What it is done to."""
        return f"volume {self.volume}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteClass(Act):
    """Delete a StorageClass, which is in the journal by then."""

    before: Object

    @property
    def target(self) -> str:
        """What it is done to."""
        return f"class {self.before['metadata']['name']}"

    @property
    def backup(self) -> Object | None:
        """The class as it is."""
        return self.before


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateClass(Act):
    """Make a StorageClass."""

    after: Object

    @property
    def target(self) -> str:
        """What it is done to."""
        return f"class {self.after['metadata']['name']}"


@dataclass(frozen=True, slots=True)
class Wait:
    """What is waited for, for how long at most, and where to look if it does not come."""

    what: str
    """Such as: pod shop/db-0 to leave node-3 (its budget db allows no disruption now)."""
    key: str
    """The same for as long as it is the same wait: its time counts from the first."""
    timeout: float
    look: str = ""
    """Which log a person would read."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a step is."""

    done: int
    total: int
    what: str
    under_way: tuple[str, ...] = ()
    volumes: tuple[int, int] = (0, 0)
    """Of the volumes that were attached when it began, those on nodes that are done; and all."""

    @property
    def told(self) -> str:
        """As a person reads it."""
        volumes = "{:,} of {:,} volumes".format(*self.volumes)
        counted = f", {volumes}" if self.volumes[1] else ""
        return f"{self.done:,} of {self.total:,} {self.what}{counted}"


@dataclass(slots=True)
class Decision:
    """What a look has come to."""

    acts: list[Act] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    done: bool = False
    failed: str = ""
    """Why there is no way on, until a person does something about it."""
    wake: float = 5.0
    """So many seconds from now to look again, even if nothing changes."""
    progress: Progress = Progress(0, 0, "")
    notes: list[str] = field(default_factory=list)
    """What a person should be told once."""

    def add(self, other: Decision) -> None:
        """What another part of the same look has come to."""
        self.acts += other.acts
        self.waits += other.waits
        self.notes += other.notes
        self.failed = self.failed or other.failed
        self.wake = min(self.wake, other.wake)
