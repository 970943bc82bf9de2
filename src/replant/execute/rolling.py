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
from replant.execute.targets import JoinedNodes, VolumeNames, targets
from replant.execute.world import Node, World
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
        self._doubted = doubted
        self._joined = JoinedNodes(step, plan)
        self._volumes = VolumeNames(plan.plugins)
        self._restriction = restriction(step, plan, patience)
        self._terms = Terms(step, run, rules, patience, doubted, self._volumes, self._restriction)
        self._queue: deque[str] = deque()
        self._has_looked = False
        self._unlike: dict[str, Wait] = {}
        """Nodes that have joined with other gates, and of which it is not known what they need."""
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
        if not self._has_looked:
            # Those first that were begun already: until they are done they take no pods.
            ordered = sorted(
                self._targets, key=lambda it: not is_cordoned_by(self._run, world.node(it))
            )
            self._queue = deque(ordered)
            nodes = (it for it in map(world.node, ordered) if it is not None)
            self._attached = {it.metadata.name: len(self._volumes.on(it)) for it in nodes}
            self._all_volumes = sum(self._attached.values())
        touched = world.take_touched()
        self._take_in(touched, world, decision)
        if not self._is_over:
            self._restriction.keep(touched, world, now, decision)
        held = self._leading.holds_up(now, decision, world)
        goes_on = self._leading.waits_for_nodes  # those under way may be what is waited for
        if (held and not goes_on) or (
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
            if held and not is_cordoned_by(self._run, world.node(self._queue[0])):
                break
            name = self._queue.popleft()
            self._under_way[name] = RollingNode(self._targets[name], self._terms)
            self._look_at(name, world, now, decision)
        decision.waits += displaced
        self._leading.moved(decision.acts, now)
        if self._is_over and self._restriction.ends(world, decision):
            self._leading.end()
            decision.done = not self._leading.holds_up(now, decision, world)
        decision.progress = self._progress
        return decision

    def _take_in(self, touched: set[str], world: World, decision: Decision) -> None:
        """Have nodes switched that have joined with old gates since the plan was made."""
        looked = self._unlike.keys() | touched if self._has_looked else self._joined.there(world)
        self._has_looked = True
        looks, self._unlike = [*looked], {}
        for name in looks:
            node = world.node(name)
            if node is None or name in self._targets or not self._is_to_switch(node, world):
                continue
            target = self._joined.target(node)
            if target is None:
                self._unlike[name] = Wait(
                    f"{name} to be like the other nodes: it has joined with other gates, and the "
                    "plan has no node of its version. Drain it and switch its kubelet, or remove "
                    "it, and give what creates nodes the new gates",
                    f"joined {name}",
                    self._patience.switch,
                    f"the kubelet of {name}",
                )
                continue
            decision.notes.append(
                f"node {name} has joined with old gates and is switched too: give what creates "
                "nodes the new gates"
            )
            self._targets[name] = target
            self._restriction.add(target)
            # As above: those first that were begun already.
            first = is_cordoned_by(self._run, node)
            (self._queue.appendleft if first else self._queue.append)(name)
        decision.waits += self._unlike.values()

    def _is_to_switch(self, node: Node, world: World) -> bool:
        """Whether a node that the plan does not know has other gates, or may be about to."""
        name = node.metadata.name
        begun = is_cordoned_by(self._run, node) or f"node {name}" in self._doubted
        return self._joined.is_behind(name, world) or (begun and self._joined.has(name))

    @property
    def leaves_detaches(self) -> bool:
        """Whether a kube-controller-manager leads that may wait for an overtaken detach."""
        return self._leading.is_pending

    @property
    def _is_over(self) -> bool:
        """Whether every node has been switched, also those that have joined."""
        return not (self._queue or self._under_way or self._unlike)

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
