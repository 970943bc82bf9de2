"""Orders of switching, and whether each loses a volume.

What is expected follows from what Kubernetes does and was seen to do (docs/observed.md), not from
the model: of two bad states the yank is told, and otherwise the one that is reached first.
"""

from __future__ import annotations

from typing import Any

import pytest

from replant.gates.plugins import LIVES
from replant.proof import BadState, Course, verify
from replant.proof.orders import OrderError, read_order
from replant.proof.search import search
from replant.routing import AttachController
from tests.proof.making import (
    BASE,
    COMPLETED,
    GATE,
    OFF,
    ON,
    STANDALONE,
    UNREGISTER,
    UNREGISTERED,
    Given,
    Making,
    cp,
    drained,
    in_place,
    order,
)

SAFE = None
YANKED, DOUBLE = BadState.YANKED, BadState.DOUBLY_ATTACHED
STRANDED, UNSERVABLE = BadState.STRANDED, BadState.UNSERVABLE
ALL_OFF: dict[str, Any] = {"cp": OFF, "nodes": OFF}
ALL_ON: dict[str, Any] = {"cp": ON, "nodes": ON}
OPENSHIFT: dict[str, Any] = {"adc": "node-driven"}
NO_DRIVER: dict[str, Any] = {"driverInstalled": False}
FILE_ON, FILE_OFF = {"CSIMigrationAzureFile": True}, {"CSIMigrationAzureFile": False}
FILE_UNREGISTERED = {**FILE_ON, "InTreePluginAzureFileUnregister": True}
FILES = {"plugin": "azure-file", "version": "1.24"}
PX_ON, PX_OFF = {"CSIMigrationPortworx": True}, {"CSIMigrationPortworx": False}
PORTWORX = {"plugin": "portworx-volume", "version": "1.25"}
NO_BASE, WITH_BASE = {BASE: False}, {BASE: True}

FLIPS = [
    ("aws-ebs", "1.22", "1.23"),
    ("gce-pd", "1.22", "1.23"),
    ("azure-disk", "1.22", "1.23"),
    ("cinder", "1.20", "1.21"),
    ("vsphere-volume", "1.24", "1.25"),
    ("azure-file", "1.23", "1.24"),
    ("portworx-volume", "1.30", "1.31"),
]
"""Off by default in the first minor, on in the second."""

Row = tuple[str, Given, BadState | None]

RIGHT: list[Row] = [
    ("no steps", order(**ALL_OFF), SAFE),
    ("enable", order(cp(ON), drained(ON), **ALL_OFF), SAFE),
    ("disable", order(drained(OFF), cp(OFF), **ALL_ON), SAFE),
    ("controller on, nodes left off", order(cp(ON), **ALL_OFF), SAFE),
    ("enable and complete", order(cp(ON), drained(ON), cp(UNREGISTERED), **ALL_OFF), SAFE),
    ("complete", order(cp(UNREGISTERED), **ALL_ON), SAFE),
    # A kubelet that redirects never asks for the plugin that it no longer has.
    ("complete on nodes too", order(cp(UNREGISTERED), in_place(UNREGISTERED), **ALL_ON), SAFE),
    ("nodes unregister before the controller", order(in_place(UNREGISTERED), **ALL_ON), SAFE),
    (
        "back from complete",
        order(cp(ON), drained(OFF), cp(OFF), cp=UNREGISTERED, nodes=ON),
        SAFE,
    ),
    (
        "back from complete on nodes too",
        order(cp(ON), drained(OFF), cp(OFF), cp=UNREGISTERED, nodes=UNREGISTERED),
        SAFE,
    ),
    (
        "enable and complete before 1.21",
        order(cp(ON), drained(ON), cp(COMPLETED), version="1.20", **ALL_OFF),
        SAFE,
    ),
]

