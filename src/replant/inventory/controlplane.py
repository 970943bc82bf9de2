"""The control plane, where it runs as pods: what its components are told by their flags."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Raw, Struct
from msgspec.json import Decoder

from replant.inventory.pod_records import Container, Pod

COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")

_GATES = "feature-gates"
LIST_FLAGS = ("enable-admission-plugins", "disable-admission-plugins")
"""Given twice, these add up; of the others the last counts."""

_FLAGS = (_GATES, "cloud-provider", "cloud-config", "external-cloud-volume-plugin", *LIST_FLAGS)
_FLAG = re.compile(rf"--({'|'.join(_FLAGS)})(?:=|\s+)([^\s\"']+|\"[^\"]+\"|'[^']+')")

_CONTAINERS = Decoder(list[Container] | None)


class ControlPlanePod(Struct, frozen=True, gc=False):
    """One replica of a component of the control plane."""

    component: str
    """Such as kube-controller-manager."""
    name: str
    """The pod's."""
    node: str
    gates: dict[str, bool]
    """The feature gates that it is given."""
    flags: dict[str, str]
    """Of its other flags those that decide about volumes, such as cloud-provider, undashed."""


def control_plane_pod(pod: Pod) -> ControlPlanePod | None:
    """What a component is told, if the pod is one."""
    labels = pod.metadata.labels
    component = labels.get("component") if labels else None
    if component not in COMPONENTS:
        return None
    gates, flags = told(pod.spec.containers)
    return ControlPlanePod(component, pod.metadata.name, pod.spec.nodeName or "", gates, flags)


def told(containers: Raw) -> tuple[dict[str, bool], dict[str, str]]:
    """The gates that containers are given, and of their other flags those that concern us."""
    gates: dict[str, bool] = {}
    flags: dict[str, str] = {}
    for flag, value in _flags(_CONTAINERS.decode(containers) or ()):
        if flag == _GATES:
            gates |= _parsed(value)
        elif flag in LIST_FLAGS and flag in flags:
            flags[flag] += f",{value}"
        else:
            flags[flag] = value
    return gates, flags


def merged_gates(pods: Iterable[ControlPlanePod]) -> dict[str, dict[str, bool]]:
    """The gates given to each component; where its replicas differ, those of the last one."""
    found: dict[str, dict[str, bool]] = {}
    for pod in pods:
        found.setdefault(pod.component, {}).update(pod.gates)
    return found


def _flags(containers: Iterable[Container]) -> Iterable[tuple[str, str]]:
    for container in containers:
        line = " ".join([*(container.command or ()), *(container.args or ())])
        for flag, value in _FLAG.findall(line):
            yield flag, value.strip("\"'")


def _parsed(gates: str) -> dict[str, bool]:
    pairs = (pair.partition("=") for pair in gates.split(","))
    return {name: on.lower() == "true" for name, _, on in pairs if on.lower() in ("true", "false")}
