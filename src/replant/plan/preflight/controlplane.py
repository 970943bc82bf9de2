"""The control plane: whether it is as it seems, and whether it can be switched."""

from __future__ import annotations

from collections import defaultdict

from replant.gates.history import gate_at
from replant.gates.plugins import BASE_GATE
from replant.plan import cloudflags
from replant.plan.courses import CONTROLLER, off_gate
from replant.plan.model import Goal
from replant.plan.preflight.results import Results, blocked_by, blocker, listed, warning
from replant.plan.situation import Situation, base_gate_off
from replant.routing import is_attached
from replant.routing.restarts import needs_driver, takes_for_in_tree


def replicas(goal: Goal, situation: Situation) -> Results:
    """Whether all replicas are given the same, and can be seen."""
    if situation.hides_flags:
        # Nothing tells whether it has given the plugins up, and a node that goes back needs them.
        blocks = goal is Goal.DISABLE and not situation.empty
        yield (blocker if blocks else warning)(
            "The control plane does not show its flags: its gates are concluded from its version "
            "and its nodes.",
            f"Say what {CONTROLLER} is given with --control-plane-gates.",
        )
    given = defaultdict(set)
    for pod in situation.inventory.control_plane:
        given[pod.component].add(tuple(sorted(pod.gates.items())))
    for component, settings in sorted(given.items()):
        if len(settings) > 1:
            yield blocker(
                f"The replicas of {component} are given different gates: a switch is under way, or "
                "was never finished.",
                "Give all replicas the same gates first.",
            )
    if situation.replicas == 1:
        yield warning(
            f"There is one {CONTROLLER}: nothing is attached or provisioned while it restarts."
        )


def base_gate(goal: Goal, situation: Situation) -> Results:  # noqa: ARG001
    """Whether the gate above all plugins' gates is on, as it is unless somebody switches it off."""
    inventory = situation.inventory
    if base_gate_off(situation.controller):
        yield blocker(
            f"{BASE_GATE} is off in {CONTROLLER}: switching it on would redirect at once every "
            "plugin whose own gate is on.",
            f"Give each plugin's own gate as false, take {BASE_GATE}=false away, and plan again.",
        )
    off = [node for node in inventory.nodes if base_gate_off(situation.kubelet(node))]
    yield from blocked_by(
        off,
        f"has {BASE_GATE} off: such a kubelet does not keep its CSINode up to date",
        "Give each plugin's own gate as false instead.",
    )
    if inventory.gates.get(cloudflags.API_SERVER, {}).get(BASE_GATE) is False:
        yield blocker(
            f"{BASE_GATE} is off in {cloudflags.API_SERVER}: it drops what VolumeAttachments say "
            "of volumes that pods name by themselves.",
            f"Take {BASE_GATE}=false away from {cloudflags.API_SERVER}.",
        )


def restarts(goal: Goal, situation: Situation) -> Results:  # noqa: ARG001
    """Whether a controller of this version that starts detaches disks that are in use."""
    if situation.empty or not any(map(is_attached, situation.plugins)):
        return
    server = situation.server
    newest = "Take the control plane to the newest patch of its minor first, or further."
    if takes_for_in_tree(server, redirects=True):
        yield blocker(
            f"A {CONTROLLER} {server} that starts takes what the driver has attached for attached "
            "in-tree, and detaches it under pods.",
            newest,
        )
    if needs_driver(server):
        yield warning(
            f"The proof relies on drivers that stay: a {CONTROLLER} {server} that starts while a "
            "driver is missing on a node detaches the disks of its pods six minutes later. Replant "
            "restarts none meanwhile; others must not either.",
            newest,
        )


def taken_away(goal: Goal, situation: Situation) -> Results:  # noqa: ARG001
    """Whether the controllers have given a plugin up that somebody still needs."""
    if situation.empty:
        return
    inventory, controller = situation.inventory, situation.controller
    for plugin in situation.plugins:
        gate = off_gate(plugin, controller.version)
        if gate_at(gate, controller.version) is None or not controller.gates.get(gate):
            continue
        behind = [node for node in inventory.nodes if plugin not in inventory.migrated_on(node)]
        if not controller.migrates(plugin):
            behind = [CONTROLLER, *behind]
        if behind:
            yield blocker(
                f"{gate} is on in {CONTROLLER}, while {plugin} is not redirected by "
                f"{listed(behind)}, which it is to be on only after.",
                f"Give {CONTROLLER} {gate}=false, and plan again.",
            )


def cloud_reached(goal: Goal, situation: Situation) -> Results:  # noqa: ARG001
    """Whether the in-tree plugins, once they serve again, are told how to reach their cloud."""
    if situation.empty or not situation.replicas:
        return
    told = cloudflags.named(situation, CONTROLLER)
    for name in sorted(cloudflags.clouds(situation, situation.redirected) - told):
        yield blocker(
            f"{CONTROLLER} is not told how to reach the cloud {name}: the in-tree plugin would "
            "attach and provision nothing.",
            "Undo the plan that took its flags away (replant plan undo), or give them back: "
            f"--cloud-provider={name}, or --external-cloud-volume-plugin={name}, --cloud-config.",
        )


def cloud(goal: Goal, situation: Situation) -> Results:  # noqa: ARG001
    """Whether the cloud's flags can go with the plugins."""
    if not cloudflags.clouds(situation):
        return
    if needed := cloudflags.still_needed(situation):
        yield warning(
            f"The cloud's flags stay: {listed(needed)} needs them and is not in this plan."
        )
    elif cloudflags.runs_cloud_itself(situation):
        yield warning(
            f"The cloud's flags of {CONTROLLER} stay: with them it looks after nodes and load "
            "balancers too.",
            "Let a cloud-controller-manager take over, then take them away.",
        )
