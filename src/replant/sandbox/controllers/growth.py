"""Claims that ask for more than they have, and what it takes to give it to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from replant.inventory.quantities import amount
from replant.objects import Object
from replant.sandbox.controllers import parts
from replant.sandbox.controllers.base import Key, Queue, World, key_of
from replant.sandbox.controllers.recorder import WARNING
from replant.sandbox.controllers.volumes import Volume
from replant.sandbox.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from replant.sandbox.shelves import DELETED, Entry, Event
from replant.sandbox.sides import Side


class Growing(NamedTuple):
    """A claim that asks for more, and its volume."""

    key: Key
    entry: Entry
    claim: parts.Claim
    volume: Volume


class GrowingClaims:
    """Those that there are; each is given out when something about it, or about us, has changed."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._changed: Queue[Key] = Queue()
        self._waiting: dict[Key, None] = {}

    def heard(self, event: Event) -> None:
        """Note a claim that asks for more."""
        key = key_of(event.entry)
        if event.type == DELETED:
            self._waiting.pop(key, None)
        elif wants_more(parts.read_claim(event.entry.text)):
            self._waiting[key] = None
            self._changed.add(key)

    def look_again(self) -> None:
        """Give out all that still wait."""
        self._changed.add_all(self._waiting)

    def __bool__(self) -> bool:
        return bool(self._changed)

    def take(self) -> Iterator[Growing]:
        """Those to be looked at now."""
        for key in self._changed.take():
            entry = self._world.store.find(PERSISTENT_VOLUME_CLAIMS, key[1], key[0])
            claim = parts.read_claim(entry.text) if entry else None
            if entry is None or claim is None or not wants_more(claim):
                self._waiting.pop(key, None)
            elif volume := self._world.volumes.of_pv(claim.spec.volumeName):
                yield Growing(key, entry, claim, volume)


def wants_more(claim: parts.Claim) -> bool:
    """Whether a bound claim asks for more than it has."""
    if claim.status.phase != "Bound":
        return False
    wanted, there = claim.spec.storage, (claim.status.capacity or {}).get("storage", "0")
    return wanted != there and amount(wanted) > amount(there)


def enlarge(
    world: World, key: Key, read: parts.Claim, disk: str, side: Side, component: str
) -> None:
    """Make a claim's disk as large as it asks for, and say so on the volume and the claim."""
    wanted = read.spec.storage
    if refusal := world.cloud.resize(disk, amount(wanted), side):
        if entry := world.store.find(PERSISTENT_VOLUME_CLAIMS, key[1], key[0]):
            world.recorder.record(entry, component, WARNING, "VolumeResizeFailed", refusal)
        return

    def on_volume(obj: Object) -> None:
        obj["spec"]["capacity"]["storage"] = wanted

    def on_claim(obj: Object) -> None:
        # The file system grows with it, as it does under a pod that runs.
        obj["status"].setdefault("capacity", {})["storage"] = wanted

    world.change(PERSISTENT_VOLUMES, ("", read.spec.volumeName), on_volume)
    world.change(PERSISTENT_VOLUME_CLAIMS, key, on_claim, "status")
