"""Components of the control plane, one after the other, until every replica is as wanted."""

from __future__ import annotations

from dataclasses import dataclass

from replant.errors import Final, ReplantError
from replant.execute.acts import Act, Decision, ObservePlace, Progress, Switch, Wait
from replant.execute.actuators import Place, Replica, Wanted, differences, is_so
from replant.execute.rolling import GRACE, OBSERVE_AGAIN, Patience
from replant.execute.world import World
from replant.plan.model import Component, SwitchControlPlane


@dataclass(slots=True)
class _Standing:
    """What was seen of a component, and when."""

    replicas: tuple[Replica, ...] | None = None
    observed: float | None = None
    switched: float | None = None
    failure: str = ""


class Switching:
    """A SwitchControlPlane step under way."""

    def __init__(self, step: SwitchControlPlane, patience: Patience) -> None:
        self._step = step
        self._patience = patience
        self._standings = {it.name: _Standing() for it in step.components}

    def decide(self, _world: World, now: float) -> Decision:
        """What to do for the first component that is not as wanted."""
        decision = Decision()
        finished = 0
        for component in self._step.components:
            if not self._go_on(component, now, decision):
                break
            finished += 1
        total = len(self._step.components)
        decision.done = finished == total
        decision.progress = Progress(finished, total, "components")
        return decision

    def learn(self, act: Act, outcome: object, now: float) -> None:
        """Note what was seen."""
        if not isinstance(act, ObservePlace | Switch):
            return
        standing = self._standings[act.place.component]
        match act, outcome:
            case ObservePlace(), (tuple() | None):
                standing.replicas, standing.observed = outcome, now
            case Switch(), None:
                standing.switched, standing.observed, standing.failure = now, None, ""
            case Switch(), Final():
                standing.switched, standing.observed = now, None
                standing.failure = str(outcome)
            case _, ReplantError():
                return  # it is decided upon again

    def _go_on(self, component: Component, now: float, decision: Decision) -> bool:
        """Whether a component is as wanted; if not, the decision says what to do about it."""
        place, wanted = Place(component=component.name), _wanted(component)
        standing = self._standings[component.name]
        if standing.observed is None:
            decision.acts.append(_observe(place))
            return False
        if standing.replicas is None:
            decision.failed = (
                f"Nobody can see which gates {place.name} has, so it cannot be told when it is "
                "switched. Use --actuator hooks, with a command whose observe tells them."
            )
            return False
        if is_so(standing.replicas, wanted):
            return True
        if standing.switched is None:
            decision.acts.append(Switch(why=component.why, place=place, wanted=wanted))
            return False
        self._await(place, wanted, standing, now, decision)
        return False

    def _await(
        self, place: Place, wanted: Wanted, standing: _Standing, now: float, decision: Decision
    ) -> None:
        what = _missing(standing.replicas or (), wanted)
        if standing.failure and now > (standing.switched or now) + GRACE:
            decision.failed = f"{place.name} was not switched ({what}): {standing.failure}"
            return
        if now >= (standing.observed or 0) + OBSERVE_AGAIN:
            decision.acts.append(_observe(place))
        decision.wake = OBSERVE_AGAIN
        decision.waits.append(
            Wait(
                f"every replica of {place.name} to run with its new gates: {what}",
                f"switched {place.name}",
                self._patience.switch,
                f"{place.name} on its nodes",
            )
        )


def _wanted(component: Component) -> Wanted:
    return Wanted(component.gates, component.add_flags, component.remove_flags)


def _observe(place: Place) -> ObservePlace:
    return ObservePlace(why=f"to see the gates of {place.name}", place=place)


def _missing(replicas: tuple[Replica, ...], wanted: Wanted) -> str:
    for replica in replicas:
        if differs := differences(replica, wanted):
            return f"of {replica.name}, {', '.join(differs)}"
        if not replica.ready:
            return f"{replica.name} is not ready"
    return "none runs"
