"""What is to be changed next on OpenShift, from what is seen: no I/O.

Retryable says what must come first, Refused why something cannot be.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from replant.errors import Refused, Retryable, shown
from replant.execute.actuators import Replica, Wanted, differences
from replant.gates.featuresets import CONTROL_PLANE_SET, CUSTOM, NODE_SET, SET_GATES, inert
from replant.platforms.openshift_state import UNRENDERED, Cluster, Features, control_plane_lags

FOR_EVER = (CUSTOM, "TechPreviewNoUpgrade", "DevPreviewNoUpgrade")
"""The API server lets nobody leave these."""


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


@dataclass(frozen=True, slots=True)
class Forget:
    """Have pools no longer be ours that somebody else has let go on."""

    pools: tuple[str, ...]


Change = SetFeatures | Pause | Forget


@dataclass(frozen=True, slots=True)
class Rules:
    """What is known of a run besides what is seen."""

    order_free: bool
    """Whether the attach/detach controller goes by the nodes alone."""
    no_upgrade: bool = False
    """Whether somebody agrees that the cluster can never be upgraded again."""


@dataclass(frozen=True, slots=True)
class Intent:
    """What a run is about to do, as far as it may have to be refused before it begins."""

    by_name: bool = False
    """Whether gates have to be given although they are on by default."""
    off: tuple[str, ...] = ()
    """Gates that it turns off."""
    besides: str = ""
    """What the sets would do that its plan does not know of, as a sentence."""


STAYS = (
    f"The gates are turned off, but the feature set stays {CUSTOM}: nobody can leave it, and the "
    "cluster cannot be upgraded."
)
NOTHING_CARRIED = (
    f"This cluster's FeatureGate knows no {NODE_SET} that it could take along to another version, "
    f"and with {CUSTOM} there is no way to another one. Go back before the downgrade instead: "
    "replant plan disable"
)
HELD_HERE = (
    f"The FeatureGate cluster has the feature set {CUSTOM}, which can never be left again and "
    f"holds the cluster at its version: {NODE_SET} cannot be set and taken along to another one."
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
        _refuse_lasting((gate for gate, on in wanted.gates.items() if on is False), seen)
        # What is on by default is listed whatever the set is: nobody waits for it to go.
        back = {gate for gate, on in wanted.gates.items() if on is None and seen.defaults.get(gate)}
        waited = () if wanted.by_name else wanted.gates.keys() - back
        feature_set = _set_for(nodes, on, waited, seen, rules)
        if feature_set == seen.features.feature_set:
            return None
        refuse_change(seen, feature_set)
        return SetFeatures(_marked(Features(feature_set), seen))
    return _custom_change(nodes, on, wanted, seen, rules)


def refuse_beginning(seen: Cluster, rules: Rules, intent: Intent) -> None:
    """Refused where a run would be stuck half-way, or do more than was looked at."""
    refuse_stuck(seen, rules, by_name=intent.by_name)
    if _uses_sets(seen):
        _refuse_lasting(intent.off, seen)
        if intent.besides:
            raise Refused(intent.besides)


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
            raise Refused(HELD_HERE if now == CUSTOM else NOTHING_CARRIED)
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


def _refuse_lasting(gates: Iterable[str], seen: Cluster) -> None:
    """Refused where gates are to be off that no set has turned on: none can be taken away.

    While a set is there it hides what the release gives without it, which may well be off.
    """
    if seen.features.feature_set:
        return
    given = seen.operators["kube-controller-manager"].gates
    if lasting := [it for it in gates if seen.defaults.get(it) and it not in given]:
        raise Refused(
            f"{', '.join(lasting)} cannot be turned off: it is on by default at Kubernetes "
            f"{seen.version.of_minor}, and the feature sets only turn gates on. No set is there "
            "that could be taken away."
        )


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
    if others := tuple(it.name for it in seen.pools if it.was_let_go):
        return Forget(others)
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
    """With the revisions of the operators that will have to make another one, and the
    configurations of the pools that will have to be given another.
    """
    wanted = seen.told(features)
    was = seen.features.for_control_plane
    gone = [gate for gate in was if gate not in wanted.gates]
    marks = {}
    for component, operator in seen.operators.items():
        told = Replica(component, operator.gates, defaults=seen.defaults)
        back = any(operator.gates.get(it) and not seen.defaults.get(it) for it in gone)
        if differences(told, wanted) or back:
            marks[component] = operator.latest
    pools = seen.features.rendered
    if seen.told_nodes(features) != seen.told_nodes(seen.features):
        # Two changes at once might come to what was rendered before the first: nobody could tell
        # whether that is still it, or it again.
        for name in seen.unrendered:
            raise Retryable(f"MachineConfigPool {name}: {UNRENDERED}")
        pools = {it.name: it.configuration for it in seen.pools}
    return replace(features, revisions=marks, rendered=pools)


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
