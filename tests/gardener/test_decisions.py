"""Every scenario of the generic CSI migration controller, with exactly what comes of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replant.gardener.decisions import (
    DEPLOYMENTS,
    Action,
    Annotate,
    ClassSeen,
    Complain,
    DeleteClass,
    Leave,
    Look,
    Nudge,
    Seen,
    Wait,
    decide,
)
from replant.gardener.shoots import FINISHED, NEEDS_COMPLETE, OVERRIDE
from tests.gardener.objects import LISTED, cluster, shoot

FOO = ClassSeen("foo", "bar", "u", "3")


def happens(seen: Seen, **world: Any) -> list[Action]:
    """All that is done from there, in a world that does as it is told."""
    done: list[Action] = []
    for _each in range(20):
        action = decide(seen, LISTED)
        match action:
            case Look.CONTROL_PLANE:
                seen = replace(seen, has_control_plane=world.get("control_plane", True))
                continue
            case Look.NODES:
                seen = replace(seen, kubelets=world.get("kubelets", {"n": "v1.18.0"}))
                continue
            case Look.CLASSES:
                seen = replace(seen, classes=world.get("classes", []))
                continue
        done.append(action)
        match action:
            case Annotate(names):
                assert seen.cluster
                metadata = dict(seen.cluster["metadata"])
                metadata["annotations"] = metadata["annotations"] | dict.fromkeys(names, "true")
                seen = replace(seen, cluster={**seen.cluster, "metadata": metadata})
            case DeleteClass(found):
                world["classes"] = [it for it in world["classes"] if it != found]
                seen = replace(seen, classes=None)
            case Nudge(deployment):
                seen = replace(seen, nudged=seen.nudged | {deployment})
            case _:
                return done
    raise AssertionError(done)


NUDGES: list[Action] = [Nudge(it) for it in DEPLOYMENTS]
END: list[Action] = [
    *NUDGES,
    Annotate((FINISHED,), "7", "the control plane was told"),
    Leave("the migration is finished"),
]
NEEDS = Annotate((NEEDS_COMPLETE,), "7", "only new nodes, and no legacy class, are left")


def test_needs_complete_is_set() -> None:
    assert happens(Seen(cluster(None, NEEDS_COMPLETE))) == END
    assert DEPLOYMENTS == ("kube-apiserver", "kube-controller-manager", "kube-scheduler")


@pytest.mark.parametrize("version", ["1.18.2", "1.19.0", "1.25.3"])
def test_a_new_shoot_is_annotated_at_once(version: str) -> None:
    assert happens(Seen(cluster(shoot(version))), control_plane=False) == [
        Annotate((NEEDS_COMPLETE, FINISHED), "7", "the shoot is new"),
        Leave("the migration is finished"),
    ]


def test_a_class_that_is_listed_goes() -> None:
    assert happens(Seen(cluster()), classes=[FOO]) == [DeleteClass(FOO), NEEDS, *END]


def test_a_class_of_another_provisioner_stays_and_so_does_one_of_another_name() -> None:
    others = [ClassSeen("foo", "else", "u", "3"), ClassSeen("baz", "bar", "v", "4")]
    assert happens(Seen(cluster()), classes=others) == [NEEDS, *END]


def test_a_class_that_goes_already_is_waited_for_and_not_deleted_again() -> None:
    leaving = replace(FOO, leaving=True)
    why = "a finalizer holds the deleted StorageClass foo"
    assert happens(Seen(cluster()), classes=[leaving]) == [Wait(60, why)]
    other = ClassSeen("baz", "else", "v", "4", leaving=True)
    assert happens(Seen(cluster()), classes=[other]) == [NEEDS, *END]


def moved(kind: str | None, state: str = "Succeeded") -> dict[str, Any]:
    return {**shoot(), "status": {"lastOperation": {"type": kind, "state": state}}}


@pytest.mark.parametrize("kind", ["Migrate", "Restore"])
@pytest.mark.parametrize("state", ["Processing", "Succeeded"])
def test_a_shoot_that_comes_from_another_seed_is_not_new(kind: str, state: str) -> None:
    """Its control plane is not there yet, and its nodes may be old."""
    seen = Seen(cluster(moved(kind, state)))
    assert happens(seen, control_plane=False) == [Wait(60, "the shoot is moved to another seed")]
    assert happens(seen, control_plane=True) == [NEEDS, *END]


@pytest.mark.parametrize("kind", ["Create", None])
def test_a_shoot_that_is_created_is_new(kind: str | None) -> None:
    first = happens(Seen(cluster(moved(kind, "Processing"))), control_plane=False)[0]
    assert first == Annotate((NEEDS_COMPLETE, FINISHED), "7", "the shoot is new")


@pytest.mark.parametrize("marks", [(), (NEEDS_COMPLETE,)])
@pytest.mark.parametrize("exists", [True, False])
def test_a_shoot_that_is_being_deleted_is_left_alone(marks: tuple[str, ...], exists: bool) -> None:
    going = shoot()
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    done = happens(Seen(cluster(going, *marks)), control_plane=exists)
    assert done == [Leave("the shoot is being deleted")]


@pytest.mark.parametrize(
    ("kubelets", "why"),
    [
        ({"n": "v1.17.0"}, "1 kubelet (n) below 1.18"),
        ({"n": "v1.18.0", "new": ""}, "1 kubelet (new) without a version yet"),
        ({"a": "v1.17.17-gke.1", "b": "v1.18.0"}, "1 kubelet (a) below 1.18"),
        (
            dict.fromkeys("edcba", "1.16.0"),
            "5 kubelets (a, b, c and 2 more) below 1.18",
        ),
    ],
)
def test_old_nodes_are_waited_for(kubelets: dict[str, str], why: str) -> None:
    assert happens(Seen(cluster()), kubelets=kubelets, classes=[FOO]) == [Wait(60, why)]


def test_a_shoot_without_nodes_has_no_old_ones() -> None:
    assert happens(Seen(cluster()), kubelets={}) == [NEEDS, *END]


@pytest.mark.parametrize(
    ("embedded", "why"),
    [
        (shoot("1.17.1"), "1.17.1 is before 1.18"),
        (shoot("v1.17.1+x"), "1.17.1 is before 1.18"),
        (shoot("1.19.0"), "1.19.0 is not of the minor 1.18, with which it migrates"),
        (shoot("1.18.2", override="1.19"), "1.18.2 is before 1.19"),
        (shoot(provider={"type": "gcp"}), "its provider is not aws"),
        (
            {**shoot(), "status": {"lastOperation": {"state": "Failed"}}},
            "the shoot's last operation has failed; it is looked at when that changes",
        ),
    ],
)
def test_others_are_left_alone(embedded: dict[str, Any], why: str) -> None:
    assert happens(Seen(cluster(embedded))) == [Leave(why)]


def test_a_failed_shoot_is_left_alone_even_half_way() -> None:
    failed = {**shoot(), "status": {"lastOperation": {"state": "Failed"}}}
    [left] = happens(Seen(cluster(failed, NEEDS_COMPLETE)))
    assert isinstance(left, Leave)


def test_what_is_gone_going_or_finished_is_left_alone() -> None:
    assert happens(Seen(None)) == [Leave("the Cluster is gone")]
    going = cluster(deletionTimestamp="2026-01-01T00:00:00Z")
    assert happens(Seen(going)) == [Leave("the Cluster is being deleted")]
    assert happens(Seen(cluster(None, NEEDS_COMPLETE, FINISHED))) == END[-1:]


@pytest.mark.parametrize("value", ["true", "false", ""])
def test_that_an_annotation_is_there_is_what_counts(value: str) -> None:
    def marked(name: str) -> dict[str, Any]:
        found = cluster()
        found["metadata"]["annotations"] = {name: value}
        return found

    assert happens(Seen(marked(FINISHED))) == END[-1:]
    assert happens(Seen(marked(NEEDS_COMPLETE))) == END


def test_annotations_are_called_as_gardener_calls_them() -> None:
    assert NEEDS_COMPLETE == (
        "csi-migration.extensions.gardener.cloud/needs-complete-feature-gates"
    )
    assert FINISHED == "csi-migration.extensions.gardener.cloud/controller-finished"
    assert OVERRIDE == "alpha.csimigration.shoot.extensions.gardener.cloud/kubernetes-version"


def test_a_hibernated_shoot_is_waited_for_without_being_asked() -> None:
    asleep = Seen(cluster(shoot(hibernation={"enabled": True})), has_control_plane=True)
    assert decide(asleep, LISTED) == Wait(
        300, "the shoot is hibernated; it goes on when it is woken"
    )


def test_a_version_of_its_own_is_what_counts() -> None:
    earlier = cluster(shoot("1.17.4", override="v1.17.0"))
    assert happens(Seen(earlier), kubelets={"n": "1.17.4"}) == [NEEDS, *END]
    assert happens(Seen(earlier), kubelets={"n": "1.16.9"}) == [
        Wait(60, "1 kubelet (n) below 1.17")
    ]


@pytest.mark.parametrize(
    ("bad", "reason", "said"),
    [
        (cluster({}), "NoShoot", "embeds no Shoot"),
        ({**cluster(), "spec": {"shoot": None}}, "NoShoot", "embeds no Shoot"),
        (cluster(shoot("one")), "BadVersion", "spec.kubernetes.version is 'one', not a version"),
        (cluster(shoot(None)), "BadVersion", "spec.kubernetes.version is missing"),
        (cluster(shoot(override="new")), "BadVersion", "/kubernetes-version] is 'new'"),
        (cluster(resourceVersion=None), "NoVersion", "no resourceVersion"),
    ],
)
def test_bad_input_is_complained_of(bad: dict[str, Any], reason: str, said: str) -> None:
    [complaint] = happens(Seen(bad))
    assert isinstance(complaint, Complain)
    assert complaint.reason == reason
    assert said in complaint.message


def test_a_kubelet_of_no_version_is_complained_of() -> None:
    assert happens(Seen(cluster()), kubelets={"n": "?"}) == [
        Complain("BadKubeletVersion", "Node n: its kubelet's version is '?', which is none")
    ]


@given(
    st.sampled_from(["1.17.9", "1.18.0", "1.18.20", "1.19.1", "odd"]),
    st.sets(st.sampled_from([NEEDS_COMPLETE, FINISHED])),
    st.booleans(),
    st.dictionaries(st.sampled_from("abc"), st.sampled_from(["1.17.9", "1.18.0", "odd"])),
    st.booleans(),
)
def test_the_gates_are_never_complete_while_a_node_is_old(
    version: str, marks: set[str], hibernated: bool, kubelets: dict[str, str], exists: bool
) -> None:
    embedded = shoot(version, hibernation={"enabled": hibernated})
    start = Seen(cluster(embedded, *marks))
    done = happens(start, kubelets=kubelets, control_plane=exists, classes=[FOO])
    deleted = DeleteClass(FOO) in done
    old = any(it != "1.18.0" for it in kubelets.values())
    if (old or hibernated) and exists and NEEDS_COMPLETE not in marks:
        assert not deleted
        assert NEEDS not in done
    writes = [it for it in done if isinstance(it, Annotate | DeleteClass | Nudge)]
    assert not (FINISHED in marks and writes)
    assert deleted <= (NEEDS in done)
