"""A platform that takes the cluster to another version: somebody asks it, and it is waited for.

It takes the control plane first and the nodes after it, so the last kubelet tells that it is done.
"""

from __future__ import annotations

from replant.execute.acts import Act, Decision, LookAtLeader, Progress, RestartLeader, Switch, Wait
from replant.execute.actuators import KUBELETS, Wanted
from replant.execute.leading import Leading, Memory
from replant.execute.patience import Patience
from replant.execute.steps.scheduling import restriction
from replant.execute.world import World
from replant.gates.versions import Version
from replant.plan.model import ChangeVersion, Plan

_NAMED = 3
_MOVES = Switch(why="", place=KUBELETS, wanted=Wanted({}))
"""What the platform does: pods go from nodes of one kind to nodes of the other."""


class Versioning:
    """A ChangeVersion step under way."""

    def __init__(self, step: ChangeVersion, plan: Plan, patience: Patience) -> None:
        self._version = Version.parse(step.version).first_patch
        self._patience = patience
        self._restriction = restriction(step, plan, patience)
        # No journal tells what the platform has moved, so nobody who leads now may stay.
        self._leading = Leading(
            step.id, step.restart_controllers_seconds, patience.switch, Memory(), back=True
        )

    def decide(self, world: World, now: float) -> Decision:
        """Which nodes are still waited for."""
        decision = Decision()
        found = {it.metadata.name: it.kubelet for it in world.nodes()}
        behind = {
            name: kubelet
            for name, kubelet in found.items()
            if kubelet is None or kubelet.first_patch != self._version
        }
        decision.progress = Progress(len(found) - len(behind), len(found), "nodes")
        touched = world.take_touched()
        if behind:
            self._restriction.keep(touched, world, now, decision)
        if self._leading.holds_up(now, decision, world) or (
            behind and self._restriction.holds_up(world, now, decision)
        ):
            return decision
        if behind:
            decision.waits.append(self._wait(behind))
            if len(behind) < len(found):
                self._leading.moved((_MOVES,), now)
            return decision
        if self._restriction.ends(world, decision):
            self._leading.end()
            decision.done = not self._leading.holds_up(now, decision, world)
        return decision

    @property
    def leaves_detaches(self) -> bool:
        """Whether a kube-controller-manager leads that may wait for an overtaken detach."""
        return self._leading.is_pending

    def learn(self, act: Act, outcome: object, now: float) -> None:
        """Note who leads, and what pods that are not bound need."""
        if isinstance(act, LookAtLeader | RestartLeader):
            self._leading.learn(outcome, now)
        else:
            self._restriction.learn(act, outcome, now)

    def _wait(self, behind: dict[str, Version | None]) -> Wait:
        first, version = next(iter(behind.items()))
        more = f" and {len(behind) - _NAMED} more" if len(behind) > _NAMED else ""
        return Wait(
            f"{', '.join(list(behind)[:_NAMED])}{more} to run Kubernetes {self._version.of_minor}: "
            f"{first} runs {version or 'nobody knows what'}. Unless that is under way, have the "
            "version operator do it now: oc adm upgrade",
            f"version {len(behind)}",
            self._patience.drain,
            "cluster-version-operator",
        )
