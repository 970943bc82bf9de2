"""Whether a StatefulSet deletes its claims when it is scaled down."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def deletes_claims_when_scaled(spec: Mapping[str, Any]) -> bool:
    """Whether the spec of a workload says so; only a StatefulSet's can."""
    policy = spec.get("persistentVolumeClaimRetentionPolicy") or {}
    return bool(policy.get("whenScaled") == "Delete")
