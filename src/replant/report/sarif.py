"""SARIF 2.1.0, for dashboards that collect the findings of many tools."""

from __future__ import annotations

from typing import Any

from replant import __version__
from replant.errors import printable
from replant.inventory.findings import Finding, ObjectRef, ScanResult, Severity
from replant.report.grouping import grouped
from replant.report.json_document import json_text
from replant.report.wording import headline, plain

_LEVELS = {Severity.BLOCKER: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def render(result: ScanResult) -> str:
    """One run: a rule for each id, a result for each finding."""
    worst: dict[str, Severity] = {}
    for group in grouped(result.findings):
        worst.setdefault(group.id, group.severity)
    indices = {identity: index for index, identity in enumerate(sorted(worst))}
    driver = {
        "name": "Replant",
        "version": __version__,
        "rules": [_rule(identity, worst[identity]) for identity in indices],
    }
    run = {
        "tool": {"driver": driver},
        "results": [_result(finding, indices[finding.id]) for finding in result.findings],
        "properties": {
            "verdict": headline(result),
            "serverVersion": printable(result.server_version),
            "targetVersion": printable(result.target_version),
        },
    }
    return json_text(
        {
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [run],
        }
    )


def _rule(identity: str, severity: Severity) -> dict[str, Any]:
    shown = printable(identity)
    return {
        "id": shown,
        "defaultConfiguration": {"level": _LEVELS[severity]},
        "help": {"text": f"replant explain {shown}"},
        "helpUri": f"docs/findings/{shown}.md",
    }


def _result(finding: Finding, rule: int) -> dict[str, Any]:
    return {
        "ruleId": printable(finding.id),
        "ruleIndex": rule,
        "level": _LEVELS[finding.severity],
        "message": {"text": _message(finding.reason)},
        "locations": [{"logicalLocations": [_location(finding.object)]}],
        "properties": {"severity": finding.severity.value, "fix": plain(finding.fix)},
    }


def _location(where: ObjectRef) -> dict[str, str]:
    parts = (where.kind, where.namespace, where.name)
    return {
        "name": printable(where.name),
        "fullyQualifiedName": "/".join(printable(part) for part in parts if part),
        "kind": "resource",
    }


def _message(text: str) -> str:
    """In a SARIF message, braces are placeholders and brackets are links; ours are neither."""
    return plain(text).replace("{", "{{").replace("}", "}}").replace("](", "] (")
