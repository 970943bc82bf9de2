"""What a person sees: the verdict first, the worst next, and nothing that a terminal obeys."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replant.inventory.findings import Finding, ObjectRef, ScanResult, Severity, Verdict
from replant.report.render import render
from tests.report import samples

COLOURS = re.compile("\x1b\\[[0-9;]*m")
WIDTHS = st.one_of(st.none(), st.integers(-1, 300))


def stripped(text: str) -> list[str]:
    return [line.rstrip() for line in text.split("\n")]


def table(result: ScanResult, width: int | None = None) -> list[str]:
    return render(result, "table", width=width).splitlines()


@pytest.mark.parametrize("name", ["table", "wide"])
@settings(deadline=None)
@given(result=samples.RESULTS, width=WIDTHS)
def test_there_are_no_control_characters(name: str, result: ScanResult, width: int | None) -> None:
    text = render(result, name, width=width)
    assert not [char for char in text if not char.isprintable() and char != "\n"]


@pytest.mark.parametrize("name", ["table", "wide"])
@settings(deadline=None)
@given(result=samples.RESULTS, width=WIDTHS)
def test_colours_are_all_that_colour_adds(name: str, result: ScanResult, width: int | None) -> None:
    coloured = render(result, name, width=width, colour=True)
    assert COLOURS.search(coloured)
    plain = render(result, name, width=width)
    assert stripped(COLOURS.sub("", coloured)) == stripped(plain)


@pytest.mark.parametrize("verdict", Verdict)
@pytest.mark.parametrize("name", ["table", "wide"])
def test_the_first_line_is_the_verdict(name: str, verdict: Verdict) -> None:
    text = render(ScanResult(verdict, "All is said.", "", ""), name)
    assert text.splitlines() == [f"{verdict.value}: All is said.", "server version unknown"]


def test_the_inventory_is_a_table() -> None:
    rows = [re.split(" {2,}", line) for line in table(samples.realistic())[3:8]]
    assert rows == [
        ["PLUGIN", "DRIVER", "VOLUMES", "SIZE", "CLAIMS", "CLASSES", "WORKLOADS", "NODES"],
        ["aws-ebs", "ebs.csi.aws.com", "1,204", "47.2 TiB", "1,190", "3", "612", "85"],
        ["portworx-volume", "pxd.portworx.com", "212", "20.7 TiB", "212", "1", "64", "40"],
        ["vsphere-volume", "csi.vsphere.vmware.com", "37", "1.4 TiB", "37", "1", "22", "12"],
        ["glusterfs", "none", "2", "100 GiB", "2", "0", "1", "3"],
    ]


def test_a_narrow_terminal_keeps_rows_whole() -> None:
    lines = table(samples.realistic(), width=80)
    assert "DRIVER" not in lines[3]
    assert len(lines[3:8]) == len([line for line in lines[3:8] if line and line[0] != " "])
    assert max(map(len, lines[3:8])) <= 80


def test_groups_are_worst_first_and_counted() -> None:
    heads = [line for line in table(samples.realistic()) if re.match("[A-Z]+  RP", line)]
    assert heads == [
        "BLOCKER  RP102  2 objects",
        "BLOCKER  RP301  1 object",
        "WARNING  RP201  1 object",
        "WARNING  RP203  1 object",
        "INFO  RP101  12 objects",
    ]


@pytest.mark.parametrize(("many", "more"), [(5, None), (6, "1"), (1205, "1,200")])
def test_the_first_few_objects_are_shown(many: int, more: str | None) -> None:
    lines = table(samples.realistic(many))
    assert len([line for line in lines if line.startswith("    PersistentVolume pvc-")]) == 5
    cut = [line for line in lines if "more (-o wide lists all)" in line]
    assert cut == ([f"    … and {more} more (-o wide lists all)"] if more else [])


def test_a_group_says_what_to_do() -> None:
    lines = table(samples.realistic())
    start = lines.index("BLOCKER  RP102  2 objects")
    assert lines[start + 4 : start + 7] == [
        "  Fix:",
        "    Copy the data to a volume of another driver before the upgrade.",
        "  More: replant explain RP102",
    ]


def test_what_is_said_of_one_object_is_not_said_of_all() -> None:
    findings = [
        Finding("RP101", Severity.INFO, samples.volume(name), f"It is {name}.", f"fix {name}")
        for name in ("a", "b")
    ]
    text = render(ScanResult(Verdict.READY, "", "", "", findings=findings), "table")
    assert "  For example: It is a.\n" in text
    assert "  Fix for PersistentVolume a:\n    fix a\n" in text


def test_reasons_are_wrapped_and_commands_are_not() -> None:
    lines = table(samples.realistic(), width=60)
    assert "    kubectl patch pv pvc-9f1 --type merge -p \\" in lines
    assert '      \'{"metadata": {"annotations": {"openstorage.io/auth-secret-name": ' in "\n".join(
        lines
    )
    reasons = [line for line in lines if line.startswith("  ") and line[2] != " "]
    assert max(map(len, reasons)) <= 60


def test_wide_has_every_finding_on_its_own_line() -> None:
    lines = render(samples.realistic(2000), "wide", width=40).splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("SEVERITY"))
    assert len(lines) - start - 1 == 2005
    assert lines[start + 3].startswith("blocker   RP301  PersistentVolumeClaim shop/orders-db  ")
    assert "\\n" in lines[start + 3]


def test_wide_keeps_its_columns_beside_wide_letters() -> None:
    findings = [
        Finding("RP101", Severity.INFO, ObjectRef("Pod", name, "n"), "why")
        for name in ("日本", "abcd")
    ]
    lines = render(ScanResult(Verdict.READY, "", "", "", findings=findings), "wide").splitlines()
    assert lines[-2:] == ["info      RP101  Pod n/日本  why", "info      RP101  Pod n/abcd  why"]


def test_markup_of_the_terminal_library_is_text() -> None:
    result = samples.realistic()
    result.plugins = {"[red]x[/red]:smile:": result.plugins["kubernetes.io/aws-ebs"]}
    assert "[red]x[/red]:smile:" in render(result, "table", colour=True)


@pytest.mark.parametrize("variable", ["NO_COLOR", "FORCE_COLOR", "TERM", "COLUMNS"])
def test_the_environment_has_no_say(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = [render(samples.realistic(), "table", colour=colour) for colour in (True, False)]
    monkeypatch.setenv(variable, "1")
    after = [render(samples.realistic(), "table", colour=colour) for colour in (True, False)]
    assert after == before
