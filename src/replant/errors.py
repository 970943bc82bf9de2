"""The one error tree.

::

    ReplantError
    ├── Retryable            the same call may succeed later
    │   ├── Unreachable      the cluster did not answer, however often it was asked
    │   ├── Uncertain        a write was asked for, and nobody knows whether it was done
    │   ├── Conflict         an object is not as it was when it was decided about
    │   ├── Expired          what is asked for lies too far back; look at all of it again
    │   ├── EvictionBlocked  a budget does not let a pod go now
    │   └── Halted           a run has stopped part of the way, and can be resumed
    └── Final                the same call will fail again
        ├── TranslationError an object that has no equivalent on the other side
        ├── InputError       a file or document that cannot be read, parsed or accepted
        ├── Refused          what is asked for cannot be done, or must not be
        │   └── Blocked      something must be put right before a plan may begin
        ├── Forbidden        the cluster's answer was: you may not
        ├── Missing          there is no such object
        └── NotServed        the cluster does not know this kind

Whoever catches an error decides by type whether to try again; the message is made for a person
and says what, where and why.
"""

from __future__ import annotations

_SHOWN = 80


class ReplantError(Exception):
    """Anything that Replant itself reports."""


class Retryable(ReplantError):
    """The same call may succeed later."""


class Final(ReplantError):
    """The same call will fail again until something else changes."""


class TranslationError(Final):
    """An object that cannot be translated: which one, which field of it, and why."""

    def __init__(self, reason: str, *, obj: str, field: str = "") -> None:
        self.reason = reason
        self.object = obj
        self.field = field
        super().__init__(reason, obj, field)

    def __str__(self) -> str:
        parts = (self.object, self.field, self.reason)
        return printable(": ".join(part for part in parts if part))


class InputError(Final):
    """A file, or one document of it, that cannot be read, parsed or accepted."""

    def __init__(self, reason: str, *, source: str, document: int | None = None) -> None:
        self.reason = reason
        self.source = source
        self.document = document
        super().__init__(reason, source, document)

    def __str__(self) -> str:
        where = self.source if self.document is None else f"{self.source}, document {self.document}"
        return printable(f"{where}: {self.reason}")


class Refused(Final):
    """What is asked for cannot be done, or must not be."""


class Blocked(Refused):
    """Something must be put right before a plan may begin; nothing was touched."""


class Unreachable(Retryable):
    """The cluster did not answer, however often it was asked."""


class Uncertain(Retryable):
    """A write was asked for, and nobody knows whether it was done: look before it is repeated."""


class Conflict(Retryable):
    """An object is not as it was when it was decided about: look at it, and decide again."""


class Expired(Retryable):
    """What is asked for lies too far back; look at all of it again."""


class EvictionBlocked(Retryable):
    """A PodDisruptionBudget does not let a pod go now."""


class Halted(Retryable):
    """A run has stopped part of the way, and can be resumed or undone."""


class Missing(Final):
    """There is no such object."""


class Forbidden(Final):
    """The cluster does not let us do this."""


class NotServed(Final):
    """The cluster does not serve this kind in this version."""


def printable(text: str) -> str:
    """``text`` on one line, its control characters escaped: safe for a terminal or a log."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def shown(text: str) -> str:
    """A value from somewhere else as a message may quote it: printable and short."""
    return printable(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")
