"""How far a shoot's migration is, and what it waits for: what ``decide`` says, for people."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from replant.errors import InputError
from replant.gardener.decisions import (
    Action,
    Annotate,
    Complain,
    DeleteClass,
    Leave,
    Nudge,
    Wait,
)
from replant.gardener.providers import Provider
from replant.gardener.shoots import (
    FINISHED,
    NEEDS_COMPLETE,
    annotations_of,
    migration_of,
    part,
    provider_type,
    shoot_of,
    version_of,
)
from replant.objects import Object


class State(StrEnum):
    """How far a shoot is."""

    NOT_DUE = "not due"
    """Its minor is before the one with which it goes over."""
    UNDER_WAY = "under way"
    COMPLETING = "completing"
    """Only new nodes are left: the control plane is being told."""
    FINISHED = "finished"
    PAST = "past"
    """Of a later minor, with CSI alone: nobody has to do anything."""
    STUCK = "stuck"
    """Somebody has to put something right."""
    LEFT_ALONE = "left alone"


@dataclass(frozen=True, slots=True)
class ShootStanding:
    """One shoot of a seed."""

    cluster: str
    shoot: str
    provider: str
    version: str
    state: State
    waits_for: str = ""
    unread: bool = False
    """Whether it could not be looked at, so that nobody knows how far it is."""


def standing_of(
    cluster: Object, provider: Provider | None, action: Action | None, trouble: str = ""
) -> ShootStanding:
    """How far the shoot of a Cluster is; the action is the next, None where it cannot be told."""
    shoot = shoot_of(cluster) or {}
    namespace, name = part(shoot, "metadata", "namespace"), part(shoot, "metadata", "name")
    state, waits_for = _state(cluster, shoot, provider, action)
    return ShootStanding(
        cluster=str(part(cluster, "metadata", "name") or ""),
        shoot="/".join(str(it) for it in (namespace, name) if it),
        provider=provider_type(shoot),
        version=str(part(shoot, "spec", "kubernetes", "version") or ""),
        state=State.STUCK if trouble else state,
        waits_for=trouble or waits_for,
        unread=bool(trouble),
    )


def _state(
    cluster: Object, shoot: Object, provider: Provider | None, action: Action | None
) -> tuple[State, str]:
    marks = annotations_of(cluster)
    under_way = State.COMPLETING if NEEDS_COMPLETE in marks else State.UNDER_WAY
    match action:
        case Leave(why):
            if FINISHED in marks:
                return State.FINISHED, ""
            return _left(shoot, provider), why
        case Complain(_reason, message):
            return State.STUCK, message
        case Wait(_seconds, why):
            return under_way, why
        case Annotate(names):
            return under_way, f"the operator to set {_words(names)}"
        case DeleteClass(found):
            return under_way, f"the operator to delete the StorageClass {found.name}"
        case Nudge(deployment):
            return under_way, f"the operator to have {deployment} looked at"
    if provider is None:
        return State.LEFT_ALONE, "its provider is none that is known here"
    return under_way, ""


def _left(shoot: Object, provider: Provider | None) -> State:
    """Why a shoot that is left alone is: by its minor, or because something is amiss with it."""
    if provider is None:
        return State.LEFT_ALONE
    try:
        minor, migration = version_of(shoot).first_patch, migration_of(shoot, provider)
    except InputError:
        return State.LEFT_ALONE
    if minor < migration:
        return State.NOT_DUE
    return State.PAST if minor > migration else State.LEFT_ALONE


def _words(names: tuple[str, ...]) -> str:
    return " and ".join(it.rpartition("/")[2] for it in names)
