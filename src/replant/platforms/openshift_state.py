"""What OpenShift's objects say of a switch, and whether it has come about: no I/O.

Its operators do the work. FeatureGate ``cluster`` tells them what to do, and what they say
afterwards is trusted only once it is about that (docs/decisions/0016-openshift-rolls-its-nodes.md).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from replant.errors import shown
from replant.execute.actuators import Replica, Wanted, differences
from replant.gates.featuresets import (
    CONTROL_PLANE_SET,
    CUSTOM,
    NODE_SET,
    PLUGINS,
    SET_GATES,
    is_settled,
)
from replant.gates.history import gate_at
from replant.gates.plugins import LIVES
from replant.gates.versions import Version
from replant.objects import Object

COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"

REVISIONS = "replant.dev/revisions"
"""On the FeatureGate: how far operators were that had to act on its last change."""
RENDERED = "replant.dev/rendered"
"""On the FeatureGate: which gates it came to give to kubelets, and what pools had before."""
PAUSED_BY = "replant.dev/paused-by"
"""On a MachineConfigPool that we have paused, and that we will let go on."""


# What is seen


@dataclass(frozen=True, slots=True)
class Features:
    """FeatureGate ``cluster``."""

    feature_set: str = ""
    enabled: tuple[str, ...] = ()
    """Of CustomNoUpgrade."""
    disabled: tuple[str, ...] = ()
    revisions: Mapping[str, int] = field(default_factory=dict)
    """By component: it had this revision and other gates when the last change was made."""
    rendered: Mapping[str, str] = field(default_factory=dict)
    """By pool: the configuration that it had when the last change was made that is for kubelets."""

    @classmethod
    def of(cls, obj: Object) -> Features:
        """As the object has it."""
        spec = obj.get("spec") or {}
        custom = spec.get("customNoUpgrade") or {}
        marks = obj["metadata"].get("annotations") or {}
        revisions = _pairs(marks.get(REVISIONS, ""))
        found = cls(
            spec.get("featureSet") or "",
            tuple(custom.get("enabled") or ()),
            tuple(custom.get("disabled") or ()),
            {name: int(number) for name, number in revisions.items() if number.isdigit()},
        )
        gates, _, pools = marks.get(RENDERED, "").partition(";")
        # Where somebody else has changed it since, pools may well have again what they had.
        return replace(found, rendered=_pairs(pools)) if gates == found._for_nodes_text else found

    @property
    def marks(self) -> dict[str, str | None]:
        """The annotations that note how far everybody was; None where there is nothing to note."""
        pools = f"{self._for_nodes_text};{_text(self.rendered)}" if self.rendered else None
        return {REVISIONS: _text(self.revisions) or None, RENDERED: pools}

    @property
    def for_control_plane(self) -> dict[str, bool]:
        """The gates of the migration that operators give to the control plane."""
        if self.feature_set in (CONTROL_PLANE_SET, NODE_SET):
            return dict.fromkeys(SET_GATES, True)
        return self._custom

    @property
    def for_nodes(self) -> dict[str, bool]:
        """Those that the machine-config operator gives to kubelets: it ignores one of the sets."""
        if self.feature_set == NODE_SET:
            return dict.fromkeys(SET_GATES, True)
        return self._custom

    @property
    def _for_nodes_text(self) -> str:
        return _text({it: str(on).lower() for it, on in sorted(self.for_nodes.items())})

    @property
    def _custom(self) -> dict[str, bool]:
        if self.feature_set != CUSTOM:
            return {}
        given = dict.fromkeys(self.enabled, True) | dict.fromkeys(self.disabled, False)
        return {gate: on for gate, on in given.items() if gate in SET_GATES}


def _text(pairs: Mapping[str, object]) -> str:
    return ",".join(f"{name}={value}" for name, value in pairs.items())


def _pairs(marks: str) -> dict[str, str]:
    found = (it.split("=", 1) for it in marks.split(",") if "=" in it)
    return dict(found)


@dataclass(frozen=True, slots=True)
class Operator:
    """How far an operator is with its component."""

    gates: Mapping[str, bool]
    """What it has understood that its component is to be given."""
    latest: int
    nodes: tuple[tuple[str, int, int], ...]
    """Each with its revision, and the one that it is being given (0 if none is)."""
    trouble: str = ""
    """What its ClusterOperator says against it."""

    @classmethod
    def of(cls, component: str, obj: Object, cluster_operator: Object) -> Operator:
        """As its two objects have it."""
        status = obj.get("status") or {}
        nodes = tuple(
            (it["nodeName"], it.get("currentRevision", 0), it.get("targetRevision", 0))
            for it in status.get("nodeStatuses") or ()
        )
        latest = status.get("latestAvailableRevision", 0)
        return cls(observed_gates(component, obj), latest, nodes, _trouble(cluster_operator))

    def lag(self, name: str, current: int, target: int, passed: int | None) -> str:
        """Why a node does not count as being at the last revision; nothing if it is."""
        if passed is not None and self.latest <= passed:
            return f"its operator has not made a revision after {passed} yet"
        if current != self.latest or target:
            return f"{name} is at revision {current}, and {self.latest} is the latest"
        return ""


def observed_gates(component: str, operator: Object) -> dict[str, bool]:
    """The gates that an operator has understood its component to be given."""
    observed = (operator.get("spec") or {}).get("observedConfig") or {}
    where = "apiServerArguments" if component == "kube-apiserver" else "extendedArguments"
    given = (observed.get(where) or {}).get("feature-gates") or ()
    pairs = (it.split("=", 1) for it in given if "=" in it)
    return {name.strip(): value.strip().lower() == "true" for name, value in pairs}


_GOOD = {"Available": "True", "Progressing": "False", "Degraded": "False"}


def _trouble(cluster_operator: Object) -> str:
    conditions = _conditions(cluster_operator)
    for kind, good in _GOOD.items():
        status, message = conditions.get(kind, ("not told", ""))
        if status != good:
            name = cluster_operator["metadata"]["name"]
            said = f" ({shown(message)})" if message else ""
            return f"ClusterOperator {name} has {kind}={status}{said}"
    return ""


def _conditions(obj: Object) -> dict[str, tuple[str, str]]:
    found = (obj.get("status") or {}).get("conditions") or ()
    return {it["type"]: (it.get("status", ""), it.get("message", "")) for it in found}


@dataclass(frozen=True, slots=True)
class Pool:
    """A MachineConfigPool."""

    name: str
    paused: bool
    ours: bool
    """Whether it is we who have paused it."""
    lag: str
    """Why it has not converged; nothing if it has."""
    configuration: str = ""
    """What the machine-config operator has rendered for it."""
    seen_as: Mapping[str, str] = field(default_factory=dict)
    """Its uid and resourceVersion: what is decided of it holds for these alone."""

    @classmethod
    def of(cls, obj: Object) -> Pool:
        """As the object has it."""
        spec = obj.get("spec") or {}
        paused = bool(spec.get("paused"))
        ours = PAUSED_BY in (obj["metadata"].get("annotations") or {})
        name = obj["metadata"]["name"]
        lag = _pool_lag(obj, paused=paused, ours=ours)
        configuration = (spec.get("configuration") or {}).get("name") or ""
        seen_as = {it: obj["metadata"].get(it, "") for it in ("uid", "resourceVersion")}
        return cls(name, paused, ours, lag, configuration, seen_as)

    @property
    def was_let_go(self) -> bool:
        """Whether somebody else has let it go on: if it is paused again, that is not by us."""
        return self.ours and not self.paused


def _pool_lag(obj: Object, *, paused: bool, ours: bool) -> str:
    if paused:
        return "it is paused" + (" by this run" if ours else f": {_unpause(obj)}")
    metadata, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
    conditions = _conditions(obj)
    count = {it: status.get(f"{it}MachineCount", 0) for it in _COUNTS}
    total = status.get("machineCount", 0)
    if count["degraded"] or conditions.get("Degraded", ("", ""))[0] == "True":
        told = (conditions.get(it, ("", "")) for it in _DEGRADED)
        said = next((message for status, message in told if status == "True" and message), "")
        more = f": {shown(said)}" if said else ""
        return f"it is degraded, {count['degraded']} of {total} machines{more}"
    if status.get("observedGeneration", 0) != metadata.get("generation", 0):
        return "its operator has not seen its last change yet"
    if (status.get("configuration") or {}).get("name") != (spec.get("configuration") or {}).get(
        "name"
    ) or not total == count["updated"] == count["ready"]:
        return f"{count['updated']} of {total} machines are updated, {count['ready']} ready"
    if count["unavailable"]:
        return f"{count['unavailable']} of {total} machines are unavailable"
    for kind, good in (("Updated", "True"), ("Updating", "False")):
        if (found := conditions.get(kind, ("not told", ""))[0]) != good:
            return f"it has {kind}={found}"
    return ""


_COUNTS = ("updated", "ready", "unavailable", "degraded")
_DEGRADED = ("NodeDegraded", "RenderDegraded", "Degraded")


def _unpause(obj: Object) -> str:
    name = obj["metadata"]["name"]
    return f"""oc patch mcp/{name} --type merge -p '{{"spec":{{"paused":false}}}}'"""


def allowed_sets(definition: Object) -> tuple[str, ...] | None:
    """The feature sets that the FeatureGate's definition allows; None where it does not tell."""
    for version in definition["spec"].get("versions") or ():
        if version.get("name") != "v1":
            continue
        node: Any = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        for name in ("spec", "featureSet"):
            node = (node.get("properties") or {}).get(name) or {}
        if "enum" in node:
            return tuple(node["enum"])
    return None


