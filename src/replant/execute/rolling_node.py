"""One node of a RollNodes step: cordon, drain, wait, switch, wait, uncordon.

Where it stands is seen each time anew: whether it takes pods and who cordoned it, which pods are on
it, which volumes, and what its CSINode lists. Only times are remembered, so a new process begins
its waits again, and loses nothing else.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from replant.execute.acts import (
    CORDONED,
    Act,
    Cordon,
    Decision,
    Evict,
    LookAtNode,
    ObservePlace,
    Switch,
    Uncordon,
    Wait,
)
from replant.execute.actuators import differences, is_so
from replant.execute.awaiting import AwaitedSwitch
from replant.execute.draining import DrainRules, drain
from replant.execute.emptying import FRESH, Emptying, FreshNode
from replant.execute.patience import Patience
from replant.execute.steps.restarts import left_behind
from replant.execute.steps.scheduling import SchedulingRestriction
from replant.execute.targets import Target, VolumeNames
from replant.execute.world import Node, Pod, World
from replant.plan.model import RollNodes

LOOK_AGAIN = 2.0
DECIDE_AGAIN = 1.0
"""So long what is to be done stays decided, unless something is seen or comes of it."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What holds for every node of a step."""

    step: RollNodes
    run: str
    rules: DrainRules
    patience: Patience
    doubted: Container[str]
    """Targets that may be about to change, however they look: they are switched anyway."""
    volumes: VolumeNames
    restriction: SchedulingRestriction


def is_cordoned_by(run: str, node: Node | None) -> bool:
    """Whether it was this run that cordoned a node."""
    return node is not None and node.metadata.annotation(CORDONED) == run


