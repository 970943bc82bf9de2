"""Which attaches take a disk from another node, by plugin and version, as their sources have it."""

from __future__ import annotations

import pytest

from replant.core.routing.dangling import (
    attach_may_detach,
    driver_attach_detaches,
    is_taken_from_other_nodes,
)
from replant.gates.versions import Version
from replant.translate import plugins

IN_TREE = {"aws-ebs", "azure-disk", "cinder", "vsphere-volume"}
DRIVERS = {"azure-disk"}


@pytest.mark.parametrize("plugin", plugins())
def test_every_plugin(plugin: str) -> None:
    name, version = plugin.removeprefix("kubernetes.io/"), Version(1, 24, 17)
    assert attach_may_detach(plugin, version) is (name in IN_TREE)
    assert driver_attach_detaches(plugin) is (name in DRIVERS)
    assert is_taken_from_other_nodes(plugin, version) is (name in IN_TREE | DRIVERS)


@pytest.mark.parametrize(
    ("version", "expected"),
    [("1.17.0", False), ("1.19.15", False), ("1.19.16", True), ("1.20.0", True)],
)
def test_vsphere_since_a_patch_version(version: str, expected: bool) -> None:
    assert attach_may_detach("kubernetes.io/vsphere-volume", Version.parse(version)) is expected
