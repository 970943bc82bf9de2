"""Who mounts and unmounts: the kubelet's own gates, and what is on the node."""

from __future__ import annotations

import pytest

from replant.routing import Side, mount, unmount
from tests.routing.worlds import (
    AWS,
    MINORS,
    NODES,
    PLUGINS,
    in_tree,
    last_patch,
    native,
    node,
    process,
)


@pytest.mark.parametrize(
    ("version", "gates", "driver", "served", "rule"),
    [
        ("1.24.17", {"on": True}, True, "csi", "redirected"),
        ("1.24.17", {"on": True}, False, "nobody", "redirected-driver-absent"),
        ("1.24.17", {"on": True, "taken_away": True}, True, "csi", "redirected"),
        ("1.24.17", {"on": False}, True, "in-tree", "in-tree"),
        ("1.24.17", {"on": True, "base": False}, True, "in-tree", "in-tree"),
        ("1.24.17", {"on": False, "taken_away": True}, True, "nobody", "in-tree-plugin-off"),
        ("1.20.2", {"on": False, "taken_away": True}, True, "in-tree", "in-tree"),
        ("1.27.0", {"on": False}, True, "csi", "redirected"),
    ],
)
def test_the_kubelet_follows_its_own_gates(
    version: str, gates: dict[str, bool], driver: bool, served: str, rule: str
) -> None:
    kubelet = process(version, AWS, **gates)
    for listed in (False, True):
        found = mount(in_tree(), kubelet, node(listed=listed, driver=driver))
        assert (found.served_by, found.rule) == (served, f"mount.{rule}")


@pytest.mark.parametrize("minor", MINORS)
@pytest.mark.parametrize("plugin", PLUGINS)
def test_what_is_redirected_is_mounted_by_csi_or_nobody(plugin: str, minor: int) -> None:
    for on in (False, True):
        kubelet = process(last_patch(minor), plugin, on=on)
        for driver in (False, True):
            found = mount(in_tree(plugin), kubelet, node(listed=on, driver=driver, plugin=plugin))
            if kubelet.migrates(plugin):
                assert found.served_by is (Side.CSI if driver else Side.NOBODY)
            else:
                there = kubelet.registered(plugin)
                assert found.served_by is (Side.IN_TREE if there else Side.NOBODY)


def test_a_native_volume_is_mounted_by_its_driver_or_not_at_all() -> None:
    for on in (False, True):
        for it in NODES:
            found = mount(native(), process("1.24.17", on=on), it)
            assert found.served_by is (Side.CSI if it.drivers else Side.NOBODY)


def test_unmounting_follows_from_who_mounted() -> None:
    ready, empty = node(listed=True, driver=True), node(listed=True, driver=False)
    on, gone = process("1.24.17", on=True), process("1.24.17", on=True, taken_away=True)
    assert unmount(in_tree(), on, ready, Side.IN_TREE).served_by is Side.IN_TREE
    assert unmount(in_tree(), gone, ready, Side.IN_TREE).served_by is Side.NOBODY
    assert unmount(in_tree(), gone, ready, Side.CSI).served_by is Side.CSI
    assert unmount(in_tree(), on, empty, Side.CSI).rule == "unmount.csi-driver-absent"
    assert unmount(in_tree(), on, empty, Side.NOBODY).rule == "unmount.not-mounted"
