"""Findings of one sort together: a person first wants to know what, then where."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from replant.inventory.findings import Finding, Severity

WORST_FIRST = (Severity.BLOCKER, Severity.WARNING, Severity.INFO)
RANK = {severity: rank for rank, severity in enumerate(WORST_FIRST)}
"""0 is the worst."""


@dataclass(frozen=True, slots=True)
class Group:
    """All findings of one id and one severity; there is at least one."""

    id: str
    severity: Severity
    findings: tuple[Finding, ...]

    @property
    def first(self) -> Finding:
        """The finding that stands for the others."""
        return self.findings[0]

    @property
    def one_reason(self) -> bool:
        """Whether the first finding's reason is that of all."""
        return all(finding.reason == self.first.reason for finding in self.findings)

    @property
    def one_fix(self) -> bool:
        """Whether the first finding's fix is that of all."""
        return all(finding.fix == self.first.fix for finding in self.findings)


def grouped(findings: Iterable[Finding]) -> list[Group]:
    """The findings by severity, worst first, and id; within a group their order stays."""
    by_sort: dict[tuple[int, str], list[Finding]] = {}
    for finding in findings:
        by_sort.setdefault((RANK[finding.severity], finding.id), []).append(finding)
    return [
        Group(identity, WORST_FIRST[rank], tuple(members))
        for (rank, identity), members in sorted(by_sort.items(), key=lambda item: item[0])
    ]


def count_by_severity(findings: Iterable[Finding]) -> dict[Severity, int]:
    """How many there are of each severity, worst first, including those of which there are none."""
    counts = dict.fromkeys(WORST_FIRST, 0)
    for finding in findings:
        counts[finding.severity] += 1
    return counts
