"""What orders may say, and how a story is told. Their verdicts are in the catalogue."""

from __future__ import annotations

import pytest

from replant.proof import BadState, Course, verify
from replant.proof.badness import Cause
from replant.proof.orders import OrderError, read_order
from replant.proof.search import search
from replant.routing import AttachController
from tests.proof.catalogue import AWS, WITH
from tests.proof.making import (
    GATE,
    OFF,
    ON,
    STANDALONE,
    UNREGISTER,
    Given,
    closed,
    cp,
    drained,
    in_place,
    order,
)
from tests.proof.rows import ALL_OFF, ALL_ON, FILE_OFF, FILES, NO_DRIVER, OPENSHIFT


@pytest.mark.parametrize("plugin", ["aws-ebs", "gce-pd"])
def test_a_downgrade_takes_the_nodes_first(plugin: str) -> None:
    given = order(drained("1.22"), cp("1.22"), plugin=plugin, version="1.23")
    assert verify(read_order(given)).safe


def test_what_was_broken_in_two_ways_before_may_be_mended_one_by_one() -> None:
    # Without a driver neither claims nor pods are served.
    given = order(drained(OFF), cp(OFF), cp=ON, nodes=ON, **NO_DRIVER)
    assert verify(read_order(given)).safe


def test_one_groups_trouble_does_not_excuse_anothers() -> None:
    broken = AWS.group("broken", ON, driver=False, size=1)
    sound = AWS.group("sound", OFF, driver=False, size=1)
    course = AWS.course(OFF, (broken, sound), AWS.nodes(ON, "sound", drain=False))
    assert verify(course).bad_state is BadState.UNSERVABLE


def test_a_node_that_served_nothing_may_be_drained_to_be_mended() -> None:
    broken = AWS.group("broken", ON, driver=False)
    assert verify(AWS.course(ON, (broken,), AWS.nodes(OFF, "broken"))).safe


def test_a_driver_on_the_nodes_does_not_attach_by_itself() -> None:
    node_driven = AttachController.NODE_DRIVEN
    course = AWS.course(
        OFF, (WITH,), AWS.nodes(ON, "with"), attach_controller=node_driven, driver=False
    )
    assert verify(course).bad_state is BadState.UNSERVABLE


def test_single_nodes_are_looked_at_together() -> None:
    groups = AWS.group("a", OFF, size=1), AWS.group("b", OFF, size=1)
    course = AWS.course(ON, groups, AWS.nodes(ON, "a"))
    assert verify(course) == search(course, (0, 1))


AFTER_SIX_MINUTES, AT_ONCE = Cause.DETACHED_AT_LAST, Cause.DETACHED_UNDER_POD
STARTS: list[tuple[str, bool, Cause | None]] = [
    # Up to these patches a controller forgets the pods of a node whose driver is missing.
    ("1.23.10", False, AFTER_SIX_MINUTES),
    ("1.24.3", False, AFTER_SIX_MINUTES),
    ("1.24.11", False, AFTER_SIX_MINUTES),
    ("1.24.12", False, None),
    ("1.24", False, None),
    ("1.24.3", True, None),
    # These take what the driver has attached for attached in-tree.
    ("1.20.2", True, None),
    ("1.20.7", True, AT_ONCE),
    ("1.20.8", True, None),
    ("1.21.1", True, AT_ONCE),
    ("1.18", True, AT_ONCE),
]


@pytest.mark.parametrize(("version", "stays", "cause"), STARTS)
def test_a_right_order_at_versions_whose_controllers_start_wrongly(
    version: str, stays: bool, cause: Cause | None
) -> None:
    given = order(cp(ON), drained(ON), version=version, driversStay=stays, **ALL_OFF)
    verdict = verify(read_order(given))
    assert (verdict.cause, verdict.safe) == (cause, cause is None)


def test_so_it_is_for_other_plugins() -> None:
    vsphere = {"CSIMigrationvSphere": False}
    given = order(
        cp({"CSIMigrationvSphere": True}), drained({"CSIMigrationvSphere": True}),
        plugin="vsphere-volume", version="1.25.3", cp=vsphere, nodes=vsphere, driversStay=False,
    )  # fmt: skip
    assert verify(read_order(given)).cause is AFTER_SIX_MINUTES


def test_by_default_nobody_vouches_that_drivers_stay() -> None:
    given = order(version="1.24.3")
    del given["driversStay"]
    assert not read_order(given).drivers_stay


def test_a_minor_alone_means_its_newest_patch() -> None:
    minor, patch = (read_order(order(version=it)).controller.version for it in ("1.24", "v1.24.11"))
    assert patch == (1, 24, 11)
    assert minor.of_minor == "1.24"
    assert minor >= (1, 24, 17)


@pytest.mark.parametrize(
    ("given", "place"),
    [
        (order(drained("1.25")), "steps[0].nodes"),
        (order(cp("1.23")), "steps[0].controlPlane"),
        (order(cp("1.25"), drained("1.26")), "steps[1].nodes"),
        (order(nodes={"kubernetesVersion": "1.25"}), "from"),
        (order(drained("1.25"), **OPENSHIFT), "steps[0].nodes"),
    ],
)
def test_a_kubelet_newer_than_the_api_server_is_refused(given: Given, place: str) -> None:
    with pytest.raises(OrderError, match="newer than the API server") as refused:
        read_order(given)
    assert str(refused.value).startswith(f"{place}: ")


