"""The gates given to one component: whether it would take them, and what they come to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum

from replant.gates.history import FIRST, LAST, GateSpec, gate_at, gates_at, known_gates
from replant.gates.plugins import BASE_GATE, LIVES, PHASE_MEANS, Phase, PluginLife, phase
from replant.gates.versions import Version

Gates = Mapping[str, bool]

REVIEW_GATE = "CSIMigrationInTreeOff"
"""One gate for all plugins, as the design review had it. Complete and Unregister, one for each
plugin, are what it became."""


class Flavour(StrEnum):
    """Whose gates they are."""

    SHIPPED = "shipped"
    REVIEW = "review"
    """The design review's, for reading its documents: no release has ever had it."""


class Component(StrEnum):
    """What has gates of its own, and does something with volumes."""

    CONTROLLER = "kube-controller-manager"
    SCHEDULER = "kube-scheduler"
    KUBELET = "kubelet"


@dataclass(frozen=True, slots=True)
class Problem:
    """A gate that the component would refuse, or that cannot do what it is given for."""

    gate: str
    reason: str

    def __str__(self) -> str:
        return f"{self.gate} {self.reason}"


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a plugin is in a component, and whether its in-tree code can still be asked."""

    plugin: str
    phase: Phase
    registered: bool

    def meaning(self, component: Component) -> str:
        """Who serves its volumes, as far as that component has a say in it."""
        if self.phase is Phase.GONE and not LIVES[self.plugin].translated:
            return "served by nobody: it is no longer in Kubernetes, nor is its translation"
        if self.phase is Phase.IN_TREE and not self.registered:
            return "served by nobody: the in-tree plugin is off, and nothing is redirected"
        if self.phase is Phase.REDIRECTED and component is Component.KUBELET:
            return "served by CSI: a kubelet follows its own gates alone"
        return PHASE_MEANS[self.phase]


def effective(
    version: Version, given: Gates, flavour: Flavour = Flavour.SHIPPED
) -> dict[str, bool]:
    """Every gate of the migration that exists at the version, as the component has it."""
    values = {gate: _value(gate, spec, given) for gate, spec in gates_at(version).items()}
    if flavour is Flavour.REVIEW and BASE_GATE in values:
        values[REVIEW_GATE] = given.get(REVIEW_GATE, False)
    return values


def problems(version: Version, given: Gates, flavour: Flavour = Flavour.SHIPPED) -> list[Problem]:
    """All that is wrong with the gates given, in the order in which they were given."""
    values = effective(version, given, flavour)
    found = ((gate, _problem(gate, version, given, values)) for gate in given)
    return [Problem(gate, reason) for gate, reason in found if reason]


def refusals(version: Version, given: Gates) -> list[Problem]:
    """Those of the problems with which a component does not even start."""
    values = effective(version, given)
    found = ((gate, _refusal(gate, version, given, values)) for gate in given)
    return [Problem(gate, reason) for gate, reason in found if reason]


def standings(version: Version, given: Gates, flavour: Flavour = Flavour.SHIPPED) -> list[Standing]:
    """Where each plugin stands in a component of that version with those gates."""
    values = effective(version, given, flavour)
    return [_standing(plugin, life, version, values) for plugin, life in LIVES.items()]


def changes(version: Version, given: Gates, component: Component) -> Iterator[str]:
    """What is different at the next minor, each as a sentence: gates first, then plugins."""
    following = version.next_minor()
    for gate in known_gates():
        if change := _change(gate_at(gate, version), gate_at(gate, following)):
            yield f"{gate} {change}."
    for problem in problems(following, given):
        if problem.gate in effective(version, given):
            yield f"{problem}: do not give it, or the component does not start."
    kept = {gate: on for gate, on in given.items() if gate_at(gate, following)}
    for now, then in zip(standings(version, given), standings(following, kept), strict=True):
        if (now.phase, now.registered) != (then.phase, then.registered):
            step = f"goes from phase {now.phase:d} to {then.phase:d}"
            yield f"{now.plugin} {step}: {then.meaning(component)}."


def _value(gate: str, spec: GateSpec, given: Gates) -> bool:
    return spec.default if spec.locked else given.get(gate, spec.default)


def _problem(gate: str, version: Version, given: Gates, values: Gates) -> str:
    if refusal := _refusal(gate, version, given, values):
        return refusal
    return _contradiction(gate, values) if given[gate] else ""


def _refusal(gate: str, version: Version, given: Gates, values: Gates) -> str:
    if gate not in values:
        return _why_unknown(gate, version)
    spec = gate_at(gate, version)
    if spec and spec.locked and given[gate] != spec.default:
        return f"is locked to {_written(spec.default)} at {version.of_minor}"
    return ""


def _why_unknown(gate: str, version: Version) -> str:
    minors = [minor for minor in _minors() if gate_at(gate, minor)]
    if gate == REVIEW_GATE:
        return (
            "never shipped: it became one gate for each plugin, such as InTreePluginAWSUnregister"
        )
    if not minors:
        meant = _likely_meant(gate)
        return "is no gate of the migration" + (f"; is it {meant}?" if meant else "")
    if version < minors[0]:
        return f"comes with {minors[0].of_minor}, and {version.of_minor} does not have it yet"
    return f"went with {minors[-1].next_minor().of_minor}, and {version.of_minor} does not have it"


def _likely_meant(gate: str) -> str:
    written = {known.lower(): known for known in known_gates()}
    close = (
        [gate.lower()] if gate.lower() in written else get_close_matches(gate.lower(), written, 1)
    )
    return written[close[0]] if close else ""


def _contradiction(gate: str, values: Gates) -> str:
    """Why a gate that is given as on does nothing."""
    if gate == REVIEW_GATE:
        return "" if values[BASE_GATE] else f"needs {BASE_GATE}, which is off"
    for life in LIVES.values():
        complete, _unregister = life.off_gates
        needed = {life.migration_gate: BASE_GATE, complete: life.migration_gate}.get(gate)
        if needed and not values.get(needed, True):
            return f"needs {needed}, which is off"
        if gate == complete and not values.get(BASE_GATE, True):
            return f"needs {BASE_GATE}, which is off"
    return ""


def _standing(plugin: str, life: PluginLife, version: Version, values: Gates) -> Standing:
    now = phase(plugin, version, values)
    if now is Phase.REDIRECTED and values.get(REVIEW_GATE, False):
        now = Phase.PLUGIN_OFF
    _complete, unregister = life.off_gates
    registered = now < Phase.PLUGIN_OFF and not values.get(unregister, False)
    return Standing(plugin, now, registered)


def _change(now: GateSpec | None, then: GateSpec | None) -> str:
    if now == then:
        return ""
    if now is None or then is None:
        return "is gone" if then is None else f"is new: {_described(then)}"
    return f"is {_described(then)} (was {_described(now)})"


def _described(spec: GateSpec) -> str:
    default = "on" if spec.default else "off"
    return f"{spec.stage.value}, {f'locked {default}' if spec.locked else f'{default} by default'}"


def _written(value: bool) -> str:
    return str(value).lower()


def _minors() -> Iterator[Version]:
    minor = FIRST
    while minor <= LAST:
        yield minor
        minor = minor.next_minor()
