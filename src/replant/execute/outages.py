"""Which workloads are without their disk, since when, and for how long they have been."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass

from replant.execute.world import SUCCEEDED, Pod

TOLD_AT_MOST = 20
"""So many turns of a claim are written down: a pod that crashes all day must not fill a journal."""
_NAMED_AFTER_TEMPLATES = "ReplicaSet"


@dataclass(frozen=True, slots=True)
class Outage:
    """The times without a pod that serves, of one claim."""

    workload: str
    claim: str
    times: int
    longest: float
    total: float


@dataclass(frozen=True, slots=True)
class Turn:
    """A claim is lost, or served again."""

    claim: str
    at: float
    served: bool
    workload: str


class Outages:
    """Follows the pods that use claims."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._serving: dict[str, set[str]] = defaultdict(set)
        """By claim, the uids of the pods that serve."""
        self._since: dict[str, float] = {}
        self._past: dict[str, list[float]] = defaultdict(list)
        self._workloads: dict[str, str] = {}
        self._nodes: dict[str, str] = {}
        """By claim, where it was served last."""
        self._news: list[Turn] = []
        self._told: Counter[str] = Counter()
        """By claim, how many turns are written down, or are to be."""
        self._told_as_lost: set[str] = set()

    def saw(self, before: Pod | None, after: Pod | None) -> None:
        """A pod is not what it was."""
        if before and after and before.metadata.uid != after.metadata.uid:
            # Another pod of that name: nobody has told us of the end of the first.
            self.saw(before, None)
            self.saw(None, after)
            return
        served = before is not None and before.serves
        serves = after is not None and after.serves
        pod = after or before
        if pod is None or served == serves:
            return
        for claim in pod.claims:
            self._workloads[claim] = _workload(pod)
            self._nodes[claim] = pod.spec.node_name
            if serves:
                self._begin(claim, pod.metadata.uid)
            elif pod.status.phase == SUCCEEDED:
                # It has done its work: nobody is without a disk, and nobody will serve again.
                self._serving[claim].discard(pod.metadata.uid)
            else:
                self._end(claim, pod.metadata.uid)

    def recall(self, turns: Iterable[Turn], until: float) -> None:
        """Take over what other processes have seen; the last of them looked until then.

        What came back while nobody looked counts no longer than that: nobody knows when it did.
        """
        lost: dict[str, float] = {}
        for it in turns:
            self._told[it.claim] += 1
            if not it.served:
                self._workloads.setdefault(it.claim, it.workload)
                lost[it.claim] = it.at
            elif it.claim in lost:
                self._past[it.claim].append(max(0.0, it.at - lost.pop(it.claim)))
        self._since |= lost
        self._told_as_lost |= lost.keys()
        for claim in lost:
            if self._serving.get(claim):
                self._came_back(claim, until)

    def news(self) -> Sequence[Turn]:
        """What has not been written down yet, the oldest first."""
        return tuple(self._news)

    def wrote(self, count: int) -> None:
        """So many of these have been."""
        del self._news[:count]

    def from_nodes(self, nodes: Container[str]) -> dict[str, str]:
        """The claims that nobody serves now and that were last served on these nodes; by which."""
        return {it: self._nodes[it] for it in self._since if self._nodes.get(it) in nodes}

    def all(self) -> list[Outage]:
        """What each claim went through, the longest first."""
        found = []
        now = self._now()
        for claim in {*self._past, *self._since}:
            times = list(self._past[claim])
            if claim in self._since:
                times.append(now - self._since[claim])
            workload = self._workloads.get(claim, claim)
            found.append(Outage(workload, claim, len(times), max(times), sum(times)))
        return sorted(found, key=lambda it: (-it.longest, it.claim))

    def _begin(self, claim: str, uid: str) -> None:
        self._serving[claim].add(uid)
        self._came_back(claim, self._now())

    def _end(self, claim: str, uid: str) -> None:
        serving = self._serving[claim]
        serving.discard(uid)
        if not serving and claim not in self._since:
            now = self._now()
            self._since[claim] = now
            if self._told[claim] < TOLD_AT_MOST:
                self._told_as_lost.add(claim)
                self._tell(claim, now, served=False)

    def _came_back(self, claim: str, at: float) -> None:
        since = self._since.pop(claim, None)
        if since is not None:
            self._past[claim].append(max(0.0, at - since))
            if claim in self._told_as_lost:
                self._told_as_lost.remove(claim)
                self._tell(claim, at, served=True)

    def _tell(self, claim: str, at: float, *, served: bool) -> None:
        self._told[claim] += 1
        self._news.append(Turn(claim, at, served, self._workloads.get(claim, claim)))


def _workload(pod: Pod) -> str:
    namespace, owner = pod.metadata.namespace, pod.metadata.owner
    if owner is None:
        return f"Pod {namespace}/{pod.metadata.name}"
    if owner.kind == _NAMED_AFTER_TEMPLATES:
        return f"Deployment {namespace}/{owner.name.rpartition('-')[0] or owner.name}"
    return f"{owner.kind} {namespace}/{owner.name}"
