"""What was seen on real Kubernetes, kept in files that later runs must agree with."""

from __future__ import annotations

import json
import os
from difflib import unified_diff
from pathlib import Path
from typing import Any

OBSERVED = Path(__file__).parent / "observed"
RECORD = "REPLANT_RECORD"
"""Set it to write down what is seen now, after a change that is meant."""
LINES_AROUND = 12
"""So many lines about one that differs show which step it belongs to."""


def read(name: str) -> dict[str, Any]:
    """The record of that name."""
    seen: dict[str, Any] = json.loads((OBSERVED / f"{name}.json").read_text())
    return seen


def expected(name: str) -> dict[str, Any]:
    """The same, of which nothing is expected yet while it is written."""
    return {} if os.environ.get(RECORD) else read(name)


def check(name: str, seen: dict[str, Any]) -> None:
    """Fail if the record of that name says otherwise."""
    path = OBSERVED / f"{name}.json"
    if os.environ.get(RECORD):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(seen, indent=2) + "\n")
    assert path.exists(), f"there is no {path.name} yet: write it with {RECORD}=1, and read it"
    recorded = json.loads(path.read_text())
    # In lines that differ: of two long records, pytest would show no more than the beginnings.
    assert seen == recorded, f"{path.name} says otherwise:\n{_difference(recorded, seen)}"


def check_row(name: str, key: str, row: dict[str, Any]) -> None:
    """The same for one row of a record, which rows are written to one by one."""
    path = OBSERVED / f"{name}.json"
    rows: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    if os.environ.get(RECORD):
        rows[key] = row
        path.write_text(json.dumps(dict(sorted(rows.items())), indent=2) + "\n")
    assert rows.get(key) == row, f"{path.name} says otherwise of {key}: {rows.get(key)}"


def _difference(recorded: dict[str, Any], seen: dict[str, Any]) -> str:
    was, now = (json.dumps(said, indent=1).splitlines() for said in (recorded, seen))
    return "\n".join(unified_diff(was, now, "recorded", "seen", n=LINES_AROUND, lineterm=""))
