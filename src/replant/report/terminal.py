"""For a person at a terminal: the verdict first, then what there is, then what to do.

``table`` groups the findings; ``wide`` has each on a line of its own, for eyes and for grep.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from io import StringIO

from replant.errors import printable
from replant.inventory.findings import Finding, ScanResult, Severity, Verdict
from replant.report.grouping import Group, grouped
from replant.report.wording import (
    INVENTORY_HEADINGS,
    NAME_COLUMNS,
    headline,
    inventory_rows,
    lines_of,
    number_of,
    versions,
)

SHOWN = 5
"""So many objects of a group are shown; then they are counted."""

NARROWEST = 40
"""A terminal that claims to be narrower is served as if it were not."""

ROOM_FOR_DRIVERS = 100
"""In a narrower terminal the drivers' names would break everything else; wide has them."""

_UNLIMITED = 100_000
_WIDEST_COLUMN = 60

_STYLES = {
    Severity.BLOCKER: "bold red",
    Severity.WARNING: "yellow",
    Severity.INFO: "cyan",
    Verdict.NOT_READY: "bold red",
    Verdict.READY: "bold green",
    Verdict.NOTHING_TO_DO: "bold green",
}

Paint = Callable[[str, str], str]
"""Takes a text and a style, and gives the text in that style."""


def render(result: ScanResult, *, wide: bool, width: int | None, colour: bool) -> str:
    """The report; without a width no line is wrapped."""
    columns = None if width is None or wide else max(width, NARROWEST)
    paint = _colours() if colour else _no_colours
    lines = [*_heading(result, paint), *_inventory(result, columns, colour=colour)]
    if wide:
        lines += _every(result.findings, paint)
    else:
        for group in grouped(result.findings):
            lines += _group(group, columns, paint)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _no_colours(text: str, style: str) -> str:  # noqa: ARG001
    return text


def _colours() -> Paint:
    from rich.color import ColorSystem
    from rich.style import Style

    def paint(text: str, style: str) -> str:
        # The sixteen colours that the terminal's owner chose, not ours.
        return Style.parse(style).render(text, color_system=ColorSystem.STANDARD)

    return paint


def _heading(result: ScanResult, paint: Paint) -> Iterator[str]:
    verdict = result.verdict.value
    yield paint(verdict, _STYLES[result.verdict]) + headline(result).removeprefix(verdict)
    yield paint(versions(result), "dim")


def _inventory(result: ScanResult, width: int | None, *, colour: bool) -> Iterator[str]:
    if not result.plugins:
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    drivers = width is None or width >= ROOM_FOR_DRIVERS
    chosen = [i for i, heading in enumerate(INVENTORY_HEADINGS) if drivers or heading != "Driver"]
    for i in chosen:
        table.add_column(
            INVENTORY_HEADINGS[i].upper(),
            justify="left" if i < NAME_COLUMNS else "right",
            overflow="fold",
        )
    for row in inventory_rows(result.plugins):
        table.add_row(*(Text(row[i].removeprefix("kubernetes.io/")) for i in chosen))
    out = StringIO()
    Console(
        file=out,
        width=width or _UNLIMITED,
        color_system="standard" if colour else None,
        force_terminal=colour,
        # All that the library would otherwise ask the environment for.
        no_color=not colour,
        legacy_windows=False,
    ).print(table)
    yield ""
    yield from out.getvalue().rstrip("\n").split("\n")


def _group(group: Group, width: int | None, paint: Paint) -> Iterator[str]:
    identity, first = printable(group.id), group.first
    label = paint(group.severity.value.upper(), _STYLES[group.severity])
    yield ""
    yield f"{label}  {paint(identity, 'bold')}  {number_of(len(group.findings), 'object')}"
    reason = printable(first.reason)
    yield from _wrapped(reason if group.one_reason else f"For example: {reason}", width)
    for finding in group.findings[:SHOWN]:
        yield f"    {printable(str(finding.object))}"
    more = len(group.findings) - SHOWN
    if more > 0:
        yield paint(f"    … and {more:,} more (-o wide lists all)", "dim")
    if first.fix:
        yield "  Fix:" if group.one_fix else f"  Fix for {printable(str(first.object))}:"
        # Never wrapped: a command must be one that can be copied.
        yield from (f"    {paint(line, 'green')}" for line in lines_of(first.fix))
    yield paint(f"  More: replant explain {identity}", "dim")


def _wrapped(text: str, width: int | None) -> list[str]:
    if width is None:
        return [f"  {text}"]
    return textwrap.wrap(
        text, width, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False
    )


def _every(findings: list[Finding], paint: Paint) -> Iterator[str]:
    """Lines rather than rich's table, which takes half a second for each thousand rows."""
    if not findings:
        return
    from rich.cells import cell_len

    rows = [("SEVERITY", "ID", "OBJECT", "REASON", "FIX"), *map(_cells, findings)]
    aligned = range(3)
    widths = [min(max(cell_len(row[column]) for row in rows), _WIDEST_COLUMN) for column in aligned]
    styles = {severity.value: style for severity, style in _STYLES.items()}
    yield ""
    for row in rows:
        padded = [row[i] + " " * (widths[i] - cell_len(row[i])) for i in aligned]
        padded[0] = paint(padded[0], styles.get(row[0], "bold"))
        yield "  ".join((*padded, *row[len(padded) :]))


def _cells(finding: Finding) -> tuple[str, ...]:
    texts = (finding.id, str(finding.object), finding.reason, finding.fix)
    return (finding.severity.value, *map(printable, texts))