WRONG: list[Row] = [
    ("kubelets before the controller", order(drained(ON), cp(ON), **ALL_OFF), UNSERVABLE),
    ("kubelets alone", order(drained(ON), **ALL_OFF), UNSERVABLE),
    # The pod that runs goes on; the next one never does.
    ("kubelets alone, in place", order(in_place(ON), **ALL_OFF), UNSERVABLE),
    ("kubelets before, in place", order(in_place(ON), cp(ON), **ALL_OFF), YANKED),
    ("controller off first", order(cp(OFF), drained(OFF), **ALL_ON), UNSERVABLE),
    ("controller off first, in place", order(cp(OFF), in_place(OFF), **ALL_ON), YANKED),
    ("enable without a drain", order(cp(ON), in_place(ON), **ALL_OFF), YANKED),
    ("disable without a drain", order(in_place(OFF), cp(OFF), **ALL_ON), YANKED),
    (
        "drained there, in place back",
        order(cp(ON), drained(ON), in_place(OFF), **ALL_OFF),
        YANKED,
    ),
    # An in-tree detach that the driver has overtaken is begun anew half an hour later.
    (
        "enable, and the controllers go on",
        order(cp(ON), {"nodes": {"drain": True, "gates": ON}}, **ALL_OFF),
        YANKED,
    ),
    # A pod's successor is on a node of the other kind before the pod has ended.
    (
        "enable, and pods go anywhere",
        order(cp(ON), drained(ON, restricts=False), **ALL_OFF),
        YANKED,
    ),
    (
        "disable, and pods go anywhere",
        order(drained(OFF, restricts=False), cp(OFF), **ALL_ON),
        YANKED,
    ),
    (
        "complete before the nodes",
        order(cp(ON), cp(UNREGISTERED), drained(ON), **ALL_OFF),
        UNSERVABLE,
    ),
    (
        "complete before the nodes, in one step",
        order(cp(UNREGISTERED), drained(ON), **ALL_OFF),
        UNSERVABLE,
    ),
    (
        "complete before the nodes before 1.21",
        order(cp(COMPLETED), drained(ON), version="1.20", **ALL_OFF),
        UNSERVABLE,
    ),
    (
        "back from complete, nodes first",
        order(drained(OFF), cp(ON), cp(OFF), cp=UNREGISTERED, nodes=ON),
        UNSERVABLE,
    ),
    (
        "back from complete, controller off at once",
        order(cp(OFF), drained(OFF), cp=UNREGISTERED, nodes=ON),
        UNSERVABLE,
    ),
    ("unregister alone, controller", order(cp(STANDALONE), **ALL_OFF), UNSERVABLE),
    ("unregister alone, nodes", order(drained(STANDALONE), **ALL_OFF), UNSERVABLE),
    ("unregister alone, nodes in place", order(in_place(STANDALONE), **ALL_OFF), UNSERVABLE),
    (
        "unregister left behind on the way back",
        order(drained(STANDALONE), cp(OFF), **ALL_ON),
        UNSERVABLE,
    ),
]

BASE_GATE: list[Row] = [
    # The kubelet leaves its annotation behind, and the controller goes on believing it.
    ("off on kubelets", order(drained(NO_BASE), cp(NO_BASE)), UNSERVABLE),
    ("off on the controller first", order(cp(NO_BASE), drained(NO_BASE)), UNSERVABLE),
    # The way there is right. Undone, it leaves the annotation behind.
    (
        "on by the base gate",
        order(cp(WITH_BASE), drained(WITH_BASE), cp=NO_BASE, nodes=NO_BASE),
        YANKED,
    ),
    (
        "on by the base gate, controller alone",
        order(cp(WITH_BASE), cp=NO_BASE, nodes=NO_BASE),
        SAFE,
    ),
    # Nothing of it is redirected by default at 1.22, with the base gate or without.
    ("off where the plugin's own is off", order(in_place(NO_BASE), version="1.22"), SAFE),
]

