"""What a cluster has at one moment."""

from __future__ import annotations

from msgspec import Struct


class Census(Struct, frozen=True):
    """To be filled."""
