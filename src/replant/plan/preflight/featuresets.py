"""OpenShift's feature sets: they switch what a plan leaves out too, and some gates not at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from replant.gates.featuresets import (
    CONTROL_PLANE_SET,
    CUSTOM,
    NODE_SET,
    PLUGINS,
    inert,
    is_settled,
)
from replant.gates.history import gate_at
from replant.gates.plugins import LIVES
from replant.plan.model import Check, Goal, RollNodes, Step, SwitchControlPlane, Weight
from replant.plan.situation import Situation, in_use

_TELLS_LATER = " Whether the FeatureGate has these sets is seen by apply, which refuses it then."


def feature_sets(goal: Goal, situation: Situation, steps: Sequence[Step]) -> Iterator[Check]:
    """What the sets do that is not in the steps, and what of the steps they cannot do."""
    gates = [LIVES[it].migration_gate for it in situation.plugins]
    if goal is Goal.ENABLE and all(is_settled(it, situation.server) for it in gates):
        message = inert(gates, situation.server)
        yield Check(check="feature-sets", result=Weight.PASSED, message=message)
    now = _feature_set(situation)
    if now == CUSTOM:
        return  # which lists gates one by one
    if message := besides(goal, situation, steps):
        known = now in (CONTROL_PLANE_SET, NODE_SET)
        yield Check(
            check="feature-sets",
            result=Weight.BLOCKER if known else Weight.WARNING,
            message=message + ("" if known else _TELLS_LATER),
        )
    if lasting := _on_by_default(goal, situation):
        yield Check(check="feature-sets", result=Weight.WARNING, message=_lasting(lasting, now))


def besides(goal: Goal, situation: Situation, steps: Sequence[Step]) -> str:
    """What the sets would switch that the cluster uses and nobody has looked at, and what to do."""
    if not any(isinstance(it, SwitchControlPlane | RollNodes) for it in steps):
        return ""
    # What is kept on for a downgrade is on already; whatever else is in the plan is not looked at.
    planned = () if goal is Goal.DOWNGRADE else situation.plugins
    used = in_use(situation.inventory) | {it.provisioner for it in situation.inventory.classes}
    others = [
        it for it in PLUGINS if it in used and it not in planned and _switches(goal, it, situation)
    ]
    if not others:
        return ""
    way = "off" if goal is Goal.DISABLE else "on"
    what = f"The feature sets turn {way} {', '.join(others)} as well, which this cluster uses"
    if goal is Goal.DOWNGRADE:
        return f"{what} and does not redirect everywhere yet. First: replant plan enable"
    named = " ".join(f"--plugin {it.partition('/')[2]}" for it in (*planned, *others))
    return f"{what} and the plan leaves out. Plan for all of them: replant plan {goal} {named}"


def _switches(goal: Goal, plugin: str, situation: Situation) -> bool:
    """Whether a plugin's volumes change sides with the sets."""
    spec = gate_at(LIVES[plugin].migration_gate, situation.server)
    if spec is None or spec.locked:
        return False
    inventory = situation.inventory
    redirected = [plugin in inventory.migrated_on(it) for it in inventory.nodes]
    if goal is Goal.DISABLE:
        return any(redirected) and not spec.default
    return not all(redirected)


def _on_by_default(goal: Goal, situation: Situation) -> list[str]:
    """Gates to be turned off that may be on without any set."""
    if goal is not Goal.DISABLE:
        return []
    gates = [LIVES[it].migration_gate for it in situation.plugins if it in situation.redirected]
    specs = {it: gate_at(it, situation.server) for it in gates}
    return [it for it, spec in specs.items() if spec and spec.default and not spec.locked]


def _lasting(gates: list[str], now: str) -> str:
    names = ", ".join(gates)
    if now in (CONTROL_PLANE_SET, NODE_SET):
        return (
            f"{names} is on by default: without {now} it is off only where the release gives it as "
            "off by itself, which cannot be seen while the set is there. If nodes go on listing "
            "the plugin, it does not, and apply --undo is the way out."
        )
    return f"{names} is on by default, and there is no set to take away.{_TELLS_LATER}"


def _feature_set(situation: Situation) -> str:
    found = situation.inventory.feature_gate
    return (found.spec and found.spec.feature_set) or "" if found else ""
