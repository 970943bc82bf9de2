"""The garbage collector: what belongs to something goes with it, before it, or is let go.

Who belongs to whom is indexed by uid, so that a change costs what depends on it and no more.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from replant.objects import Object
from replant.sandbox.changes import FINALIZERS
from replant.sandbox.controllers import parts
from replant.sandbox.controllers.base import Key, Led, Queue, World, key_of
from replant.sandbox.resources import BACKGROUND, DEFINITIONS, FOREGROUND, ORPHAN, Resource
from replant.sandbox.shelves import DELETED, Entry, Event

_FOREGROUND, _ORPHAN = FINALIZERS[FOREGROUND], FINALIZERS[ORPHAN]


class Item(NamedTuple):
    """One object, and no other that came to have its name."""

    resource: Resource
    key: Key
    uid: str


class _Owners(NamedTuple):
    """The owners of an object, by how they stand."""

    solid: list[str]
    absent: list[str]
    waiting: list[str]
    """Those that are being deleted, and not before the object is gone."""


class Garbage(Led):
    """Sees to the dependents of whatever is deleted, of every kind."""

    hears_all = True

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._owners: dict[str, dict[str, bool]] = {}
        """By the uid of each object that has any: its owners' uids, and whether it blocks them."""
        self._dependents: dict[str, dict[str, Item]] = {}
        """By the uid of each owner, and by their own."""
        self._gone: set[str] = set()
        """Owners that were seen to go, and still have dependents."""
        self._blocked: dict[str, Item] = {}
        """Owners that wait for their dependents to go first."""
        self._unserved: dict[str, Item] = {}
        """Dependents of something that nobody knows how to look up."""
        self._suspects: Queue[Item] = Queue()
        self._ending: Queue[Item] = Queue()

    # What it hears

    def heard(self, event: Event) -> None:
        """Note who belongs to whom, and what has to be seen to."""
        entry = event.entry
        if event.type == DELETED:
            self._forget(entry)
            return
        if entry.resource is DEFINITIONS:
            self._suspects.add_all(self._unserved.values())
            self._unserved.clear()
        text = entry.text
        if b'"ownerReferences"' in text or entry.uid in self._owners:
            self._note(_item(entry), parts.read_kin(text).metadata.ownerReferences or ())
        if b'"deletionTimestamp"' in text and (
            b'"foregroundDeletion"' in text or b'"orphan"' in text
        ):
            self._ending.add(_item(entry))

    def _note(self, item: Item, references: Iterable[parts.Owner]) -> None:
        now = {it.uid: bool(it.blockOwnerDeletion) for it in references}
        before = self._owners.get(item.uid, {})
        if now == before:
            return
        for owner in before.keys() - now.keys():
            self._part(owner, item.uid)
        for owner in now:
            self._dependents.setdefault(owner, {})[item.uid] = item
        if now:
            self._owners[item.uid] = now
        else:
            self._owners.pop(item.uid, None)
        self._suspects.add(item)
        self._wake_owners(before)

    def _forget(self, entry: Entry) -> None:
        item = _item(entry)
        owners = self._owners.pop(item.uid, {})
        for owner in owners:
            self._part(owner, item.uid)
        self._wake_owners(owners)
        self._unserved.pop(item.uid, None)
        self._blocked.pop(item.uid, None)
        if dependents := self._dependents.get(item.uid):
            self._gone.add(item.uid)
            self._suspects.add_all(dependents.values())

    def _part(self, owner: str, dependent: str) -> None:
        dependents = self._dependents[owner]
        del dependents[dependent]
        if not dependents:
            del self._dependents[owner]
            self._gone.discard(owner)

    def _wake_owners(self, owners: Iterable[str]) -> None:
        """Owners that waited for an object need not do so any longer, perhaps."""
        self._ending.add_all(self._blocked[it] for it in owners if it in self._blocked)

    # What it does

    def work(self) -> bool:
        """Look at dependents that may have to go, and at owners that wait for theirs."""
        if self.process is None or not (self._suspects or self._ending):
            return False
        for item in self._ending.take():
            self._end(item)
        for item in self._suspects.take():
            self._look(item)
        return True

    def _find(self, item: Item) -> tuple[Entry, parts.Kin] | None:
        entry = self.store.find(item.resource, item.key[1], item.key[0])
        if entry is None or entry.uid != item.uid:
            return None
        return entry, parts.read_kin(entry.text).metadata

    def _end(self, item: Item) -> None:
        """See to the dependents of what is being deleted and said what is to become of them."""
        if (found := self._find(item)) is None:
            return
        finalizers = found[1].finalizers or ()
        if not found[1].deletionTimestamp:
            return
        dependents = list(self._dependents.get(item.uid, {}).values())
        if _ORPHAN in finalizers:
            for dependent in dependents:
                self._let_go(dependent, [item.uid])
            self._finish(item, _ORPHAN)
        elif _FOREGROUND in finalizers:
            if any(self._owners[it.uid][item.uid] for it in dependents):
                self._blocked[item.uid] = item
                self._suspects.add_all(dependents)
            else:
                self._finish(item, _FOREGROUND)
                self._suspects.add_all(dependents)

    def _finish(self, item: Item, finalizer: str) -> None:
        def write(obj: Object) -> None:
            finalizers = obj["metadata"]["finalizers"]
            obj["metadata"]["finalizers"] = [it for it in finalizers if it != finalizer]

        self.world.change(item.resource, item.key, write)

    def _look(self, item: Item) -> None:
        """Delete an object that has owners, once none of them keeps it."""
        found = self._find(item)
        if found is None or found[1].deletionTimestamp:
            return
        owners = self._standing(item, found[1].ownerReferences or ())
        if owners is None:
            self._unserved[item.uid] = item
        elif owners.solid:
            if owners.absent or owners.waiting:
                self._let_go(item, [*owners.absent, *owners.waiting])
        elif owners.waiting and item.uid in self._dependents:
            if self._blocked.keys() & self._dependents[item.uid].keys():
                # Each waits for the other: somebody has to give way.
                self._unblock(item)
            self._delete(item, FOREGROUND)
        elif owners.absent or owners.waiting:
            finalizers = found[1].finalizers or ()
            said = (policy for policy, it in FINALIZERS.items() if it in finalizers)
            self._delete(item, next(said, BACKGROUND))

    def _standing(self, item: Item, references: Iterable[parts.Owner]) -> _Owners | None:
        """How the owners of an object stand; None if that cannot be told of one of them."""
        owners = _Owners([], [], [])
        for reference in references:
            resource = self.world.registry.of_kind(reference.apiVersion, reference.kind)
            namespace = item.key[0]
            if resource is not None and resource.namespaced and not namespace:
                return None
            if reference.uid in self._gone:
                owners.absent.append(reference.uid)
                continue
            if resource is None:
                return None
            key = (namespace if resource.namespaced else "", reference.name)
            entry = self.store.find(resource, key[1], key[0])
            if entry is None or entry.uid != reference.uid:
                owners.absent.append(reference.uid)
            elif _ends_last(entry):
                owners.waiting.append(reference.uid)
            else:
                owners.solid.append(reference.uid)
        return owners

    def _delete(self, item: Item, propagation: str) -> None:
        self.world.remove(item.resource, item.key, item.uid, propagation=propagation)

    def _let_go(self, item: Item, owners: list[str]) -> None:
        """Have an object belong to these no longer."""

        def write(obj: Object) -> None:
            references = obj["metadata"].get("ownerReferences") or ()
            kept = [it for it in references if it["uid"] not in owners]
            obj["metadata"]["ownerReferences"] = kept

        if self._find(item) is not None:
            self.world.change(item.resource, item.key, write)

    def _unblock(self, item: Item) -> None:
        def write(obj: Object) -> None:
            for reference in obj["metadata"]["ownerReferences"]:
                reference["blockOwnerDeletion"] = False

        self.world.change(item.resource, item.key, write)


def _ends_last(entry: Entry) -> bool:
    """Whether an object is being deleted, and not before its dependents are gone."""
    if b'"deletionTimestamp"' not in entry.text:
        return False
    kin = parts.read_kin(entry.text).metadata
    return bool(kin.deletionTimestamp) and _FOREGROUND in (kin.finalizers or ())


def _item(entry: Entry) -> Item:
    return Item(entry.resource, key_of(entry), entry.uid)
