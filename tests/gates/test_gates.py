"""The table of gates against the record, and the phases that follow from it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from replant.gates.history import FIRST, LAST, gate_at, gates_at
from replant.gates.plugins import (
    LIVES,
    Phase,
    migrated,
    migrated_by_default_from,
    phase,
    servable,
)
from replant.gates.versions import Version
from replant.translate import plugins

RECORD = json.loads((Path(__file__).parent / "feature-gates.json").read_text())


@pytest.mark.parametrize("minor", RECORD["minors"])
def test_the_table_is_the_record(minor: str) -> None:
    ours = {
        gate: {"stage": spec.stage, "default": spec.default, "locked": spec.locked}
        for gate, spec in gates_at(Version.parse(minor)).items()
    }
    assert ours == RECORD["minors"][minor]


def test_the_record_is_covered_from_end_to_end() -> None:
    assert next(iter(RECORD["minors"])) == FIRST.of_minor
    assert list(RECORD["minors"])[-1] == LAST.of_minor


@pytest.mark.parametrize(("patch", "gates"), RECORD["patchExceptions"].items())
def test_patch_releases_that_changed_a_gate(
    patch: str, gates: dict[str, dict[str, object]]
) -> None:
    for gate, wanted in gates.items():
        spec = gate_at(gate, Version.parse(patch))
        assert spec is not None
        assert {"stage": spec.stage, "default": spec.default, "locked": spec.locked} == wanted


def test_every_plugin_has_a_life() -> None:
    assert set(LIVES) == set(plugins())


@pytest.mark.parametrize(
    ("plugin", "default_from", "always_from"),
    [
        ("aws-ebs", "1.23", "1.27"),
        ("gce-pd", "1.23", "1.28"),
        ("cinder", "1.21", "1.26"),
        ("azure-disk", "1.23", "1.27"),
        ("azure-file", "1.24", "1.30"),
        ("vsphere-volume", "1.25", "1.29"),
        ("portworx-volume", "1.31", "1.36"),
    ],
)
def test_migration_is_on_by_default_and_later_for_ever(
    plugin: str, default_from: str, always_from: str
) -> None:
    name = f"kubernetes.io/{plugin}"
    start = Version.parse(default_from)
    before = Version(1, start.minor - 1)
    off = {LIVES[name].migration_gate: False}
    assert migrated_by_default_from(name) == start
    assert not migrated(name, before)
    assert migrated(name, start)
    assert not migrated(name, start, off)
    assert migrated(name, Version.parse(always_from), off)


@pytest.mark.parametrize(
    ("plugin", "version", "gates", "expected"),
    [
        ("aws-ebs", "1.22", {}, Phase.IN_TREE),
        ("aws-ebs", "1.22", {"CSIMigrationAWS": True}, Phase.REDIRECTED),
        ("aws-ebs", "1.20", {"CSIMigrationAWS": True, "CSIMigration": False}, Phase.IN_TREE),
        (
            "aws-ebs",
            "1.20",
            {"CSIMigrationAWS": True, "CSIMigrationAWSComplete": True},
            Phase.PLUGIN_OFF,
        ),
        ("aws-ebs", "1.24.17", {}, Phase.REDIRECTED),
        ("aws-ebs", "1.24.17", {"InTreePluginAWSUnregister": True}, Phase.PLUGIN_OFF),
        ("aws-ebs", "1.25", {"CSIMigrationAWS": False}, Phase.REDIRECTED),
        ("aws-ebs", "1.27", {}, Phase.GONE),
        ("portworx-volume", "1.22", {"CSIMigrationPortworx": True}, Phase.IN_TREE),
        ("portworx-volume", "1.30", {}, Phase.IN_TREE),
        ("portworx-volume", "1.31", {}, Phase.REDIRECTED),
        ("rbd", "1.30", {}, Phase.IN_TREE),
        ("rbd", "1.30", {"CSIMigrationRBD": True}, Phase.REDIRECTED),
        ("rbd", "1.31", {}, Phase.GONE),
    ],
)
def test_phases(plugin: str, version: str, gates: dict[str, bool], expected: Phase) -> None:
    assert phase(f"kubernetes.io/{plugin}", Version.parse(version), gates) is expected


def test_only_rbd_is_served_by_nobody_once_it_is_gone() -> None:
    unservable = {plugin for plugin in LIVES if not servable(plugin, LAST)}
    assert unservable == {"kubernetes.io/rbd"}
    assert servable("kubernetes.io/rbd", Version(1, 30, 14))


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("1.24", (1, 24, 0)),
        ("v1.24.17", (1, 24, 17)),
        ("v1.27.3-gke.100", (1, 27, 3)),
        ("1.25+", (1, 25, 0)),
        ("v1.30.4+k3s1", (1, 30, 4)),
    ],
)
def test_versions_are_read(text: str, version: tuple[int, int, int]) -> None:
    assert Version.parse(text) == Version(*version)


@pytest.mark.parametrize("text", ["", "1", "latest", "1.x", "1.24.", "1.24.17.3"])
def test_other_texts_are_no_versions(text: str) -> None:
    with pytest.raises(ValueError, match="is not a Kubernetes version"):
        Version.parse(text)
