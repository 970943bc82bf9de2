"""What was seen on real Kubernetes, kept in files that later runs must agree with."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

OBSERVED = Path(__file__).parent / "observed"
RECORD = "REPLANT_RECORD"
"""Set it to write down what is seen now, after a change that is meant."""


def read(name: str) -> dict[str, Any]:
    """The record of that name."""
    seen: dict[str, Any] = json.loads((OBSERVED / f"{name}.json").read_text())
    return seen


def check(name: str, seen: dict[str, Any]) -> None:
    """Fail if the record of that name says otherwise."""
    path = OBSERVED / f"{name}.json"
    if os.environ.get(RECORD):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(seen, indent=2) + "\n")
    assert path.exists(), f"there is no {path.name} yet: write it with {RECORD}=1, and read it"
    assert seen == json.loads(path.read_text()), f"{path.name} says otherwise"
