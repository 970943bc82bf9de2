"""JSON, YAML and SARIF say exactly what the result says, as their schemas have it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings

from replant.inventory.findings import Finding, ScanResult, Severity, Verdict
from replant.manifests import yamltext
from replant.report.render import render
from tests.report import samples

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "scan-schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def encodable(text: str) -> str:
    return "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text)


def as_json(result: ScanResult) -> Any:
    return json.loads(render(result, "json"))


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@settings(deadline=None)
@given(samples.RESULTS)
def test_json_is_valid_and_says_all(result: ScanResult) -> None:
    found = as_json(result)
    VALIDATOR.validate(found)
    assert found["verdict"] == result.verdict
    assert found["summary"] == encodable(result.summary)
    assert found["server"] == {"version": encodable(result.server_version)}
    assert found["target"] == {"version": encodable(result.target_version)}
    assert [item["reason"] for item in found["findings"]] == [
        encodable(finding.reason) for finding in result.findings
    ]
    assert sum(item["bytes"] for item in found["inventory"]["plugins"].values()) == sum(
        counts.bytes for counts in result.plugins.values()
    )


@settings(deadline=None)
@given(samples.RESULTS)
def test_json_is_harmless_in_a_terminal(result: ScanResult) -> None:
    text = render(result, "json")
    assert not [char for char in text if char != "\n" and ord(char) < 32]
    assert not [char for char in text if "\x7f" <= char <= "\x9f" or "\u202a" <= char <= "\u202e"]


def test_findings_are_never_merged() -> None:
    findings = [
        Finding("RP101", Severity.INFO, samples.volume(name), "The same.") for name in ("a", "b")
    ]
    found = as_json(ScanResult(Verdict.READY, "", "", "", findings=findings))
    assert found["findings"] == [
        {
            "id": "RP101",
            "severity": "info",
            "object": {"kind": "PersistentVolume", "namespace": "", "name": name},
            "reason": "The same.",
            "fix": "",
        }
        for name in ("a", "b")
    ]


def test_the_inventory_and_what_was_read_are_spelled_as_documented() -> None:
    found = as_json(samples.realistic())
    assert found["schemaVersion"] == 1
    assert found["inventory"]["plugins"]["kubernetes.io/vsphere-volume"] == {
        "driver": "csi.vsphere.vmware.com",
        "volumes": 37,
        "bytes": 1480 * samples.GIB,
        "claims": 37,
        "classes": 1,
        "workloads": 22,
        "nodes": 12,
    }
    assert found["read"]["Pod"] == {"seen": 6120, "used": 6119, "passedOver": 1}


@pytest.mark.parametrize(
    "path",
    [[], ["server"], ["target"], ["inventory"], ["inventory", "plugins", "kubernetes.io/aws-ebs"],
     ["findings", 0], ["findings", 0, "object"], ["read", "Pod"]],
)  # fmt: skip
def test_the_schema_takes_no_field_more_and_none_less(path: list[str | int]) -> None:
    more, less = as_json(samples.realistic()), as_json(samples.realistic())
    more_here, less_here = more, less
    for step in path:
        more_here, less_here = more_here[step], less_here[step]
    more_here["surprise"] = 1
    assert not VALIDATOR.is_valid(more)
    for field in list(less_here):
        value = less_here.pop(field)
        assert not VALIDATOR.is_valid(less), field
        less_here[field] = value
    assert VALIDATOR.is_valid(less)


@settings(deadline=None)
@given(samples.RESULTS)
def test_yaml_says_the_same_as_json(result: ScanResult) -> None:
    assert yamltext.load(render(result, "yaml")) == as_json(result)


def sarif_run(result: ScanResult) -> Any:
    document = json.loads(render(result, "sarif"))
    assert document["version"] == "2.1.0"
    (run,) = document["runs"]
    return run


@settings(deadline=None)
@given(samples.RESULTS)
def test_sarif_has_a_rule_for_each_id_and_a_result_for_each_finding(result: ScanResult) -> None:
    run = sarif_run(result)
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == sorted({finding.id for finding in result.findings})
    assert len(run["results"]) == len(result.findings)
    levels = {"blocker": "error", "warning": "warning", "info": "note"}
    for item, finding in zip(run["results"], result.findings, strict=True):
        assert rules[item["ruleIndex"]]["id"] == item["ruleId"] == finding.id
        assert item["level"] == levels[finding.severity]


def test_sarif_names_objects_and_pages() -> None:
    run = sarif_run(samples.realistic())
    claim = run["results"][2]["locations"][0]["logicalLocations"][0]
    assert claim["name"] == "orders-db"
    assert claim["fullyQualifiedName"] == "PersistentVolumeClaim/shop/orders-db"
    volume = run["results"][0]["locations"][0]["logicalLocations"][0]
    assert volume["fullyQualifiedName"] == "PersistentVolume/gluster-0"
    rules = {rule["id"]: rule for rule in run["tool"]["driver"]["rules"]}
    assert rules["RP301"]["helpUri"] == "docs/findings/RP301.md"
    assert rules["RP301"]["defaultConfiguration"] == {"level": "error"}


def test_a_sarif_message_has_neither_placeholders_nor_links() -> None:
    reason = 'See {0} and {"a": 1} and [here](http://evil).'
    finding = Finding("RP101", Severity.INFO, samples.volume("a"), reason)
    run = sarif_run(ScanResult(Verdict.READY, "", "", "", findings=[finding]))
    said = run["results"][0]["message"]["text"]
    assert said == 'See {{0}} and {{"a": 1}} and [here] (http://evil).'
