"""Mutants of the model that nothing notices, and why each is the same model."""

from __future__ import annotations

EQUIVALENT: dict[str, tuple[str, ...]] = {}
"""By argument, the names of the mutants that it is about."""
