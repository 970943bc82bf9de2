"""What a scenario must hold beyond its form, before a sandbox comes up with it."""

from __future__ import annotations

from collections.abc import Iterator

from replant.errors import Refused
from replant.gates.history import FIRST, LAST
from replant.gates.settings import problems as gate_problems
from replant.gates.versions import Version
from replant.objects import Object
from replant.sandbox.controllers.controlplane import flag_problem
from replant.sandbox.controllers.parts import ZONE
from replant.sandbox.resources import NODES
from replant.sandbox.scenario import Scenario, Spare, Workload, full_name, set_names
from replant.sandbox.validation import metadata_causes
from replant.translate import plugins

Place = tuple[str | int, ...]


class Mistake(Refused):
    """Something in a scenario that shows only when it comes up, and where it stands."""

    def __init__(self, place: Place, reason: str) -> None:
        self.place = place
        self.reason = reason
        super().__init__(reason)


def problems(scenario: Scenario) -> Iterator[tuple[Place, str]]:
    """What does not fit together, and where it stands."""
    version = _version(scenario.kubernetes_version)
    if version is None:
        yield ("kubernetesVersion",), _not_a_version(scenario.kubernetes_version)
        return
    yield from _told_problems(scenario, version)
    yield from _twice(scenario)
    yield from _metadata_problems(scenario)
    for number, volume_class in enumerate(scenario.classes):
        if full_name(volume_class.plugin) not in plugins():
            known = ", ".join(it.removeprefix("kubernetes.io/") for it in plugins())
            reason = f"is no plugin that a driver takes over from; there are {known}"
            yield ("classes", number, "plugin"), reason
    names = {it.name for it in scenario.classes}
    users: list[tuple[str, tuple[Workload | Spare, ...]]] = [
        ("workloads", scenario.workloads),
        ("spares", scenario.spares),
    ]
    for part, those in users:
        for number, it in enumerate(those):
            if it.storage_class not in names:
                yield (part, number, "storageClass"), f"{it.storage_class} is none of the classes"


def _told_problems(scenario: Scenario, version: Version) -> Iterator[tuple[Place, str]]:
    """What components would not take."""
    given: list[tuple[Place, str, dict[str, bool]]] = [
        (("controlPlane",), str(version), scenario.control_plane.gates)
    ]
    given += [
        (("pools", number), pool.version or str(version), pool.gates)
        for number, pool in enumerate(scenario.pools)
    ]
    for place, text, gates in given:
        component = _version(text)
        if component is None:
            yield (*place, "version"), _not_a_version(text)
        else:
            for problem in gate_problems(component, gates):
                yield (*place, "gates", problem.gate), problem.reason
    for flag in scenario.control_plane.flags:
        if reason := flag_problem(flag):
            yield ("controlPlane", "flags", flag), reason


def _twice(scenario: Scenario) -> Iterator[tuple[Place, str]]:
    """What would be there twice under one name."""
    named: list[tuple[Place, tuple[str, ...]]] = [
        *((("pools", n, "name"), ("node pool", it.name)) for n, it in enumerate(scenario.pools)),
        *((("classes", n, "name"), ("class", it.name)) for n, it in enumerate(scenario.classes)),
        *(
            (("workloads", n, "name"), ("StatefulSet", it.namespace, name))
            for n, it in enumerate(scenario.workloads)
            for name in set_names(it)
        ),
        *(
            (("spares", n, "storageClass"), ("class with spares", it.namespace, it.storage_class))
            for n, it in enumerate(scenario.spares)
        ),
    ]
    first: dict[tuple[str, ...], Place] = {}
    for place, name in named:
        if name in first:
            kind, *rest = name
            yield place, f"there is a {kind} {'/'.join(rest)} already"
        first[name] = place


def _metadata_problems(scenario: Scenario) -> Iterator[tuple[Place, str]]:
    """Labels and annotations that no object may have."""
    said: list[tuple[Place, Object]] = []
    for number, pool in enumerate(scenario.pools):
        said.append((("pools", number, "labels"), {"labels": pool.labels}))
        for place, zone in enumerate(pool.zones):
            said.append((("pools", number, "zones", place), {"labels": {ZONE: zone}}))
    for number, workload in enumerate(scenario.workloads):
        place_of = ("workloads", number, "annotations")
        said.append((place_of, {"annotations": workload.annotations}))
    for where, metadata in said:
        for cause in metadata_causes(NODES, {"name": "some", **metadata}):
            yield where, cause.message


def _version(text: str) -> Version | None:
    """A version whose gates are known."""
    try:
        version = Version.parse(text)
    except ValueError:
        return None
    return version if FIRST <= version <= LAST.newest_patch else None


def _not_a_version(text: str) -> str:
    known = f"{FIRST.of_minor} to {LAST.of_minor}"
    return f"{text} is not a Kubernetes version that can be played; those of {known} can"
