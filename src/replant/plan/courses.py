"""A plan as what is to be proved: a course for each plugin, and the way of volumes to twins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from replant.gates.plugins import BASE_GATE, LIVES
from replant.gates.versions import Version
from replant.plan.model import (
    ChangeVersion,
    GivenGates,
    NodeMethod,
    Plan,
    Proof,
    RestoreVolumes,
    RollNodes,
    Step,
    SwapVolumes,
    SwitchControlPlane,
)
from replant.proof import (
    Course,
    NodeGroup,
    NodesMove,
    SwitchMove,
    Verdict,
    joined,
    verify_all,
)
from replant.proof.course import Move
from replant.routing import AttachController, Process
from replant.swap.search import verify_swap
from replant.translate import driver_of

CONTROLLER = "kube-controller-manager"

_COMPLETE_UNTIL = Version(1, 21)
"""Before it the gate that takes a plugin away is its Complete gate."""
_BEFORE_IT_IS_BEGUN_ANEW = 30 * 60
"""Seconds. An in-tree detach that is overtaken is begun anew after 34 minutes; it takes another
kube-controller-manager a minute at most to lead."""


def courses(plan: Plan) -> Iterator[Course]:
    """What the plan does to the volumes of each plugin, in every order that it leaves open."""
    for course in _in_order(plan):
        yield course
        if at_once(plan):
            yield replace(course, moves=course.moves[::-1])
            yield _controller_amid(course)


def at_once(plan: Plan) -> bool:
    """Whether the platform switches nodes and controllers at the same time, in any order."""
    return plan.attach_controller is AttachController.NODE_DRIVEN and any(
        isinstance(it, RollNodes) and it.method is NodeMethod.PLATFORM for it in plan.steps
    )


def _controller_amid(course: Course) -> Course:
    """The controllers are switched while some nodes are as they were, and others are not."""
    later = {it.name: f"{it.name}, later" for it in course.groups}
    groups = [half for it in course.groups for half in (it, replace(it, name=later[it.name]))]
    moves: list[Move] = []
    rest: list[Move] = []
    for move in course.moves:
        if isinstance(move, NodesMove):
            moves.append(move)
            rest.append(replace(move, to={later[name]: to for name, to in move.to.items()}))
    switches = [it for it in course.moves if not isinstance(it, NodesMove)]
    return replace(course, groups=tuple(groups), moves=(*moves, *switches, *rest))


def _in_order(plan: Plan) -> Iterator[Course]:
    for plugin in plan.plugins:
        driver = driver_of(plugin)
        gates = plugin_gates(plugin)
        controller = _process(plan.control_plane.version, plan.control_plane.gates, gates)
        groups = [
            NodeGroup(it.name, _process(it.version, it.gates, gates), driver in it.drivers)
            for it in plan.groups
        ]
        kubelets = {it.name: it.kubelet for it in groups}
        moves = tuple(_moves(plan, controller, kubelets, gates))
        sizes = {it.name: len(it.nodes) for it in plan.groups}
        yield Course(
            plugin=plugin,
            controller=controller,
            groups=_alike(groups, moves, sizes),
            moves=moves,
            attach_controller=plan.attach_controller,
            driver=driver in plan.control_plane.drivers,
            volumes=not plan.empty,
            at_once=max((_at_once(it, plan) for it in plan.steps), default=1),
            one_pod_per_volume=plan.one_pod_per_volume,
        )


def _at_once(step: Step, plan: Plan) -> int:
    """So many nodes may be on their way at a time; the platform alone knows how many it takes."""
    if isinstance(step, RollNodes) and step.method is not NodeMethod.PLATFORM:
        return step.max_unavailable
    if isinstance(step, RollNodes | ChangeVersion):
        return sum(len(it.nodes) for it in plan.groups)
    return 1


def _alike(
    groups: list[NodeGroup], moves: tuple[Move, ...], sizes: dict[str, int]
) -> tuple[NodeGroup, ...]:
    """One group for all that differ only in what is nothing to this plugin."""
    alike: dict[tuple[object, ...], NodeGroup] = {}
    for group in groups:
        course = tuple(it.to.get(group.name) for it in moves if isinstance(it, NodesMove))
        like = (group.kubelet, group.driver, course)
        before = alike[like].size if like in alike else 0
        first = alike.get(like, group)
        alike[like] = replace(first, size=before + sizes[group.name])
    return tuple(alike.values())


def verdict_on(plan: Plan) -> Verdict:
    """On all that a plan does: on its courses, and on the way of volumes to their twins."""
    return joined([verify_all(courses(plan)), *_swaps(plan)])


def _swaps(plan: Plan) -> Iterator[Verdict]:
    kinds = {type(it) for it in plan.steps}
    for kind, back in ((SwapVolumes, False), (RestoreVolumes, True)):
        if kind in kinds:
            yield replace(verify_swap(back=back), plugin=", ".join(plan.plugins))


def proved(plan: Plan) -> Proof:
    """The proof of all that a plan does: unsafe if any of it is."""
    verdict = verdict_on(plan)
    return Proof(
        safe=verdict.safe,
        bad_state=verdict.bad_state,
        states=verdict.states,
        plugin=verdict.plugin,
        story=verdict.story,
    )


def plugin_gates(plugin: str) -> frozenset[str]:
    """The gates that have a say in what becomes of a plugin's volumes."""
    life = LIVES[plugin]
    return frozenset({BASE_GATE, life.migration_gate, *life.off_gates})


