"""Markdown for a pull request's comment or a wiki: what first, where below it.

Texts from objects are shown as they are: they can start no markup, mention no one and end no
table. Lists are cut, because a comment that is too long is refused; the cut says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from replant.errors import printable
from replant.inventory.findings import Finding, ScanResult
from replant.report.grouping import Group, count_by_severity, grouped
from replant.report.wording import (
    INVENTORY_HEADINGS,
    NAME_COLUMNS,
    inventory_rows,
    number_of,
    plain,
    read_summary,
    versions,
)

LISTED = 20
"""So many objects are listed for each sort of finding; then they are counted."""

_MARKUP = re.compile(r"[\\`*_\[\]<>|~&$]")
_BLOCK_START = re.compile(r"^(?=[#+=:-])|^(\d+)(?=[.)])")
_REFERENCE = re.compile(r"[@#](?=\w)")
_BACKTICKS = re.compile(r"`+")


def render(result: ScanResult) -> str:
    """Verdict, inventory, and a section for each sort of finding."""
    groups = grouped(result.findings)
    sections = [
        f"## Replant: {result.verdict.value}",
        prose(result.summary),
        prose(versions(result)),
        _inventory(result),
        _overview(result, groups),
        *(section for group in groups for section in _details(group)),
        f"<sub>{prose(read_summary(result))}</sub>",
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def prose(text: str) -> str:
    """``text`` in a paragraph or a cell: on one line, and nothing in it is markup."""
    one_line = printable(" ".join(plain(text).split()))
    escaped = _MARKUP.sub(r"\\\g<0>", one_line)
    # GitHub looks for mentions after the markup is gone; only a break in the word stops it.
    unlinked = _REFERENCE.sub(r"\g<0>&#8203;", escaped)
    return _BLOCK_START.sub(r"\1\\", unlinked)


def code(text: str) -> str:
    """``text`` as code, in a cell too."""
    shown = printable(text)
    if not shown.strip():
        return ""
    ticks = _fence(shown, 1)
    space = " " if shown.startswith(("`", " ")) or shown.endswith(("`", " ")) else ""
    return f"{ticks}{space}{shown}{space}{ticks}".replace("|", "\\|")


def _inventory(result: ScanResult) -> str:
    if not result.plugins:
        return ""
    rows = (
        (*map(code, row[:NAME_COLUMNS]), *row[NAME_COLUMNS:])
        for row in inventory_rows(result.plugins)
    )
    return "\n".join(["### Inventory", "", *_table(INVENTORY_HEADINGS, rows, NAME_COLUMNS)])


def _overview(result: ScanResult, groups: list[Group]) -> str:
    if not groups:
        return ""
    counts = (
        number_of(count, severity.value)
        for severity, count in count_by_severity(result.findings).items()
    )
    rows = (
        (
            group.severity.value,
            prose(group.id),
            prose(group.first.reason),
            f"{len(group.findings):,}",
        )
        for group in groups
    )
    table = _table(("Severity", "Id", "Reason, of the first", "Objects"), rows, 3)
    return "\n".join(["### Findings", "", f"{', '.join(counts)}.", "", *table])


def _details(group: Group) -> Iterator[str]:
    objects = number_of(len(group.findings), "object")
    # This line is HTML, in which a backslash escapes nothing.
    title = f"<b>{escape(printable(group.id))}</b>: {group.severity.value}, {objects}"
    yield f"<details><summary>{title}</summary>"
    rows = (_object_row(finding) for finding in group.findings[:LISTED])
    yield "\n".join(_table(("Object", "Reason"), rows, 2))
    more = len(group.findings) - LISTED
    if more > 0:
        yield f"… and {more:,} more (`-o json` lists all)"
    if group.first.fix:
        yield "Fix:" if group.one_fix else f"Fix for {code(str(group.first.object))}:"
        yield _block(group.first.fix)
    yield f"More: {code(f'replant explain {group.id}')}"
    yield "</details>"


def _object_row(finding: Finding) -> tuple[str, str]:
    return code(str(finding.object)), prose(finding.reason)


def _block(text: str) -> str:
    shown = plain(text)
    fence = _fence(shown, 3)
    return f"{fence}\n{shown}\n{fence}"


def _fence(text: str, least: int) -> str:
    """Backticks, more of them than there are in a row in the text."""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    return "`" * max(least, longest + 1)


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]], left: int) -> Iterator[str]:
    """A table whose first columns are aligned left and whose others, numbers, right."""
    yield _row(headings)
    yield _row(["---"] * left + ["---:"] * (len(headings) - left))
    yield from map(_row, rows)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
