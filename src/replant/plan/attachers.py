"""Which attach/detach controller a plan counts with, and why.

OpenShift carries a patch by which its own goes by the nodes alone. Its gates are on by default, so
an operator need not give them and mostly nobody sees them; and not every release has every one.
What is not seen is not assumed: to take it for there where it is not strands volumes, and to take
it for missing where it is costs nothing but the order.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from replant.gates.plugins import BASE_GATE
from replant.gates.versions import Version
from replant.routing import AttachController

OPENSHIFT = "openshift"
_PATCH = "ADC_CSIMigration"
"""How the gates of the patch begin."""


class _Gate(NamedTuple):
    name: str
    since: Version
    """The first Kubernetes whose OpenShift has it."""


_GATES = {
    "kubernetes.io/aws-ebs": _Gate(f"{_PATCH}AWS", Version(1, 21)),
    "kubernetes.io/cinder": _Gate(f"{_PATCH}Cinder", Version(1, 21)),
    "kubernetes.io/azure-disk": _Gate(f"{_PATCH}AzureDisk", Version(1, 22)),
    "kubernetes.io/gce-pd": _Gate(f"{_PATCH}GCEPD", Version(1, 22)),
    "kubernetes.io/vsphere-volume": _Gate(f"{_PATCH}VSphere", Version(1, 23)),
}


class Attacher(NamedTuple):
    """The attach/detach controller that a plan counts with."""

    controller: AttachController
    why: str
    """Nothing where there is but one."""


def attacher_of(
    platform: str,
    gates: Mapping[str, bool],
    plugins: Collection[str],
    declared: AttachController | None = None,
    to: Version | None = None,
) -> Attacher:
    """What somebody declares, else OpenShift's where its gates are seen on, else upstream's.

    On the way to another version it must be there too.
    """
    if declared:
        return Attacher(declared, _declared(declared) if platform == OPENSHIFT else "")
    if platform != OPENSHIFT:
        return Attacher(AttachController.UPSTREAM, "")
    if doubt := _doubt(gates, plugins, to):
        return Attacher(
            AttachController.UPSTREAM,
            f"{doubt}, so the attach/detach controller is taken to go by its own gates, as "
            "everywhere else, and the order of control plane and nodes is kept. Where it is known "
            "to go by the nodes alone, --adc node-driven says so.",
        )
    seen = ", ".join(_GATES[it].name for it in plugins)
    return Attacher(
        AttachController.NODE_DRIVEN,
        f"kube-controller-manager is given {seen}: its attach/detach controller goes by the nodes "
        "alone.",
    )


def _declared(controller: AttachController) -> str:
    goes_by = "the nodes alone"
    if controller is AttachController.UPSTREAM:
        goes_by = "its own gates, as everywhere else"
    return f"The attach/detach controller goes by {goes_by}, as --adc declares."


def _doubt(gates: Mapping[str, bool], plugins: Collection[str], to: Version | None) -> str:
    """Why the patch may not be there, or not in force; nothing if it is."""
    if gates.get(BASE_GATE) is False:
        return f"{BASE_GATE} is off"
    if off := sorted(it for it, on in gates.items() if it.startswith(_PATCH) and not on):
        return f"{off[0]} is off"
    if not plugins:
        return "No plugin is named whose gate could be seen"
    for plugin in plugins:
        gate = _GATES.get(plugin)
        if gate is None:
            return f"OpenShift's attach/detach controller has no gate for {plugin}"
        if gate.name not in gates:
            return f"{gate.name} is not seen among what kube-controller-manager is given"
        if to and to < gate.since:
            return f"{gate.name} is not there yet at Kubernetes {to.of_minor}"
    return ""