@dataclass(frozen=True, slots=True)
class Cluster:
    """All that a decision needs to see."""

    features: Features
    allowed: tuple[str, ...] | None
    operators: Mapping[str, Operator]
    pools: tuple[Pool, ...]
    listed: Mapping[str, frozenset[str]]
    """By node, the plugins that its CSINode says are migrated."""
    version: Version
    """Of the API server."""

    @property
    def defaults(self) -> dict[str, bool]:
        """What a gate of the migration amounts to that nobody is given."""
        found = {gate: gate_at(gate, self.version) for gate in SET_GATES}
        return {gate: spec.default for gate, spec in found.items() if spec}

    def told(self, features: Features) -> Wanted:
        """What operators have to give by name: of the gates that are there, those that are not
        locked. What becomes of the others is nobody's choice.
        """
        given = features.for_control_plane
        choice = [it for it in given if gate_at(it, self.version) and not self.is_settled(it)]
        return Wanted({gate: given[gate] for gate in choice}, by_name=True)

    def told_nodes(self, features: Features) -> dict[str, bool]:
        """What kubelets are given by name, of the gates that are somebody's choice: with other
        ones every pool is rendered anew.
        """
        given = features.for_nodes
        return {
            gate: on
            for gate, on in given.items()
            if gate_at(gate, self.version) and not self.is_settled(gate)
        }

    @property
    def unrendered(self) -> list[str]:
        """Pools for which nothing was rendered since the last change: what they say is about what
        was before.
        """
        was = self.features.rendered
        return [it.name for it in self.pools if was.get(it.name) == it.configuration]

    def is_settled(self, gate: str) -> bool:
        """Whether a gate is on for good, whatever anybody says."""
        return is_settled(gate, self.version)

    def redirecting(self, gates: Collection[str]) -> dict[str, list[str]]:
        """Nodes that still redirect, and what: of these gates, or of others that are off unless
        somebody turns them on. What is on by itself is listed whatever we do.
        """
        mine = {
            plugin
            for plugin in PLUGINS
            if (gate := LIVES[plugin].migration_gate) in gates or self.defaults.get(gate) is False
        }
        found = {node: sorted(plugins & mine) for node, plugins in sorted(self.listed.items())}
        return {node: plugins for node, plugins in found.items() if plugins}


