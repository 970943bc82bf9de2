"""A plan as people read it: in full, or as a picture."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import fill
from typing import Any

import msgspec

from replant.errors import printable
from replant.objects import Object, name_of
from replant.plan.courses import told
from replant.plan.model import (
    AnnotateVolumes,
    Check,
    CreateObjects,
    NodeMethod,
    Plan,
    Proof,
    RemoveObjects,
    ReplaceClasses,
    RestoreVolumes,
    RewriteTemplates,
    RollNodes,
    ScaleWorkloads,
    Step,
    SwapVolumes,
    SwitchControlPlane,
    Weight,
)

_WIDTH = 96
_SIGNS = frozenset('"#<>`;')
_SHOWN = 10
"""So many volumes or classes of a step are shown; then they are counted."""


def text(plan: Plan) -> str:
    """The whole plan in lines that a terminal, a mail and a review can show."""
    return "\n".join(_lines(_harmless(plan))) + "\n"


def mermaid(plan: Plan) -> str:
    """The plan as a flow chart: steps downwards, each with its undo beside it."""
    plan = _harmless(plan)
    lines = ["flowchart TD"]
    first = "preflight"
    blockers = len(plan.blockers)
    found = f"{blockers} blocker{'s' * (blockers != 1)}" if blockers else "no blocker"
    lines.append(f'  {first}{{{{"Preflight: {found}"}}}}')
    before = first
    for number, step in enumerate(plan.steps, 1):
        name = f"step{number}"
        lines.append(f'  {name}["{_escaped(step.title)}"]')
        lines.append(f"  {before} --> {name}")
        lines.append(f'  {name} -. undo .-> undo{number}("{_escaped(step.undo)}")')
        before = name
    if plan.proof:
        unsafe = f"Unsafe: {_escaped(plan.proof.bad_state or '')}"
        verdict = "Proved safe" if plan.proof.safe else unsafe
        lines.append(f'  {before} --> proof(["{verdict}, {plan.proof.states} states"])')
    return "\n".join(lines) + "\n"


def _lines(plan: Plan) -> Iterator[str]:
    plugins = ", ".join(plan.plugins)
    yield f"{plan.goal.capitalize()} {plugins}, Kubernetes {plan.control_plane.version}"
    yield f"Made for {plan.fingerprint}"
    yield ""
    if plan.preflight:
        yield "Preflight"
        yield from _checks(plan.preflight)
        yield ""
    if plan.done_as_far_as_possible:
        yield "Steps: none. What is left cannot be done: the preflight says why."
    elif not plan.steps:
        yield "Steps: none. Everything is as it should be."
    for number, step in enumerate(plan.steps, 1):
        yield f"Step {number}, {step.id}: {step.title}"
        yield from _paragraph("why", step.why)
        yield from _details(step, plan)
        yield from _paragraph("done when", step.done_when)
        yield from _paragraph("undo", step.undo)
        yield ""
    if plan.proof:
        yield from _proof(plan.proof, empty=plan.empty)


def _checks(checks: tuple[Check, ...]) -> Iterator[str]:
    for check in sorted(checks, key=lambda it: list(Weight)[::-1].index(it.result)):
        mark = check.result.upper() if check.result is Weight.BLOCKER else check.result.value
        head = f"  {mark:<8} {check.check:<14} "
        yield fill(
            check.message, _WIDTH, initial_indent=head, subsequent_indent=" " * 26,
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip
        if check.fix:
            yield f"{'':26}→ {check.fix}"


def _paragraph(name: str, sentence: str) -> Iterator[str]:
    head = f"  {name + ':':<11}"
    yield fill(
        sentence, _WIDTH, initial_indent=head, subsequent_indent=" " * 13,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def _details(step: Step, plan: Plan) -> Iterator[str]:
    match step:
        case SwitchControlPlane():
            yield from _components(step)
        case RollNodes():
            yield from _nodes(step, plan)
        case _:
            lines = _listed(step)
            yield from (f"  - {it}" for it in lines[:_SHOWN])
            if len(lines) > _SHOWN:
                yield f"  - and {len(lines) - _SHOWN:,} more"


def _listed(step: Step) -> list[str]:
    """What a step does, one line for each object."""
    match step:
        case AnnotateVolumes():
            return [
                f"{it.name}: {', '.join(f'{key}={value}' for key, value in it.annotations.items())}"
                for it in step.volumes
            ]
        case ReplaceClasses():
            return [
                f"{it.before['metadata']['name']}: {it.before['provisioner']} → "
                f"{it.after['provisioner']}"
                for it in step.classes
            ]
        case CreateObjects() | RemoveObjects():
            return [name_of(it) for it in step.objects]
        case SwapVolumes() | RestoreVolumes():
            return [
                f"{it.name}: {it.driver} {it.handle}{f', claim {it.claim}' * bool(it.claim)}"
                for it in step.volumes
            ]
        case RewriteTemplates():
            return [
                f"{it.kind} {it.namespace}/{it.name}: "
                + ", ".join(f"{one.before['name']} → {_source(one.after)}" for one in it.volumes)
                for it in step.workloads
            ]
        case ScaleWorkloads():
            return [
                f"{it.kind} {it.namespace}/{it.name}: "
                + (f"{it.replicas} → 0" if step.down else f"0 → {it.replicas}")
                for it in step.workloads
            ]
    return []


def _source(volume: Object) -> str:
    """What a pod's volume is, in a word or two."""
    claim = volume.get("persistentVolumeClaim")
    return f"claim {claim['claimName']}" if claim else next(it for it in volume if it != "name")


