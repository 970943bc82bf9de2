"""What a plan that comes from a file must hold beyond its form, before anybody relies on it."""

from __future__ import annotations

from collections.abc import Iterator

from replant.gates.history import known_gates
from replant.gates.plugins import LIVES
from replant.gates.versions import Version
from replant.objects import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS, Object
from replant.plan.model import (
    ChangeVersion,
    ClassChange,
    CreateObjects,
    GivenGates,
    Plan,
    RemoveObjects,
    ReplaceClasses,
    RollNodes,
    Step,
    SwitchControlPlane,
)

Place = tuple[str | int, ...]
Problem = tuple[Place, str]
"""Where in the file, and what is wrong there."""


_MADE = (PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS)
"""The kinds that a step may make: nothing else is made, whatever a file says."""


def problems(plan: Plan) -> Iterator[Problem]:
    """All that does not fit together."""
    for number, plugin in enumerate(plan.plugins):
        if plugin not in LIVES:
            yield ("plugins", number), f"no driver takes over from {plugin}"
    yield from _version(("controlPlane", "version"), plan.control_plane.version)
    yield from _gates(("controlPlane", "gates"), plan.control_plane.gates)
    names: set[str] = set()
    for number, group in enumerate(plan.groups):
        place = ("groups", number)
        if group.name in names:
            yield (*place, "name"), f"there are two groups {group.name}"
        names.add(group.name)
        yield from _version((*place, "version"), group.version)
        yield from _gates((*place, "gates"), group.gates)
    yield from _steps(plan.steps, names)


def _steps(steps: tuple[Step, ...], groups: set[str]) -> Iterator[Problem]:
    before: set[str] = set()
    for number, step in enumerate(steps):
        place = ("steps", number)
        if step.id in before:
            yield (*place, "id"), f"there are two steps {step.id}"
        for it in step.after:
            if it not in before:
                yield (*place, "after"), f"no step {it} comes before {step.id}"
        before.add(step.id)
        yield from _step(place, step, groups)


def _step(place: Place, step: Step, groups: set[str]) -> Iterator[Problem]:
    match step:
        case SwitchControlPlane():
            for at, component in enumerate(step.components):
                yield from _gates((*place, "components", at, "gates"), component.gates)
        case RollNodes():
            yield from _changes(place, step, groups)
        case ChangeVersion():
            yield from _version((*place, "version"), step.version)
            yield from _version((*place, "before"), step.before)
        case ReplaceClasses():
            for at, one in enumerate(step.classes):
                yield from _classes((*place, "classes", at), one)
        case CreateObjects() | RemoveObjects():
            for at, it in enumerate(step.objects):
                yield from _object((*place, "objects", at), it)


def _changes(place: Place, step: RollNodes, groups: set[str]) -> Iterator[Problem]:
    for at, change in enumerate(step.changes):
        here = (*place, "changes", at)
        if change.group not in groups:
            yield (*here, "group"), f"there is no group {change.group}"
        yield from _gates((*here, "gates"), change.gates)


def _version(place: Place, text: str) -> Iterator[Problem]:
    try:
        Version.parse(text)
    except ValueError as error:
        yield place, str(error)


def _gates(place: Place, gates: GivenGates) -> Iterator[Problem]:
    known = known_gates()
    for gate in gates:
        if gate not in known:
            yield (*place, gate), f"{gate} is no gate of the migration"


def _object(place: Place, obj: Object) -> Iterator[Problem]:
    if obj.get("kind") not in _MADE or not _name(obj):
        yield place, f"is not one of {', '.join(_MADE)} with a name"


def _name(obj: Object) -> str:
    metadata = obj.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else ""


def _classes(place: Place, change: ClassChange) -> Iterator[Problem]:
    for side, it in (("before", change.before), ("after", change.after)):
        if not _name(it) or not isinstance(it.get("provisioner"), str):
            yield (*place, side), "is not a StorageClass with a name and a provisioner"
            return
    if change.before["metadata"]["name"] != change.after["metadata"]["name"]:
        yield place, "the class would have another name"
