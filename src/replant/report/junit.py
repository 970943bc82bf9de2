"""JUnit XML, which every build server shows: what a person must act on is a failed test."""

from __future__ import annotations

from xml.etree import ElementTree

from replant.errors import printable
from replant.inventory.findings import Finding, ScanResult, Severity
from replant.report.grouping import count_by_severity
from replant.report.wording import headline, plain

_NAME = "replant scan"


def render(result: ScanResult) -> str:
    """One test suite with a test case for each finding."""
    found = count_by_severity(result.findings)
    counts = {
        "name": _NAME,
        "tests": str(len(result.findings)),
        "failures": str(found[Severity.BLOCKER] + found[Severity.WARNING]),
        "errors": "0",
        "skipped": "0",
    }
    root = ElementTree.Element("testsuites", counts)
    suite = ElementTree.SubElement(root, "testsuite", counts)
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in (
        ("verdict", headline(result)),
        ("server version", printable(result.server_version)),
        ("target version", printable(result.target_version)),
    ):
        ElementTree.SubElement(properties, "property", {"name": name, "value": value})
    for finding in result.findings:
        suite.append(_test_case(finding))
    ElementTree.indent(root)
    body = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'


def _test_case(finding: Finding) -> ElementTree.Element:
    identity = printable(finding.id)
    case = ElementTree.Element(
        "testcase", {"classname": identity, "name": printable(str(finding.object)), "time": "0"}
    )
    if finding.severity is Severity.INFO:
        outcome = ElementTree.SubElement(case, "system-out")
    else:
        outcome = ElementTree.SubElement(
            case,
            "failure",
            {"type": finding.severity.value, "message": printable(finding.reason)},
        )
    parts = (finding.reason, finding.fix, f"More: replant explain {identity}")
    outcome.text = "\n\n".join(plain(part) for part in parts if part)
    return case