class RollingNode:
    """A node under way: since when something is so, and what has come of its switch."""

    def __init__(self, target: Target, terms: Terms) -> None:
        self._target = target
        self._step = terms.step
        self._run = terms.run
        self._patience = terms.patience
        self._doubted = terms.doubted
        self._volumes = terms.volumes
        self._restriction = terms.restriction
        self._rules = terms.rules
        self._emptying = Emptying(terms.rules, terms.volumes, terms.patience)
        self._awaited = AwaitedSwitch()
        self._empty_since: float | None = None
        self._looked: float | None = None
        self._confirmed: float | None = None
        self._was_empty = False
        """Whether it was decided to switch it, since it was seen empty and no pod may come."""
        self._listed_since: float | None = None
        self._has_left_none: bool | None = None
        """Whether a look after the switch showed no volume under a name of before."""
        self._decided: Decision | None = None
        """What it waits for and what is to be done, as long as nothing about it changes."""
        self._until = 0.0
        """And not beyond this moment."""
        self._has_left = False
        self.is_done = False
        """Whether there is nothing more to do for it."""

    @property
    def has_displaced(self) -> bool:
        """Whether pods had to leave it, or have gone with it."""
        return self._has_left or self._awaited.switched is not None

    def touch(self) -> None:
        """Something about it was seen: what was decided holds no more."""
        self._decided = None

    def learn(self, act: Act, outcome: object, now: float) -> None:
        """Note what was seen, and what was refused."""
        self._decided = None
        match act, outcome:
            case Evict(), _:
                self._emptying.learn(act, outcome, now)
            case LookAtNode(), FreshNode():
                self._looked = now
                self._confirmed = now if self._emptying.is_empty(outcome) else None
                self._has_left_none = outcome.node is not None and not self._left(outcome.node)
            case ((ObservePlace() | Switch()), _):
                self._awaited.learn(act, outcome, now)

    def decide(self, world: World, now: float, decision: Decision) -> None:
        """Decide about it, if anything about it has changed or its time has come."""
        if self._decided is None or now >= self._until:
            found = Decision()
            self._go_on(world, now, found)
            decision.add(found)
            # A kubelet is switched upon a look that must be fresh at that very moment.
            switches = any(isinstance(it, Switch) for it in found.acts)
            self._decided = None if switches else found
            self._until = now + min(found.wake, DECIDE_AGAIN if found.acts else found.wake)
        else:
            decision.add(self._decided)
            decision.wake = min(decision.wake, self._until - now)

    def _go_on(self, world: World, now: float, decision: Decision) -> None:
        target, name = self._target, self._target.node
        node = world.node(name)
        if node is None:
            decision.notes.append(f"node {name} has left the cluster")
            self._has_left = self.is_done = True
            return
        doubtful = f"node {name}" in self._doubted and self._awaited.switched is None
        if doubtful or target.unlisted(world.csi_node(name)) or self._differs():
            self._listed_since = None
            if self._awaited.switched is None:
                self._take_out(node, world, now, decision)
            elif self._step.drain and not node.spec.unschedulable:
                # Whoever let it take pods again did not know what is being done to it.
                decision.acts.append(self._cordon(node))
            else:
                self._await_switch(world, now, decision)
        elif self._awaited.observed_at is None and (self._awaited.switched or not target.shows):
            decision.acts.append(_observe(target))
        else:
            self._bring_back(node, world, now, decision)

    def _differs(self) -> bool:
        """Whether the actuator sees other gates than wanted."""
        seen = self._awaited.observed
        return seen is not None and not is_so(seen, self._target.wanted)

    # Out

    def _take_out(self, node: Node, world: World, now: float, decision: Decision) -> None:
        target, name = self._target, self._target.node
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
            self._switch_undrained(node, world, decision)
        elif not node.spec.unschedulable:
            decision.acts.append(self._cordon(node))
        elif self._was_empty and (late := drain(world.pods_on(name), self._rules).go):
            # Its kubelet may be about to restart, and a pod that is evicted would come again.
            decision.waits.append(self._late(late))
            self._empty_since = self._confirmed = None
        elif self._emptying.is_drained(node, world, now, decision) and self._is_marked(
            node, world, decision
        ):
            self._switch_empty(now, decision)
        else:
            self._empty_since = self._confirmed = None

    def _cordon(self, node: Node) -> Cordon:
        return Cordon(
            why=f"to switch {self._target.place.name} while nothing is mounted there",
            node=self._target.node,
            uid=node.metadata.uid,
            version=node.metadata.resource_version,
            run=self._run,
        )

    def _switch_undrained(self, node: Node, world: World, decision: Decision) -> None:
        """A plan without a drain was made while there was no volume: see that this still holds."""
        name = self._target.node
        if held := self._volumes.on(node, world.attachments_on(name)):
            decision.failed = (
                f"The plan drains no node, for there was no volume of its plugins. By now {name} "
                f"has {', '.join(held[:3])}: its kubelet is not switched under it. Take the run "
                "back (--undo), and make the plan anew."
            )
            return
        decision.acts.append(_switch(self._target, self._step.id))

    def _switch_empty(self, now: float, decision: Decision) -> None:
        """Wait beyond what can be seen, look once more at this very moment, and switch."""
        name = self._target.node
        if self._empty_since is None:
            self._empty_since = now
        if not self._settled(self._empty_since, now, decision):
            decision.waits.append(self._settling(name, "the cloud to end its detaches"))
        elif self._confirmed is not None and now <= self._confirmed + FRESH * self._patience.haste:
            self._was_empty = True
            decision.acts.append(_switch(self._target, f"{name} is empty"))
        elif self._looked is not None and now < self._looked + LOOK_AGAIN:
            decision.wake = min(decision.wake, LOOK_AGAIN)
            decision.waits.append(self._settling(name, "a look that shows it empty"))
        else:
            decision.acts.append(
                LookAtNode(why=f"to be sure that nothing is left on {name}", node=name)
            )

    # The switch

    def _await_switch(self, world: World, now: float, decision: Decision) -> None:
        target = self._target
        what = _still_missing(target, self._awaited, world)
        if self._awaited.has_failed(now):
            decision.failed = (
                f"{target.place.name} was not switched ({what}): {self._awaited.failure}"
            )
            return
        if self._awaited.is_to_be_observed(now):
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

    def _bring_back(self, node: Node, world: World, now: float, decision: Decision) -> None:
        name = self._target.node
        mine = is_cordoned_by(self._run, node)
        if not mine and not (node.spec.unschedulable and self._restriction.is_closed(node)):
            self.is_done = True
            return
        missing = ", ".join(self._target.absent_drivers(world.csi_node(name)))
        if missing or not node.ready:
            decision.waits.append(
                Wait(
                    f"{name} to have the driver {missing}" if missing else f"{name} to be ready",
                    f"ready {name}",
                    self._patience.switch,
                    f"the kubelet of {name}" + (", and the driver's pod there" if missing else ""),
                )
            )
            self._listed_since = None
            return
        if self._listed_since is None:
            self._listed_since = now
        if not self._settled(self._listed_since, now, decision):
            decision.waits.append(self._settling(name, "the controllers to hear of its CSINode"))
            return
        if not self._is_without_what_came(node, world, decision):
            return
        self._restriction.release(name)
        if not self._is_marked(node, world, decision):
            return
        if not mine:
            self.is_done = True
            return
        decision.acts.append(
            Uncordon(
                why=f"{name} is as wanted",
                node=name,
                uid=node.metadata.uid,
                version=node.metadata.resource_version,
            )
        )

    def _left(self, node: Node) -> list[str]:
        return left_behind(node, self._target.listed, self._target.plugins)

    def _is_without_what_came(self, node: Node, world: World, decision: Decision) -> bool:
        """Whether no pod came after the last look at the node and before its kubelet's restart.

        One that tolerates every taint may. Its disk is attached under a name that the kubelet does
        not use any more, so it has to leave before any controller restarts. It is not evicted: its
        successor would be back at once, and the driver would attach the disk for that one while
        the in-tree plugin still detaches it.
        """
        name = self._target.node
        if left := self._left(node):
            self._has_left_none = None
            pods = [it for it in world.pods_on(name) if it.claims]
            decision.waits.append(self._late(pods, f", and with it {left[0]}"))
            return False
        if not self._has_left_none:
            decision.acts.append(
                LookAtNode(why=f"to be sure that no pod came to {name} meanwhile", node=name)
            )
        return bool(self._has_left_none)

    def _late(self, pods: list[Pod], volume: str = "") -> Wait:
        name = self._target.node
        who = ", ".join(it.name for it in pods) or "a pod"
        return Wait(
            f"{who} to leave {name}{volume}: it came after the last look at the node, although "
            "that has a taint. Do not restart kube-controller-manager, and scale its workload down "
            "to 0 until this node is done",
            f"late {name} {volume}",
            self._patience.drain,
            f"the kubelet of {name}",
        )

    def _is_marked(self, node: Node, world: World, decision: Decision) -> bool:
        """Whether its taints tell what it is, so that no pod comes that should not."""
        if self._restriction.is_marked(node, world):
            return True
        decision.waits.append(self._settling(self._target.node, "its taints to tell its kind"))
        return False

    def _settled(self, since: float, now: float, decision: Decision) -> bool:
        until = since + self._step.settle_seconds
        if now < until:
            decision.wake = min(decision.wake, until - now)
        return now >= until

    def _settling(self, name: str, what: str) -> Wait:
        # What lasts so long by itself is not what patience is for.
        timeout = self._patience.switch + self._step.settle_seconds
        return Wait(f"{what} ({name})", f"settling {name} {what}", timeout)


def _observe(target: Target) -> ObservePlace:
    return ObservePlace(why=f"to see the gates of {target.place.name}", place=target.place)


def _switch(target: Target, why: str) -> Switch:
    return Switch(why=why, place=target.place, wanted=target.wanted)


def _still_missing(target: Target, awaited: AwaitedSwitch, world: World) -> str:
    for replica in awaited.observed or ():
        if differs := differences(replica, target.wanted):
            return ", ".join(differs)
    unlisted = target.unlisted(world.csi_node(target.node))
    return f"its CSINode does not {unlisted} yet" if unlisted else "it is not ready"
