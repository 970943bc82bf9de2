"""CSV and JUnit: what spreadsheets and build servers read is what was found, and is harmless."""

from __future__ import annotations

import csv
import io
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings

from replant.inventory.findings import Finding, ScanResult, Severity, Verdict
from replant.report.render import render
from replant.report.wording import plain
from tests.report import samples


def rows_of(result: ScanResult) -> list[list[str]]:
    return list(csv.reader(io.StringIO(render(result, "csv"), newline=""), strict=True))


def one_finding(text: str) -> ScanResult:
    finding = Finding("RP101", Severity.WARNING, samples.volume(text), text, text)
    return ScanResult(Verdict.READY, "", "", "", findings=[finding])


@settings(deadline=None)
@given(samples.RESULTS)
def test_csv_has_the_texts_of_every_finding(result: ScanResult) -> None:
    heading, *rows = rows_of(result)
    assert heading == ["severity", "id", "kind", "namespace", "name", "reason", "fix"]
    assert len(rows) == len(result.findings)
    for row, finding in zip(rows, result.findings, strict=True):
        where = finding.object
        texts = (finding.severity.value, finding.id, where.kind, where.namespace, where.name)
        for cell, text in zip(row, (*texts, finding.reason, finding.fix), strict=True):
            assert cell in (plain(text), f"'{plain(text)}")


@settings(deadline=None)
@given(samples.RESULTS)
def test_no_cell_starts_a_formula(result: ScanResult) -> None:
    for row in rows_of(result):
        assert not [cell for cell in row if cell[:1] and cell[0] in "=+-@\t\r\n\uff1d"]


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=HYPERLINK()", "'=HYPERLINK()"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "\\t=1"),
        ("\r=1", "\\r=1"),
        ("\n=1", "'\n=1"),
        ("\uff20x", "'\uff20x"),
        ("a=1", "a=1"),
        ("two\nlines", "two\nlines"),
        ('a "b", c', 'a "b", c'),
        ("\x1b[31m", "\\x1b[31m"),
    ],
)
def test_cells_are_shown_and_never_run(text: str, cell: str) -> None:
    assert rows_of(one_finding(text))[1][4:] == [cell] * 3


def test_csv_lines_end_as_the_standard_has_it() -> None:
    text = render(one_finding('a "b", c'), "csv")
    assert text.endswith('PersistentVolume,,"a ""b"", c","a ""b"", c","a ""b"", c"\r\n')


def suite_of(result: ScanResult) -> ElementTree.Element:
    root = ElementTree.fromstring(render(result, "junit"))  # noqa: S314
    (suite,) = root.findall("testsuite")
    return suite


@settings(deadline=None)
@given(samples.RESULTS)
def test_junit_has_a_test_case_for_each_finding(result: ScanResult) -> None:
    suite = suite_of(result)
    cases = suite.findall("testcase")
    assert suite.get("tests") == str(len(cases)) == str(len(result.findings))
    assert suite.get("failures") == str(len(suite.findall("testcase/failure")))
    for case, finding in zip(cases, result.findings, strict=True):
        assert case.get("classname") == finding.id
        if finding.severity is Severity.INFO:
            assert case.find("failure") is None
            said = case.findtext("system-out")
        else:
            failure = case.find("failure")
            assert failure is not None
            assert failure.get("type") == finding.severity.value
            said = failure.text
        assert said is not None
        assert plain(finding.reason) in said
        assert plain(finding.fix) in said


@pytest.mark.parametrize("forbidden", ["\x00", "\x0b", "\x1b", "\ud800", "\ufffe", "\uffff"])
def test_what_xml_forbids_is_spelled_out(forbidden: str) -> None:
    case = suite_of(one_finding(f"a{forbidden}b")).find("testcase")
    assert case is not None
    assert case.get("name") == f"PersistentVolume a{ascii(forbidden)[1:-1]}b"


def test_the_suite_says_the_verdict() -> None:
    properties = {
        each.get("name"): each.get("value")
        for each in suite_of(samples.realistic()).findall("properties/property")
    }
    assert str(properties["verdict"]).startswith("not ready: 3 blockers")
    assert properties["server version"] == "1.24.17"
    assert properties["target version"] == "1.31"
