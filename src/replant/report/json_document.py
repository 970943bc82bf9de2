"""The result as data: what docs/scan-schema.json describes, findings per object, never merged."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from replant.inventory.findings import Finding, PluginCounts, ReadCount, ScanResult

SCHEMA_VERSION = 1
"""Goes up when a reader of the old schema would misunderstand the new."""

_BATCH = 1000
"""Findings that are written together: a write for each would be felt."""

_SURROGATES = re.compile("[\ud800-\udfff]")
_UNSAFE = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""JSON allows these in a text, but a terminal may obey them."""


def pieces(result: ScanResult) -> Iterator[str]:
    """Indented JSON, a line for each finding: a large cluster has a hundred thousand."""
    start, end = json_text({**_frame(result), "findings": []}).rsplit("[]", 1)
    yield f"{start}["
    separator = "\n    "
    for first in range(0, len(result.findings), _BATCH):
        batch = result.findings[first : first + _BATCH]
        lines = [msgspec.json.encode(_finding(finding)).decode() for finding in batch]
        yield _harmless(separator + ",\n    ".join(lines))
        separator = ",\n    "
    yield f"\n  ]{end}" if result.findings else f"]{end}"


def json_text(value: Any) -> str:
    """Indented JSON that is harmless in a terminal."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    return _harmless(text) + "\n"


def _harmless(text: str) -> str:
    if text.isascii() and "\x7f" not in text:
        return text
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def document(result: ScanResult) -> dict[str, Any]:
    """The result as plain data, for whichever notation."""
    return {**_frame(result), "findings": [_finding(finding) for finding in result.findings]}


def _frame(result: ScanResult) -> dict[str, Any]:
    return {
        "schemaVersion": SCHEMA_VERSION,
        "verdict": result.verdict.value,
        "summary": _encodable(result.summary),
        "server": {"version": _encodable(result.server_version)},
        "target": {"version": _encodable(result.target_version)},
        "inventory": {
            "plugins": {
                _encodable(name): _plugin(counts) for name, counts in result.plugins.items()
            }
        },
        "read": {_encodable(kind): _read(count) for kind, count in result.read.items()},
    }


def _plugin(counts: PluginCounts) -> dict[str, str | int]:
    return {
        "driver": _encodable(counts.driver),
        "volumes": counts.volumes,
        "bytes": counts.bytes,
        "claims": counts.claims,
        "classes": counts.classes,
        "workloads": counts.workloads,
        "nodes": counts.nodes,
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "id": _encodable(finding.id),
        "severity": finding.severity.value,
        "object": {
            "kind": _encodable(finding.object.kind),
            "namespace": _encodable(finding.object.namespace),
            "name": _encodable(finding.object.name),
        },
        "reason": _encodable(finding.reason),
        "fix": _encodable(finding.fix),
    }


def _read(count: ReadCount) -> dict[str, int]:
    return {"seen": count.seen, "used": count.used, "passedOver": count.passed_over}


def _encodable(text: str) -> str:
    """Half a surrogate pair is no character, and no encoder takes it."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)