@pytest.mark.parametrize(
    ("given", "place"),
    [
        (order(cp("1.27"), version="1.26", nodes={"kubernetesVersion": "1.24"}), "steps[0]"),
        (order(cp("1.36")), "steps[0]"),
        (order(version="1.32", nodes={"kubernetesVersion": "1.28"}), "from"),
        (order(cp("1.26"), drained("1.23"), **OPENSHIFT), "steps[1].nodes"),
    ],
)
def test_a_kubelet_that_is_too_old_for_the_api_server_is_refused(given: Given, place: str) -> None:
    with pytest.raises(OrderError, match="minors older than the API server") as refused:
        read_order(given)
    assert str(refused.value).startswith(place)


def test_how_old_a_kubelet_may_be() -> None:
    for version, kubelet in (("1.27", "1.25"), ("1.28", "1.25"), ("1.36", "1.33")):
        given = order(version=version, nodes={"kubernetesVersion": kubelet})
        assert verify(read_order(given)).safe


@pytest.mark.parametrize(
    "given",
    [
        order(cp("1.23"), drained(OFF), drained("1.23"), **OPENSHIFT),
        order(drained("1.23"), cp={"kubernetesVersion": "1.23"}, **OPENSHIFT),
    ],
    ids=["gates of nodes that are still newer", "a downgrade that is half done"],
)
def test_openshift_may_have_newer_kubelets_on_its_way_down(given: Given) -> None:
    assert verify(read_order(given)).safe


def test_kubelets_of_a_patch_later_are_not_newer() -> None:
    assert verify(read_order(order(in_place("1.24.17"), version="1.24.3"))).safe


MOUNTS = "The kubelet of node A finds the disk under its in-tree name and mounts it; the pod runs."
RESTARTS = (
    "A kube-controller-manager with the gates it was given starts and leads, and works out anew, "
    "from pods and nodes, what belongs where."
)
DETACHES = (
    "The controller finds the in-tree name not in use on node A, and has the in-tree plugin "
    "detach the disk."
)
UNDER_ANOTHER_NAME = (
    "Unservable: the kubelet of node A waits for the disk under its CSI name, the controller "
    "attaches it under its in-tree name: the pod never runs."
)
UNDER_THE_POD = (
    "Yanked: the in-tree plugin detaches the disk from node A while a pod there runs on it."
)
TAKEN_FOR_ATTACHED = (
    "The controller has the in-tree plugin attach the disk to node B. The cloud answers that node "
    "A has it; so the controller takes it for attached there under its in-tree name."
)
STORIES = {
    "kubelets first": (
        closed(order(drained(ON, restricts=False), cp(ON), **ALL_OFF)),
        [
            "Replant cordons node A and begins to drain it.",
            f"With node A empty, its kubelet is restarted with {GATE}=true.",
            "Replant uncordons node A.",
            "A pod that needs the disk comes to node A.",
            UNDER_ANOTHER_NAME,
        ],
    ),
    "pods go anywhere": (
        closed(order(drained(OFF, restricts=False), cp(OFF), **ALL_ON)),
        [
            "A pod that needs the disk comes to node A.",
            "The controller has the driver attach the disk to node A.",
            "The kubelet of node A finds the disk under its CSI name and mounts it; the pod runs.",
            "Replant cordons node B and begins to drain it.",
            f"With node B empty, its kubelet is restarted with {GATE}=false.",
            "Replant uncordons node B.",
            "A pod that needs the disk comes to node B.",
            TAKEN_FOR_ATTACHED,
            DETACHES,
            UNDER_THE_POD,
        ],
    ),
    "a pod tolerates the cordon": (
        read_order(order(drained(ON, restricts=False), cp=ON, nodes=OFF)),
        [
            "Replant cordons node A and begins to drain it.",
            "Replant sees that node A is empty, and is about to restart its kubelet.",
            "A pod that needs the disk and tolerates the cordon comes to node A.",
            "The controller has the in-tree plugin attach the disk to node A.",
            MOUNTS,
            f"The kubelet of node A is restarted with {GATE}=true.",
            RESTARTS,
            DETACHES,
            UNDER_THE_POD,
        ],
    ),
    "in place": (
        read_order(order(in_place(ON), cp=ON, nodes=OFF)),
        [
            "A pod that needs the disk comes to node A.",
            "The controller has the in-tree plugin attach the disk to node A.",
            MOUNTS,
            f"The kubelet of node A is restarted in place with {GATE}=true.",
            RESTARTS,
            DETACHES,
            UNDER_THE_POD,
        ],
    ),
}


@pytest.mark.parametrize(("course", "story"), STORIES.values(), ids=STORIES)
def test_a_story_is_told_as_short_as_it_can_be(course: Course, story: list[str]) -> None:
    assert list(verify(course).story) == story


def test_a_move_that_changes_nothing_changes_no_verdict() -> None:
    switched = in_place(ON)
    orders = [order(*steps, cp=ON, nodes=OFF) for steps in ([switched], [cp(ON), switched])]
    one, other = (verify(read_order(it)) for it in orders)
    assert one == other


def test_a_story_names_what_is_given_now() -> None:
    made_already = drained(OFF)
    given = order(made_already, cp(STANDALONE), **ALL_OFF)
    assert f"{UNREGISTER}=true" in verify(read_order(given)).story[0]


def test_a_volume_that_is_never_attached_is_called_mounted_and_not_attached() -> None:
    verdict = verify(read_order(order(in_place(FILE_OFF), **FILES)))
    assert verdict.bad_state is BadState.DOUBLY_MOUNTED
    assert verdict.story[-1].startswith("Doubly mounted: ")
    assert "attach" not in verdict.story[-1]


def test_a_node_that_has_joined_takes_pods_before_it_is_tainted() -> None:
    joins = order(cp(ON), drained(ON), oldNodesJoin=True, **ALL_OFF)
    assert any(it.endswith("and has no taint yet.") for it in verify(read_order(joins)).story)
