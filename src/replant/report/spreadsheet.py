"""CSV as RFC 4180 has it: one row per finding, and nothing that a spreadsheet would run."""

from __future__ import annotations

import csv
import io

from replant.inventory.findings import ScanResult
from replant.report.wording import plain

HEADINGS = ("severity", "id", "kind", "namespace", "name", "reason", "fix")

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001
"""A cell that begins so may be evaluated; the wide forms are for Asian versions of Excel."""


def render(result: ScanResult) -> str:
    """A row of headings and a row for each finding."""
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow(HEADINGS)
    for finding in result.findings:
        where = finding.object
        texts = (finding.id, where.kind, where.namespace, where.name, finding.reason, finding.fix)
        writer.writerow([finding.severity.value, *map(cell, texts)])
    return out.getvalue()


def cell(text: str) -> str:
    """``text`` as a spreadsheet will show it, and only show it."""
    shown = plain(text)
    return f"'{shown}" if shown.startswith(_FORMULA_STARTS) else shown
