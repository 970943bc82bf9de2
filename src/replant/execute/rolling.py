"""Nodes, one after the other: cordon, drain, wait, switch, wait, uncordon.

Where a node stands is seen each time anew: whether it takes pods and who cordoned it, which pods
are on it, which volumes, and what its CSINode lists. Only times are remembered, so a new process
begins its waits again, and loses nothing else.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container
from dataclasses import dataclass, field

from replant.errors import Missing, ReplantError
from replant.execute.acts import (
    CORDONED,
    Act,
    Cordon,
    Decision,
    Evict,
    LookAtLeader,
    LookAtNode,
    ObservePlace,
    Progress,
    RestartLeader,
    Switch,
    Uncordon,
    Wait,
)
from replant.execute.actuators import differences, is_so
from replant.execute.awaiting import AwaitedSwitch
from replant.execute.draining import DrainRules, drain
from replant.execute.leading import Leading, Memory
from replant.execute.outages import Outages
from replant.execute.targets import Target, VolumeNames, targets
from replant.execute.world import Node, Pod, World, precedes
from replant.plan.model import Plan, RollNodes
from replant.proof.course import OVERTAKEN

RETRY_EVICTION = 5.0
EVICT_AGAIN = 30.0
"""So long a pod that was let go may look untouched before it is asked to go once more."""
LOOK_AGAIN = 2.0
DECIDE_AGAIN = 1.0
"""So long what is to be done stays decided, unless something is seen or comes of it."""
FRESH = 3.0
"""So old, in seconds of the machine, the look may be on which a kubelet is switched."""
FRESH_MEMORY = Memory()


@dataclass(frozen=True, slots=True)
class Patience:
    """How long each wait may take, in seconds."""

    drain: float = 3600.0
    detach: float = 900.0
    switch: float = 900.0
    pods: float = 900.0
    haste: float = 1.0
    """So many seconds pass while the machine works for one; more than one in a sandbox."""


@dataclass(slots=True)
class _Standing(AwaitedSwitch):
    """Since when something is so on a node under way, and what has come of its switch."""

    empty_since: float | None = None
    looked: float | None = None
    confirmed: float | None = None
    listed_since: float | None = None
    blocked: dict[str, tuple[float, str]] = field(default_factory=dict)
    """Pods, by uid, that were not let go: when, and why not."""
    evicted: dict[str, float] = field(default_factory=dict)
    """Pods, by uid, that were let go, which a watch may tell later; and when."""
    decided: Decision | None = None
    """What it waits for and what is to be done, as long as nothing about it changes."""
    until: float = 0.0
    """And not beyond this moment."""


@dataclass(frozen=True, slots=True)
class FreshNode:
    """A node as it was at one moment: itself, its pods, and the version of that list."""

    node: Node | None
    pods: tuple[Pod, ...]
    version: str


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
        self._step = step
        self._run = run
        self._outages = outages
        self._rules = rules
        self._patience = patience
        self._at_once = at_once or step.max_unavailable
        self._doubted = doubted
        """Targets that may be about to change, however they look: they are switched anyway."""
        self._targets = {it.node: it for it in targets(step, plan)}
        back = any(not OVERTAKEN & it.listed for it in self._targets.values())
        self._leading = Leading(
            step.id, step.restart_controllers_seconds, patience.switch, memory, back=back
        )
        self._volumes = VolumeNames(plan.plugins)
        self._queue: deque[str] | None = None
        self._under_way: dict[str, _Standing] = {}
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
            ordered = sorted(self._targets, key=lambda it: not self._is_ours(world.node(it)))
            self._queue = deque(ordered)
            nodes = (it for it in map(world.node, ordered) if it is not None)
            self._attached = {it.metadata.name: len(self._volumes.on(it)) for it in nodes}
            self._all_volumes = sum(self._attached.values())
        if self._leading.holds_up(now, decision):
            decision.progress = self._progress
            return decision
        touched = world.take_touched()
        for name in list(self._under_way):
            if name in touched:
                self._under_way[name].decided = None
            self._look_at(name, world, now, decision)
        displaced = self._displaced()
        while self._queue and len(self._under_way) + len(self._recovering) < self._at_once:
            name = self._queue.popleft()
            self._under_way[name] = _Standing()
            self._look_at(name, world, now, decision)
        decision.waits += displaced
        self._leading.moved(decision.acts, now)
        if not self._queue and not self._under_way:
            self._leading.end()
            decision.done = not self._leading.holds_up(now, decision)
        decision.progress = self._progress
        return decision

    @property
    def leaves_detaches(self) -> bool:
        """Whether a kube-controller-manager leads that may wait for an overtaken detach."""
        return self._leading.is_pending

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
        node = act.place.node if isinstance(act, ObservePlace | Switch) else ""
        node = act.node if isinstance(act, Evict | LookAtNode) else node
        standing = self._under_way.get(node)
        if standing is None:
            return
        standing.decided = None
        match act, outcome:
            case Evict(uid=uid), (None | Missing()):
                standing.blocked.pop(uid, None)
                standing.evicted[uid] = now
            case Evict(uid=uid), ReplantError():
                # Not only budgets: of two for one pod, the API says so as an error of its own.
                standing.blocked[uid] = now, str(outcome)
            case LookAtNode(), FreshNode():
                standing.looked = now
                standing.confirmed = now if self._is_empty(outcome) else None
            case ((ObservePlace() | Switch()), _):
                standing.learn(act, outcome, now)

    def _is_ours(self, node: Node | None) -> bool:
        return node is not None and node.metadata.annotation(CORDONED) == self._run

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
        """Decide about a node, if anything about it has changed or its time has come."""
        standing = self._under_way[name]
        if standing.decided is None or now >= standing.until:
            found = Decision()
            self._go_on(name, world, now, found)
            decision.add(found)
            # A kubelet is switched upon a look that must be fresh at that very moment.
            switches = any(isinstance(it, Switch) for it in found.acts)
            standing.decided = None if switches else found
            standing.until = now + min(found.wake, DECIDE_AGAIN if found.acts else found.wake)
        else:
            decision.add(standing.decided)
            decision.wake = min(decision.wake, standing.until - now)

    def _go_on(self, name: str, world: World, now: float, decision: Decision) -> None:
        node, target, standing = world.node(name), self._targets[name], self._under_way[name]
        if node is None:
            decision.notes.append(f"node {name} has left the cluster")
            self._finish(name)
            self._recovering.add(name)
            return
        doubtful = f"node {name}" in self._doubted and standing.switched is None
        if doubtful or target.unlisted(world.csi_node(name)) or self._differs(target, standing):
            standing.listed_since = None
            if standing.switched is None:
                self._take_out(node, target, world, now, decision)
            elif self._step.drain and not node.spec.unschedulable:
                # Whoever let it take pods again did not know what is being done to it.
                decision.acts.append(self._cordon(node, target))
            else:
                self._await_switch(target, standing, world, now, decision)
        elif standing.observed_at is None and (standing.switched or not target.shows):
            decision.acts.append(_observe(target))
        else:
            self._bring_back(node, target, world, now, decision)

    @staticmethod
    def _differs(target: Target, standing: _Standing) -> bool:
        """Whether the actuator sees other gates than wanted."""
        seen = standing.observed
        return seen is not None and not is_so(seen, target.wanted)

    # Out

    def _take_out(
        self, node: Node, target: Target, world: World, now: float, decision: Decision
    ) -> None:
        name = target.node
        if absent := target.absent_drivers(world.csi_node(name)):
            decision.waits.append(
                Wait(
                    f"the driver {', '.join(absent)} to be registered on {name}",
                    f"driver {name}",
                    self._patience.switch,
                    f"the driver's pod on {name}, and its kubelet",
                )
            )
        elif not self._step.drain:
            self._switch_undrained(node, target, world, decision)
        elif not node.spec.unschedulable:
            decision.acts.append(self._cordon(node, target))
        elif self._is_drained(node, world, now, decision):
            self._switch_empty(target, now, decision)
        else:
            standing = self._under_way[name]
            standing.empty_since = standing.confirmed = None

    def _cordon(self, node: Node, target: Target) -> Cordon:
        return Cordon(
            why=f"to switch {target.place.name} while nothing is mounted there",
            node=target.node,
            uid=node.metadata.uid,
            version=node.metadata.resource_version,
            run=self._run,
        )

    def _switch_undrained(
        self, node: Node, target: Target, world: World, decision: Decision
    ) -> None:
        """A plan without a drain was made while there was no volume: see that this still holds."""
        name = target.node
        if held := self._volumes.on(node, world.attachments_on(name)):
            decision.failed = (
                f"The plan drains no node, for there was no volume of its plugins. By now {name} "
                f"has {', '.join(held[:3])}: its kubelet is not switched under it. Take the run "
                "back (--undo), and make the plan anew."
            )
            return
        decision.acts.append(_switch(target, self._step.id))

    def _is_drained(self, node: Node, world: World, now: float, decision: Decision) -> bool:
        name = node.metadata.name
        there = drain(world.pods_on(name), self._rules)
        for pod in there.go:
            self._evict(pod, self._under_way[name], now, decision)
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

    def _ending(self, pod: Pod) -> Wait:
        node = pod.spec.node_name
        return Wait(
            f"pod {pod.name} to end on {node}",
            f"leaving {pod.metadata.uid}",
            self._patience.drain,
            f"the kubelet of {node}",
        )

    def _evict(self, pod: Pod, standing: _Standing, now: float, decision: Decision) -> None:
        uid, node = pod.metadata.uid, pod.spec.node_name
        again = standing.evicted.get(uid, now - EVICT_AGAIN) + EVICT_AGAIN
        if now < again:
            decision.waits.append(self._ending(pod))
            decision.wake = min(decision.wake, again - now)
            return
        if uid in standing.blocked:
            tried, reason = standing.blocked[uid]
            what = f"pod {pod.name} to be let go from {node}: {reason}"
            decision.waits.append(Wait(what, f"blocked {uid}", self._patience.drain))
            if now < tried + RETRY_EVICTION:
                decision.wake = min(decision.wake, tried + RETRY_EVICTION - now)
                return
        namespace, name = pod.metadata.key
        decision.acts.append(
            Evict(why=f"to drain {node}", namespace=namespace, pod=name, uid=uid, node=node)
        )

    def _switch_empty(self, target: Target, now: float, decision: Decision) -> None:
        """Wait beyond what can be seen, look once more at this very moment, and switch."""
        name, standing = target.node, self._under_way[target.node]
        if standing.empty_since is None:
            standing.empty_since = now
        if not self._settled(standing.empty_since, now, decision):
            decision.waits.append(self._settling(name, "the cloud to end its detaches"))
        elif (
            standing.confirmed is not None
            and now <= standing.confirmed + FRESH * self._patience.haste
        ):
            decision.acts.append(_switch(target, f"{name} is empty"))
        elif standing.looked is not None and now < standing.looked + LOOK_AGAIN:
            decision.wake = min(decision.wake, LOOK_AGAIN)
            decision.waits.append(self._settling(name, "a look that shows it empty"))
        else:
            decision.acts.append(
                LookAtNode(why=f"to be sure that nothing is left on {name}", node=name)
            )

    def _is_empty(self, fresh: FreshNode) -> bool:
        """Whether a look at this moment shows a cordoned node without pods or volumes."""
        node = fresh.node
        if node is None or not node.spec.unschedulable:
            return False
        if precedes(fresh.version, node.metadata.resource_version):
            return False  # the list is older than the node, which was read before it
        return drain(fresh.pods, self._rules).over and not self._volumes.on(node)

    # The switch

    def _await_switch(
        self, target: Target, standing: _Standing, world: World, now: float, decision: Decision
    ) -> None:
        what = _still_missing(target, standing, world)
        if standing.has_failed(now):
            decision.failed = f"{target.place.name} was not switched ({what}): {standing.failure}"
            return
        if standing.is_to_be_observed(now):
            decision.acts.append(_observe(target))
        decision.waits.append(
            Wait(
                f"{target.place.name} to run with its new gates: {what}",
                f"switched {target.node}",
                self._patience.switch,
                f"the kubelet of {target.node}",
            )
        )

    # Back

    def _bring_back(
        self, node: Node, target: Target, world: World, now: float, decision: Decision
    ) -> None:
        name, standing = target.node, self._under_way[target.node]
        if not self._is_ours(node):
            self._finish(name)
            return
        missing = ", ".join(target.absent_drivers(world.csi_node(name)))
        if missing or not node.ready:
            decision.waits.append(
                Wait(
                    f"{name} to have the driver {missing}" if missing else f"{name} to be ready",
                    f"ready {name}",
                    self._patience.switch,
                    f"the kubelet of {name}" + (", and the driver's pod there" if missing else ""),
                )
            )
            standing.listed_since = None
            return
        if standing.listed_since is None:
            standing.listed_since = now
        if not self._settled(standing.listed_since, now, decision):
            decision.waits.append(self._settling(name, "the controllers to hear of its CSINode"))
            return
        decision.acts.append(
            Uncordon(
                why=f"{name} is as wanted",
                node=name,
                uid=node.metadata.uid,
                version=node.metadata.resource_version,
            )
        )

    def _settled(self, since: float, now: float, decision: Decision) -> bool:
        until = since + self._step.settle_seconds
        if now < until:
            decision.wake = min(decision.wake, until - now)
        return now >= until

    def _settling(self, name: str, what: str) -> Wait:
        return Wait(f"{what} ({name})", f"settling {name} {what}", self._patience.switch)

    def _finish(self, name: str) -> None:
        standing = self._under_way.pop(name)
        if standing.switched is not None:
            self._recovering.add(name)
        self._done += 1
        self._moved += self._attached.get(name, 0)


def _observe(target: Target) -> ObservePlace:
    return ObservePlace(why=f"to see the gates of {target.place.name}", place=target.place)


def _switch(target: Target, why: str) -> Switch:
    return Switch(why=why, place=target.place, wanted=target.wanted)


def _still_missing(target: Target, standing: _Standing, world: World) -> str:
    for replica in standing.observed or ():
        if differs := differences(replica, target.wanted):
            return ", ".join(differs)
    unlisted = target.unlisted(world.csi_node(target.node))
    return f"its CSINode does not {unlisted} yet" if unlisted else "it is not ready"