DRIVER_MISSING: list[Row] = [
    ("enable", order(cp(ON), drained(ON), **ALL_OFF, **NO_DRIVER), UNSERVABLE),
    ("the controller alone", order(cp(ON), **ALL_OFF, **NO_DRIVER), UNSERVABLE),
    ("nodes first", order(drained(ON), cp(ON), **ALL_OFF, **NO_DRIVER), UNSERVABLE),
    ("in place", order(in_place(ON), cp=ON, nodes=OFF, **NO_DRIVER), YANKED),
    (
        "in place, where nobody attaches without it",
        order(in_place(ON), version="1.23.17", cp=ON, nodes=OFF, **NO_DRIVER),
        YANKED,
    ),
    ("node-driven", order(drained(ON), **ALL_OFF, **NO_DRIVER, **OPENSHIFT), UNSERVABLE),
    (
        "no attach",
        order(cp(FILE_ON), cp=FILE_OFF, nodes=FILE_OFF, **FILES, **NO_DRIVER),
        UNSERVABLE,
    ),
    (
        "no attach, nodes first",
        order(drained(FILE_ON), cp=FILE_OFF, nodes=FILE_OFF, **FILES, **NO_DRIVER),
        UNSERVABLE,
    ),
    # It was broken before, and this mends it.
    ("back again", order(drained(OFF), cp(OFF), **ALL_ON, **NO_DRIVER), SAFE),
    ("untouched", order(**ALL_ON, **NO_DRIVER), SAFE),
]

NODE_DRIVEN: list[Row] = [
    ("enable", order(cp(ON), drained(ON), **ALL_OFF, **OPENSHIFT), SAFE),
    ("enable, nodes first", order(drained(ON), cp(ON), **ALL_OFF, **OPENSHIFT), SAFE),
    ("enable, nodes alone", order(drained(ON), **ALL_OFF, **OPENSHIFT), SAFE),
    ("disable", order(drained(OFF), cp(OFF), **ALL_ON, **OPENSHIFT), SAFE),
    ("disable, controller first", order(cp(OFF), drained(OFF), **ALL_ON, **OPENSHIFT), SAFE),
    ("in place", order(cp(ON), in_place(ON), **ALL_OFF, **OPENSHIFT), YANKED),
    ("in place, nodes first", order(in_place(ON), cp(ON), **ALL_OFF, **OPENSHIFT), YANKED),
    ("disable in place", order(cp(OFF), in_place(OFF), **ALL_ON, **OPENSHIFT), YANKED),
    ("complete after the nodes", order(cp(UNREGISTERED), **ALL_ON, **OPENSHIFT), SAFE),
    (
        "complete before the nodes",
        order(cp(UNREGISTERED), drained(ON), **ALL_OFF, **OPENSHIFT),
        UNSERVABLE,
    ),
    ("upgrade", order(cp("1.23"), drained("1.23"), version="1.22", **OPENSHIFT), SAFE),
    ("upgrade in place", order(cp("1.23"), in_place("1.23"), version="1.22", **OPENSHIFT), YANKED),
    ("downgrade", order(cp("1.22"), drained("1.22"), version="1.23", **OPENSHIFT), SAFE),
    (
        "downgrade in place",
        order(cp("1.22"), in_place("1.22"), version="1.23", **OPENSHIFT),
        YANKED,
    ),
]

NO_ATTACH: list[Row] = [
    (
        "kubelets first",
        order(drained(FILE_ON), cp(FILE_ON), cp=FILE_OFF, nodes=FILE_OFF, **FILES),
        SAFE,
    ),
    (
        "controller first",
        order(cp(FILE_ON), drained(FILE_ON), cp=FILE_OFF, nodes=FILE_OFF, **FILES),
        SAFE,
    ),
    ("controller off first", order(cp(FILE_OFF), drained(FILE_OFF), **FILES), SAFE),
    (
        "in place",
        order(cp(FILE_ON), in_place(FILE_ON), cp=FILE_OFF, nodes=FILE_OFF, **FILES),
        DOUBLE,
    ),
    ("back in place", order(in_place(FILE_OFF), **FILES), DOUBLE),
    # Only the kubelets touch the share, and theirs have the plugin still.
    ("complete before the nodes", order(cp(FILE_UNREGISTERED), nodes=FILE_OFF, **FILES), SAFE),
    (
        "portworx, kubelets first",
        order(drained(PX_ON), cp(PX_ON), cp=PX_OFF, nodes=PX_OFF, **PORTWORX),
        SAFE,
    ),
    ("portworx, in place", order(in_place(PX_ON), cp=PX_ON, nodes=PX_OFF, **PORTWORX), DOUBLE),
]

