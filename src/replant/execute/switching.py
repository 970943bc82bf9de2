"""Components of the control plane, one after the other, until every replica is as wanted."""

from __future__ import annotations

from collections.abc import Container, Iterator

from replant.execute.acts import Act, Decision, ObservePlace, Progress, Switch, Wait
from replant.execute.actuators import Place, Replica, Wanted, differences, is_so
from replant.execute.awaiting import OBSERVE_AGAIN, AwaitedSwitch
from replant.execute.patience import Patience
from replant.execute.steps.restarts import in_the_way_of_a_restart
from replant.execute.targets import demands
from replant.execute.world import World
from replant.plan.courses import CONTROLLER
from replant.plan.model import Component, Plan, SwitchControlPlane


class Switching:
    """A SwitchControlPlane step under way."""

    def __init__(
        self,
        step: SwitchControlPlane,
        plan: Plan,
        patience: Patience,
        doubted: Container[str] = (),
    ) -> None:
        self._step = step
        self._patience = patience
        self._doubted = doubted
        """Components that may be about to change, however they look: they are switched anyway."""
        self._demands = () if plan.empty else tuple(demands(step, plan))
        self._replicas = {CONTROLLER: plan.control_plane.replicas}
        """How many there were when the plan was made, as far as that was seen."""
        self._standings = {it.name: AwaitedSwitch() for it in step.components}

    def decide(self, world: World, now: float) -> Decision:
        """What to do for the first component that is not as wanted."""
        decision = Decision()
        finished = 0
        for component in self._step.components:
            if not self._go_on(component, world, now, decision):
                break
            finished += 1
        total = len(self._step.components)
        decision.done = finished == total
        decision.progress = Progress(finished, total, "components")
        return decision

    def learn(self, act: Act, outcome: object, now: float) -> None:
        """Note what was seen."""
        if isinstance(act, ObservePlace | Switch):
            self._standings[act.place.component].learn(act, outcome, now)

    def _go_on(self, component: Component, world: World, now: float, decision: Decision) -> bool:
        """Whether a component is as wanted; if not, the decision says what to do about it."""
        place = Place(component=component.name)
        wanted = _wanted(component, by_name=self._step.by_name)
        standing = self._standings[component.name]
        if standing.observed_at is None:
            decision.acts.append(_observe(place))
            return False
        if standing.observed is None:
            decision.failed = (
                f"Nobody can see which gates {place.name} has, so it cannot be told when it is "
                "switched. Use --actuator hooks, with a command whose observe tells them."
            )
            return False
        doubtful = component.name in self._doubted and standing.switched is None
        if is_so(standing.observed, wanted) and not doubtful:
            if len(standing.observed) >= self._replicas.get(component.name, 0):
                return True
            # One that is down comes back with the gates that it had, and may lead.
            self._await(place, wanted, standing, now, decision)
            return False
        if standing.switched is None:
            decision.waits += self._in_the_way(component, world)
            if not decision.waits:
                decision.acts.append(Switch(why=component.why, place=place, wanted=wanted))
            return False
        self._await(place, wanted, standing, now, decision)
        return False

    def _in_the_way(self, component: Component, world: World) -> Iterator[Wait]:
        """Nodes that must not be as they are: they came, or were switched, behind the plan's back.

        What the plan's own steps leave is proved; a node that an autoscaler has made is not.
        """
        if component.name != CONTROLLER:
            return
        yield from in_the_way_of_a_restart(world, self._patience.switch)
        for demand in self._demands:
            for node in world.nodes():
                name = node.metadata.name
                if demand.is_met(world.csi_node(name)):
                    continue
                yield Wait(
                    f"{name} to {demand.told} before {component.name} is switched: it is not as "
                    "the plan leaves its nodes. Drain it and switch its kubelet, or remove it",
                    f"in the way {name} {demand.plugin}",
                    self._patience.switch,
                    f"the kubelet of {name}",
                )

    def _await(
        self, place: Place, wanted: Wanted, standing: AwaitedSwitch, now: float, decision: Decision
    ) -> None:
        expected = self._replicas.get(place.component, 0)
        what = _missing(standing.observed or (), wanted, expected)
        if standing.has_failed(now):
            decision.failed = f"{place.name} was not switched ({what}): {standing.failure}"
            return
        if standing.is_to_be_observed(now):
            decision.acts.append(_observe(place))
        decision.wake = OBSERVE_AGAIN
        # Where a platform tells how far it is, each time that it gets on is another wait.
        far = "; ".join(it.why for it in standing.observed or () if it.why)
        decision.waits.append(
            Wait(
                f"every replica of {place.name} to run with its new gates: {what}",
                f"switched {place.name} {far}",
                self._patience.switch,
                f"{place.name} on its nodes",
            )
        )


def _wanted(component: Component, *, by_name: bool) -> Wanted:
    return Wanted(component.gates, component.add_flags, component.remove_flags, by_name)


def _observe(place: Place) -> ObservePlace:
    return ObservePlace(why=f"to see the gates of {place.name}", place=place)


def _missing(replicas: tuple[Replica, ...], wanted: Wanted, expected: int) -> str:
    for replica in replicas:
        if differs := differences(replica, wanted):
            return f"of {replica.name}, {', '.join(differs)}"
        if not replica.ready:
            return f"{replica.name} is not ready{replica.why and f': {replica.why}'}"
    return f"{len(replicas)} of {expected} replicas run" if expected else "none runs"
