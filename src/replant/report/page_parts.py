"""The tables of the HTML report, and the one place where text becomes HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from replant.inventory.findings import Finding, Severity
from replant.report.grouping import RANK, WORST_FIRST, Group
from replant.report.wording import number_of, plain

_SHORT = 160
"""A fix of one line and at most so many characters is shown at once; a longer one is folded."""

_FINDING_HEADINGS = ("Severity", "Id", "Kind", "Namespace", "Name", "Reason and fix")


def text(content: str) -> str:
    """Text from anywhere, harmless between tags and in quoted attributes."""
    return escape(plain(content))


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], names: int) -> str:
    """A small table: the first columns are names, the first of them the row's; others numbers."""
    head = "".join(
        f'<th scope="col"{_numeric(index, names)}>{heading}</th>'
        for index, heading in enumerate(headings)
    )
    body = "".join(f"<tr>{_cells(row, names)}</tr>\n" for row in rows)
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>\n{body}</tbody></table></div>"
    )


def _cells(row: Sequence[str], names: int) -> str:
    first, *others = row
    cells = "".join(
        f"<td{_numeric(index, names)}>{text(cell)}</td>"
        for index, cell in enumerate(others, start=1)
    )
    return f'<th scope="row">{text(first)}</th>{cells}'


def _numeric(index: int, names: int) -> str:
    return "" if index < names else ' class="number"'


def overview_section(groups: Sequence[Group]) -> str:
    """A row for each sort of finding, worst first: what a manager reads."""
    if not groups:
        return ""
    rows = "".join(map(_overview_row, groups))
    return (
        '<section aria-labelledby="overview"><h2 id="overview">What was found</h2>\n'
        '<div class="card"><div class="scroll"><table><thead><tr><th scope="col">Severity</th>'
        '<th scope="col">Id</th><th scope="col">Reason</th>'
        '<th scope="col" class="number">Objects</th></tr></thead>'
        f"<tbody>\n{rows}</tbody></table></div></div></section>\n"
    )


def _overview_row(group: Group) -> str:
    identity = text(group.id)
    example = "" if group.one_reason else '<span class="muted">For example: </span>'
    link = f'<a href="#findings" data-find="{identity}" data-rank="{RANK[group.severity]}">'
    return (
        f'<tr><td>{_badge(group.severity)}</td><th scope="row" class="name">{link}{identity}</a>'
        f"</th><td>{example}{text(group.first.reason)}</td>"
        f'<td class="number">{len(group.findings):,}</td></tr>\n'
    )


def findings_section(findings: Sequence[Finding]) -> str:
    """Every finding on a row of its own, to sort and filter where scripts may run."""
    if not findings:
        return ""
    head = "".join(
        f'<th scope="col" role="columnheader">{heading}</th>' for heading in _FINDING_HEADINGS
    )
    rows = "".join(map(_finding_row, findings))
    return (
        '<section aria-labelledby="findings"><h2 id="findings">All findings</h2>\n'
        f'<div class="card">{_controls(len(findings))}<table id="findings-table" role="table">'
        f'<thead role="rowgroup"><tr role="row">{head}</tr></thead>'
        f'<tbody role="rowgroup">\n{rows}</tbody></table>'
        '<p class="muted">More on each: <code>replant explain ID</code></p></div></section>\n'
    )


def _controls(count: int) -> str:
    options = "".join(
        f'<option value="{RANK[severity]}">{severity.value}</option>' for severity in WORST_FIRST
    )
    return (
        f'<p class="muted">{number_of(count, "finding")}, one row for each object.</p>'
        '<div class="controls" id="controls" hidden>'
        '<label>Filter by any word <input type="search" id="search" autocomplete="off"></label>'
        f'<label>Severity <select id="severity"><option value="">all</option>{options}</select>'
        f'</label><output id="shown" for="search severity">{count:,} of {count:,} shown</output>'
        "</div>"
    )


def _finding_row(finding: Finding) -> str:
    """A row that says its roles, because its style makes it a grid and browsers go by that."""
    where = finding.object
    cells = (
        _badge(finding.severity),
        text(finding.id),
        text(where.kind),
        text(where.namespace),
        f'<span class="name">{text(where.name)}</span>',
        text(finding.reason) + _fix(finding.fix),
    )
    row = "".join(f'<td role="cell">{cell}</td>' for cell in cells)
    return f'<tr role="row" data-rank="{RANK[finding.severity]}">{row}</tr>\n'


def _fix(fix: str) -> str:
    if not fix:
        return ""
    # A line break right after <pre> would be swallowed, so give it one to swallow.
    block = f"<pre>\n{text(fix)}</pre>"
    if len(fix) <= _SHORT and "\n" not in fix:
        return block
    return f"<details><summary>Show the fix</summary>{block}</details>"


def _badge(severity: Severity) -> str:
    return f'<span class="badge {severity.value}">{severity.value}</span>'
