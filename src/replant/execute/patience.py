"""How long whoever carries a plan out waits for others."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Patience:
    """How long each wait may take, in seconds."""

    drain: float = 3600.0
    detach: float = 900.0
    switch: float = 900.0
    pods: float = 900.0
    haste: float = 1.0
    """So many seconds pass while the machine works for one; more than one in a sandbox."""
