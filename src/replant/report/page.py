"""HTML: one file that a person would show to a manager, and that asks the network for nothing.

The browser is told so too: the page's policy allows its own style and script, by their hashes,
and nothing else. Whatever came from an object is escaped by ``page_parts.text``.
"""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256

from replant import __version__
from replant.inventory.findings import ScanResult, Verdict
from replant.report.chart import Bar, bar_chart
from replant.report.grouping import count_by_severity, grouped
from replant.report.page_parts import findings_section, overview_section, table, text
from replant.report.page_script import SCRIPT
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

_SIGNS = {
    Verdict.NOT_READY: "M15 15 29 29M29 15 15 29",
    Verdict.READY: "M13 23 20 30 32 16",
    Verdict.NOTHING_TO_DO: "M13 22H31",
}
"""A cross, a tick or a dash, so that colour is not all that tells the verdicts apart."""


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
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy()}">\n'
        f"<title>Replant: {result.verdict.value}</title>\n"
        f"<style>{STYLE}</style>\n</head>\n<body>\n<main>\n{''.join(body)}</main>\n"
        f"<footer>Made by Replant {__version__} from a scan that changed nothing.</footer>\n"
        f"<script>{SCRIPT}</script>\n</body>\n</html>\n"
    )


def _policy() -> str:
    style, script = (
        f"'sha256-{b64encode(sha256(content.encode()).digest()).decode()}'"
        for content in (STYLE, SCRIPT)
    )
    return f"default-src 'none'; style-src {style}; script-src {script}; base-uri 'none'"


def _banner(result: ScanResult) -> str:
    verdict = result.verdict.value
    sign = (
        '<svg width="44" height="44" viewBox="0 0 44 44" aria-hidden="true" fill="none" '
        'stroke="currentColor" stroke-width="3.5" stroke-linecap="round">'
        f'<circle cx="22" cy="22" r="20"/><path d="{_SIGNS[result.verdict]}"/></svg>'
    )
    summary = f"<p>{text(result.summary)}</p>" if result.summary else ""
    return (
        f'<header class="banner {verdict.replace(" ", "-")}">{sign}<div>'
        f"<h1>{verdict.capitalize()}</h1>{summary}"
        f'<p class="versions">{text(versions(result).capitalize())}</p></div></header>\n'
    )


def _tiles(result: ScanResult) -> str:
    tiles = [
        (severity.value if count else "none", noun_for(count, severity.value), f"{count:,}")
        for severity, count in count_by_severity(result.findings).items()
    ]
    plugins = result.plugins.values()
    volumes = sum(counts.volumes for counts in plugins)
    tiles += [
        ("volumes", noun_for(volumes, "in-tree volume"), f"{volumes:,}"),
        ("size", "capacity of these", human_bytes(sum(counts.bytes for counts in plugins))),
    ]
    items = (f'<div class="{sort}"><dt>{name}</dt><dd>{n}</dd></div>' for sort, name, n in tiles)
    return f'<dl class="tiles">{"".join(items)}</dl>\n'


def _inventory(result: ScanResult) -> str:
    if not result.plugins:
        return ""
    rows = list(inventory_rows(result.plugins))
    counts = result.plugins.values()
    volumes = [Bar(row[0], each.volumes, row[2]) for row, each in zip(rows, counts, strict=True)]
    sizes = [Bar(row[0], each.bytes, row[3]) for row, each in zip(rows, counts, strict=True)]
    charts = bar_chart("Volumes per plugin", volumes) + bar_chart("Size per plugin", sizes)
    return (
        '<section aria-labelledby="inventory"><h2 id="inventory">What there is</h2>\n'
        f'<div class="card"><div class="charts">{charts}</div>'
        f"{table(INVENTORY_HEADINGS, rows, NAME_COLUMNS)}</div></section>\n"
    )


def _reading(result: ScanResult) -> str:
    if not result.read:
        return ""
    rows = [
        (kind, f"{count.seen:,}", f"{count.used:,}", f"{count.passed_over:,}")
        for kind, count in result.read.items()
    ]
    return (
        '<section aria-labelledby="read"><h2 id="read">What was read</h2>\n'
        f'<div class="card"><p class="muted">{read_summary(result)}.</p>'
        f"{table(('Kind', 'Seen', 'Used', 'Passed over'), rows, 1)}</div></section>\n"
    )
