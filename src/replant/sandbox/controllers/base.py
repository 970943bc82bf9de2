"""What all controllers share: what they can reach, and a queue of what they have to look at."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from replant.objects import Object
from replant.sandbox.changes import Deletion
from replant.sandbox.clock import Clock
from replant.sandbox.cloud import Cloud
from replant.sandbox.controllers.recorder import Recorder
from replant.sandbox.controllers.volumes import Volumes
from replant.sandbox.refusals import ApiError
from replant.sandbox.resources import Registry, Resource
from replant.sandbox.shelves import Entry, Event
from replant.sandbox.sides import Process
from replant.sandbox.store import Store
from replant.sandbox.writes import Writes

Item = TypeVar("Item")

Key = tuple[str, str]
"""Namespace and name."""


class Queue(Generic[Item]):
    """What is to be looked at, each once, in the order in which it was first named."""

    def __init__(self) -> None:
        self._items: dict[Item, None] = {}

    def __bool__(self) -> bool:
        return bool(self._items)

    def add(self, item: Item) -> None:
        """Have something looked at."""
        self._items[item] = None

    def add_all(self, items: Iterable[Item]) -> None:
        """Have many things looked at."""
        self._items.update(dict.fromkeys(items))

    def take(self) -> list[Item]:
        """All that is waiting; what comes from now on waits for the next turn."""
        items, self._items = self._items, {}
        return list(items)


@dataclass(frozen=True)
class World:
    """What controllers can reach."""

    store: Store
    registry: Registry
    clock: Clock
    cloud: Cloud
    volumes: Volumes
    recorder: Recorder
    writes: Writes

    def change(
        self, resource: Resource, key: Key, change: Callable[[Object], None], part: str = ""
    ) -> Entry | None:
        """Write an object as ``change`` makes it; None if it is gone, or may not be so."""
        found = self.store.find(resource, key[1], key[0])
        if found is None:
            return None
        obj = found.value()
        change(obj)
        try:
            return self.store.update(resource, obj, part)
        except ApiError:
            return None

    def remove(
        self,
        resource: Resource,
        key: Key,
        uid: str = "",
        grace: int | None = None,
        propagation: str = "",
    ) -> None:
        """Delete an object, if it is still there and still the same."""
        how = Deletion(grace_period=grace, uid=uid, propagation=propagation)
        with suppress(ApiError):
            self.store.delete(resource, key[1], key[0], how)


class Controller:
    """Hears of changes at any time; acts on them when it is its turn."""

    hears: ClassVar[tuple[Resource, ...]] = ()
    """The resources whose changes it is told of."""
    hears_all: ClassVar[bool] = False
    """Whether it is told of every change, of definitions' own kinds too."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.store = world.store

    def heard(self, event: Event) -> None:
        """Note what has to be looked at. To write is for ``work``."""

    def work(self) -> bool:
        """Do what there is to do at this moment, and tell whether there was anything."""
        return False


class Led(Controller):
    """A controller inside kube-controller-manager: it works only where one leads, and as that."""

    process: Process | None = None
    """The replica that leads."""

    def lead(self, process: Process | None) -> None:
        """Another replica leads from now on, or none. Whatever was remembered is forgotten."""
        self.process = process


def key_of(entry: Entry) -> Key:
    """By what an object is known in queues."""
    return entry.namespace, entry.name


def discard(sets: dict[str, set[Item]], name: str, member: Item) -> None:
    """Take a member out of one of many sets; none is kept that is empty."""
    members = sets.get(name, set())
    members.discard(member)
    if not members:
        sets.pop(name, None)


def doubling(first: float, times: int, longest: float) -> float:
    """A pause of so many seconds, doubled so often, up to the longest."""
    return min(first * 2.0 ** min(times, 64), longest)
