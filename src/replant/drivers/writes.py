"""What a decision may ask for: each a single write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from replant.objects import Object


@dataclass(frozen=True, slots=True)
class Apply:
    """Server-side apply, by force, under our field manager."""

    object: Object


@dataclass(frozen=True, slots=True)
class Create:
    """Create it if it is not there; somebody's own is never overwritten."""

    object: Object


@dataclass(frozen=True, slots=True)
class Replace:
    """Put it in the place of what was seen: it has that uid and resourceVersion."""

    object: Object


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete this very object, as it was seen: by its uid and resourceVersion."""

    object: Object


@dataclass(frozen=True, slots=True)
class Annotate:
    """Set these annotations on an object as it was seen (its resourceVersion); None removes one."""

    object: Object
    annotations: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class Finalizers:
    """Give an object, as it was seen, exactly these finalizers."""

    object: Object
    finalizers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Status:
    """Write the status of a CR, as it was seen."""

    object: Object
    status: Object


Write = Apply | Create | Replace | Delete | Annotate | Finalizers | Status
