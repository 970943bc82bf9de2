"""Who counts a volume towards a node's limit."""

from __future__ import annotations

import pytest

from replant.routing import Side, count
from tests.routing.worlds import AWS, BARE, MINORS, in_tree, last_patch, native, node, process

PLAIN, LISTED = node(listed=False, driver=True), node(listed=True, driver=True)


@pytest.mark.parametrize(
    ("version", "on", "bare", "plain", "listed"),
    [
        ("1.20.2", False, "in-tree", "in-tree", "in-tree"),
        ("1.20.2", True, "in-tree", "in-tree", "csi"),
        ("1.24.17", False, "in-tree", "in-tree", "in-tree"),
        ("1.24.17", True, "in-tree", "in-tree", "csi"),
        # The gate is gone, and with it the look at the annotation.
        ("1.27.0", True, "in-tree", "csi", "csi"),
        # The in-tree filters are gone, too.
        ("1.31.0", True, "nobody", "csi", "csi"),
    ],
)
def test_the_table_of_the_scheduler(
    version: str, on: bool, bare: str, plain: str, listed: str
) -> None:
    scheduler = process(version, on=on)
    found = [count(in_tree(), scheduler, it).served_by for it in (BARE, PLAIN, LISTED)]
    assert found == [bare, plain, listed]


@pytest.mark.parametrize(
    ("plugin", "version", "listed", "served"),
    [
        ("kubernetes.io/cinder", "1.23.0", False, "in-tree"),
        ("kubernetes.io/cinder", "1.24.0", False, "csi"),
        ("kubernetes.io/gce-pd", "1.27.0", False, "in-tree"),
        ("kubernetes.io/gce-pd", "1.28.0", False, "csi"),
        ("kubernetes.io/portworx-volume", "1.22.0", True, "nobody"),
        ("kubernetes.io/portworx-volume", "1.23.0", True, "csi"),
        ("kubernetes.io/portworx-volume", "1.35.0", False, "nobody"),
        ("kubernetes.io/portworx-volume", "1.36.0", False, "csi"),
        ("kubernetes.io/rbd", "1.30.0", True, "csi"),
        ("kubernetes.io/rbd", "1.31.0", True, "nobody"),
        ("kubernetes.io/vsphere-volume", "1.36.0", True, "nobody"),
        ("kubernetes.io/azure-file", "1.36.0", True, "nobody"),
    ],
)
def test_plugins_that_count_otherwise(plugin: str, version: str, listed: bool, served: str) -> None:
    it = node(listed=listed, driver=True, plugin=plugin)
    assert count(in_tree(plugin), process(version, plugin, on=True), it).served_by == served


def test_the_base_gate_is_asked_as_well() -> None:
    plugin = "kubernetes.io/cinder"
    it = node(listed=True, driver=True, plugin=plugin)
    scheduler = process("1.24.0", plugin, on=True, base=False)
    assert count(in_tree(plugin), scheduler, it).served_by is Side.IN_TREE


@pytest.mark.parametrize("minor", MINORS)
def test_native_volumes_count_for_csi(minor: int) -> None:
    for it in (BARE, PLAIN, LISTED):
        assert count(native(AWS), process(last_patch(minor), on=False), it).served_by is Side.CSI