VERSIONS: list[Row] = [
    # On before and after: nothing flips, and a kubelet may be replaced in place.
    *(
        (
            f"{plugin} {before} to {after}",
            order(cp(after), in_place(after), plugin=plugin, version=before),
            SAFE,
        )
        for plugin, before, after in (
            ("aws-ebs", "1.17", "1.18"),
            ("aws-ebs", "1.24", "1.25"),
            ("aws-ebs", "1.26", "1.27"),
            ("aws-ebs", "1.30", "1.31"),
            ("gce-pd", "1.27", "1.28"),
            ("azure-disk", "1.26", "1.27"),
            ("cinder", "1.25", "1.26"),
            ("vsphere-volume", "1.28", "1.29"),
            ("vsphere-volume", "1.29", "1.30"),
            ("azure-file", "1.29", "1.30"),
            ("portworx-volume", "1.35", "1.36"),
            ("rbd", "1.29", "1.30"),
        )
    ),
    ("aws-ebs 1.27 to 1.26", order(in_place("1.26"), cp("1.26"), version="1.27"), SAFE),
    # Off as long as that was possible.
    ("off until 1.25", order(cp("1.25"), drained("1.25"), **ALL_OFF), SAFE),
    ("off until 1.25, in place", order(cp("1.25"), in_place("1.25"), **ALL_OFF), YANKED),
    (
        "kept off through 1.23",
        order(
            cp({"kubernetesVersion": "1.23", **OFF}),
            {"nodes": {"kubernetesVersion": "1.23", "gates": OFF}},
            version="1.22",
        ),
        SAFE,
    ),
    # What is not named falls back to the default, which is on.
    (
        "a gate that is not named",
        order({"nodes": {"gates": {UNREGISTER: False}}}, cp=ON, nodes=OFF),
        YANKED,
    ),
    (
        "rbd leaves, with its translation",
        order(cp("1.31"), plugin="rbd", version="1.30"),
        UNSERVABLE,
    ),
]

BROKEN_BEFORE: list[Row] = [
    ("nodes on, mended by the nodes", order(drained(OFF), cp=OFF, nodes=ON), SAFE),
    # It runs then, but both sides were seen to race for the disk.
    ("nodes on, mended by the controller", order(cp(ON), cp=OFF, nodes=ON), DOUBLE),
    # What was attached in-tree, in vain, nobody detaches.
    ("nodes on, completed at once", order(cp(UNREGISTERED), cp=OFF, nodes=ON), STRANDED),
]


def _rows() -> list[Any]:
    tables = {
        "right": RIGHT,
        "wrong": WRONG,
        "base gate": BASE_GATE,
        "driver missing": DRIVER_MISSING,
        "node-driven": NODE_DRIVEN,
        "no attach": NO_ATTACH,
        "versions": VERSIONS,
        "broken before": BROKEN_BEFORE,
    }
    return [
        pytest.param(given, expected, id=f"{table}: {name}")
        for table, rows in tables.items()
        for name, given, expected in rows
    ]


@pytest.mark.parametrize(("given", "expected"), _rows())
def test_an_order(given: Given, expected: BadState | None) -> None:
    verdict = verify(read_order(given))
    assert (verdict.bad_state, verdict.safe) == (expected, expected is None), verdict.story
    assert verdict.states > 0


