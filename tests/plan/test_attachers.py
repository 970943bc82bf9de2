"""Which attach/detach controller a plan counts with: what is not seen is not assumed."""

from __future__ import annotations

import pytest

from replant.gates.plugins import LIVES
from replant.gates.versions import Version
from replant.plan.attachers import attacher_of
from replant.routing import AttachController

AWS, AZURE, FILE = "kubernetes.io/aws-ebs", "kubernetes.io/azure-disk", "kubernetes.io/azure-file"
SEEN = {"ADC_CSIMigrationAWS": True}
BOTH = {**SEEN, "ADC_CSIMigrationAzureDisk": True}
UPSTREAM, NODE_DRIVEN = AttachController.UPSTREAM, AttachController.NODE_DRIVEN


@pytest.mark.parametrize(
    ("gates", "plugins", "why"),
    [
        (SEEN, (AWS,), ""),
        ({**SEEN, "CSIMigrationAWS": False, "CSIMigration": True}, (AWS,), ""),
        (BOTH, (AWS, AZURE), ""),
        ({}, (AWS,), "ADC_CSIMigrationAWS is not seen"),
        ({"CSIMigrationAWS": True}, (AWS,), "ADC_CSIMigrationAWS is not seen"),
        (SEEN, (AWS, AZURE), "ADC_CSIMigrationAzureDisk is not seen"),
        ({"ADC_CSIMigrationAWS": False}, (AWS,), "ADC_CSIMigrationAWS is off"),
        ({**SEEN, "ADC_CSIMigrationCinder": False}, (AWS,), "ADC_CSIMigrationCinder is off"),
        ({**SEEN, "CSIMigration": False}, (AWS,), "CSIMigration is off"),
        (SEEN, (AWS, FILE), "has no gate for kubernetes.io/azure-file"),
        (SEEN, (), "No plugin is named"),
    ],
)
def test_openshift_s_own_is_counted_with_only_where_it_is_seen_for_every_plugin(
    gates: dict[str, bool], plugins: tuple[str, ...], why: str
) -> None:
    found = attacher_of("openshift", gates, plugins)
    assert found.controller is (UPSTREAM if why else NODE_DRIVEN)
    assert (why or "goes by the nodes alone") in found.why
    assert ("--adc node-driven" in found.why) is bool(why)
    # Nobody else has the patch, whatever gates are called.
    assert attacher_of("generic", gates, plugins) == (UPSTREAM, "")


@pytest.mark.parametrize("plugin", LIVES)
def test_nothing_seen_is_no_patch(plugin: str) -> None:
    assert attacher_of("openshift", {}, (plugin,)).controller is UPSTREAM


@pytest.mark.parametrize("declared", AttachController)
@pytest.mark.parametrize("gates", [{}, SEEN, {"ADC_CSIMigrationAWS": False}])
def test_a_declaration_overrules_what_is_seen(
    declared: AttachController, gates: dict[str, bool]
) -> None:
    found = attacher_of("openshift", gates, (AWS,), declared, Version(1, 20))
    assert found.controller is declared
    assert "as --adc declares" in found.why


@pytest.mark.parametrize(
    ("plugin", "gates", "to", "expected"),
    [
        (AWS, SEEN, "1.22", NODE_DRIVEN),
        (AWS, SEEN, "1.21", NODE_DRIVEN),
        (AWS, SEEN, "1.20", UPSTREAM),
        (AZURE, BOTH, "1.21", UPSTREAM),
        (AWS, {}, "1.22", UPSTREAM),
    ],
)
def test_on_the_way_down_it_must_be_there_at_the_older_version_too(
    plugin: str, gates: dict[str, bool], to: str, expected: AttachController
) -> None:
    found = attacher_of("openshift", gates, (plugin,), to=Version.parse(to))
    assert found.controller is expected
