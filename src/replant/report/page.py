"""HTML: one file that a person would show to a manager.

Whatever came from an object is escaped by ``page_parts.text``.
"""

from __future__ import annotations

from replant.inventory.findings import ScanResult, Verdict
from replant.report.chart import Bar, bar_chart
from replant.report.grouping import count_by_severity, grouped
from replant.report.page_parts import findings_section, overview_section, table, text
from replant.report.page_script import SCRIPT
from replant.report.page_shell import CROSS, DASH, TICK, Tile, banner, page, section, tiles
from replant.report.page_style import STYLE
from replant.report.wording import (
    INVENTORY_HEADINGS,
    NAME_COLUMNS,
    human_bytes,
    inventory_rows,
    noun_for,
    read_summary,
    versions,
)

_SIGNS = {Verdict.NOT_READY: CROSS, Verdict.READY: TICK, Verdict.NOTHING_TO_DO: DASH}


def render(result: ScanResult) -> str:
    """The whole page."""
    groups = grouped(result.findings)
    body = (
        _banner(result),
        _tiles(result),
        overview_section(groups),
        _inventory(result),
        findings_section(result.findings),
        _reading(result),
    )
    return page(
        title=result.verdict.value,
        style=STYLE,
        body="".join(body),
        origin="from a scan that changed nothing",
        script=SCRIPT,
    )


def _banner(result: ScanResult) -> str:
    verdict = result.verdict.value
    summary = f"<p>{text(result.summary)}</p>" if result.summary else ""
    where = f'<p class="versions">{text(versions(result).capitalize())}</p>'
    return banner(
        verdict.replace(" ", "-"), _SIGNS[result.verdict], verdict.capitalize(), summary + where
    )


def _tiles(result: ScanResult) -> str:
    shown = [
        Tile(severity.value if count else "none", noun_for(count, severity.value), f"{count:,}")
        for severity, count in count_by_severity(result.findings).items()
    ]
    plugins = result.plugins.values()
    volumes = sum(counts.volumes for counts in plugins)
    size = human_bytes(sum(counts.bytes for counts in plugins))
    shown += [
        Tile("volumes", noun_for(volumes, "in-tree volume"), f"{volumes:,}"),
        Tile("size", "capacity of these", size),
    ]
    return tiles(shown)


def _inventory(result: ScanResult) -> str:
    if not result.plugins:
        return ""
    rows = list(inventory_rows(result.plugins))
    counts = result.plugins.values()
    volumes = [Bar(row[0], each.volumes, row[2]) for row, each in zip(rows, counts, strict=True)]
    sizes = [Bar(row[0], each.bytes, row[3]) for row, each in zip(rows, counts, strict=True)]
    charts = bar_chart("Volumes per plugin", volumes) + bar_chart("Size per plugin", sizes)
    counted = table(INVENTORY_HEADINGS, rows, NAME_COLUMNS)
    return section("inventory", "What there is", f'<div class="charts">{charts}</div>{counted}')


def _reading(result: ScanResult) -> str:
    if not result.read:
        return ""
    rows = [
        (kind, f"{count.seen:,}", f"{count.used:,}", f"{count.passed_over:,}")
        for kind, count in result.read.items()
    ]
    counted = table(("Kind", "Seen", "Used", "Passed over"), rows, 1)
    return section(
        "read", "What was read", f'<p class="muted">{read_summary(result)}.</p>{counted}'
    )