@pytest.mark.parametrize(("plugin", "before", "after"), FLIPS)
def test_a_default_that_flips_needs_a_drain(plugin: str, before: str, after: str) -> None:
    up: dict[str, Any] = {"plugin": plugin, "version": before}
    down: dict[str, Any] = {"plugin": plugin, "version": after}
    hurt = DOUBLE if plugin in ("azure-file", "portworx-volume") else YANKED
    orders = [
        order(cp(after), drained(after), **up),
        order(cp(after), in_place(after), **up),
        order(in_place(before), cp(before), **down),
    ]
    assert [verify(read_order(it)).bad_state for it in orders] == [SAFE, hurt, hurt]


@pytest.mark.parametrize("plugin", ["aws-ebs", "gce-pd"])
def test_a_downgrade_takes_the_nodes_first(plugin: str) -> None:
    given = order(drained("1.22"), cp("1.22"), plugin=plugin, version="1.23")
    assert verify(read_order(given)).safe


def test_what_was_broken_before_hides_nothing_else() -> None:
    # Claims were not served before. Pods on nodes that are off ran, in-tree; now they never do.
    verdict = verify(read_order(order(drained(ON), cp=ON, nodes=OFF, **NO_DRIVER)))
    assert verdict.bad_state is UNSERVABLE


def test_what_was_broken_in_two_ways_before_may_be_mended_one_by_one() -> None:
    # Without a driver neither claims nor pods are served.
    given = order(drained(OFF), cp(OFF), cp=ON, nodes=ON, **NO_DRIVER)
    assert verify(read_order(given)).safe


def test_who_goes_back_to_what_was_broken_breaks_it_again() -> None:
    # What is attached once the plugin is registered, nobody detaches when that is undone.
    given = order(cp(OFF), drained(OFF), cp=STANDALONE, nodes=STANDALONE)
    assert verify(read_order(given)).bad_state is STRANDED


AWS = Making()
WITH, WITHOUT = AWS.group("with", OFF), AWS.group("without", OFF, driver=False)
MIXED = (WITH, WITHOUT)
BOTH_OFF, BOTH_ON = (
    (AWS.group("a", OFF), AWS.group("b", OFF)),
    (AWS.group("a", ON), AWS.group("b", ON)),
)

COURSES: list[tuple[str, Course, BadState | None]] = [
    ("driver on some nodes", AWS.course(ON, MIXED, AWS.nodes(ON, "with", "without")), UNSERVABLE),
    ("driver on those that are switched", AWS.course(ON, MIXED, AWS.nodes(ON, "with")), SAFE),
    (
        "complete with a group left behind",
        AWS.course(ON, MIXED, AWS.nodes(ON, "with"), AWS.switch(UNREGISTERED)),
        UNSERVABLE,
    ),
    (
        "group after group",
        AWS.course(
            OFF,
            BOTH_OFF,
            AWS.switch(ON),
            AWS.nodes(ON, "a"),
            AWS.nodes(ON, "b"),
            AWS.switch(UNREGISTERED),
        ),
        SAFE,
    ),
    (
        "one group without a drain",
        AWS.course(ON, BOTH_OFF, AWS.nodes(ON, "a"), AWS.nodes(ON, "b", drain=False)),
        YANKED,
    ),
    (
        "controller off while a group is on",
        AWS.course(ON, BOTH_ON, AWS.nodes(OFF, "a"), AWS.switch(OFF), AWS.nodes(OFF, "b")),
        UNSERVABLE,
    ),
    ("one node", AWS.course(ON, (AWS.group("one", OFF, size=1),), AWS.nodes(ON, "one")), SAFE),
    (
        "one node in place",
        AWS.course(ON, (AWS.group("one", OFF, size=1),), AWS.nodes(ON, "one", drain=False)),
        YANKED,
    ),
    ("two at once", AWS.course(ON, (WITH,), AWS.nodes(ON, "with"), at_once=2), SAFE),
    # volumesAttached is empty before the cloud has finished.
    (
        "a drain that does not wait for the cloud",
        AWS.course(ON, (WITH,), AWS.nodes(ON, "with"), drain_sees_cloud=False),
        YANKED,
    ),
]