def _components(step: SwitchControlPlane) -> Iterator[str]:
    for component in step.components:
        changes = [told(component.gates)] if component.gates else []
        changes += [f"without --{flag}={value}" for flag, value in component.remove_flags.items()]
        changes += [f"with --{flag}={value}" for flag, value in component.add_flags.items()]
        yield fill(
            f"{component.name}: {', '.join(changes)}. {component.why}", _WIDTH,
            initial_indent="  - ", subsequent_indent="    ",
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip


def _nodes(step: RollNodes, plan: Plan) -> Iterator[str]:
    groups = {group.name: group for group in plan.groups}
    for change in step.changes:
        group = groups[change.group]
        nodes = f"{len(group.nodes):,} node{'s' * (len(group.nodes) != 1)}"
        yield f"  - {group.name} ({nodes}, kubelet {group.version}): {told(change.gates)}"
    how = f"{step.max_unavailable} at a time, {step.method.value}"
    yield f"  each node, {'as the platform goes' if step.method is NodeMethod.PLATFORM else how}:"
    for number, part in enumerate(step.each_node, 1):
        yield f"    {number}. {part}"
    if step.restrict_scheduling:
        yield fill(
            "before the first and until the last node is done, on every node: the taint "
            "replant.dev/PLUGIN tells whether its kubelet takes the in-tree plugin or the driver. "
            "Replant gives each new pod tolerations; one whose volume is on a node of the other "
            "kind gets them once the volume is free. While Replant is stopped, new pods stay "
            "Pending, and DaemonSets that do not tolerate the taints get no new pods.", _WIDTH,
            initial_indent="  ", subsequent_indent="    ",
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip
    if step.restart_controllers_seconds:
        minutes = f"{step.restart_controllers_seconds / 60:g}"
        yield fill(
            f"every {minutes} minutes at least, and when the last node is done: kube-controller-"
            "manager starts anew, so that none waits for an in-tree detach that the driver has "
            "overtaken. Half an hour later it would begin it anew, under a running pod.", _WIDTH,
            initial_indent="  ", subsequent_indent="    ",
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip


def _proof(proof: Proof, *, empty: bool) -> Iterator[str]:
    if not proof.safe:
        yield f"Proof: UNSAFE for {proof.plugin}. The story, of {proof.states:,} states seen:"
        yield from (f"  {number}. {event}" for number, event in enumerate(proof.story, 1))
        return
    yield f"Proof: safe. {proof.states:,} states can be reached, and none of them is bad."
    if empty:
        yield "There is no volume of the plugins: make none until the last step is done."


def _escaped(label: str) -> str:
    """Text as Mermaid shows it: nothing in it ends the label, or is taken for a sign of its own."""
    return "".join(f"#{ord(char)};" if char in _SIGNS else char for char in label)


def _harmless(plan: Plan) -> Plan:
    """A plan as a terminal may show it: each text on one line, its control characters escaped."""
    return msgspec.convert(_printable(msgspec.to_builtins(plan)), Plan)


def _printable(value: Any) -> Any:
    match value:
        case str():
            return printable(value)
        case list() | tuple():
            return [_printable(it) for it in value]
        case dict():
            return {printable(key): _printable(it) for key, it in value.items()}
    return value
