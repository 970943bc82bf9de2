"""The steps of a plan, in the only order that is safe."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from replant.errors import Refused
from replant.gates.history import gate_at
from replant.gates.plugins import LIVES, migrated
from replant.gates.versions import Version
from replant.plan.classes import class_changes, replace_classes
from replant.plan.cloudflags import flag_changes
from replant.plan.courses import CONTROLLER, off_gate, told
from replant.plan.model import (
    AnnotateVolumes,
    Component,
    GivenGates,
    Goal,
    NodeChange,
    NodeMethod,
    RollNodes,
    Step,
    SwitchControlPlane,
)
from replant.plan.secrets import missing_secrets
from replant.plan.situation import SCHEDULER, Situation, changed, disks_may_be_taken
from replant.proof.course import OVERTAKEN
from replant.routing import Process

SETTLE_SECONDS = 10
RESTART_SECONDS = 20 * 60

WHY = {
    CONTROLLER: "It provisions, attaches, detaches, expands and deletes.",
    SCHEDULER: "It counts volumes against the limits of nodes, and must count as the "
    "controllers attach.",
}


@dataclass(frozen=True, slots=True)
class Choices:
    """What a person may choose about a plan."""

    method: NodeMethod = NodeMethod.IN_PLACE
    max_unavailable: int = 1
    one_pod_per_volume: bool = False
    """Whether somebody vouches that no pod is started for a volume while another pod uses it."""


def steps(
    goal: Goal, situation: Situation, choices: Choices, *, order_free: bool = False
) -> tuple[Step, ...]:
    """The steps to a goal, each after the one before it; Refused says why there are none.

    Where the order is free, one change has the platform switch nodes and controllers at once. The
    nodes are asked for first, so that wherever it is stopped, the way back is theirs too.
    """
    found = list(_STEPS[goal](situation, choices))
    if order_free and goal is Goal.ENABLE:
        found.sort(key=lambda it: isinstance(it, SwitchControlPlane))
    made: list[Step] = []
    for step in found:
        before = made[-1] if made else None
        free = order_free and isinstance(before, RollNodes)
        after = before.after if before and free else (before.id,) if before else ()
        made.append(replace(step, after=after))
    return tuple(made)


def _enable(situation: Situation, choices: Choices) -> Iterator[Step]:
    for plugin in situation.plugins:
        _refuse_unmigratable(plugin, situation.server, "the control plane")
        for group in situation.groups:
            _refuse_unmigratable(plugin, Version.parse(group.version), f"nodes {group.name}")
    new = situation.empty and choices.method is not NodeMethod.PLATFORM
    gates = {}
    for name, process in _switched(situation).items():
        gates[name] = _redirecting(situation, process, on=True)
        if new:
            gates[name] |= _off_gates(situation, process)
    if secrets := missing_secrets(situation):
        yield AnnotateVolumes(
            id="annotate-volumes",
            title=f"Name the secret of {_count(len(secrets), 'volume')}",
            why="With security on, the driver finds the token for a volume only where the volume "
            "names its secret.",
            done_when="Every volume has the annotations.",
            undo="The annotations that were not there before are taken away.",
            volumes=secrets,
        )
    if any(gates.values()):
        yield _switch(
            situation, "switch-control-plane", gates,
            "Redirecting starts with the controllers: they ask each node, and go on serving nodes "
            "that are not switched yet.",
        )  # fmt: skip
    yield from _roll(situation, choices, on=True, drain=not situation.empty)


def _disable(situation: Situation, choices: Choices) -> Iterator[Step]:
    register = {}
    for plugin in situation.plugins:
        for version in (situation.server, *(Version.parse(it.version) for it in situation.groups)):
            _refuse_unreturnable(plugin, version)
        if situation.controller.complete(plugin) or not situation.controller.registered(plugin):
            register[off_gate(plugin, situation.server)] = False
    if register:
        yield _switch(
            situation, "register-plugins", {CONTROLLER: register},
            "Nodes that go back need the in-tree plugin, so the controllers get it back first.",
        )  # fmt: skip
    yield from _roll(situation, choices, on=False, drain=not situation.empty)
    off = {
        name: _redirecting(situation, process, on=False)
        for name, process in _switched(situation).items()
    }
    if any(off.values()):
        yield _switch(
            situation, "switch-control-plane", off,
            "The controllers go last: until then they serve nodes of both kinds.",
        )  # fmt: skip


def _complete(situation: Situation, choices: Choices) -> Iterator[Step]:  # noqa: ARG001
    for plugin in situation.plugins:
        if not situation.controller.migrates(plugin):
            raise Refused(
                f"{plugin} is not redirected by the controllers: there is nothing to complete. "
                "Plan and apply enable first."
            )
    gates = _off_gates(situation, situation.controller)
    others = tuple(flag_changes(situation))
    if gates or others:
        step = _switch(
            situation, "complete-control-plane", {CONTROLLER: gates},
            "Every node is migrated: the in-tree plugin, and what it needed, is kept for nobody.",
        )  # fmt: skip
        yield _with_flags(step, others)
    if classes := class_changes(situation):
        yield replace_classes(classes)


_STEPS = {Goal.ENABLE: _enable, Goal.DISABLE: _disable, Goal.COMPLETE: _complete}


def _off_gates(situation: Situation, process: Process) -> dict[str, bool]:
    gates = {it: off_gate(it, process.version) for it in situation.plugins}
    return {
        gate: True
        for plugin, gate in gates.items()
        if gate_at(gate, process.version) and not process.complete(plugin)
    }


def _switched(situation: Situation) -> dict[str, Process]:
    """The components that redirect, as they are."""
    return {CONTROLLER: situation.controller, SCHEDULER: situation.scheduler}


def _redirecting(situation: Situation, process: Process, *, on: bool) -> dict[str, bool]:
    """The gates that make a component redirect the plugins, or none of them."""
    return {
        LIVES[plugin].migration_gate: on
        for plugin in situation.plugins
        if process.migrates(plugin) != on
    }


def _switch(
    situation: Situation,
    step_id: str,
    gates: dict[str, dict[str, bool]],
    why: str,
) -> SwitchControlPlane:
    components = []
    for name, process in _switched(situation).items():
        if wanted := gates.get(name):
            change, before = changed(process, dict(wanted))
            components.append(Component(name=name, why=WHY[name], gates=change, before=before))
    everyone = " and ".join(it.name for it in components)
    everything = {gate: on for it in components for gate, on in it.gates.items()}
    return SwitchControlPlane(
        id=step_id,
        title=f"Give {everyone} {told(everything)}" if components else "Take flags away",
        why=why,
        done_when="Every replica runs with the new flags, and none with the old ones is left that "
        "could become leader.",
        undo="Every replica gets the flags back that it had.",
        components=tuple(components),
    )


def _with_flags(step: SwitchControlPlane, others: tuple[Component, ...]) -> SwitchControlPlane:
    mine = {it.name: it for it in step.components}
    for other in others:
        known = mine.get(other.name)
        mine[other.name] = (
            replace(known, remove_flags=other.remove_flags, why=f"{known.why} {other.why}")
            if known
            else other
        )
    return replace(step, components=tuple(mine.values()))


def _roll(situation: Situation, choices: Choices, *, on: bool, drain: bool) -> Iterator[RollNodes]:
    changes = []
    for group in situation.groups:
        process = Process(Version.parse(group.version), _kept(group.gates))
        gates: GivenGates = {**_redirecting(situation, process, on=on)}
        if not on:
            # A kubelet may have been given all gates at once; it needs its plugin back too.
            off = (off_gate(plugin, process.version) for plugin in situation.plugins)
            gates |= {gate: False for gate in off if process.gates.get(gate)}
        if gates:
            change, before = changed(process, gates)
            changes.append(NodeChange(group=group.name, gates=change, before=before))
    if not changes:
        return
    number = sum(
        len(group.nodes) for group in situation.groups for it in changes if it.group == group.name
    )
    what = " or ".join(dict.fromkeys(told(it.gates) for it in changes))
    comes_back = drain and choices.method is not NodeMethod.REPLACE
    overtaken = comes_back and not OVERTAKEN.isdisjoint(situation.plugins)
    restricts = comes_back and not choices.one_pod_per_volume and disks_may_be_taken(situation)
    yield RollNodes(
        id="roll-nodes",
        title=f"Give the kubelets of {_count(number, 'node')} {what}",
        why="A kubelet that is switched calls the same disk by another name: what it has mounted "
        "must be gone before, or the controllers detach it under its pod."
        if drain
        else "There is no volume that a kubelet could have mounted, so none is drained.",
        done_when="Every node's CSINode "
        + ("lists the plugins and their drivers" if on else "lists the plugins no more")
        + ", and the node takes pods again"
        + (
            "; another kube-controller-manager leads than while pods were moved."
            if overtaken
            else "."
        ),
        undo="Node by node, in the same way, with the gates that its kubelet had.",
        changes=tuple(changes),
        method=choices.method,
        drain=drain,
        max_unavailable=choices.max_unavailable,
        settle_seconds=SETTLE_SECONDS if drain else 0,
        each_node=each_node(choices.method, drain=drain),
        restart_controllers_seconds=RESTART_SECONDS if overtaken else 0,
        restrict_scheduling=restricts,
    )


def each_node(method: NodeMethod, *, drain: bool) -> tuple[str, ...]:
    """What is done for each node, in this order."""
    if method is NodeMethod.PLATFORM:
        return (
            "the platform cordons and drains it, and starts its kubelet anew, when it is its turn",
            "wait for the annotation and the drivers in its CSINode, and until its pool is at rest",
        )
    switch = (
        "switch the kubelet"
        if method is NodeMethod.IN_PLACE
        else "replace the machine by one with the new kubelet"
    )
    listed = "wait for the annotation and the drivers in its CSINode"
    if not drain:
        return switch, listed
    settle = f"and {SETTLE_SECONDS} seconds more"
    empty = "wait until no volume of the plugins is attached or in use there"
    return "cordon", "drain", f"{empty}, {settle}", switch, f"{listed}, {settle}", "uncordon"


def _refuse_unmigratable(plugin: str, version: Version, where: str) -> None:
    gate = LIVES[plugin].migration_gate
    if gate_at(gate, version) is None and not migrated(plugin, version):
        raise Refused(
            f"{plugin} cannot be redirected at {version.of_minor} ({where}): {gate} is not there. "
            "Plan it at a version that has it; replant gates shows which."
        )


def _refuse_unreturnable(plugin: str, version: Version) -> None:
    life = LIVES[plugin]
    spec = gate_at(life.migration_gate, version)
    if version >= life.removed:
        raise Refused(
            f"{plugin} cannot go back to the tree at {version.of_minor}: its in-tree code left "
            f"with {life.removed.of_minor}."
        )
    if spec is None and migrated(plugin, version):
        raise Refused(f"{plugin} cannot go back at {version.of_minor}: its gate is gone.")
    if spec and spec.locked:
        raise Refused(
            f"{plugin} cannot go back at {version.of_minor}: {life.migration_gate} is locked on."
        )


def _kept(gates: GivenGates) -> dict[str, bool]:
    return {gate: on for gate, on in gates.items() if on is not None}


def _count(number: int, noun: str, plural: str = "s") -> str:
    return f"{number:,} {noun}{plural if number != 1 else ''}"