@pytest.mark.parametrize(
    ("course", "expected"),
    [pytest.param(course, expected, id=name) for name, course, expected in COURSES],
)
def test_a_course_of_several_groups(course: Course, expected: BadState | None) -> None:
    verdict = verify(course)
    assert verdict.bad_state == expected, verdict.story


def test_one_groups_trouble_does_not_excuse_anothers() -> None:
    broken = AWS.group("broken", ON, driver=False, size=1)
    sound = AWS.group("sound", OFF, driver=False, size=1)
    course = AWS.course(OFF, (broken, sound), AWS.nodes(ON, "sound", drain=False))
    assert verify(course).bad_state is UNSERVABLE


def test_a_node_that_served_nothing_may_be_drained_to_be_mended() -> None:
    broken = AWS.group("broken", ON, driver=False)
    assert verify(AWS.course(ON, (broken,), AWS.nodes(OFF, "broken"))).safe


def test_a_driver_on_the_nodes_does_not_attach_by_itself() -> None:
    node_driven = AttachController.NODE_DRIVEN
    course = AWS.course(
        OFF, (WITH,), AWS.nodes(ON, "with"), attach_controller=node_driven, driver=False
    )
    assert verify(course).bad_state is UNSERVABLE


def test_single_nodes_are_looked_at_together() -> None:
    groups = AWS.group("a", OFF, size=1), AWS.group("b", OFF, size=1)
    course = AWS.course(ON, groups, AWS.nodes(ON, "a"))
    assert verify(course) == search(course, (0, 1))


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
GOES_ANYWHERE: list[tuple[str, BadState | None]] = [
    ("azure-disk", YANKED),  # in the tree by its driver's attach, and the other way round
    ("cinder", YANKED),
    ("vsphere-volume", YANKED),
    ("gce-pd", SAFE),
    ("rbd", SAFE),  # the kubelet waits until no other node watches the image
]


@pytest.mark.parametrize(("plugin", "expected"), GOES_ANYWHERE)
def test_where_pods_must_be_kept_from_nodes_of_the_other_kind(
    plugin: str, expected: BadState | None
) -> None:
    """By plugin, whether an attach takes a disk from the node that has it by its other name."""
    gate = LIVES[f"kubernetes.io/{plugin}"].migration_gate
    on, off = {gate: True}, {gate: False}
    anywhere = order(
        cp(on), drained(on, restricts=False), plugin=plugin, version="1.23", cp=off, nodes=off
    )
    assert verify(read_order(anywhere)).bad_state is expected
    kept = order(cp(on), drained(on), plugin=plugin, version="1.23", cp=off, nodes=off)
    assert verify(read_order(kept)).bad_state is (SAFE if expected is YANKED else expected)


UNDER_THE_POD = (
    "Yanked: the in-tree plugin detaches the disk from node A while a pod there runs on it."
)
TAKEN_FOR_ATTACHED = (
    "The controller has the in-tree plugin attach the disk to node B. The cloud answers that node "
    "A has it; so the controller takes it for attached there under its in-tree name."
)
STORIES = {
    "kubelets first": (
        order(drained(ON, restricts=False), cp(ON), **ALL_OFF),
        [
            "Replant cordons node A and begins to drain it.",
            f"With node A empty, its kubelet is restarted with {GATE}=true.",
            "Replant uncordons node A.",
            "A pod that needs the disk comes to node A.",
            UNDER_ANOTHER_NAME,
        ],
    ),
    "pods go anywhere": (
        order(drained(OFF, restricts=False), cp(OFF), **ALL_ON),
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
    "in place": (
        order(in_place(ON), cp=ON, nodes=OFF),
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


@pytest.mark.parametrize(("given", "story"), STORIES.values(), ids=STORIES)
def test_a_story_is_told_as_short_as_it_can_be(given: Given, story: list[str]) -> None:
    assert list(verify(read_order(given)).story) == story


def test_a_story_names_what_is_given_now() -> None:
    made_already = drained(OFF)
    given = order(made_already, cp(STANDALONE), **ALL_OFF)
    assert f"{UNREGISTER}=true" in verify(read_order(given)).story[0]
