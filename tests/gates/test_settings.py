"""The gates given to a component: taken or refused, and what they come to."""

from __future__ import annotations

import pytest

from replant.gates.history import FIRST, LAST, gates_at, known_gates
from replant.gates.plugins import Phase, phase
from replant.gates.settings import (
    REVIEW_GATE,
    Component,
    Flavour,
    changes,
    effective,
    problems,
    standings,
)
from replant.gates.versions import Version

MINORS = [Version(1, minor) for minor in range(FIRST.minor, LAST.minor + 1)]
AWS, PORTWORX = "kubernetes.io/aws-ebs", "kubernetes.io/portworx-volume"


def of_plugin(plugin: str, version: str, **given: bool) -> tuple[int, bool]:
    found = {each.plugin: each for each in standings(Version.parse(version), given)}
    return int(found[plugin].phase), found[plugin].registered


@pytest.mark.parametrize(
    ("version", "given", "reason"),
    [
        ("1.22", {"CSIMigrationRBD": True}, "comes with 1.23, and 1.22 does not have it yet"),
        ("1.27", {"CSIMigrationAWS": True}, "went with 1.27, and 1.27 does not have it"),
        ("1.24", {"CSIMigrationAws": True}, "is no gate of the migration; is it CSIMigrationAWS?"),
        ("1.24", {"Quota": True}, "is no gate of the migration"),
        ("1.25", {"CSIMigrationAWS": False}, "is locked to true at 1.25"),
        ("1.26.3", {"CSIMigrationvSphere": False}, "is locked to true at 1.26"),
        ("1.16", {"CSIMigrationAWS": True}, "needs CSIMigration, which is off"),
        ("1.20", {"CSIMigrationAWSComplete": True}, "needs CSIMigrationAWS, which is off"),
        ("1.24", {REVIEW_GATE: True}, "never shipped: it became one gate for each plugin"),
    ],
)
def test_what_a_component_would_refuse_is_refused(
    version: str, given: dict[str, bool], reason: str
) -> None:
    [problem] = problems(Version.parse(version), given)
    assert problem.gate in given
    assert problem.reason.startswith(reason)


@pytest.mark.parametrize(
    ("version", "given"),
    [
        ("1.24", {"CSIMigrationAWS": False}),
        ("1.24", {"CSIMigration": False}),
        ("1.24", {"InTreePluginAWSUnregister": True, "CSIMigrationAWS": False}),
        ("1.25", {"CSIMigrationAWS": True}),
        ("1.26.4", {"CSIMigrationvSphere": False}),
        ("1.20", {"CSIMigrationAWS": True, "CSIMigrationAWSComplete": True}),
        ("1.16", {"CSIMigration": True, "CSIMigrationAWS": True}),
    ],
)
def test_what_a_component_takes_is_taken(version: str, given: dict[str, bool]) -> None:
    assert problems(Version.parse(version), given) == []


def test_complete_needs_all_that_it_completes() -> None:
    given = {"CSIMigration": False, "CSIMigrationAWS": True, "CSIMigrationAWSComplete": True}
    assert [problem.gate for problem in problems(Version(1, 20), given)] == [
        "CSIMigrationAWS",
        "CSIMigrationAWSComplete",
    ]


@pytest.mark.parametrize("version", MINORS, ids=str)
def test_defaults_are_never_a_problem_and_always_effective(version: Version) -> None:
    defaults = {gate: spec.default for gate, spec in gates_at(version).items()}
    assert problems(version, {}) == []
    assert effective(version, {}) == defaults
    assert effective(version, {gate: not on for gate, on in defaults.items()}) == {
        gate: spec.default if spec.locked else not spec.default
        for gate, spec in gates_at(version).items()
    }


@pytest.mark.parametrize("version", MINORS, ids=str)
def test_every_gate_is_taken_or_refused_with_a_reason(version: Version) -> None:
    for gate in known_gates():
        there = gate in effective(version, {})
        [*found] = problems(version, {gate: False})
        assert bool(found) != there or gates_at(version)[gate].locked


