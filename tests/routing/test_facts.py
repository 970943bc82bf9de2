"""The model against facts that were read from the sources of Kubernetes: ``sources.json``.

The proving ground asks two versions of Kubernetes, in one cloud. What concerns other versions and
other plugins is here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from replant.core.routing.dangling import attach_may_detach, driver_attach_detaches
from replant.errors import TranslationError
from replant.gates.plugins import BASE_GATE, LIVES
from replant.gates.settings import effective
from replant.gates.versions import Version
from replant.routing import (
    RULES,
    NodeView,
    Process,
    Side,
    VolumeView,
    attach,
    count,
    delete,
    detach,
    expand,
    migrated_to,
    mount,
    provision,
    provisioner_annotations,
    resizer,
    unmount,
)
from replant.translate import driver_of
from tests.routing.worlds import BARE, PLUGINS, node

SOURCES = json.loads((Path(__file__).parent / "sources.json").read_text())
TAKEN_BY_THE_DRIVER = {"kubernetes.io/azure-disk"}
"""By ControllerPublishVolume of kubernetes-sigs/azuredisk-csi-driver, since v0.9.0."""
READ = [Version.parse(it) for it in SOURCES["asked"]]


@cache
def said(version: Version) -> dict[str, Any]:
    """What a version says: the same as the last one that said something else."""
    [*_earlier, last] = [it for it in SOURCES["versions"] if Version.parse(it) <= version]
    found: dict[str, Any] = SOURCES["versions"][last]
    return found


class Standing(NamedTuple):
    """What a process makes of a plugin, by the sources."""

    process: Process
    redirects: bool
    complete: bool
    registered: bool
    counts: bool


def standings(version: Version, plugin: str) -> Iterator[Standing]:
    """With its gates on and off, each by each."""
    facts, life = said(version)["plugins"][plugin], LIVES[plugin]
    older, unregister = life.off_gates
    gates = (BASE_GATE, life.migration_gate, older, unregister)
    for given in product((False, True), repeat=len(gates)):
        process = Process(version, dict(zip(gates, given, strict=True)))
        known = effective(version, process.gates)

        def on(asked: str | bool, known: dict[str, bool] = known) -> bool:
            return any(known[it] for it in asked.split(" or ")) if isinstance(asked, str) else asked

        base = known.get(BASE_GATE, True)
        redirects = base and on(facts["redirects"])
        complete = redirects and on(facts["complete"])
        alone = said(version)["unregisterStandsAlone"] and known.get(unregister, False)
        registered = facts["inTree"] and not alone and not complete
        yield Standing(process, redirects, complete, registered, base and on(facts["counts"]))


def everywhere(plugin: str) -> list[Standing]:
    """At all versions, with all gates."""
    return [it for version in READ for it in standings(version, plugin)]


@pytest.mark.parametrize("plugin", PLUGINS)
def test_what_a_process_makes_of_a_plugin(plugin: str) -> None:
    for it in everywhere(plugin):
        found = it.process
        assert found.migrates(plugin) is it.redirects
        assert found.complete(plugin) is it.complete
        assert found.registered(plugin) is it.registered


@pytest.mark.parametrize("plugin", PLUGINS)
def test_who_attaches_and_detaches(plugin: str) -> None:
    volume = VolumeView(plugin, driver_of(plugin), native=False, provisioned=True)
    for version in READ:
        if said(version)["plugins"][plugin]["inTree"]:
            assert volume.attachable is said(version)["plugins"][plugin]["attaches"]
    for it in everywhere(plugin) if volume.attachable else ():
        facts = said(it.process.version)
        in_tree = Side.IN_TREE if it.registered else Side.NOBODY
        for listed, driver in product((False, True), repeat=2):
            side = in_tree
            if it.complete or (it.redirects and listed):
                side = Side.CSI
            if it.redirects and not it.complete and listed and not driver:
                side = Side.NOBODY if facts["missingDriverIsAnError"] else Side.CSI
            view = node(listed=listed, driver=driver, plugin=plugin)
            assert attach(volume, it.process, view).served_by is side
        without = Side.NOBODY if it.redirects else in_tree
        assert attach(volume, it.process, BARE).served_by is (Side.CSI if it.complete else without)
        assert detach(volume, it.process, Side.IN_TREE).served_by is in_tree
        assert detach(volume, it.process, Side.CSI).served_by is Side.CSI
        assert detach(volume, it.process, Side.NOBODY).served_by is Side.NOBODY


@pytest.mark.parametrize("plugin", PLUGINS)
def test_who_mounts_and_unmounts(plugin: str) -> None:
    volume = VolumeView(plugin, driver_of(plugin), native=False, provisioned=True)
    for it, driver in product(everywhere(plugin), (False, True)):
        view = NodeView(csi_node=True, drivers=frozenset({volume.driver} if driver else ()))
        in_tree = Side.IN_TREE if it.registered else Side.NOBODY
        csi = Side.CSI if driver else Side.NOBODY
        found = mount(volume, it.process, view)
        assert found.served_by is (csi if it.redirects else in_tree)
        assert found.rule.startswith("mount.redirected" if it.redirects else "mount.in-tree")
        assert unmount(volume, it.process, view, Side.IN_TREE).served_by is in_tree
        assert unmount(volume, it.process, view, Side.CSI).served_by is csi
        assert unmount(volume, it.process, view, Side.NOBODY).served_by is Side.NOBODY


@pytest.mark.parametrize("plugin", PLUGINS)
def test_who_serves_claims(plugin: str) -> None:
    volume = VolumeView(plugin, driver_of(plugin), native=False, provisioned=True)
    by_hand = VolumeView(plugin, driver_of(plugin), native=False, provisioned=False)
    for it in everywhere(plugin):
        facts = said(it.process.version)
        in_tree = Side.IN_TREE if it.registered else Side.NOBODY
        expands = in_tree if facts["plugins"][plugin]["expands"] else Side.NOBODY
        side = Side.CSI if it.redirects else in_tree
        assert provision(plugin, it.process).served_by is side
        assert delete(volume, it.process).served_by is side
        assert delete(by_hand, it.process).served_by is in_tree
        assert expand(volume, it.process).served_by is (Side.CSI if it.redirects else expands)
        written = {} if side is Side.NOBODY else provisioner_annotations(plugin, it.process)
        named = volume.driver if it.redirects else plugin
        assert written == provisioner_annotations(plugin, it.process)
        assert set(written.values()) <= {named}
        assert len(written) == (side is not Side.NOBODY) * (1 + facts["twoAnnotations"])


@pytest.mark.parametrize("version", READ, ids=str)
def test_provisioners_that_no_driver_took_over_from(version: Version) -> None:
    controller = Process(version, {})
    for name in ("scaleio", "flocker", "quobyte", "storageos", "glusterfs", "cephfs", "none"):
        there = name in said(version)["withoutDriver"]
        side = provision(f"kubernetes.io/{name}", controller).served_by
        assert side is (Side.IN_TREE if there else Side.NOBODY)


@pytest.mark.parametrize("plugin", PLUGINS)
def test_who_counts(plugin: str) -> None:
    volume = VolumeView(plugin, driver_of(plugin), native=False, provisioned=True)
    for it in everywhere(plugin):
        facts = said(it.process.version)["plugins"][plugin]
        in_tree = Side.IN_TREE if facts["filtered"] else Side.NOBODY
        assert count(volume, it.process, BARE).served_by is in_tree
        for listed in (False, True):
            by_csi = it.counts and (listed or facts["counts"] is True)
            view = node(listed=listed, driver=True, plugin=plugin)
            assert count(volume, it.process, view).served_by is (Side.CSI if by_csi else in_tree)


@pytest.mark.parametrize("plugin", PLUGINS)
def test_an_attach_that_fails_names_the_node_that_has_the_disk(plugin: str) -> None:
    for version in READ:
        facts = said(version)["plugins"][plugin]
        if facts["inTree"]:
            assert attach_may_detach(plugin, version) is facts["namesTheNodeThatHasTheDisk"]
    assert driver_attach_detaches(plugin) is (plugin in TAKEN_BY_THE_DRIVER)


@pytest.mark.parametrize("plugin", PLUGINS)
def test_a_native_volume_is_never_translated(plugin: str) -> None:
    """IsMigratable of pkg/volume/csimigration asks for in-tree plugins; pkg/volume/csi knows the
    driver alone."""
    volume = VolumeView(plugin, driver_of(plugin), native=True, provisioned=True)
    for it in everywhere(plugin):
        for driver, listed in product((False, True), repeat=2):
            view, absent = node(listed=listed, driver=driver, plugin=plugin), "-driver-absent"
            mounted = mount(volume, it.process, view)
            assert mounted.served_by is (Side.CSI if driver else Side.NOBODY)
            assert mounted.rule == "mount.native" + absent * (not driver)
            if volume.attachable:
                attached = attach(volume, it.process, view)
                assert attached.served_by is Side.CSI
                assert attached.rule == "attach.native" + absent * (not driver)
        assert expand(volume, it.process).rule == "expand.native"
        assert resizer(volume, it.process) == ""
        assert count(volume, it.process, BARE).served_by is Side.CSI
    if not volume.attachable:
        with pytest.raises(ValueError, match="need no attach"):
            attach(volume, it.process, BARE)


@pytest.mark.parametrize("plugin", PLUGINS)
def test_which_check_decides(plugin: str) -> None:
    """isCSIMigrationSupportedOnNode of pkg/controller/volume/attachdetach/util, in its order; then
    the plugin is looked up by its name."""
    volume = VolumeView(plugin, driver_of(plugin), native=False, provisioned=True)
    for it in everywhere(plugin) if volume.attachable else ():
        off = "" if it.registered else "-plugin-off"
        strict = said(it.process.version)["missingDriverIsAnError"]
        for csi_node, listed, driver in product((False, True), repeat=3):
            view = node(listed=listed, driver=driver, plugin=plugin) if csi_node else BARE
            there = csi_node and driver
            if not it.redirects:
                rule = "not-redirected" + off
            elif it.complete:
                rule = "complete" + "-driver-absent" * (not there)
            elif not csi_node:
                rule = "no-csi-node"
            elif not listed:
                rule = "node-not-migrated" + off
            else:
                absent = "driver-check" if strict else "node-migrated-driver-absent"
                rule = "node-migrated" if there else absent
            assert attach(volume, it.process, view).rule == f"attach.{rule}"


@pytest.mark.parametrize("plugin", PLUGINS)
def test_who_is_asked_to_delete(plugin: str) -> None:
    """findDeletablePlugin of pv_controller.go: a mark first, then the name of who provisioned the
    volume, and without one what the volume is; updateVolumeMigrationAnnotations marks it."""
    driver = driver_of(plugin)
    other = next(it for it in PLUGINS if it != plugin)
    for it in everywhere(plugin):
        process, off = it.process, "" if it.registered else "-plugin-off"

        def rule(
            *, native: bool, by: str = "", provisioned: bool = True, asked: Process = process
        ) -> str:
            return delete(VolumeView(plugin, driver, native, provisioned, by), asked).rule

        assert rule(native=False, by=driver) == "delete.external"
        assert rule(native=True) == "delete.external"
        assert rule(native=True, provisioned=False) == "delete.native-by-hand"
        assert rule(native=False, provisioned=False) == f"delete.by-hand{off}"
        by_plugin = "marked" if it.redirects else "native-by-plugin"
        assert rule(native=True, by=plugin) == f"delete.{by_plugin}"
        assert rule(native=False) == ("delete.marked" if it.redirects else f"delete.in-tree{off}")
        if not process.migrates(other):
            there = "" if process.registered(other) else "-plugin-off"
            assert rule(native=False, by=other) == f"delete.in-tree{there}"
        marked = VolumeView(plugin, driver, False, False, migrated_to="disk.example.org")
        assert delete(marked, process).rule == "delete.marked"
        assert migrated_to(replace(marked, migrated_to=""), process) is None


@pytest.mark.parametrize("version", READ, ids=str)
def test_other_provisioners_are_left_alone(version: Version) -> None:
    """provisionClaim of pv_controller.go: a name without kubernetes.io/ is an external one's."""
    found = provision("disk.example.org", Process(version, {}))
    assert (found.served_by, found.rule) == (Side.CSI, "provision.external")
    keys = provisioner_annotations("disk.example.org", Process(version, {}))
    assert set(keys.values()) == {"disk.example.org"}


