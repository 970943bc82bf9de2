"""What pods and templates of pods must be like, and what pods may become."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from replant.inventory.quantities import exact
from replant.objects import Object
from replant.sandbox.refusals import (
    Cause,
    duplicate_value,
    forbidden_value,
    invalid_value,
    not_found_value,
    required_value,
    unsupported_value,
)
from replant.sandbox.validation.names import LABEL, SUBDOMAIN, Rule, name_causes
from replant.sandbox.validation.reading import missing_causes
from replant.sandbox.validation.volume_sources import OF_PODS, source_causes

_RESTARTS = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PULLS = ("Always", "IfNotPresent", "Never")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_TOLERATES = ("Equal", "Exists")
_LAST_PORT = 65535


def pod_causes(obj: Object) -> Iterator[Cause]:
    """What is wrong with a pod."""
    return pod_spec_causes("spec", obj.get("spec") or {})


def pod_spec_causes(field: str, spec: Object) -> Iterator[Cause]:
    """What is wrong with a pod's spec, wherever it stands."""
    volumes: set[str] = set()
    for place, volume in enumerate(spec.get("volumes") or ()):
        causes = list(_volume(f"{field}.volumes[{place}]", volume, volumes))
        if not causes:
            # What is wrong in itself is nothing that a container could mount.
            volumes.add(volume["name"])
        yield from causes
    known: set[str] = set()
    containers = spec.get("containers") or ()
    if not containers:
        yield required_value(f"{field}.containers")
    for part in ("containers", "initContainers"):
        for place, container in enumerate(spec.get(part) or ()):
            yield from _container(f"{field}.{part}[{place}]", container, known, volumes)
    yield from _one_of(field, spec, "restartPolicy", _RESTARTS)
    yield from _one_of(field, spec, "dnsPolicy", _DNS_POLICIES)
    if node := spec.get("nodeName"):
        yield from name_causes(f"{field}.nodeName", node, SUBDOMAIN)
    for place, toleration in enumerate(spec.get("tolerations") or ()):
        yield from _toleration(f"{field}.tolerations[{place}]", toleration)


def _one_of(field: str, part: Object, name: str, choices: tuple[str, ...]) -> Iterator[Cause]:
    value = part.get(name)
    if value not in choices:
        yield unsupported_value(f"{field}.{name}", value, choices)


def _named(field: str, part: Object, known: set[str], rule: Rule) -> Iterator[Cause]:
    name = part.get("name") or ""
    if not name:
        yield required_value(f"{field}.name")
    else:
        yield from name_causes(f"{field}.name", name, rule)
    if name in known:
        yield duplicate_value(f"{field}.name", name)


def _volume(field: str, volume: Object, known: set[str]) -> Iterator[Cause]:
    yield from source_causes(field, volume, OF_PODS)
    yield from _named(field, volume, known, LABEL)


def _container(
    field: str, container: Object, known: set[str], volumes: set[str]
) -> Iterator[Cause]:
    yield from _named(field, container, known, LABEL)
    known.add(container.get("name") or "")
    yield from missing_causes(field, container, "image")
    for place, port in enumerate(container.get("ports") or ()):
        yield from _port(f"{field}.ports[{place}]", port)
    for place, variable in enumerate(container.get("env") or ()):
        yield from missing_causes(f"{field}.env[{place}]", variable, "name")
    yield from _mounts(field, container, "volumeMounts", "mountPath", volumes)
    yield from _mounts(field, container, "volumeDevices", "devicePath", volumes)
    yield from _one_of(field, container, "imagePullPolicy", _PULLS)
    yield from _resources(f"{field}.resources", container.get("resources") or {})


def _port(field: str, port: Object) -> Iterator[Cause]:
    number = port.get("containerPort") or 0
    if not number:
        yield required_value(f"{field}.containerPort")
    elif not 0 < number <= _LAST_PORT:
        why = f"must be between 1 and {_LAST_PORT}, inclusive"
        yield invalid_value(f"{field}.containerPort", number, why)


def _mounts(
    field: str, container: Object, part: str, path: str, volumes: set[str]
) -> Iterator[Cause]:
    taken: set[Any] = set()
    for place, mount in enumerate(container.get(part) or ()):
        within, name, target = f"{field}.{part}[{place}]", mount.get("name"), mount.get(path)
        if not name:
            yield required_value(f"{within}.name")
        if name not in volumes:
            yield not_found_value(f"{within}.name", name or "")
        if not target:
            yield required_value(f"{within}.{path}")
        if target in taken:
            yield invalid_value(f"{within}.{path}", target, "must be unique")
        taken.add(target)


def _resources(field: str, resources: Object) -> Iterator[Cause]:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for part, amounts in (("limits", limits), ("requests", requests)):
        for name, quantity in amounts.items():
            number = exact(quantity)
            if number is not None and number < 0:
                why = "must be greater than or equal to 0"
                yield invalid_value(f"{field}.{part}[{name}]", str(quantity), why)
    for name, quantity in requests.items():
        wants, may = exact(quantity), exact(limits.get(name))
        if wants is not None and may is not None and wants > may:
            why = f"must be less than or equal to {name} limit"
            yield invalid_value(f"{field}.requests", str(quantity), why)


def _toleration(field: str, toleration: Object) -> Iterator[Cause]:
    operator, effect = toleration.get("operator"), toleration.get("effect")
    if not toleration.get("key") and operator != "Exists":
        meaning = '"match all values and all keys"'
        why = f"operator must be Exists when `key` is empty, which means {meaning}"
        yield invalid_value(f"{field}.operator", operator or "", why)
    if operator and operator not in _TOLERATES:
        yield unsupported_value(f"{field}.operator", operator, _TOLERATES)
    if effect and effect not in _EFFECTS:
        yield unsupported_value(f"{field}.effect", effect, _EFFECTS)


def pod_change_causes(old: Object, new: Object) -> Iterator[Cause]:
    """What may not become of a pod."""
    if _fixed_pod_spec(old) != _fixed_pod_spec(new):
        yield forbidden_value(
            "spec",
            "pod updates may not change fields other than `spec.containers[*].image`,"
            "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
            "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to "
            "be set to 1 if it was previously negative)",
        )


def _fixed_pod_spec(pod: Object) -> Object:
    spec = dict(pod.get("spec") or {})
    for changeable in ("activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds"):
        spec.pop(changeable, None)
    for containers in ("containers", "initContainers"):
        spec[containers] = [
            {name: it for name, it in container.items() if name != "image"}
            for container in spec.get(containers) or ()
        ]
    return spec
