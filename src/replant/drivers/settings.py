"""What the CR of a driver asks for: OperatorSpec, and a few fields of our own.

A CR of an older operator has fewer fields, or empty ones; each has a default that means what
that operator did.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from replant.errors import InputError, shown
from replant.objects import Object, name_of


class State(StrEnum):
    """``managementState`` and ``storageClassState``."""

    MANAGED = "Managed"
    UNMANAGED = "Unmanaged"
    REMOVED = "Removed"


class DefaultClass(StrEnum):
    """``defaultStorageClass``: whose class serves claims that name none."""

    IN_TREE = "in-tree"
    CSI = "csi"


class Adoption(StrEnum):
    """``adoption``: what to do about a driver that Helm or a person has installed."""

    LEAVE = "Leave"
    ADOPT = "Adopt"


class Credentials(StrEnum):
    """``credentials``: where the driver has its rights in the cloud from."""

    SECRET = "Secret"  # noqa: S105
    NODE = "Node"
    """The machine, or an identity that the platform gives to its pods: no secret is waited for."""


LOG_LEVELS = {"Normal": 2, "Debug": 4, "Trace": 6, "TraceAll": 8}


@dataclass(frozen=True, slots=True)
class Settings:
    """One CR's spec."""

    management: State = State.MANAGED
    verbosity: int = LOG_LEVELS["Normal"]
    operator_verbosity: int = LOG_LEVELS["Normal"]
    """From Debug on, the operator says at every look what it has decided, and why."""
    default_class: DefaultClass = DefaultClass.IN_TREE
    classes: State = State.MANAGED
    adoption: Adoption = Adoption.LEAVE
    credentials: Credentials = Credentials.SECRET
    replicas: int = 0
    """Of the controller; 0 for as many as the cluster's size asks for."""
    share_types: tuple[str, ...] | None = None
    """Manila's, for who does not want to have them looked up."""
    storage_policy: str = ""
    """vSphere's, for its class."""


def wants_details(cr: Object | None) -> bool:
    """Whether the operator is to say more about this driver; not if its CR cannot be read."""
    try:
        return cr is not None and settings_of(cr).operator_verbosity >= LOG_LEVELS["Debug"]
    except InputError:
        return False


Choice = TypeVar("Choice", bound=StrEnum)


def settings_of(cr: Object) -> Settings:
    """Read a CR; InputError names the field that is wrong, and what it may be."""
    spec = cr.get("spec") or {}
    if not isinstance(spec, dict):
        raise InputError("spec is not an object", source=name_of(cr))
    return Settings(
        management=_one_of(cr, spec, "managementState", State.MANAGED),
        verbosity=_level(cr, spec, "logLevel"),
        operator_verbosity=_level(cr, spec, "operatorLogLevel"),
        default_class=_one_of(cr, spec, "defaultStorageClass", DefaultClass.IN_TREE),
        classes=_one_of(cr, spec, "storageClassState", State.MANAGED),
        adoption=_one_of(cr, spec, "adoption", Adoption.LEAVE),
        credentials=_one_of(cr, spec, "credentials", Credentials.SECRET),
        replicas=_count(cr, spec, "replicas"),
        share_types=_names(cr, spec, "shareTypes"),
        storage_policy=_text(cr, spec, "storagePolicyName"),
    )


def _one_of(cr: Object, spec: Object, field: str, otherwise: Choice) -> Choice:
    written = spec.get(field) or otherwise
    for choice in type(otherwise):
        if written == choice:
            return choice
    raise _wrong(cr, field, written, f"one of {', '.join(type(otherwise))}")


def _level(cr: Object, spec: Object, field: str) -> int:
    written = spec.get(field) or "Normal"
    if not isinstance(written, str) or written not in LOG_LEVELS:
        raise _wrong(cr, field, written, f"one of {', '.join(LOG_LEVELS)}")
    return LOG_LEVELS[written]


def _count(cr: Object, spec: Object, field: str) -> int:
    written = spec.get(field) or 0
    if isinstance(written, bool) or not isinstance(written, int) or not 0 <= written <= 9:
        raise _wrong(cr, field, written, "a number from 1 to 9")
    return written


def _names(cr: Object, spec: Object, field: str) -> tuple[str, ...] | None:
    written = spec.get(field)
    if written is None:
        return None
    if not isinstance(written, list) or not all(isinstance(it, str) and it for it in written):
        raise _wrong(cr, field, written, "a list of names")
    return tuple(written)


def _text(cr: Object, spec: Object, field: str) -> str:
    written = spec.get(field) or ""
    if not isinstance(written, str):
        raise _wrong(cr, field, written, "a text")
    return written


def _wrong(cr: Object, field: str, written: object, wanted: str) -> InputError:
    return InputError(
        f"spec.{field} is {shown(str(written))!r}; it has to be {wanted}", source=name_of(cr)
    )