# KEP-2589: the gate redirects only with CSIMigration; Unregister stands alone; together, complete.
@pytest.mark.parametrize(
    ("given", "standing"),
    [
        ({}, (0, True)),
        ({"CSIMigrationPortworx": True}, (1, True)),
        ({"CSIMigrationPortworx": True, "CSIMigration": False}, (0, True)),
        ({"InTreePluginPortworxUnregister": True}, (0, False)),
        ({"CSIMigrationPortworx": True, "InTreePluginPortworxUnregister": True}, (2, False)),
    ],
    ids=str,
)
def test_portworx_as_its_proposal_says(given: dict[str, bool], standing: tuple[int, bool]) -> None:
    assert of_plugin(PORTWORX, "1.24", **given) == standing


@pytest.mark.parametrize(
    ("version", "given", "standing"),
    [
        ("1.20", {"CSIMigrationAWSComplete": True}, (0, True)),
        ("1.20", {"CSIMigrationAWS": True, "CSIMigrationAWSComplete": True}, (2, False)),
        ("1.22", {"InTreePluginAWSUnregister": True}, (0, False)),
        ("1.22", {"CSIMigrationAWS": True, "InTreePluginAWSUnregister": True}, (2, False)),
        ("1.26", {}, (1, True)),
        ("1.27", {}, (4, False)),
    ],
)
def test_how_a_plugin_is_taken_away(
    version: str, given: dict[str, bool], standing: tuple[int, bool]
) -> None:
    assert of_plugin(AWS, version, **given) == standing


def test_the_review_s_gate_turns_off_what_is_redirected_and_nothing_else() -> None:
    version, given = Version(1, 20), {"CSIMigrationAWS": True, REVIEW_GATE: True}
    assert problems(version, given, Flavour.REVIEW) == []
    found = {each.plugin: each for each in standings(version, given, Flavour.REVIEW)}
    assert found[AWS].phase is Phase.PLUGIN_OFF
    assert found["kubernetes.io/gce-pd"].phase is Phase.IN_TREE
    assert found["kubernetes.io/gce-pd"].registered
    without = {**given, "CSIMigration": False}
    assert [str(each) for each in problems(version, without, Flavour.REVIEW)] == [
        "CSIMigrationAWS needs CSIMigration, which is off",
        f"{REVIEW_GATE} needs CSIMigration, which is off",
    ]


@pytest.mark.parametrize("version", MINORS, ids=str)
def test_phases_are_those_that_a_scan_sees(version: Version) -> None:
    for standing in standings(version, {}):
        assert standing.phase is phase(standing.plugin, version)


def test_what_the_next_minor_changes_is_said_before_it_hurts() -> None:
    said = list(changes(Version(1, 24), {"CSIMigrationAWS": False}, Component.CONTROLLER))
    assert "CSIMigrationAWS is ga, locked on (was beta, on by default)." in said
    locked = "CSIMigrationAWS is locked to true at 1.25"
    assert f"{locked}: do not give it, or the component does not start." in said
    assert any(line.startswith(f"{AWS} goes from phase 0 to 1: served by CSI") for line in said)


def test_the_last_known_minor_says_nothing_of_the_next() -> None:
    assert list(changes(LAST, {}, Component.CONTROLLER)) == []


def test_who_serves_is_said_as_the_component_sees_it() -> None:
    [aws, *_others] = standings(Version(1, 24), {})
    assert aws.meaning(Component.CONTROLLER).endswith("in-tree elsewhere")
    assert aws.meaning(Component.KUBELET) == "served by CSI: a kubelet follows its own gates alone"
    [*_others, rbd] = standings(Version(1, 31), {})
    assert rbd.meaning(Component.KUBELET).startswith("served by nobody")