# How far it is


def component_replicas(component: str, seen: Cluster) -> tuple[Replica, ...]:
    """The replicas of a component; none is ready before the whole control plane has converged."""
    operator = seen.operators[component]
    passed = seen.features.revisions.get(component)
    elsewhere = next(control_plane_lags(seen), "")
    # Operators need not pass on what is on for good; the FeatureGate takes it along all the same.
    carried = {it: on for it, on in seen.features.for_control_plane.items() if seen.is_settled(it)}
    gates = {**carried, **operator.gates}
    found = []
    for name, current, target in operator.nodes:
        lag = operator.lag(name, current, target, passed) or elsewhere
        found.append(Replica(name, gates, None, not lag, lag, seen.defaults))
    return tuple(found)


def control_plane_lags(seen: Cluster) -> Iterator[str]:
    """What of the control plane does not run yet as the FeatureGate says."""
    wanted = seen.told(seen.features)
    for component in COMPONENTS:
        operator = seen.operators[component]
        # Before an operator has understood what is new, all that it says is about what was.
        told = Replica(component, operator.gates, defaults=seen.defaults)
        if differs := differences(told, wanted):
            yield f"{component}: its operator does not know the new gates yet, {differs[0]}"
            continue
        passed = seen.features.revisions.get(component)
        lags = [lag for node in operator.nodes if (lag := operator.lag(*node, passed))]
        if lags or operator.trouble:
            yield f"{component}: {(*lags, operator.trouble)[0]}"
        elif not operator.nodes:
            yield f"{component}: its operator tells of no node"


def pool_replicas(seen: Cluster) -> tuple[Replica, ...]:
    """The kubelets, pool by pool, with what they are told: what they do, CSINodes tell."""
    gates, stale = seen.features.for_nodes, seen.unrendered
    # What a release gives without our sets stands nowhere: that they are not given is all we know.
    ours = seen.features.feature_set in (NODE_SET, CUSTOM)
    defaults = seen.defaults if ours else dict.fromkeys(SET_GATES, False)
    found = []
    for it in seen.pools:
        lag = it.lag or (UNRENDERED if it.name in stale else "")
        name = f"MachineConfigPool {it.name}"
        found.append(Replica(name, gates, None, not lag, lag, defaults))
    return tuple(found)


UNRENDERED = "the machine-config operator has not rendered the last change for it yet"
