"""The sandbox's own decisions, beside the product's rules: made apart, they must say the same.

Records of real Kubernetes decide who is right (``test_records.py``); they know one plugin and two
versions. Here are all of them: where the two differ, one was read wrong in the sources.
"""

from __future__ import annotations

from itertools import product

import pytest

from replant import routing
from replant.core.routing import dangling
from replant.gates.settings import refusals
from replant.gates.versions import Version
from replant.routing.names import in_tree_name
from replant.sandbox import sides
from replant.sandbox.sides import attaching, names
from replant.translate import driver_of
from tests.routing.worlds import HISTORY, MINORS, PLUGINS

VERSIONS = [Version(1, minor, patch) for minor in MINORS for patch in (0, 17)]
NODES = [(False, False, False), *product((True,), (False, True), (False, True))]
PROVISIONERS = (
    "", *PLUGINS, "ebs.csi.aws.com", "kubernetes.io/glusterfs", "kubernetes.io/unheard-of"
)  # fmt: skip
SHAPES = list(product((False, True), PROVISIONERS, ("", "x.csi.example")))


def all_gates(plugin: str, version: Version) -> list[dict[str, bool]]:
    suffix = HISTORY[plugin].suffix
    names = [
        "CSIMigration",
        f"CSIMigration{suffix}",
        f"CSIMigration{suffix}Complete",
        f"InTreePlugin{suffix}Unregister",
    ]
    combined = product((None, False, True), repeat=len(names))
    given = [
        {name: on for name, on in zip(names, it, strict=True) if on is not None} for it in combined
    ]
    return [it for it in given if not refusals(version, it)]


def views(
    plugin: str, *, native: bool, provisioner: str = "", mark: str = ""
) -> tuple[routing.VolumeView, sides.VolumeView]:
    driver = driver_of(plugin)
    theirs = routing.VolumeView(
        plugin, driver, native, provisioned=bool(provisioner), provisioned_by=provisioner,
        migrated_to=mark,
    )  # fmt: skip
    return theirs, sides.VolumeView(plugin, driver, native, provisioner, mark)


@pytest.mark.parametrize("plugin", PLUGINS)
def test_who_attaches_mounts_and_counts(plugin: str) -> None:
    for version in VERSIONS:
        for gates in all_gates(plugin, version):
            theirs, ours = routing.Process(version, gates), sides.Process(version, gates)
            for native, said in product((False, True), NODES):
                volume, view = views(plugin, native=native)
                csi_node, listed, driver = said
                known = (
                    frozenset({plugin} if listed else ()),
                    frozenset({volume.driver} if driver else ()),
                )
                node, seen = routing.NodeView(csi_node, *known), sides.NodeView(csi_node, *known)
                told = (version, gates, native, said)
                assert (
                    sides.mount_side(view, ours, seen)
                    == routing.mount(volume, theirs, node).served_by.value
                ), told
                assert (
                    sides.count_side(view, ours, seen)
                    == routing.count(volume, theirs, node).served_by.value
                ), told
                if not volume.attachable:
                    assert sides.attach_side(view, ours, seen) is sides.Side.NOBODY
                    continue
                for kind in sides.AttachController:
                    expected = routing.attach(volume, theirs, node, routing.AttachController(kind))
                    assert sides.attach_side(view, ours, seen, kind) == expected.served_by.value, (
                        told
                    )
                for side in sides.Side:
                    left = routing.detach(volume, theirs, routing.Side(side)).served_by
                    assert sides.can_detach(side, plugin, ours) is (
                        left is not routing.Side.NOBODY
                    ), told


@pytest.mark.parametrize("plugin", PLUGINS)
def test_who_serves_claims_and_what_is_written(plugin: str) -> None:
    for version in VERSIONS:
        for gates in all_gates(plugin, version):
            theirs, ours = routing.Process(version, gates), sides.Process(version, gates)
            for name in PROVISIONERS[1:]:
                told = (version, gates, name)
                assert (
                    sides.provision_side(name, ours)
                    == routing.provision(name, theirs).served_by.value
                ), told
                annotations = routing.provisioner_annotations(name, theirs)
                assert sides.provisioner_annotations(name, ours) == annotations, told
            for native, provisioner, mark in SHAPES:
                volume, view = views(plugin, native=native, provisioner=provisioner, mark=mark)
                shape = (version, gates, native, provisioner, mark)
                marked = (
                    sides.migrated_to(provisioner, mark, ours) if provisioner in PLUGINS else mark
                )
                if provisioner in ("", *PLUGINS):
                    assert marked == (routing.migrated_to(volume, theirs) or ""), shape
                    assert (
                        sides.delete_side(view, ours)
                        == routing.delete(volume, theirs).served_by.value
                    ), shape
                assert (
                    sides.expand_side(view, ours) == routing.expand(volume, theirs).served_by.value
                ), shape
                assert sides.resizer(view, ours) == routing.resizer(volume, theirs), shape


def test_attaches_that_detach_elsewhere() -> None:
    for plugin, version in product(PLUGINS, VERSIONS):
        expected = dangling.attach_may_detach(plugin, version)
        assert attaching.blames_the_other_node(plugin, version) is expected
        detaches = dangling.driver_attach_detaches(plugin)
        assert attaching.driver_detaches_first(driver_of(plugin)) is detaches


def test_names() -> None:
    for plugin, source in (
        ("kubernetes.io/rbd", {"rbd": {"pool": "p", "image": "i"}}),
        ("kubernetes.io/gce-pd", {"gcePersistentDisk": {"pdName": "d"}}),
    ):
        assert names.in_tree_name(plugin, source) == in_tree_name(plugin, source)