@pytest.mark.parametrize("plugin", PLUGINS)
def test_why_nobody_expands(plugin: str) -> None:
    """expand_controller.go: a plugin that is not there, or one that cannot expand."""
    volume = VolumeView(plugin, driver_of(plugin), native=False, provisioned=True)
    for it in everywhere(plugin):
        facts = said(it.process.version)["plugins"][plugin]
        rule = "in-tree" if it.registered else "in-tree-plugin-off"
        if it.registered and not facts["expands"]:
            rule = "not-expandable"
        assert expand(volume, it.process).rule == f"expand.{'redirected' if it.redirects else rule}"


def test_what_is_read_of_a_volume() -> None:
    """PersistentVolume of k8s.io/api, and the annotations of pv_controller.go."""
    source = {"driver": "disk.csi.azure.com", "volumeHandle": "disk"}
    pv = {"metadata": {"name": "v"}, "spec": {"csi": source}}
    azure = "kubernetes.io/azure-disk"
    assert VolumeView.of(pv) == VolumeView(azure, source["driver"], True, False)
    by = {"pv.kubernetes.io/provisioned-by": azure, "pv.kubernetes.io/migrated-to": "d"}
    marked = {"metadata": {"name": "v", "annotations": by}, "spec": {"csi": source}}
    assert VolumeView.of(marked) == VolumeView(azure, source["driver"], True, True, azure, "d")
    other = {"metadata": {"name": "v"}, "spec": {"csi": {**source, "driver": "d.example.org"}}}
    assert VolumeView.of(other) == VolumeView("", "d.example.org", True, False)
    in_tree = {"metadata": {"name": "v"}, "spec": {"azureDisk": {"diskName": "d", "diskURI": "u"}}}
    assert VolumeView.of(in_tree) == VolumeView(azure, source["driver"], False, False)
    unknown: tuple[dict[str, Any], ...] = ({"nfs": {"server": "s", "path": "/"}}, {"csi": {}})
    for spec in unknown:
        with pytest.raises(TranslationError):
            VolumeView.of({"metadata": {"name": "v"}, "spec": spec})


def test_who_serves_a_native_volume() -> None:
    """findDeletablePlugin of pv_controller.go: who is left to it, and who cannot."""
    by_driver = ("delete.marked", "delete.external", "delete.native-by-hand", "expand.native")
    assert {RULES[it].served_by for it in by_driver} == {Side.CSI}
    assert RULES["delete.native-by-plugin"].served_by is Side.NOBODY
