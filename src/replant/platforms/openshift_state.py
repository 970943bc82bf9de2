"""What OpenShift's objects say of a switch, and what is to be changed next: no I/O.

Its operators do the work. FeatureGate ``cluster`` tells them what to do, and what they say
afterwards is trusted only once it is about that (docs/decisions/0016-openshift-rolls-its-nodes.md).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from replant.errors import Refused, Retryable, shown
from replant.execute.actuators import Replica, Wanted, differences
from replant.gates.featuresets import (
    CONTROL_PLANE_SET,
    CUSTOM,
    NODE_SET,
    PLUGINS,
    SET_GATES,
    inert,
    is_settled,
)
from replant.gates.history import gate_at
from replant.gates.plugins import LIVES
from replant.gates.versions import Version
from replant.objects import Object

FOR_EVER = (CUSTOM, "TechPreviewNoUpgrade", "DevPreviewNoUpgrade")
"""The API server lets nobody leave these."""

COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"

REVISIONS = "replant.dev/revisions"
"""On the FeatureGate: how far operators were that had to act on its last change."""
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

    @classmethod
    def of(cls, obj: Object) -> Features:
        """As the object has it."""
        spec = obj.get("spec") or {}
        custom = spec.get("customNoUpgrade") or {}
        marks = (obj["metadata"].get("annotations") or {}).get(REVISIONS, "")
        pairs = (it.split("=", 1) for it in marks.split(",") if "=" in it)
        return cls(
            spec.get("featureSet") or "",
            tuple(custom.get("enabled") or ()),
            tuple(custom.get("disabled") or ()),
            {name: int(number) for name, number in pairs if number.isdigit()},
        )

    @property
    def for_control_plane(self) -> dict[str, bool]:
        """The gates of the migration that operators give to the control plane."""
        if self.feature_set in (CONTROL_PLANE_SET, NODE_SET):
            return dict.fromkeys(SET_GATES, True)
        return self._custom

    @property
    def for_nodes(self) -> dict[str, bool]:
        """Those that the machine-config operator gives to kubelets: it ignores one of the sets."""
        if self.feature_set == CUSTOM:
            return self._custom
        return dict.fromkeys(SET_GATES, self.feature_set == NODE_SET)

    @property
    def _custom(self) -> dict[str, bool]:
        if self.feature_set != CUSTOM:
            return {}
        given = dict.fromkeys(self.enabled, True) | dict.fromkeys(self.disabled, False)
        return {gate: on for gate, on in given.items() if gate in SET_GATES}


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

    @classmethod
    def of(cls, obj: Object) -> Pool:
        """As the object has it."""
        spec = obj.get("spec") or {}
        paused = bool(spec.get("paused"))
        ours = PAUSED_BY in (obj["metadata"].get("annotations") or {})
        name = obj["metadata"]["name"]
        return cls(name, paused, ours, _pool_lag(obj, paused=paused, ours=ours))


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
    gates = seen.features.for_nodes
    return tuple(
        Replica(f"MachineConfigPool {it.name}", gates, None, not it.lag, it.lag, seen.defaults)
        for it in seen.pools
    )


# What to change


@dataclass(frozen=True, slots=True)
class SetFeatures:
    """Have the FeatureGate say something else; ``warning`` is for a person."""

    features: Features
    warning: str = ""


@dataclass(frozen=True, slots=True)
class Pause:
    """Have pools stay as they are, or let them go on."""

    pools: tuple[str, ...]
    paused: bool


Change = SetFeatures | Pause


@dataclass(frozen=True, slots=True)
class Rules:
    """What is known of a run besides what is seen."""

    order_free: bool
    """Whether the attach/detach controller goes by the nodes alone."""
    no_upgrade: bool = False
    """Whether somebody agrees that the cluster can never be upgraded again."""


STAYS = (
    f"The gates are turned off, but the feature set stays {CUSTOM}: nobody can leave it, and the "
    "cluster cannot be upgraded."
)
NOTHING_CARRIED = (
    f"This cluster's FeatureGate knows no {NODE_SET} that it could take along to another version, "
    f"and with {CUSTOM} there is no way to another one. Go back before the downgrade instead: "
    "replant plan disable"
)
NO_UPGRADE = (
    f"{CUSTOM} can never be left again, and a cluster that has it cannot be upgraded to another "
    "minor, and is not supported."
)


def next_change(nodes: bool, wanted: Wanted, seen: Cluster, rules: Rules) -> Change | None:
    """What to change next for the control plane or for the nodes; None once nothing is.

    Retryable says what must come first, Refused why it cannot be.
    """
    on = _direction(wanted)
    if on is None or (not wanted.by_name and _means_nothing(on, wanted, seen)):
        return None
    refuse_stuck(seen, rules, by_name=wanted.by_name)
    if _uses_sets(seen):
        # What is on by default is listed whatever the set is: nobody waits for it to go.
        waited = () if wanted.by_name else wanted.gates
        feature_set = _set_for(nodes, on, waited, seen, rules)
        if feature_set == seen.features.feature_set:
            return None
        refuse_change(seen, feature_set)
        return SetFeatures(_marked(Features(feature_set), seen))
    return _custom_change(nodes, on, wanted, seen, rules)


def refuse_stuck(seen: Cluster, rules: Rules, *, by_name: bool = False) -> None:
    """Refused where the FeatureGate cannot come to say what is needed."""
    now = seen.features.feature_set
    if now not in ("", CONTROL_PLANE_SET, NODE_SET, CUSTOM):
        left = "can never be left again" if now in FOR_EVER else "is not ours to replace"
        raise Refused(
            f"The FeatureGate cluster has the feature set {shown(now)}, which {left}: the "
            "migration's gates cannot be set beside it."
        )
    if not _uses_sets(seen):
        if by_name:
            raise Refused(NOTHING_CARRIED)
        refuse_change(seen, CUSTOM)
        if now != CUSTOM and not rules.no_upgrade:
            raise Refused(
                f"This cluster's FeatureGate knows no {CONTROL_PLANE_SET}, so that gates can be "
                f"set only with {CUSTOM}. {NO_UPGRADE} Agree with --accept-no-upgrade."
            )


def refuse_change(seen: Cluster, feature_set: str) -> None:
    """Refused where the API server would not take a feature set."""
    now = seen.features.feature_set
    if now in FOR_EVER and feature_set != now:
        raise Refused(
            f"The FeatureGate cluster has the feature set {now}, which can never be left again: "
            f"it cannot become {feature_set or 'none'}."
        )
    if seen.allowed is not None and feature_set and feature_set not in seen.allowed:
        known = ", ".join(it or '""' for it in seen.allowed)
        raise Refused(
            f"The feature set {feature_set} is not one that the FeatureGate of this cluster "
            f"allows; these are: {known}."
        )


def _direction(wanted: Wanted) -> bool | None:
    if wanted.add_flags or wanted.remove_flags:
        raise Refused("On OpenShift gates can be switched, not flags: its operators have those.")
    if others := sorted(set(wanted.gates) - set(SET_GATES)):
        raise Refused(
            f"On OpenShift {', '.join(others)} cannot be switched by itself: only "
            f"{', '.join(SET_GATES)} can."
        )
    directions = {bool(on) for on in wanted.gates.values()}
    if len(directions) > 1:
        raise Refused("On OpenShift the migration's gates are all on or all off.")
    return directions.pop() if directions else None


def what_means_nothing(wanted: Wanted, seen: Cluster) -> str:
    """What to say where gates are on for good, and so nothing is done."""
    if wanted.by_name or not wanted.gates or not all(map(seen.is_settled, wanted.gates)):
        return ""
    return inert(wanted.gates, seen.version)


def _means_nothing(on: bool, wanted: Wanted, seen: Cluster) -> bool:
    """Whether all of it is on for good, so that no feature set changes anything any more."""
    settled = [it for it in wanted.gates if seen.is_settled(it)]
    if settled and not on and not all(on is None for on in wanted.gates.values()):
        raise Refused(
            f"{', '.join(settled)} cannot be turned off at Kubernetes {seen.version.of_minor}: it "
            "is on for good, and the feature sets are no longer operational."
        )
    return len(settled) == len(wanted.gates)


def _uses_sets(seen: Cluster) -> bool:
    if seen.features.feature_set == CUSTOM:
        return False
    return {CONTROL_PLANE_SET, NODE_SET} <= set(seen.allowed or ())


def _set_for(nodes: bool, on: bool, gates: Collection[str], seen: Cluster, rules: Rules) -> str:
    """The feature set to have now; Retryable if something must be so before."""
    now = seen.features.feature_set
    if rules.order_free:
        return NODE_SET if on else ""
    if nodes:
        if on and now != NODE_SET:
            if now != CONTROL_PLANE_SET:
                raise Retryable(f"the control plane first: {CONTROL_PLANE_SET} is not set")
            _await_control_plane(seen)
        return NODE_SET if on else CONTROL_PLANE_SET if now == NODE_SET else now
    if on:
        return now or CONTROL_PLANE_SET
    if now == NODE_SET:
        raise Retryable(f"the nodes first: {NODE_SET} is still set")
    if now:
        _await_nodes(seen, gates)
    return ""


def _custom_change(
    nodes: bool, on: bool, wanted: Wanted, seen: Cluster, rules: Rules
) -> Change | None:
    """With one list of gates for all: pools that are paused keep it from the nodes."""
    features, gates = seen.features, tuple(wanted.gates)
    told = _is_told(gates, on, seen)
    held = tuple(it.name for it in seen.pools if it.paused and it.ours)
    if on and not told:
        free = tuple(it.name for it in seen.pools if not it.paused)
        if nodes and not rules.order_free:
            raise Retryable("the control plane first: the gates are not set")
        if free and not rules.order_free:
            return Pause(free, paused=True)
        return SetFeatures(_marked(_listing(features, gates, on=True), seen), NO_UPGRADE)
    if not on and not told:
        if not rules.order_free:
            _refuse_shared_list(seen, gates)
        return SetFeatures(_marked(_listing(features, gates, on=False), seen), STAYS)
    if held and (nodes or not on):
        _await_control_plane(seen)
        return Pause(held, paused=False)
    return None


def _is_told(gates: Collection[str], on: bool, seen: Cluster) -> bool:
    """Whether the list says so; without one, whether it is so anyway."""
    given = seen.features.for_control_plane
    if seen.features.feature_set != CUSTOM:
        given = {**seen.defaults, **seen.operators["kube-controller-manager"].gates}
    return all(given.get(gate) is on for gate in gates)


def _listing(features: Features, gates: Collection[str], *, on: bool) -> Features:
    enabled = [it for it in features.enabled if it not in gates]
    disabled = [it for it in features.disabled if it not in gates]
    (enabled if on else disabled).extend(gates)
    return Features(CUSTOM, tuple(enabled), tuple(disabled))


def _marked(features: Features, seen: Cluster) -> Features:
    """With the revisions of the operators that will have to make another one."""
    wanted = seen.told(features)
    was = seen.features.for_control_plane
    gone = [gate for gate in was if gate not in wanted.gates]
    marks = {}
    for component, operator in seen.operators.items():
        told = Replica(component, operator.gates, defaults=seen.defaults)
        back = any(operator.gates.get(it) and not seen.defaults.get(it) for it in gone)
        if differences(told, wanted) or back:
            marks[component] = operator.latest
    return Features(features.feature_set, features.enabled, features.disabled, marks)


def _await_control_plane(seen: Cluster) -> None:
    for lag in control_plane_lags(seen):
        raise Retryable(f"the control plane has not converged yet: {lag}")


def _await_nodes(seen: Cluster, gates: Collection[str]) -> None:
    for node, plugins in seen.redirecting(gates).items():
        raise Retryable(f"the nodes first: the CSINode of {node} still lists {', '.join(plugins)}")


def _refuse_shared_list(seen: Cluster, gates: Collection[str]) -> None:
    """The list goes to the control plane and to nodes at once; nodes would have to go first."""
    reached = list(seen.redirecting(gates))
    free = sorted(it.name for it in seen.pools if not it.paused)
    if not reached and not free:
        return
    which = f"the node {reached[0]} redirects" if reached else f"the pool {free[0]} is not paused"
    raise Refused(
        f"With {CUSTOM} the control plane and the nodes have one list of gates, and {which}: the "
        "control plane would go back before the nodes, and volumes would stay attached for ever. "
        "Only where the attach/detach controller goes by the nodes alone (--adc node-driven) is "
        "there a way back from here."
    )
