"""Nodes that the platform rolls by itself: it is asked once, and every node is waited for.

It cordons, drains and restarts in its own order. What counts is what CSINodes list in the end, and
that the platform says it is at rest.
"""

from __future__ import annotations

from collections.abc import Container

from replant.execute.acts import (
    Act,
    Decision,
    LookAtLeader,
    ObservePlace,
    Progress,
    RestartLeader,
    Switch,
    Wait,
)
from replant.execute.actuators import KUBELETS, Wanted, differences, is_so
from replant.execute.awaiting import OBSERVE_AGAIN, AwaitedSwitch
from replant.execute.leading import FRESH_MEMORY, Leading, Memory
from replant.execute.patience import Patience
from replant.execute.steps.scheduling import restriction
from replant.execute.targets import Target, targets
from replant.execute.world import World
from replant.plan.model import Plan, RollNodes
from replant.proof.course import OVERTAKEN

_NAMED = 3


class Entrusting:
    """A RollNodes step under way that the platform carries out."""

    def __init__(
        self,
        step: RollNodes,
        plan: Plan,
        patience: Patience,
        doubted: Container[str] = (),
        memory: Memory = FRESH_MEMORY,
    ) -> None:
        self._patience = patience
        self._doubted = KUBELETS.component in doubted
        """Whether they may be about to change, however they look."""
        self._targets = tuple(targets(step, plan))
        self._restriction = restriction(step, plan, patience)
        gates = {k: on for it in step.changes for k, on in it.gates.items()}
        self._wanted = Wanted(gates, by_name=step.by_name)
        self._ask = Switch(why=step.why, place=KUBELETS, wanted=self._wanted)
        self._pools = AwaitedSwitch()
        back = any(not OVERTAKEN & it.listed for it in self._targets)
        self._leading = Leading(
            step.id, step.restart_controllers_seconds, patience.switch, memory, back=back
        )

    def decide(self, world: World, now: float) -> Decision:
        """Whether to ask, and what of the nodes is still waited for."""
        decision = Decision()
        there = [it for it in self._targets if world.node(it.node) is not None]
        behind = [it for it in there if it.unlisted(world.csi_node(it.node))]
        decision.progress = Progress(len(there) - len(behind), len(there), "nodes")
        if behind:
            self._restriction.keep(world.take_touched(), world, now, decision)
        if self._leading.holds_up(now, decision, world):
            return decision
        if behind:
            restricts = self._restriction.holds_up(world, now, decision)
        else:
            restricts = not self._restriction.ends(world, decision)
        if restricts:
            return decision
        pools = self._pools
        if pools.observed_at is None:
            decision.acts.append(_observe())
            return decision
        if pools.observed is None:
            decision.failed = (
                "Nobody can see how far the nodes are: this plan has the platform roll them, which "
                "only the platform's own actuator can follow. Plan with --nodes in-place instead."
            )
            return decision
        at_rest = is_so(pools.observed, self._wanted)
        if pools.switched is None and (behind or not at_rest or self._doubted):
            self._begin(there, world, decision)
        elif behind or not at_rest:
            self._await(behind, world, now, decision)
            # The platform moves pods for as long as it is at it.
            self._leading.moved((self._ask,), now)
        else:
            self._leading.end()
            decision.done = not self._leading.holds_up(now, decision, world)
        self._leading.moved(decision.acts, now)
        return decision

    @property
    def leaves_detaches(self) -> bool:
        """Whether a kube-controller-manager leads that may wait for an overtaken detach."""
        return self._leading.is_pending

    def learn(self, act: Act, outcome: object, now: float) -> None:
        """Note what was seen."""
        match act:
            case LookAtLeader() | RestartLeader():
                self._leading.learn(outcome, now)
            case ObservePlace() | Switch():
                self._pools.learn(act, outcome, now)
            case _:
                self._restriction.learn(act, outcome, now)

    def _begin(self, there: list[Target], world: World, decision: Decision) -> None:
        """Have them rolled, once every node has the driver that it needs then."""
        for it in there:
            if absent := it.absent_drivers(world.csi_node(it.node)):
                decision.waits.append(
                    Wait(
                        f"the driver {', '.join(absent)} to be registered on {it.node}",
                        f"driver {it.node}",
                        self._patience.switch,
                        f"the driver's pod on {it.node}, and its kubelet",
                    )
                )
        if not decision.waits:
            decision.acts.append(self._ask)

    def _await(self, behind: list[Target], world: World, now: float, decision: Decision) -> None:
        if self._pools.has_failed(now):
            decision.failed = f"The nodes were not switched: {self._pools.failure}"
            return
        if self._pools.is_to_be_observed(now):
            decision.acts.append(_observe())
        decision.wake = OBSERVE_AGAIN
        for pool in self._pools.observed or ():
            if pool.ready and not differences(pool, self._wanted):
                continue
            lag = pool.why or ", ".join(differences(pool, self._wanted)) or "it is not ready"
            # Each time that one gets on, it is another wait: a large pool takes hours.
            what = f"{pool.name} to be at rest with its new gates: {lag}"
            key = f"{pool.name} {lag} {len(behind)}"
            decision.waits.append(Wait(what, key, self._patience.drain, "machine-config-daemon"))
        if behind:
            first = behind[0]
            more = f" and {len(behind) - _NAMED} more" if len(behind) > _NAMED else ""
            what = (
                f"{', '.join(it.node for it in behind[:_NAMED])}{more} to be rolled: the CSINode "
                f"of {first.node} does not {first.unlisted(world.csi_node(first.node))} yet"
            )
            key = f"behind {len(behind)}"
            decision.waits.append(Wait(what, key, self._patience.drain, "machine-config-daemon"))


def _observe() -> ObservePlace:
    return ObservePlace(why="to see how far the nodes are", place=KUBELETS)
