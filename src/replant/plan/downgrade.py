"""To an older version on a platform that takes the control plane down first, and the nodes later.

Where the older version redirects less, controllers would go back before the nodes. Those who ask
the node alone may; for all others gates that are on by default are given by name before, which
changes nothing now and keeps them on at any version.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from msgspec.structs import replace

from replant.errors import Refused
from replant.gates.plugins import LIVES
from replant.gates.versions import Version
from replant.plan.compose import RESTART_SECONDS, WHY, Choices, each_node
from replant.plan.courses import CONTROLLER, given, told
from replant.plan.model import (
    ChangeVersion,
    Check,
    Component,
    GivenGates,
    NodeChange,
    NodeMethod,
    RollNodes,
    Step,
    SwitchControlPlane,
    Weight,
)
from replant.plan.situation import SCHEDULER, Situation, changed, disks_may_be_taken
from replant.proof.course import OVERTAKEN
from replant.routing import FIRST, AttachController, Process


def downgrade_steps(
    situation: Situation, choices: Choices, attach_controller: AttachController, to: Version
) -> tuple[Step, ...]:
    """What keeps volumes where they are, if anything has to, and the downgrade itself."""
    _refuse_elsewhere(choices)
    _refuse_version(situation.server, to)
    lost = lost_at(to, situation)
    steps: list[Step] = []
    if attach_controller is AttachController.UPSTREAM and lost:
        gates: GivenGates = {LIVES[it].migration_gate: True for it in lost}
        steps += [_keep_control_plane(situation, gates), _keep_nodes(situation, choices, gates)]
    goes_back = bool(lost) and not steps
    overtaken = goes_back and not OVERTAKEN.isdisjoint(lost)
    steps.append(
        ChangeVersion(
            id="downgrade",
            title=f"Downgrade the cluster to Kubernetes {to.of_minor}",
            why="The platform takes the control plane down first and the nodes after it, each "
            "drained. You have it begin; it is waited for.",
            done_when=f"Every kubelet is of Kubernetes {to.of_minor}"
            + ("; another kube-controller-manager leads than before." if overtaken else "."),
            undo=f"Upgrade it to Kubernetes {situation.server.of_minor} again.",
            version=to.of_minor,
            before=situation.server.of_minor,
            restart_controllers_seconds=RESTART_SECONDS if overtaken else 0,
            restrict_scheduling=goes_back
            and not choices.one_pod_per_volume
            and disks_may_be_taken(situation),
        )
    )
    before: list[tuple[str, ...]] = [(), *((it.id,) for it in steps[:-1])]
    return tuple(replace(step, after=it) for step, it in zip(steps, before, strict=True))


def outlook(
    situation: Situation, attach_controller: AttachController, to: Version
) -> Iterator[Check]:
    """What becomes of the volumes, and why that is safe."""
    lost = lost_at(to, situation)
    names, minor = ", ".join(lost), to.of_minor
    if not lost:
        message = f"Kubernetes {minor} redirects the same plugins: no volume changes sides."
    elif attach_controller is AttachController.NODE_DRIVEN:
        message = (
            f"Kubernetes {minor} does not redirect {names}. The attach/detach controller goes by "
            "the nodes alone, so the control plane may safely go down before them."
        )
    else:
        message = (
            f"Kubernetes {minor} does not redirect {names} unless it is told to, and controllers "
            "that go back before the nodes strand their volumes: it is told to before, so that "
            "all stays redirected. To go back, plan disable afterwards."
        )
    yield Check(check="downgrade", result=Weight.PASSED, message=message)


def lost_at(to: Version, situation: Situation) -> tuple[str, ...]:
    """The plugins that somebody redirects now, and would not at that version with its gates."""
    kubelets = (Process(Version.parse(it.version), given({}, it.gates)) for it in situation.groups)
    processes = {situation.controller, *kubelets}
    return tuple(
        plugin
        for plugin in situation.plugins
        if any(
            it.migrates(plugin) and not dataclasses.replace(it, version=to).migrates(plugin)
            for it in processes
        )
    )


def _keep_control_plane(situation: Situation, gates: GivenGates) -> SwitchControlPlane:
    components = []
    for name, process in ((CONTROLLER, situation.controller), (SCHEDULER, situation.scheduler)):
        change, before = changed(process, gates)
        components.append(Component(name=name, why=WHY[name], gates=change, before=before))
    return SwitchControlPlane(
        id="keep-control-plane",
        title=f"Have {CONTROLLER} and {SCHEDULER} keep {told(gates)} at any version",
        why="It is so by default, and changes nothing now. After the downgrade it would not be so, "
        "and the controllers would go back before the nodes.",
        done_when="Every replica is given the gates.",
        undo="Nobody is given them any more; they are on by default.",
        components=tuple(components),
        by_name=True,
    )


def _keep_nodes(situation: Situation, choices: Choices, gates: GivenGates) -> RollNodes:
    changes = []
    for group in situation.groups:
        kubelet = Process(Version.parse(group.version), given({}, group.gates))
        change, before = changed(kubelet, gates)
        changes.append(NodeChange(group=group.name, gates=change, before=before))
    return RollNodes(
        id="keep-nodes",
        title=f"Have kubelets keep {told(gates)} at any version",
        why="Nodes stay redirected as well: no volume changes sides on the way down.",
        done_when="Every node's CSINode lists the plugins, and its pool is at rest.",
        undo="They are given them no more; they are on by default.",
        changes=tuple(changes),
        method=choices.method,
        drain=not situation.empty,
        max_unavailable=choices.max_unavailable,
        settle_seconds=0,
        each_node=each_node(choices.method, drain=True),
        by_name=True,
    )


def _refuse_elsewhere(choices: Choices) -> None:
    if choices.method is not NodeMethod.PLATFORM:
        raise Refused(
            "A downgrade is planned where the platform does it, control plane first (--platform "
            "openshift). Elsewhere take nodes down first, each drained, the control plane last; "
            "or go back before, with: replant plan disable"
        )


def _refuse_version(server: Version, to: Version) -> None:
    if not FIRST <= to.first_patch < server.first_patch:
        raise Refused(
            f"Kubernetes {to.of_minor} is no version to go down to from {server.of_minor}: it has "
            f"to be at least {FIRST.of_minor}, and older."
        )
