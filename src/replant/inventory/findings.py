"""What a scan says: findings, the inventory's counts, and what was read."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from msgspec import Struct


class Severity(StrEnum):
    """How much a finding matters."""

    INFO = "info"
    """Good to know."""
    WARNING = "warning"
    """It works, but a person must do something."""
    BLOCKER = "blocker"
    """The volume cannot be served at the target version, or migrating it would fail or lose."""


class Verdict(StrEnum):
    """The first line of a report."""

    NOTHING_TO_DO = "nothing to do"
    READY = "ready"
    NOT_READY = "not ready"


class ObjectRef(Struct, frozen=True, gc=False):
    """The object that a finding is about."""

    kind: str
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        return (
            f"{self.kind} {self.namespace}/{self.name}"
            if self.namespace
            else (f"{self.kind} {self.name}")
        )


class Finding(Struct, frozen=True, gc=False):
    """One thing that a person should know."""

    id: str
    """Stable, such as RP101; its page is docs/findings/RP101.md."""
    severity: Severity
    object: ObjectRef
    reason: str
    """One sentence."""
    fix: str = ""
    """A command, a patch, or what to do; may have several lines; empty where there is nothing."""


@dataclass(slots=True)
class PluginCounts:
    """What a cluster has of one in-tree plugin."""

    driver: str
    volumes: int = 0
    bytes: int = 0
    claims: int = 0
    classes: int = 0
    workloads: int = 0
    nodes: int = 0


@dataclass(slots=True)
class ReadCount:
    """What became of the objects of one kind that were read."""

    seen: int = 0
    used: int = 0
    passed_over: int = 0


@dataclass(slots=True)
class ScanResult:
    """All that a scan found, ready to be shown."""

    verdict: Verdict
    summary: str
    """One sentence that says why."""
    server_version: str
    """Such as 1.24.17; empty where it is not known."""
    target_version: str
    """Such as 1.31; empty where none was asked for."""
    plugins: dict[str, PluginCounts] = field(default_factory=dict)
    """By full plugin name, such as kubernetes.io/aws-ebs; only those that occur."""
    findings: list[Finding] = field(default_factory=list)
    """Worst first, then by id and object."""
    read: dict[str, ReadCount] = field(default_factory=dict)
    """By kind, such as PersistentVolume."""
