"""When OpenShift has converged, and what is to be changed next: tables, no cluster."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from replant.cluster.ports import FEATURE_GATES
from replant.errors import Refused, Retryable
from replant.execute.actuators import Wanted, differences
from replant.gates.featuresets import CONTROL_PLANE_SET, CUSTOM, NODE_SET, SET_GATES
from replant.gates.versions import Version
from replant.objects import Object
from replant.platforms.openshift import CLUSTER_OPERATORS, DEFINITIONS, OPERATORS, POOLS
from replant.platforms.openshift_changes import (
    Forget,
    Intent,
    Pause,
    Rules,
    SetFeatures,
    next_change,
    refuse_beginning,
    refuse_change,
    what_means_nothing,
)
from replant.platforms.openshift_state import (
    COMPONENTS,
    PAUSED_BY,
    RENDERED,
    REVISIONS,
    Cluster,
    Features,
    Operator,
    Pool,
    allowed_sets,
    component_replicas,
    control_plane_lags,
    pool_replicas,
)

AWS, GATE = "kubernetes.io/aws-ebs", "CSIMigrationAWS"
KCM = "kube-controller-manager"
SETS = ("", CUSTOM, "TechPreviewNoUpgrade", CONTROL_PLANE_SET, NODE_SET)
PLAIN = ("", CUSTOM, "TechPreviewNoUpgrade")
ON, OFF, BACK = Wanted({GATE: True}), Wanted({GATE: False}), Wanted({GATE: None})
ALL_ON = [f"{gate}=true" for gate in SET_GATES]
ORDERED, FREE = Rules(order_free=False, no_upgrade=True), Rules(order_free=True, no_upgrade=True)


def conditions(**said: str) -> list[Object]:
    return [{"type": kind, "status": status} for kind, status in said.items()]


def operator(
    component: str = KCM,
    gates: list[str] | None = None,
    revisions: tuple[tuple[int, int], ...] = ((3, 0), (3, 0)),
    latest: int = 3,
    **said: str,
) -> Operator:
    where = "apiServerArguments" if component == "kube-apiserver" else "extendedArguments"
    nodes = [
        {"nodeName": f"m{number}", "currentRevision": current, "targetRevision": target}
        for number, (current, target) in enumerate(revisions)
    ]
    obj = {
        "spec": {"observedConfig": {where: {"feature-gates": gates or []}}},
        "status": {"latestAvailableRevision": latest, "nodeStatuses": nodes},
    }
    good = {"Available": "True", "Progressing": "False", "Degraded": "False"}
    told = {"status": {"conditions": conditions(**good | said)}, "metadata": {"name": component}}
    return Operator.of(component, obj, told)


def pool(paused: bool = False, ours: bool = False, **status: Any) -> Pool:
    good = {
        "observedGeneration": 2, "machineCount": 3, "updatedMachineCount": 3,
        "readyMachineCount": 3, "unavailableMachineCount": 0, "degradedMachineCount": 0,
        "configuration": {"name": "b"},
        "conditions": conditions(Updated="True", Updating="False", Degraded="False"),
    }  # fmt: skip
    marks = {PAUSED_BY: "replant"} if ours else {}
    return Pool.of(
        {
            "metadata": {"name": "worker", "generation": 2, "annotations": marks},
            "spec": {"paused": paused, "configuration": {"name": "b"}},
            "status": good | status,
        }
    )


def cluster(
    features: Features = Features(),  # noqa: B008 - it is frozen
    gates: list[str] | None = None,
    allowed: tuple[str, ...] | None = SETS,
    pools: tuple[Pool, ...] = (),
    listed: dict[str, frozenset[str]] | None = None,
    **operators: Operator,
) -> Cluster:
    on = features.feature_set in (CONTROL_PLANE_SET, NODE_SET)
    given = (ALL_ON if on else []) if gates is None else gates
    found = {it: operator(it, given) for it in COMPONENTS}
    found |= {name.replace("_", "-"): it for name, it in operators.items()}
    return Cluster(
        features, allowed, found, pools or (pool(),), listed or {}, Version.parse("1.20.15")
    )


# What has converged


@pytest.mark.parametrize(
    ("found", "lag"),
    [
        (operator(gates=ALL_ON), ""),
        (operator(), "its operator does not know the new gates yet, CSIMigration is not given"),
        (
            operator(gates=ALL_ON, revisions=((3, 0), (2, 0))),
            "m1 is at revision 2, and 3 is the latest",
        ),
        (
            operator(gates=ALL_ON, revisions=((3, 0), (2, 3))),
            "m1 is at revision 2, and 3 is the latest",
        ),
        (
            operator(gates=ALL_ON, revisions=((3, 4), (3, 0))),
            "m0 is at revision 3, and 3 is the latest",
        ),
        (
            operator(gates=ALL_ON, Progressing="True"),
            f"ClusterOperator {KCM} has Progressing=True",
        ),
        (operator(gates=ALL_ON, Available="False"), f"ClusterOperator {KCM} has Available=False"),
        (operator(gates=ALL_ON, Degraded="True"), f"ClusterOperator {KCM} has Degraded=True"),
        (operator(gates=ALL_ON, revisions=()), "its operator tells of no node"),
    ],
)
def test_a_component_has_converged_only_with_the_new_gates_at_the_last_revision(
    found: Operator, lag: str
) -> None:
    seen = cluster(Features(CONTROL_PLANE_SET), kube_controller_manager=found)
    assert list(control_plane_lags(seen)) == ([f"{KCM}: {lag}"] if lag else [])
    ready = [it.ready for it in component_replicas(KCM, seen)]
    assert all(ready) is (not lag or not found.nodes)
    # Nobody counts as ready while another part of the control plane is not.
    others = [it.ready for it in component_replicas("kube-scheduler", seen)]
    assert all(others) is not bool(lag)


def test_a_revision_from_before_the_change_does_not_count() -> None:
    """The operator has understood, and its next revision is not made yet: all looks at rest."""
    features = Features(CONTROL_PLANE_SET, revisions={KCM: 3})
    stale = cluster(features)
    assert list(control_plane_lags(stale)) == [
        f"{KCM}: its operator has not made a revision after 3 yet"
    ]
    made = operator(gates=ALL_ON, latest=4, revisions=((4, 0), (4, 0)))
    assert not list(control_plane_lags(cluster(features, kube_controller_manager=made)))


@pytest.mark.parametrize(
    ("found", "lag"),
    [
        (pool(), ""),
        (pool(observedGeneration=1), "its operator has not seen its last change yet"),
        (pool(updatedMachineCount=1), "1 of 3 machines are updated, 3 ready"),
        (pool(readyMachineCount=2), "3 of 3 machines are updated, 2 ready"),
        (pool(configuration={"name": "a"}), "3 of 3 machines are updated, 3 ready"),
        (pool(unavailableMachineCount=1), "1 of 3 machines are unavailable"),
        (
            pool(
                degradedMachineCount=1,
                conditions=[{"type": "NodeDegraded", "status": "True", "message": "n2: no disk"}],
            ),
            "it is degraded, 1 of 3 machines: n2: no disk",
        ),
        (
            pool(conditions=conditions(Updated="False", Updating="False")),
            "it has Updated=False",
        ),
        (pool(conditions=conditions(Updated="True", Updating="True")), "it has Updating=True"),
        (
            pool(paused=True),
            """it is paused: oc patch mcp/worker --type merge -p '{"spec":{"paused":false}}'""",
        ),
        (
            pool(paused=True, conditions=conditions(Updated="False", Updating="False")),
            """it is paused: oc patch mcp/worker --type merge -p '{"spec":{"paused":false}}'""",
        ),
        (pool(paused=True, ours=True), "it is paused by this run"),
    ],
)
def test_a_pool_has_converged_only_when_nothing_of_it_lags(found: Pool, lag: str) -> None:
    (replica,) = pool_replicas(cluster(pools=(found,)))
    assert (replica.name, replica.ready, replica.why) == (
        "MachineConfigPool worker", not lag, lag,
    )  # fmt: skip


RENDERING = "the machine-config operator has not rendered the last change for it yet"


def rendered(name: str) -> Pool:
    return replace(pool(), configuration=name)


@pytest.mark.parametrize(
    ("was", "found", "lag"),
    [
        ({"worker": "b"}, pool(), RENDERING),
        ({"worker": "a"}, pool(), ""),
        ({"infra": "b"}, pool(), ""),
        ({}, pool(), ""),
        ({"worker": "b"}, pool(paused=True, ours=True), "it is paused by this run"),
        ({"worker": "a"}, pool(updatedMachineCount=1), "1 of 3 machines are updated, 3 ready"),
    ],
)
def test_a_pool_at_rest_does_not_count_before_the_change_is_rendered(
    was: dict[str, str], found: Pool, lag: str
) -> None:
    (replica,) = pool_replicas(cluster(Features(NODE_SET, rendered=was), pools=(found,)))
    assert (replica.ready, replica.why) == (not lag, lag)


def noted(change: object) -> dict[str, str]:
    assert isinstance(change, SetFeatures)
    return dict(change.features.rendered)


def test_a_change_for_kubelets_notes_what_pools_have() -> None:
    first = noted(next_change(NODES, ON, cluster(AT[CONTROL_PLANE_SET]), ORDERED))
    assert first == {"worker": "b"}
    back = cluster(Features(NODE_SET, rendered=first), pools=(rendered("c"),))
    assert noted(next_change(NODES, OFF, back, ORDERED)) == {"worker": "c"}
    assert noted(next_change(CP, ON, cluster(allowed=PLAIN), FREE)) == {"worker": "b"}
    # To be taken along alone, it is a change to kubelets all the same.
    assert noted(next_change(NODES, KEPT, at_ga(AT[CONTROL_PLANE_SET]), ORDERED)) == {"worker": "b"}
    # What is not for them is rendered for nobody, and what they wait for is not forgotten.
    assert noted(next_change(CP, ON, cluster(), ORDERED)) == {}
    waiting = cluster(Features(CONTROL_PLANE_SET, rendered={"worker": "b"}))
    assert noted(next_change(CP, OFF, waiting, ORDERED)) == {"worker": "b"}


@pytest.mark.parametrize("rules", [ORDERED, FREE])
def test_the_next_change_for_kubelets_waits_until_the_last_is_rendered(rules: Rules) -> None:
    stale = cluster(Features(NODE_SET, rendered={"worker": "b"}))
    with pytest.raises(Retryable, match=f"^MachineConfigPool worker: {RENDERING}$"):
        next_change(NODES, OFF, stale, rules)


def test_what_is_noted_is_read_again() -> None:
    marks = Features(NODE_SET, revisions={KCM: 3}, rendered={"worker": "b", "infra": "c"})
    metadata = {"annotations": marks.marks}
    assert set(metadata["annotations"]) == {REVISIONS, RENDERED}
    assert Features.of({"metadata": metadata, "spec": {"featureSet": NODE_SET}}) == marks
    assert set(Features().marks.values()) == {None}
    # Not if somebody has taken the change back since: pools have again what they had before it.
    assert Features.of({"metadata": metadata, "spec": {}}).rendered == {}
    custom = Features(CUSTOM, ("Mine", GATE), revisions={KCM: 3}, rendered={"worker": "b"})
    spec = {"featureSet": CUSTOM, "customNoUpgrade": {"enabled": ["Mine", GATE, "More"]}}
    again = Features.of({"metadata": {"annotations": custom.marks}, "spec": spec})
    assert again.rendered == {"worker": "b"}
    spec = {"featureSet": CUSTOM, "customNoUpgrade": {"disabled": [GATE]}}
    assert not Features.of({"metadata": {"annotations": custom.marks}, "spec": spec}).rendered


# What is changed next


def told(change: object) -> object:
    match change:
        case SetFeatures():
            return change.features.feature_set
        case Pause():
            return change.pools, change.paused
        case Forget():
            return "forget", change.pools
    return change


CP, NODES = False, True
AT = {it: Features(it) for it in ("", CONTROL_PLANE_SET, NODE_SET)}
LISTED = {"n1": frozenset[str](), "n2": frozenset({AWS})}
CUSTOM_ON = Features(CUSTOM, (GATE,))
HELD, LET_GO = (pool(paused=True, ours=True),), (pool(ours=True),)


@pytest.mark.parametrize(
    ("nodes", "wanted", "seen", "rules", "expected"),
    [
        (CP, ON, cluster(), ORDERED, CONTROL_PLANE_SET),
        (CP, ON, cluster(AT[CONTROL_PLANE_SET]), ORDERED, None),
        (CP, ON, cluster(AT[NODE_SET]), ORDERED, None),
        (NODES, ON, cluster(AT[CONTROL_PLANE_SET]), ORDERED, NODE_SET),
        (NODES, ON, cluster(AT[NODE_SET]), ORDERED, None),
        (NODES, OFF, cluster(AT[NODE_SET]), ORDERED, CONTROL_PLANE_SET),
        (NODES, BACK, cluster(AT[NODE_SET]), ORDERED, CONTROL_PLANE_SET),
        (NODES, OFF, cluster(AT[CONTROL_PLANE_SET]), ORDERED, None),
        (NODES, OFF, cluster(), ORDERED, None),
        (CP, OFF, cluster(AT[CONTROL_PLANE_SET]), ORDERED, ""),
        (CP, OFF, cluster(), ORDERED, None),
        (CP, ON, cluster(), FREE, NODE_SET),
        (NODES, ON, cluster(), FREE, NODE_SET),
        (CP, OFF, cluster(AT[NODE_SET], listed=LISTED), FREE, ""),
        (NODES, OFF, cluster(AT[NODE_SET], listed=LISTED), FREE, ""),
        (CP, ON, cluster(allowed=PLAIN), ORDERED, (("worker",), True)),
        (CP, ON, cluster(allowed=None), ORDERED, (("worker",), True)),
        (CP, ON, cluster(allowed=PLAIN, pools=HELD), ORDERED, CUSTOM),
        (CP, ON, cluster(CUSTOM_ON, allowed=PLAIN, pools=HELD), ORDERED, None),
        (
            NODES, ON, cluster(CUSTOM_ON, [f"{GATE}=true"], PLAIN, HELD), ORDERED,
            (("worker",), False),
        ),
        (NODES, ON, cluster(CUSTOM_ON, [f"{GATE}=true"], PLAIN), ORDERED, None),
        (NODES, ON, cluster(CUSTOM_ON, [], SETS), ORDERED, None),
        (CP, ON, cluster(allowed=PLAIN), FREE, CUSTOM),
        (CP, OFF, cluster(CUSTOM_ON, allowed=PLAIN, listed=LISTED), FREE, CUSTOM),
        (CP, OFF, cluster(CUSTOM_ON, allowed=PLAIN, pools=HELD), ORDERED, CUSTOM),
        (CP, BACK, cluster(allowed=PLAIN, pools=HELD), ORDERED, (("worker",), False)),
        (CP, Wanted({}), cluster(), ORDERED, None),
        # A pool that somebody has let go on is no longer ours, should they pause it again.
        (CP, ON, cluster(allowed=PLAIN, pools=LET_GO), ORDERED, ("forget", ("worker",))),
        (NODES, ON, cluster(CUSTOM_ON, [], PLAIN, LET_GO), ORDERED, ("forget", ("worker",))),
    ],
)  # fmt: skip
def test_what_is_changed_next(
    nodes: bool, wanted: Wanted, seen: Cluster, rules: Rules, expected: object
) -> None:
    assert told(next_change(nodes, wanted, seen, rules)) == expected


BEHIND = operator(gates=ALL_ON, revisions=((3, 0), (2, 0)))


@pytest.mark.parametrize(
    ("nodes", "wanted", "seen", "why"),
    [
        (NODES, ON, cluster(), f"the control plane first: {CONTROL_PLANE_SET} is not set"),
        (
            NODES, ON, cluster(AT[CONTROL_PLANE_SET], kube_controller_manager=BEHIND),
            f"the control plane has not converged yet: {KCM}: m1 is at revision 2",
        ),
        (
            NODES, ON, cluster(CUSTOM_ON, allowed=PLAIN, pools=HELD),
            "the control plane has not converged yet: kube-apiserver: its operator does not know",
        ),
        (CP, OFF, cluster(AT[NODE_SET]), f"the nodes first: {NODE_SET} is still set"),
        (
            CP, OFF, cluster(AT[CONTROL_PLANE_SET], listed=LISTED),
            f"the nodes first: the CSINode of n2 still lists {AWS}",
        ),
    ],
)  # fmt: skip
def test_what_must_come_first_is_waited_for(
    nodes: bool, wanted: Wanted, seen: Cluster, why: str
) -> None:
    with pytest.raises(Retryable, match=r"first|converged") as raised:
        next_change(nodes, wanted, seen, ORDERED)
    assert str(raised.value).startswith(why)


NO_CONSENT = replace(ORDERED, no_upgrade=False)
KEPT, DROPPED = replace(ON, by_name=True), replace(BACK, by_name=True)


def at_ga(features: Features = AT[""], gates: list[str] | None = None) -> Cluster:
    seen = cluster(features, gates, listed={"n1": frozenset({AWS})})
    return replace(seen, version=Version.parse("1.23.17"))


def test_what_is_on_by_default_is_given_by_name_to_be_taken_along() -> None:
    (replica, *_) = component_replicas(KCM, at_ga())
    assert not differences(replica, ON)
    assert differences(replica, KEPT) == [f"{GATE} is not given"]
    change = next_change(CP, KEPT, at_ga(), ORDERED)
    assert isinstance(change, SetFeatures)
    # It is a change to operators, though to nobody else: they make a revision of it.
    assert (change.features.feature_set, change.features.revisions) == (
        CONTROL_PLANE_SET, dict.fromkeys(COMPONENTS, 3),
    )  # fmt: skip
    assert told(next_change(NODES, KEPT, at_ga(AT[CONTROL_PLANE_SET]), ORDERED)) == NODE_SET
    # Back: nobody waits for CSINodes that list it by default.
    assert told(next_change(NODES, DROPPED, at_ga(AT[NODE_SET]), ORDERED)) == CONTROL_PLANE_SET
    assert told(next_change(CP, DROPPED, at_ga(AT[CONTROL_PLANE_SET]), ORDERED)) == ""
    (replica, *_) = component_replicas(KCM, at_ga())
    assert not differences(replica, DROPPED)


GA = Version.parse("1.27.3")


@pytest.mark.parametrize("nodes", [CP, NODES])
def test_what_is_on_for_good_is_left_alone(nodes: bool) -> None:
    for allowed in (SETS, PLAIN, None):
        seen = replace(cluster(allowed=allowed), version=GA)
        # Without consent to CustomNoUpgrade, for there is nothing to consent to.
        assert next_change(nodes, ON, seen, NO_CONSENT) is None
        assert next_change(nodes, BACK, seen, NO_CONSENT) is None
        assert what_means_nothing(ON, seen) == (
            "CSIMigrationAWS is on for good at Kubernetes 1.27: the feature sets "
            "CSIMigrationControlPlane and CSIMigrationNode are no longer operational, and nothing "
            "is done."
        )
        with pytest.raises(Refused, match="cannot be turned off at Kubernetes"):
            next_change(nodes, OFF, seen, ORDERED)
    assert what_means_nothing(ON, cluster()) == ""


def test_a_set_that_is_inert_has_converged_and_is_taken_along() -> None:
    seen = replace(cluster(AT[NODE_SET], gates=[]), version=GA)
    assert list(control_plane_lags(seen)) == []
    (replica, *_) = component_replicas(KCM, seen)
    assert not differences(replica, KEPT)
    bare = replace(cluster(gates=[]), version=GA)
    assert told(next_change(CP, KEPT, bare, ORDERED)) == CONTROL_PLANE_SET


def test_without_the_sets_nothing_can_be_taken_along() -> None:
    with pytest.raises(Refused, match="Go back before the downgrade instead"):
        next_change(CP, KEPT, cluster(allowed=PLAIN), ORDERED)


@pytest.mark.parametrize("allowed", [PLAIN, SETS])
def test_who_has_custom_gates_takes_nothing_along_whatever_the_definition_knows(
    allowed: tuple[str, ...],
) -> None:
    with pytest.raises(Refused, match="feature set CustomNoUpgrade, which can never be left again"):
        next_change(CP, KEPT, cluster(CUSTOM_ON, allowed=allowed), ORDERED)


OFF_BY_RELEASE = [f"{GATE}=false"]


@pytest.mark.parametrize("nodes", [CP, NODES])
@pytest.mark.parametrize("rules", [ORDERED, FREE])
def test_what_is_on_by_default_cannot_be_turned_off_by_taking_nothing_away(
    nodes: bool, rules: Rules
) -> None:
    with pytest.raises(Refused, match=f"{GATE} cannot be turned off: it is on by default"):
        next_change(nodes, OFF, at_ga(), rules)
    with pytest.raises(Refused, match=f"{GATE} cannot be turned off: it is on by default"):
        refuse_beginning(at_ga(), rules, Intent(off=(GATE,)))
    # Where a release gives it as off, or an operator has not heard yet that the set is gone.
    for gates in (OFF_BY_RELEASE, ALL_ON):
        assert next_change(nodes, OFF, at_ga(gates=gates), rules) is None
        refuse_beginning(at_ga(gates=gates), rules, Intent(off=(GATE,)))
    # What the release gives is hidden behind a set; and back to the default is no way to off.
    refuse_beginning(at_ga(AT[NODE_SET]), rules, Intent(off=(GATE,)))
    assert next_change(nodes, BACK, at_ga(), rules) is None


def test_back_to_what_is_on_by_default_nobody_waits_for_it_to_go() -> None:
    assert told(next_change(CP, BACK, at_ga(AT[CONTROL_PLANE_SET]), ORDERED)) == ""
    with pytest.raises(Retryable, match=f"the CSINode of n1 still lists {AWS}"):
        next_change(CP, OFF, at_ga(AT[CONTROL_PLANE_SET]), ORDERED)
    for features in (AT[CONTROL_PLANE_SET], AT[""]):
        (replica,) = pool_replicas(at_ga(features))
        assert not differences(replica, BACK)
        assert not differences(replica, OFF)  # as far as it is told: CSINodes tell the rest
        assert differences(replica, ON) == [f"{GATE} is not given"]


def test_what_the_sets_do_besides_speaks_only_against_the_sets() -> None:
    intent = Intent(besides="They turn on more.")
    with pytest.raises(Refused, match=r"^They turn on more\.$"):
        refuse_beginning(cluster(), ORDERED, intent)
    refuse_beginning(cluster(allowed=PLAIN), ORDERED, intent)
    refuse_beginning(cluster(CUSTOM_ON), ORDERED, intent)


@pytest.mark.parametrize(
    ("wanted", "seen", "rules", "why"),
    [
        (ON, cluster(allowed=PLAIN), NO_CONSENT, "Agree with --accept-no-upgrade"),
        (
            ON, cluster(allowed=("", "OKD")), ORDERED,
            'FeatureGate of this cluster allows; these are: "", OKD.',
        ),
        (
            ON, cluster(Features("TechPreviewNoUpgrade")), ORDERED,
            "feature set TechPreviewNoUpgrade, which can never be left again",
        ),
        (ON, cluster(Features("OKD")), ORDERED, "feature set OKD, which is not ours to replace"),
        (
            OFF, cluster(CUSTOM_ON, allowed=PLAIN, listed=LISTED, pools=HELD), ORDERED,
            "one list of gates, and the node n2 redirects",
        ),
        (OFF, cluster(CUSTOM_ON, allowed=PLAIN), ORDERED, "the pool worker is not paused"),
        (Wanted({"InTreePluginAWSUnregister": True}), cluster(), ORDERED, "cannot be switched"),
        (Wanted({}, remove_flags={"cloud-provider": "aws"}), cluster(), ORDERED, "not flags"),
        (Wanted({GATE: True, "CSIMigrationGCE": False}), cluster(), ORDERED, "all on or all off"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_before_it_is_tried(
    wanted: Wanted, seen: Cluster, rules: Rules, why: str
) -> None:
    with pytest.raises(Refused) as raised:
        next_change(CP, wanted, seen, rules)
    assert why in str(raised.value)


@pytest.mark.parametrize("now", [CUSTOM, "TechPreviewNoUpgrade", "DevPreviewNoUpgrade"])
@pytest.mark.parametrize("wanted", ["", CONTROL_PLANE_SET])
def test_nobody_leaves_what_is_for_ever(now: str, wanted: str) -> None:
    seen = cluster(Features(now), allowed=(*SETS, "DevPreviewNoUpgrade"))
    with pytest.raises(Refused, match=f"{now}, which can never be left again"):
        refuse_change(seen, wanted)
    refuse_change(seen, now)


def test_both_sets_turn_on_the_same_gates_and_one_of_them_is_not_for_nodes() -> None:
    gates = {
        "CSIMigration": True, "CSIMigrationAWS": True, "CSIMigrationGCE": True,
        "CSIMigrationAzureDisk": True, "CSIMigrationAzureFile": True, "CSIMigrationvSphere": True,
        "CSIMigrationOpenStack": True,
    }  # fmt: skip
    control_plane, nodes = Features("CSIMigrationControlPlane"), Features("CSIMigrationNode")
    assert control_plane.for_control_plane == nodes.for_control_plane == nodes.for_nodes == gates
    assert control_plane.for_nodes == Features().for_nodes == {}
    assert Features().for_control_plane == {}


def test_undo_with_custom_gates_moves_them_and_says_that_the_set_stays() -> None:
    features = Features(CUSTOM, ("Mine", GATE), ("Other",))
    change = next_change(CP, BACK, cluster(features, allowed=PLAIN, pools=HELD), ORDERED)
    assert isinstance(change, SetFeatures)
    assert (change.features.enabled, change.features.disabled) == (("Mine",), ("Other", GATE))
    assert "stays CustomNoUpgrade" in change.warning


def test_a_change_notes_the_revisions_of_those_who_have_to_act_on_it() -> None:
    knows = operator("kube-scheduler", ALL_ON)
    change = next_change(CP, ON, cluster(kube_scheduler=knows), ORDERED)
    assert isinstance(change, SetFeatures)
    assert change.features.revisions == {"kube-apiserver": 3, KCM: 3}
    back = next_change(CP, OFF, cluster(AT[CONTROL_PLANE_SET]), ORDERED)
    assert isinstance(back, SetFeatures)
    assert back.features.revisions == dict.fromkeys(COMPONENTS, 3)


def test_a_feature_gate_is_read_as_it_is() -> None:
    marks = {REVISIONS: "kube-scheduler=7,nonsense,kube-apiserver=x"}
    spec = {"featureSet": CUSTOM, "customNoUpgrade": {"enabled": ["A", GATE]}}
    found = Features.of({"metadata": {"annotations": marks}, "spec": spec})
    assert found == Features(CUSTOM, ("A", GATE), (), {"kube-scheduler": 7})
    assert found.for_nodes == found.for_control_plane == {GATE: True}


def test_a_definition_says_which_sets_there_are() -> None:
    def definition(feature_set: Object) -> Object:
        spec = {"properties": {"featureSet": feature_set}}
        schema = {"openAPIV3Schema": {"properties": {"spec": spec}}}
        return {"spec": {"versions": [{"name": "v1", "schema": schema}]}}

    assert allowed_sets(definition({"enum": ["", CUSTOM]})) == ("", CUSTOM)
    assert allowed_sets(definition({"type": "string"})) is None


def test_the_shipped_role_may_do_what_the_actuator_does_and_nothing_else() -> None:
    file = Path(__file__).parents[2] / "deploy" / "rbac" / "openshift.yaml"
    (role, _binding) = yaml.safe_load_all(file.read_text())
    granted = {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    read = [FEATURE_GATES, DEFINITIONS, CLUSTER_OPERATORS, *OPERATORS.values()]
    used = {(it.group, it.plural, "get") for it in read}
    used |= {(it.group, it.plural, "patch") for it in (FEATURE_GATES, POOLS)}
    assert granted == used | {(POOLS.group, POOLS.plural, "list")}
