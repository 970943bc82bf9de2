"""How a node gets empty: its pods are let go, their volumes detached, and a fresh look shows it."""

from __future__ import annotations

from dataclasses import dataclass

from replant.errors import Missing, ReplantError
from replant.execute.acts import Decision, Evict, Wait
from replant.execute.draining import DrainRules, drain
from replant.execute.patience import Patience
from replant.execute.targets import VolumeNames
from replant.execute.world import Node, Pod, World, precedes

RETRY_EVICTION = 5.0
EVICT_AGAIN = 30.0
"""So long a pod that was let go may look untouched before it is asked to go once more."""
FRESH = 3.0
"""So old, in seconds of the machine, the look may be on which a kubelet is switched."""


@dataclass(frozen=True, slots=True)
class FreshNode:
    """A node as it was at one moment: itself, its pods, and the version of that list."""

    node: Node | None
    pods: tuple[Pod, ...]
    version: str


class Emptying:
    """A node while its pods leave, and its volumes after them."""

    def __init__(self, rules: DrainRules, volumes: VolumeNames, patience: Patience) -> None:
        self._rules = rules
        self._volumes = volumes
        self._patience = patience
        self._blocked: dict[str, tuple[float, str]] = {}
        """Pods, by uid, that were not let go: when, and why not."""
        self._evicted: dict[str, float] = {}
        """Pods, by uid, that were let go, which a watch may tell later; and when."""

    def learn(self, act: Evict, outcome: object, now: float) -> None:
        """Note whether a pod was let go."""
        match outcome:
            case None | Missing():
                self._blocked.pop(act.uid, None)
                self._evicted[act.uid] = now
            case ReplantError():
                # Not only budgets: of two for one pod, the API says so as an error of its own.
                self._blocked[act.uid] = now, str(outcome)

    def is_drained(self, node: Node, world: World, now: float, decision: Decision) -> bool:
        """Whether nothing is seen on it; if something is, the decision says what to do about it."""
        name = node.metadata.name
        there = drain(world.pods_on(name), self._rules)
        for pod in there.go:
            self._evict(pod, now, decision)
        decision.waits += map(self._ending, there.leaving)
        for refusal in there.refused:
            decision.waits.append(Wait(refusal, f"refused {refusal}", self._patience.drain))
        if not there.over:
            return False
        left = self._volumes.on(node, world.attachments_on(name))
        for volume in left:
            decision.waits.append(
                Wait(
                    f"{volume} to be detached from {name}",
                    f"attached {name} {volume}",
                    self._patience.detach,
                    "kube-controller-manager, and the driver's attacher",
                )
            )
        return not left

    def is_empty(self, fresh: FreshNode) -> bool:
        """Whether a look at this moment shows a cordoned node without pods or volumes."""
        node = fresh.node
        if node is None or not node.spec.unschedulable:
            return False
        if precedes(fresh.version, node.metadata.resource_version):
            return False  # the list is older than the node, which was read before it
        return drain(fresh.pods, self._rules).over and not self._volumes.on(node)

    def _ending(self, pod: Pod) -> Wait:
        node = pod.spec.node_name
        return Wait(
            f"pod {pod.name} to end on {node}",
            f"leaving {pod.metadata.uid}",
            self._patience.drain,
            f"the kubelet of {node}",
        )

    def _evict(self, pod: Pod, now: float, decision: Decision) -> None:
        uid, node = pod.metadata.uid, pod.spec.node_name
        again = self._evicted.get(uid, now - EVICT_AGAIN) + EVICT_AGAIN
        if now < again:
            decision.waits.append(self._ending(pod))
            decision.wake = min(decision.wake, again - now)
            return
        if uid in self._blocked:
            tried, reason = self._blocked[uid]
            what = f"pod {pod.name} to be let go from {node}: {reason}"
            decision.waits.append(Wait(what, f"blocked {uid}", self._patience.drain))
            if now < tried + RETRY_EVICTION:
                decision.wake = min(decision.wake, tried + RETRY_EVICTION - now)
                return
        namespace, name = pod.metadata.key
        decision.acts.append(
            Evict(why=f"to drain {node}", namespace=namespace, pod=name, uid=uid, node=node)
        )
