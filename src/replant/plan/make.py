"""From an inventory to a plan that is checked, ordered and proved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from replant.errors import Refused
from replant.gates.versions import Version
from replant.inventory.fingerprint import fingerprint
from replant.inventory.model import Inventory
from replant.plan.attachers import OPENSHIFT, Attacher, attacher_of
from replant.plan.compose import Choices
from replant.plan.compose import steps as composed
from replant.plan.courses import given, proved
from replant.plan.downgrade import downgrade_steps, outlook
from replant.plan.model import (
    API_VERSION,
    KIND,
    Check,
    Goal,
    NodeGroup,
    NodeMethod,
    Plan,
    Step,
    Weight,
)
from replant.plan.preflight import preflight
from replant.plan.preflight.featuresets import feature_sets
from replant.plan.preflight.nodes import platform_drains
from replant.plan.preflight.workloads import successors
from replant.plan.situation import Situation, situation
from replant.routing import AttachController, Process

GARDENER = "gardener"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a person asks for."""

    goal: Goal
    plugins: tuple[str, ...] = ()
    """All that the cluster uses, where none is named."""
    platform: str = "generic"
    attach_controller: AttachController | None = None
    """By default what is seen of it tells."""
    controller_gates: Mapping[str, bool] | None = None
    to: Version | None = None
    """Where a downgrade leads."""
    choices: Choices = field(default_factory=Choices)


def make_plan(wanted: Wanted, inventory: Inventory) -> Plan:
    """The plan for this cluster, with its preflight and its proof; Refused where there is none."""
    now = situation(inventory, wanted.plugins, wanted.controller_gates)
    attacher = attacher_of(
        wanted.platform,
        wanted.controller_gates or {},
        now.plugins,
        wanted.attach_controller,
        wanted.to,
    )
    steps = _steps(wanted, now, attacher.controller)
    plan = Plan(
        api_version=API_VERSION,
        kind=KIND,
        goal=wanted.goal,
        plugins=now.plugins,
        platform=wanted.platform,
        attach_controller=attacher.controller,
        fingerprint=fingerprint(inventory),
        empty=now.empty,
        one_pod_per_volume=wanted.choices.one_pod_per_volume,
        control_plane=now.control_plane,
        groups=now.groups,
        preflight=_looked_at(wanted, now, attacher, steps),
        steps=steps,
    )
    return replace(plan, proof=proved(plan))


def _steps(wanted: Wanted, now: Situation, attach_controller: AttachController) -> tuple[Step, ...]:
    if wanted.to is not None:
        return downgrade_steps(now, wanted.choices, attach_controller, wanted.to)
    by_platform = wanted.choices.method is NodeMethod.PLATFORM
    order_free = by_platform and attach_controller is AttachController.NODE_DRIVEN
    return composed(wanted.goal, now, wanted.choices, order_free=order_free)


def _looked_at(
    wanted: Wanted, now: Situation, attacher: Attacher, steps: tuple[Step, ...]
) -> tuple[Check, ...]:
    found = [*preflight(wanted.goal, now), *platform_drains(wanted.choices.method, now)]
    found += successors(now, steps, one_pod_per_volume=wanted.choices.one_pod_per_volume)
    if wanted.platform == OPENSHIFT:
        found += feature_sets(wanted.goal, now, steps)
    if attacher.why:
        found.append(Check(check="attacher", result=Weight.PASSED, message=attacher.why))
    if wanted.to:
        found += outlook(now, attacher.controller, wanted.to)
    return tuple(found)


def refuse_other(plan: Plan, inventory: Inventory) -> None:
    """Refused, unless the plan was made for this cluster as it is now."""
    if inventory.server is None:
        raise Refused("The cluster's version is not known; say it with --server-version.")
    if fingerprint(inventory) != plan.fingerprint:
        raise Refused(
            "The plan was made for another cluster, or this one has changed since: its fingerprint "
            f"is {plan.fingerprint}, the cluster's {fingerprint(inventory)}. Make the plan anew."
        )


def refuse_untrue(plan: Plan, now: Situation) -> None:
    """Refused, unless what the plan starts from is so: its proof is worth no more than that.

    A fingerprint tells nothing of pods that name a disk by themselves, nor of a plan that somebody
    has edited.
    """
    for what, said, seen in (
        ("volumes", plan.empty, plan.empty and now.empty),
        ("nodes", _nodes(plan.groups, plan.plugins), _nodes(now.groups, plan.plugins)),
        ("the control plane", plan.control_plane, now.control_plane),
    ):
        if said != seen:
            raise Refused(
                f"What the plan says of {what} is not so: the cluster has changed since, or "
                "somebody has changed the plan. Make the plan anew."
            )


def _nodes(
    groups: tuple[NodeGroup, ...], plugins: tuple[str, ...]
) -> dict[str, tuple[object, ...]]:
    """By node, what of its group a proof depends on."""
    found: dict[str, tuple[object, ...]] = {}
    for group in groups:
        kubelet = Process(Version.parse(group.version), given({}, group.gates))
        redirected = tuple(it for it in plugins if kubelet.migrates(it))
        found |= dict.fromkeys(group.nodes, (group.version, group.drivers, redirected))
    return found


def method_of(platform: str) -> NodeMethod:
    """How nodes get other kubelets there: Gardener replaces machines, OpenShift rolls pools."""
    own = {GARDENER: NodeMethod.REPLACE, OPENSHIFT: NodeMethod.PLATFORM}
    return own.get(platform, NodeMethod.IN_PLACE)
