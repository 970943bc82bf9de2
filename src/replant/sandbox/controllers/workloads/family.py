"""What each workload has made, and what it may do to it."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import convert

from replant.inventory.metadata import LabelSelector
from replant.inventory.selectors import Selector
from replant.objects import Object
from replant.sandbox.controllers.base import Key, World, key_of
from replant.sandbox.controllers.workloads.pods import owner_reference
from replant.sandbox.refusals import ApiError
from replant.sandbox.resources import PODS, Resource
from replant.sandbox.shelves import Entry

FORBIDDEN = 403

Again = Callable[[Resource, Key, float], None]
"""Have a workload looked at once more, after so many seconds."""
_Thing = tuple[Resource, Key]


class Family:
    """Who has made what; and what nobody has made, or whoever has made it has left."""

    def __init__(self, world: World, again: Again) -> None:
        self.world = world
        self.store = world.store
        self.again = again
        self._made: dict[str, dict[_Thing, None]] = {}
        """By the uid of whoever has made it."""
        self._maker: dict[str, str] = {}
        """The same by the uid of what was made."""
        self.refusal = ""
        """Why something may not be made now; whoever wanted to tries again."""
        self._loose: dict[str, dict[_Thing, None]] = {}
        """What has nobody, by its namespace."""

    def note(self, entry: Entry, maker: str, *, gone: bool) -> bool:
        """Note whose an object is, or that it is gone; tells whether it has come to be nobody's."""
        thing = (entry.resource, key_of(entry))
        before = self._maker.get(entry.uid, "")
        if before and (gone or before != maker):
            made = self._made[before]
            made.pop(thing, None)
            if not made:
                del self._made[before]
            del self._maker[entry.uid]
        loose = self._loose.get(entry.namespace, {})
        if maker or gone:
            if loose.pop(thing, thing) is None and not loose:
                del self._loose[entry.namespace]
            if maker and not gone:
                self._made.setdefault(maker, {})[thing] = None
                self._maker[entry.uid] = maker
            return False
        came = thing not in loose
        self._loose.setdefault(entry.namespace, loose)[thing] = None
        return came

    def made(
        self,
        maker: Resource,
        obj: Object,
        resource: Resource = PODS,
        suits: Callable[[Entry], bool] = lambda _entry: True,
    ) -> list[Entry]:
        """What a workload has made of a resource; what is nobody's and suits it becomes its own."""
        metadata = obj["metadata"]
        self._adopt(maker, obj, resource, suits)
        mine = self._made.get(metadata["uid"], {})
        found = (self.store.find(it, key[1], key[0]) for it, key in mine if it is resource)
        return [it for it in found if it is not None]

    def _adopt(
        self, maker: Resource, obj: Object, resource: Resource, suits: Callable[[Entry], bool]
    ) -> None:
        loose = self._loose.get(obj["metadata"]["namespace"])
        if not loose:
            return
        selector = Selector.of(convert(obj["spec"].get("selector") or {}, LabelSelector))

        def write(adopted: Object) -> None:
            references = adopted["metadata"].setdefault("ownerReferences", [])
            references.append(owner_reference(maker, obj))

        for it, key in [thing for thing in loose if thing[0] is resource]:
            entry = self.store.find(it, key[1], key[0])
            if entry is None or b'"deletionTimestamp"' in entry.text:
                continue
            if selector.requirements and selector.matches(entry.labels) and suits(entry):
                self.world.change(it, key, write)

    def create(self, resource: Resource, obj: Object, namespace: str) -> Entry | None:
        """Make something; None if it may not be."""
        try:
            return self.store.create(resource, obj, namespace=namespace)
        except ApiError as error:
            # It is there as somebody else's, its namespace is ending, or a quota has no room.
            self.refusal = error.message if error.code == FORBIDDEN else ""
            return None

    def remove(self, entry: Entry) -> None:
        """Delete something, if it is still the same."""
        self.world.remove(entry.resource, key_of(entry), entry.uid)

    def say(self, resource: Resource, obj: Object, status: Object) -> None:
        """Write a workload's status, if it says something else."""
        said = status | {"observedGeneration": obj["metadata"].get("generation", 1)}
        if (obj.get("status") or {}) == said:
            return
        metadata = obj["metadata"]

        def write(now: Object) -> None:
            now["status"] = said

        self.world.change(resource, (metadata["namespace"], metadata["name"]), write, "status")
