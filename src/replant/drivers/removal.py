"""What still uses a driver, in a sentence: it stays until nothing does."""

from __future__ import annotations

from dataclasses import dataclass

from replant.errors import shown

_NAMED = 3
"""So many of each kind are named; then they are counted."""


@dataclass(frozen=True, slots=True)
class Uses:
    """What uses a driver, each as a person calls it, such as ``PersistentVolume pv-1``."""

    names: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        """All of it in a sentence."""
        by_kind: dict[str, list[str]] = {}
        for name in self.names:
            kind, _, called = name.partition(" ")
            by_kind.setdefault(kind, []).append(called)
        return "; ".join(_counted(kind, sorted(called)) for kind, called in by_kind.items())


def _counted(kind: str, called: list[str]) -> str:
    more = f" and {len(called) - _NAMED} more" if len(called) > _NAMED else ""
    return f"{len(called)} {kind} ({', '.join(shown(it) for it in called[:_NAMED])}{more})"