def off_gate(plugin: str, version: Version) -> str:
    """The gate that takes the in-tree plugin away, as that version has it."""
    complete, unregister = LIVES[plugin].off_gates
    return complete if version < _COMPLETE_UNTIL else unregister


def given(before: Mapping[str, bool], change: GivenGates) -> dict[str, bool]:
    """What a component is given after a change."""
    merged = {**before, **change}
    return {gate: on for gate, on in merged.items() if on is not None}


def _process(version: str, gates: GivenGates, wanted: frozenset[str]) -> Process:
    kept = {gate: on for gate, on in gates.items() if on is not None and gate in wanted}
    return Process(Version.parse(version), kept)


def _moves(
    plan: Plan, controller: Process, kubelets: dict[str, Process], gates: frozenset[str]
) -> Iterator[Move]:
    kubelets = dict(kubelets)
    for step in plan.steps:
        if isinstance(step, SwitchControlPlane):
            for component in step.components:
                change = {it: on for it, on in component.gates.items() if it in gates}
                if component.name == CONTROLLER and change:
                    controller = Process(controller.version, given(controller.gates, change))
                    yield SwitchMove(controller, told(change))
        elif isinstance(step, RollNodes):
            moved, texts = {}, []
            for it in step.changes:
                change = {gate: on for gate, on in it.gates.items() if gate in gates}
                if change:
                    before = kubelets[it.group]
                    moved[it.group] = Process(before.version, given(before.gates, change))
                    texts.append(told(change))
            kubelets |= moved
            if moved:
                texts = list(dict.fromkeys(texts))
                yield NodesMove(
                    moved, step.drain, " or ".join(texts), _forgets(step),
                    restricts=step.restrict_scheduling, closes=step.drain,
                )  # fmt: skip
        elif isinstance(step, ChangeVersion):
            version = Version.parse(step.version).newest_patch
            controller = replace(controller, version=version)
            kubelets = {name: replace(it, version=version) for name, it in kubelets.items()}
            text = f"Kubernetes {version.of_minor}"
            yield SwitchMove(controller, text)
            # The version operator drains every node, whatever there is on it.
            yield NodesMove(
                kubelets, drain=True, told=text, forgets=_forgets(step),
                restricts=step.restrict_scheduling, closes=True,
            )  # fmt: skip


def _forgets(step: RollNodes | ChangeVersion) -> bool:
    """Whether a detach that the driver has overtaken comes to no harm."""
    in_time = 0 < step.restart_controllers_seconds <= _BEFORE_IT_IS_BEGUN_ANEW
    return in_time or (isinstance(step, RollNodes) and step.method is NodeMethod.REPLACE)


def told(gates: GivenGates) -> str:
    """Gates as a sentence names them."""
    texts = {True: "{}=true", False: "{}=false", None: "no {}"}
    return ", ".join(texts[on].format(gate) for gate, on in gates.items())
