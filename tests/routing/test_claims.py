"""Who provisions, deletes and expands, and what is written on claims and volumes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from replant.gates.versions import Version
from replant.routing import (
    Process,
    Side,
    VolumeView,
    delete,
    expand,
    marks,
    migrated_to,
    provision,
    provisioner_annotations,
    resizer,
)
from replant.translate import driver_of
from tests.routing.worlds import AWS, EBS, MINORS, PLUGINS, in_tree, last_patch, native, process

OFF = process("1.24.17", on=False)
ON = process("1.24.17", on=True)
COMPLETE = process("1.24.17", on=True, taken_away=True)
TAKEN_AWAY = process("1.24.17", on=False, taken_away=True)
GONE = Process(Version(1, 36, 3), {})


@pytest.mark.parametrize(
    ("controller", "provisioned", "deleted", "by_hand", "expanded"),
    [
        (OFF, "in-tree", "in-tree", "in-tree", "in-tree"),
        (ON, "csi", "csi", "in-tree", "csi"),
        (COMPLETE, "csi", "csi", "nobody", "csi"),
        (TAKEN_AWAY, "nobody", "nobody", "nobody", "nobody"),
        (GONE, "csi", "csi", "nobody", "csi"),
    ],
)
def test_the_table_of_claims(
    controller: Process, provisioned: str, deleted: str, by_hand: str, expanded: str
) -> None:
    assert provision(AWS, controller).served_by == provisioned
    assert delete(in_tree(), controller).served_by == deleted
    assert delete(in_tree(provisioned=False), controller).served_by == by_hand
    assert expand(in_tree(), controller).served_by == expanded


@pytest.mark.parametrize("minor", MINORS)
@pytest.mark.parametrize("plugin", PLUGINS)
@pytest.mark.parametrize("on", [False, True])
def test_every_plugin_at_every_minor(plugin: str, minor: int, on: bool) -> None:
    controller = process(last_patch(minor), plugin, on=on)
    volume = in_tree(plugin)
    side = Side.IN_TREE if controller.registered(plugin) else Side.NOBODY
    mark = None
    if controller.migrates(plugin):
        side, mark = Side.CSI, driver_of(plugin)
    assert provision(plugin, controller).served_by is side
    assert delete(volume, controller).served_by is side
    assert migrated_to(volume, controller) == mark
    assert migrated_to(in_tree(plugin, provisioned=False), controller) is None
    if plugin.endswith("vsphere-volume") and side is Side.IN_TREE:
        side = Side.NOBODY
    assert expand(volume, controller).served_by is side
    wanted = {Side.CSI: volume.driver, Side.IN_TREE: plugin, Side.NOBODY: ""}
    assert resizer(volume, controller) == wanted[side]


def test_vsphere_volumes_never_expanded_in_tree() -> None:
    plugin = "kubernetes.io/vsphere-volume"
    found = expand(in_tree(plugin), process("1.24.17", plugin, on=False))
    assert (found.served_by, found.rule) == (Side.NOBODY, "expand.not-expandable")


@pytest.mark.parametrize(
    ("provisioner", "version", "served", "rule"),
    [
        ("disk.example.org", "1.24", "csi", "external"),
        (EBS, "1.24", "csi", "external"),
        ("kubernetes.io/no-provisioner", "1.24", "nobody", "no-such-plugin"),
        ("kubernetes.io/glusterfs", "1.25", "in-tree", "without-driver"),
        ("kubernetes.io/glusterfs", "1.26", "nobody", "no-such-plugin"),
        ("kubernetes.io/cephfs", "1.24", "nobody", "no-such-plugin"),
    ],
)
def test_other_provisioners(provisioner: str, version: str, served: str, rule: str) -> None:
    found = provision(provisioner, Process(Version.parse(version), {}))
    assert (found.served_by, found.rule) == (served, f"provision.{rule}")
    assert provisioner in found.reason


@pytest.mark.parametrize(
    ("version", "keys"),
    [
        ("1.22", {"volume.beta.kubernetes.io/storage-provisioner"}),
        (
            "1.23",
            {
                "volume.beta.kubernetes.io/storage-provisioner",
                "volume.kubernetes.io/storage-provisioner",
            },
        ),
    ],
)
def test_the_second_annotation_came_with_1_23(version: str, keys: set[str]) -> None:
    for on, name in ((False, AWS), (True, EBS)):
        found = provisioner_annotations(AWS, process(version, on=on))
        assert found == dict.fromkeys(keys, name)
    taken_away = provisioner_annotations(AWS, process(version, on=False, taken_away=True))
    assert taken_away == {}
    other = provisioner_annotations("disk.example.org", process(version, on=True))
    assert set(other.values()) == {"disk.example.org"}


@pytest.mark.parametrize("controller", [OFF, ON, COMPLETE, TAKEN_AWAY, GONE])
def test_a_native_volume_is_deleted_by_whoever_provisioned_it(controller: Process) -> None:
    assert delete(native(), controller).rule == "delete.external"
    assert delete(native(provisioned=False), controller).rule == "delete.native-by-hand"
    assert expand(native(), controller).served_by is Side.CSI
    assert resizer(native(), controller) == ""


def test_a_native_volume_that_the_plugin_provisioned_needs_the_redirection() -> None:
    swapped = replace(native(), provisioned_by=AWS)
    assert delete(swapped, ON).served_by is Side.CSI
    assert delete(swapped, OFF).rule == "delete.native-by-plugin"
    elsewhere = VolumeView("", "d.example.org", native=True, provisioned=True, provisioned_by=AWS)
    assert delete(elsewhere, OFF).served_by is Side.NOBODY


def test_a_volume_is_deleted_by_the_name_that_it_says_provisioned_it() -> None:
    back = replace(in_tree(), provisioned_by=EBS)
    assert delete(back, OFF).rule == "delete.external"
    odd = replace(in_tree(), provisioned_by="kubernetes.io/flocker")
    assert delete(odd, ON).served_by is Side.NOBODY


def test_a_mark_that_a_person_made_stays_and_is_followed() -> None:
    marked = replace(in_tree(provisioned=False), migrated_to=EBS)
    assert migrated_to(marked, OFF) == EBS
    assert delete(marked, COMPLETE).served_by is Side.CSI
    assert migrated_to(replace(in_tree(), migrated_to=EBS), OFF) is None


def test_all_marks_together() -> None:
    assert marks(in_tree(), ON) == {
        "volume.beta.kubernetes.io/storage-provisioner": EBS,
        "volume.kubernetes.io/storage-provisioner": EBS,
        "pv.kubernetes.io/migrated-to": EBS,
        "volume.kubernetes.io/storage-resizer": EBS,
    }
    assert marks(in_tree(provisioned=False), TAKEN_AWAY) == {}
