"""The way back from anywhere: the undo of any prefix of a plan is a plan too."""

from __future__ import annotations

from typing import TypeVar

from msgspec.structs import replace

from replant.errors import Refused
from replant.plan.courses import CONTROLLER, at_once, proved
from replant.plan.model import (
    AnnotateVolumes,
    ChangeVersion,
    Check,
    ClassChange,
    Component,
    CreateObjects,
    Goal,
    NodeChange,
    Plan,
    RemoveObjects,
    ReplaceClasses,
    RestoreVolumes,
    RewriteTemplates,
    RollNodes,
    ScaleWorkloads,
    Step,
    SwapVolumes,
    SwitchControlPlane,
    TemplateChange,
    TemplateVolume,
    VolumeAnnotations,
    Weight,
)

_Other = TypeVar("_Other", bound=Step)

_Converting = (
    CreateObjects | RemoveObjects | RewriteTemplates | ScaleWorkloads | SwapVolumes | RestoreVolumes
)
"""What conversions are made of."""

_STILL_EMPTY = (
    Check(
        check="empty",
        result=Weight.WARNING,
        message="The plan was made while there was no volume of the plugins, so nothing is "
        "drained: this holds only while there is none.",
        fix="If there is one by now, go back with: replant plan disable",
    ),
)


def undo_plan(plan: Plan, last: str) -> Plan:
    """The plan that takes back everything up to and with the step ``last``, in reverse.

    It starts where the plan's steps have led; a step that was done only in part, or not at all, is
    taken back all the same, for what is as it was before counts as done.
    """
    ids = [step.id for step in plan.steps]
    if last not in ids:
        raise Refused(f"The plan has no step {last}; there are {', '.join(ids) or 'none'}.")
    done = plan.steps[: ids.index(last) + 1]
    control_plane, groups = plan.control_plane, {group.name: group for group in plan.groups}
    for step in done:
        if isinstance(step, SwitchControlPlane):
            for component in step.components:
                if component.name == CONTROLLER:
                    gates = {**control_plane.gates, **component.gates}
                    control_plane = replace(control_plane, gates=gates)
        elif isinstance(step, RollNodes):
            for change in step.changes:
                group = groups[change.group]
                groups[change.group] = replace(group, gates={**group.gates, **change.gates})
        elif isinstance(step, ChangeVersion):
            control_plane = replace(control_plane, version=step.version)
            groups = {name: replace(it, version=step.version) for name, it in groups.items()}
    back: list[Step] = []
    free = at_once(plan)
    for step in reversed(done):
        before = back[-1] if back else None
        alongside = free and isinstance(before, SwitchControlPlane) and isinstance(step, RollNodes)
        after = before.after if before and alongside else (before.id,) if before else ()
        back.append(replace(undone(step), after=after))
    made = replace(
        plan,
        goal=Goal.UNDO,
        control_plane=control_plane,
        groups=tuple(groups.values()),
        preflight=_STILL_EMPTY if plan.empty else (),
        steps=tuple(back),
        proof=None,
    )
    return replace(made, proof=proved(made))


def undone(step: Step) -> Step:
    """The step that takes a step back."""
    renamed = replace(
        step,
        id=f"undo-{step.id}",
        title=f"Undo: {step.title[0].lower()}{step.title[1:]}",
        why="It takes back what was done, in reverse.",
        undo=f"The step {step.id}, once more.",
    )
    match renamed:
        case SwitchControlPlane():
            return replace(renamed, components=tuple(map(_component, renamed.components)))
        case RollNodes():
            changes = tuple(_node_change(it) for it in renamed.changes)
            return replace(
                renamed,
                changes=changes,
                done_when="Every node's CSINode lists what it listed before, and the node takes "
                + (
                    "pods again; another kube-controller-manager leads than while pods were moved."
                    if renamed.restart_controllers_seconds
                    else "pods again."
                ),
            )
        case ChangeVersion():
            return replace(
                renamed,
                version=renamed.before,
                before=renamed.version,
                done_when=f"Every kubelet is of Kubernetes {renamed.before}.",
            )
        case ReplaceClasses():
            classes = tuple(ClassChange(before=it.after, after=it.before) for it in renamed.classes)
            return replace(renamed, classes=classes)
        case AnnotateVolumes():
            return replace(renamed, volumes=tuple(map(_annotations, renamed.volumes)))
        case _:
            return _unconverted(renamed)


def _unconverted(step: _Converting) -> Step:
    match step:
        case RewriteTemplates():
            workloads = tuple(map(_template, step.workloads))
            done_when = "Every template is what it was, and all pods are made of it."
            return replace(step, workloads=workloads, done_when=done_when)
        case ScaleWorkloads():
            return replace(step, down=not step.down)
        case CreateObjects():
            return _like(step, RemoveObjects, "None of the objects that were made is left.")
        case RemoveObjects():
            return _like(step, CreateObjects, "Every object is there.")
        case SwapVolumes():
            return swapped_back(step)
        case RestoreVolumes():
            return _swapped_again(step)


def swapped_back(step: SwapVolumes) -> RestoreVolumes:
    """The step that puts back what a step replaces."""
    fields = {name: getattr(step, name) for name in step.__struct_fields__}
    done_when = "Every volume is the in-tree one that it was, and its claim is Bound."
    return RestoreVolumes(**fields | {"done_when": done_when})


def _swapped_again(step: RestoreVolumes) -> SwapVolumes:
    fields = {name: getattr(step, name) for name in step.__struct_fields__ if name != "saved"}
    done_when = "Every volume is native, and its claim is Bound."
    return SwapVolumes(**fields | {"done_when": done_when})


def _like(step: Step, other: type[_Other], done_when: str) -> _Other:
    """The same step, of another kind."""
    fields = {name: getattr(step, name) for name in other.__struct_fields__}
    return other(**fields | {"done_when": done_when})


def _component(component: Component) -> Component:
    return replace(
        component,
        gates=component.before,
        before=component.gates,
        remove_flags=component.add_flags,
        add_flags=component.remove_flags,
    )


def _node_change(change: NodeChange) -> NodeChange:
    return replace(change, gates=change.before, before=change.gates)


def _template(change: TemplateChange) -> TemplateChange:
    back = (TemplateVolume(before=it.after, after=it.before) for it in change.volumes)
    return replace(change, volumes=tuple(back))


def _annotations(volume: VolumeAnnotations) -> VolumeAnnotations:
    return replace(volume, annotations=volume.before, before=volume.annotations)
