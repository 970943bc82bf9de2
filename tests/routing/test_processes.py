"""What a component makes of its gates, for every plugin and every minor."""

from __future__ import annotations

from itertools import product

import pytest

from replant.gates.settings import standings
from replant.gates.versions import Version
from replant.routing import Process, VolumeView
from tests.routing.worlds import HISTORY, MINORS, PLUGINS, last_patch, process

EVERYWHERE = list(product(PLUGINS, MINORS))
SWITCHES = list(product((False, True), repeat=3))


def redirects(plugin: str, minor: int, *, on: bool, base: bool) -> bool:
    history = HISTORY[plugin]
    if minor < history.gate_since or (plugin.endswith("rbd") and minor >= history.code_gone):
        return False
    # CSIMigration itself is locked from 1.25 on.
    return (base or minor >= 25) and (on or minor >= history.always_on_since)


@pytest.mark.parametrize(("plugin", "minor"), EVERYWHERE)
def test_every_plugin_at_every_minor(plugin: str, minor: int) -> None:
    history = HISTORY[plugin]
    for on, taken_away, base in SWITCHES:
        it = process(last_patch(minor), plugin, on=on, taken_away=taken_away, base=base)
        migrates = redirects(plugin, minor, on=on, base=base)
        # The gates that take a plugin away came with those that redirect it, and went at last.
        switched_off = taken_away and history.gate_since <= minor < min(history.complete_since, 36)
        gone = minor >= history.code_gone
        assert it.migrates(plugin) is migrates
        assert it.complete(plugin) is (
            migrates and (switched_off or minor >= history.complete_since)
        )
        probed = not switched_off or (minor < 21 and not migrates)
        assert it.registered(plugin) is (probed and not gone)


@pytest.mark.parametrize(("plugin", "minor"), EVERYWHERE)
def test_gates_and_routes_agree(plugin: str, minor: int) -> None:
    for on, taken_away, base in SWITCHES:
        it = process(last_patch(minor), plugin, on=on, taken_away=taken_away, base=base)
        [standing] = [s for s in standings(it.version, it.gates) if s.plugin == plugin]
        assert it.registered(plugin) is standing.registered


def test_the_older_gate_of_vsphere_counts_up_to_1_21() -> None:
    plugin = "kubernetes.io/vsphere-volume"
    older, newer = "CSIMigrationvSphereComplete", "InTreePluginvSphereUnregister"
    for gate in (older, newer):
        it = Process(Version(1, 21, 14), {"CSIMigrationvSphere": True, gate: True})
        assert (it.complete(plugin), it.registered(plugin)) == (True, False)
        assert it.why_not_registered(plugin) == f"{gate} is on"
    alone = Process(Version(1, 21, 14), {"CSIMigrationvSphere": False, older: True})
    assert (alone.complete(plugin), alone.registered(plugin)) == (False, True)


def test_a_leftover_of_the_older_gate_does_nothing() -> None:
    plugin = "kubernetes.io/vsphere-volume"
    gates = {"CSIMigrationvSphere": True, "CSIMigrationvSphereComplete": True}
    assert Process(Version(1, 20), gates).complete(plugin)
    assert not Process(Version(1, 22), gates).complete(plugin)
    assert Process(Version(1, 22), gates).registered(plugin)


def test_cinder_at_1_24_needs_only_the_base_gate() -> None:
    plugin = "kubernetes.io/cinder"
    assert Process(Version(1, 24), {"CSIMigrationOpenStack": False}).migrates(plugin)
    assert not Process(Version(1, 24), {"CSIMigration": False}).migrates(plugin)


def test_processes_are_values() -> None:
    one = Process(Version(1, 24), {"CSIMigrationAWS": True, "CSIMigrationGCE": False})
    other = Process(Version(1, 24), {"CSIMigrationGCE": False, "CSIMigrationAWS": True})
    assert one == other
    assert len({one, other, Process(Version(1, 24), {})}) == 2


def test_a_driver_that_took_over_from_nothing_has_no_plugin() -> None:
    volume = VolumeView.of({"spec": {"csi": {"driver": "disk.example.org"}}})
    assert (volume.plugin, volume.native, volume.attachable) == ("", True, True)
    assert not Process(Version(1, 24), {}).registered(volume.plugin)
