"""What holds for every format: any text can be in a result, and the same words are used."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings

from replant.inventory.findings import Finding, ObjectRef, ScanResult, Severity, Verdict
from replant.report.grouping import count_by_severity, grouped
from replant.report.render import FORMATS, render
from replant.report.wording import human_bytes, number_of, plain, read_summary
from tests.report import samples


def test_formats_are_those_of_the_command() -> None:
    wanted = ("table", "wide", "json", "yaml", "markdown", "csv", "junit", "sarif", "html")
    assert wanted == FORMATS


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(ValueError, match="'pdf' is not a format; there are table, wide"):
        render(samples.EMPTY, "pdf")


@pytest.mark.parametrize("name", FORMATS)
@settings(deadline=None)
@given(result=samples.RESULTS)
def test_any_result_can_be_rendered_and_encoded(name: str, result: ScanResult) -> None:
    text = render(result, name)
    assert text.encode().endswith(b"\n")


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("nasty", samples.NASTY)
def test_any_id_can_be_rendered(name: str, nasty: str) -> None:
    finding = Finding(nasty, Severity.WARNING, ObjectRef(nasty, nasty, nasty), nasty, nasty)
    assert render(ScanResult(Verdict.READY, nasty, "", "", findings=[finding]), name).encode()


@pytest.mark.parametrize("name", FORMATS)
def test_an_empty_result_can_be_rendered(name: str) -> None:
    assert render(samples.EMPTY, name)


@pytest.mark.parametrize("name", FORMATS)
def test_huge_texts_are_not_cut(name: str) -> None:
    huge = "x" * 1_000_000
    finding = Finding("RP101", Severity.INFO, ObjectRef("PersistentVolume", huge), huge, huge)
    result = ScanResult(Verdict.READY, "", "", "", findings=[finding])
    assert huge in render(result, name)


def test_formats_are_loaded_only_when_wanted() -> None:
    program = (
        "import sys; from replant.report.render import FORMATS, render;"
        "print([name for name in ('rich', 'yaml', 'csv', 'xml') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout == b"[]\n"


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (1023, "1,023 B"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (10 * 2**30, "10 GiB"),
        (1500 * 2**30, "1.5 TiB"),
        (2**60, "1 EiB"),
        (5000 * 2**60, "5,000 EiB"),
        (10**400, f"{10**400 // 2**60:,}"[:20]),
    ],
)
def test_sizes_are_human(size: int, shown: str) -> None:
    assert human_bytes(size).startswith(shown)


@pytest.mark.parametrize(
    ("count", "noun", "shown"),
    [(0, "object", "0 objects"), (1, "object", "1 object"), (2000, "object", "2,000 objects"),
     (2, "info", "2 info")],
)  # fmt: skip
def test_numbers_have_their_nouns(count: int, noun: str, shown: str) -> None:
    assert number_of(count, noun) == shown


def test_what_was_read_is_summed_up() -> None:
    assert read_summary(samples.realistic()) == "9,036 objects read, 9,024 used, 12 passed over"


@given(samples.TEXTS)
def test_plain_text_keeps_what_can_be_shown(text: str) -> None:
    shown = plain(text)
    assert all(char.isprintable() or char == "\n" for char in shown)
    if text.replace("\n", "").isprintable():
        assert shown == text


@given(samples.RESULTS)
def test_grouping_loses_nothing_and_puts_the_worst_first(result: ScanResult) -> None:
    groups = grouped(result.findings)
    members = [finding for group in groups for finding in group.findings]
    assert len(members) == len(result.findings)
    assert all(finding in members for finding in result.findings)
    keys = [(group.severity, group.id) for group in groups]
    assert len(set(keys)) == len(keys)
    worst_first = [Severity.BLOCKER, Severity.WARNING, Severity.INFO]
    ranks = [(worst_first.index(severity), identity) for severity, identity in keys]
    assert ranks == sorted(ranks)
    assert sum(count_by_severity(result.findings).values()) == len(result.findings)
