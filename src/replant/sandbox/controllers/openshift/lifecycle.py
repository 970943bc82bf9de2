"""The Operator Lifecycle Manager: a Subscription keeps a version, a version keeps its Deployments.

Whoever deletes a Deployment, or a version that somebody is subscribed to, sees it come back. With
its version a Deployment goes; what the operator in it has made stays.
"""

from __future__ import annotations

from replant.objects import Object
from replant.sandbox.controllers.base import Controller, Key, World, key_of
from replant.sandbox.controllers.openshift.objects import LIFECYCLE
from replant.sandbox.controllers.openshift.operators import served
from replant.sandbox.resources import DEPLOYMENTS
from replant.sandbox.shelves import DELETED, Event

WORKING = 5.0
"""Seconds until anything follows from anything."""
OWNER = "olm.owner"


class OperatorLifecycle(Controller):
    """All operators that were installed from a catalogue."""

    hears_all = True

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._subscriptions = served(world, LIFECYCLE, "Subscription")
        self._versions = served(world, LIFECYCLE, "ClusterServiceVersion")
        self._catalogue: dict[Key, Object] = {}
        """Every version that was seen, as it can be installed again."""
        self._heard = False

    def heard(self, event: Event) -> None:
        """Note what has to be put in order."""
        entry = event.entry
        if entry.resource == self._versions and event.type != DELETED:
            found = entry.value()
            self._catalogue[key_of(entry)] = {
                **{name: found[name] for name in ("apiVersion", "kind", "spec") if name in found},
                "metadata": {"name": entry.name, "namespace": entry.namespace},
            }
        mine = entry.resource in (self._subscriptions, self._versions)
        theirs = entry.resource is DEPLOYMENTS and event.type == DELETED and OWNER in entry.labels
        self._heard = self._heard or mine or theirs

    def work(self) -> bool:
        """Put in order after a while whatever is not."""
        heard, self._heard = self._heard, False
        if heard:
            self.world.clock.after(WORKING, self._put_in_order)
        return heard

    def _put_in_order(self) -> None:
        self._install()
        self._deploy()
        self._clear()

    def _install(self) -> None:
        for entry in self.store.entries(self._subscriptions):
            current = (entry.value().get("status") or {}).get("currentCSV", "")
            known = self._catalogue.get((entry.namespace, current))
            if known and not self.store.find(self._versions, current, entry.namespace):
                self.store.create(self._versions, known)

    def _deploy(self) -> None:
        for entry in self.store.entries(self._versions):
            for name, spec in _deployments(entry.value()):
                if not self.store.find(DEPLOYMENTS, name, entry.namespace):
                    labels = {OWNER: entry.name}
                    metadata = {"name": name, "namespace": entry.namespace, "labels": labels}
                    self.store.create(DEPLOYMENTS, {"metadata": metadata, "spec": spec})

    def _clear(self) -> None:
        for entry in list(self.store.entries(DEPLOYMENTS)):
            owner = entry.labels.get(OWNER)
            if owner and not self.store.find(self._versions, owner, entry.namespace):
                self.world.remove(DEPLOYMENTS, key_of(entry), entry.uid)


def _deployments(version: Object) -> list[tuple[str, Object]]:
    install = ((version.get("spec") or {}).get("install") or {}).get("spec") or {}
    return [(it["name"], it["spec"]) for it in install.get("deployments") or ()]
