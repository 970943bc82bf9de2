"""Nodes, one after the other: which are under way, which is next, and when all are done.

A node counts as taken until the pods that had to leave it serve again elsewhere.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container

from replant.execute.acts import (
    Act,
    Decision,
    Evict,
    LookAtLeader,
    LookAtNode,
    ObservePlace,
    Progress,
    RestartLeader,
    Switch,
    Wait,
)
from replant.execute.draining import DrainRules
from replant.execute.leading import FRESH_MEMORY, Leading, Memory
from replant.execute.outages import Outages
from replant.execute.patience import Patience
from replant.execute.rolling_node import RollingNode, Terms, is_cordoned_by
from replant.execute.steps.scheduling import restriction
from replant.execute.targets import VolumeNames, targets
from replant.execute.world import World
from replant.plan.model import Plan, RollNodes
from replant.proof.course import OVERTAKEN


class Rolling:
    """A RollNodes step under way."""

    def __init__(
        self,
        step: RollNodes,
        plan: Plan,
        run: str,
        outages: Outages,
        *,
        rules: DrainRules,
        patience: Patience,
        at_once: int = 0,
        doubted: Container[str] = (),
        memory: Memory = FRESH_MEMORY,
    ) -> None:
        self._run = run
        self._outages = outages
        self._patience = patience
        self._at_once = at_once or step.max_unavailable
        self._targets = {it.node: it for it in targets(step, plan)}
        back = any(not OVERTAKEN & it.listed for it in self._targets.values())
        self._leading = Leading(
            step.id, step.restart_controllers_seconds, patience.switch, memory, back=back
        )
        self._volumes = VolumeNames(plan.plugins)
        self._restriction = restriction(step, plan, patience)
        self._terms = Terms(step, run, rules, patience, doubted, self._volumes, self._restriction)
        self._queue: deque[str] | None = None
        self._under_way: dict[str, RollingNode] = {}
        self._recovering: set[str] = set()
        """Nodes that are done, while pods that had to leave them do not serve again."""
        self._done = 0
        self._attached: dict[str, int] = {}
        """How many volumes each node had when the step began."""
        self._all_volumes = self._moved = 0

    def decide(self, world: World, now: float) -> Decision:
        """What to do for the nodes under way, and whether another may begin."""
        decision = Decision()
        if self._queue is None:
            # Those first that were begun already: until they are done they take no pods.
            ordered = sorted(
                self._targets, key=lambda it: not is_cordoned_by(self._run, world.node(it))
            )
            self._queue = deque(ordered)
            nodes = (it for it in map(world.node, ordered) if it is not None)
            self._attached = {it.metadata.name: len(self._volumes.on(it)) for it in nodes}
            self._all_volumes = sum(self._attached.values())
        touched = world.take_touched()
        if not self._is_over:
            self._restriction.keep(touched, world, now, decision)
        if self._leading.holds_up(now, decision) or (
            not self._is_over and self._restriction.holds_up(world, now, decision)
        ):
            for name in touched & self._under_way.keys():
                self._under_way[name].touch()
            decision.progress = self._progress
            return decision
        for name in list(self._under_way):
            if name in touched:
                self._under_way[name].touch()
            self._look_at(name, world, now, decision)
        displaced = self._displaced()
        while self._queue and len(self._under_way) + len(self._recovering) < self._at_once:
            name = self._queue.popleft()
            self._under_way[name] = RollingNode(self._targets[name], self._terms)
            self._look_at(name, world, now, decision)
        decision.waits += displaced
        self._leading.moved(decision.acts, now)
        if self._is_over and self._restriction.ends(world, decision):
            self._leading.end()
            decision.done = not self._leading.holds_up(now, decision)
        decision.progress = self._progress
        return decision

    @property
    def leaves_detaches(self) -> bool:
        """Whether a kube-controller-manager leads that may wait for an overtaken detach."""
        return self._leading.is_pending

    @property
    def _is_over(self) -> bool:
        """Whether every node has been switched."""
        return not self._queue and not self._under_way

    @property
    def _progress(self) -> Progress:
        volumes = self._moved, self._all_volumes
        nodes = tuple(self._under_way)
        return Progress(self._done, len(self._targets), "nodes", nodes, volumes)

    def learn(self, act: Act, outcome: object, now: float) -> None:
        """Note what was seen, and what was refused."""
        if isinstance(act, LookAtLeader | RestartLeader):
            self._leading.learn(outcome, now)
            return
        self._restriction.learn(act, outcome, now)
        name = act.place.node if isinstance(act, ObservePlace | Switch) else ""
        name = act.node if isinstance(act, Evict | LookAtNode) else name
        node = self._under_way.get(name)
        if node is not None:
            node.learn(act, outcome, now)

    def _displaced(self) -> list[Wait]:
        """Pods that had to move, and do not serve again yet: their nodes still count as taken.

        If a driver does not work, the pods of one node are without their disks, not everybody's.
        """
        missing = self._outages.from_nodes(self._recovering)
        self._recovering &= set(missing.values())
        return [
            Wait(
                f"a pod to serve {claim} again before another node is drained",
                f"displaced {claim}",
                self._patience.pods,
                "kube-controller-manager, the kubelet of its node, and the driver's pod there",
            )
            for claim in (missing if self._queue else ())
        ]

    def _look_at(self, name: str, world: World, now: float, decision: Decision) -> None:
        node = self._under_way[name]
        node.decide(world, now, decision)
        if node.is_done:
            self._finish(name)

    def _finish(self, name: str) -> None:
        node = self._under_way.pop(name)
        if node.has_displaced:
            self._recovering.add(name)
        self._done += 1
        self._moved += self._attached.get(name, 0)
