"""The controllers of workloads: make pods, make them again when they go, and roll them out anew."""

from __future__ import annotations

from collections.abc import Callable

from replant.objects import Object
from replant.sandbox.controllers import parts
from replant.sandbox.controllers.base import Key, Led, Queue, World, key_of
from replant.sandbox.controllers.recorder import WARNING
from replant.sandbox.controllers.workloads import retention
from replant.sandbox.controllers.workloads.daemonsets import DaemonSets
from replant.sandbox.controllers.workloads.deployments import Deployments
from replant.sandbox.controllers.workloads.family import Family
from replant.sandbox.controllers.workloads.replicasets import ReplicaSets
from replant.sandbox.controllers.workloads.statefulsets import StatefulSets
from replant.sandbox.resources import (
    CONTROLLER_REVISIONS,
    DAEMON_SETS,
    DEPLOYMENTS,
    NODES,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
    Resource,
)
from replant.sandbox.shelves import DELETED, MODIFIED_EVENT, Event
from replant.sandbox.sides import Process

_REFUSED = 5.0
"""So many seconds until it is tried again to make what was refused."""
_RESOURCES = {it.kind: it for it in (STATEFUL_SETS, DEPLOYMENTS, REPLICA_SETS, DAEMON_SETS)}
_MAKERS = frozenset(_RESOURCES.values())
_MADE = frozenset((PODS, REPLICA_SETS, CONTROLLER_REVISIONS))


class Workloads(Led):
    """StatefulSets, Deployments, ReplicaSets and DaemonSets."""

    hears = (PODS, NODES, CONTROLLER_REVISIONS, *_RESOURCES.values())

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._queue: Queue[tuple[Resource, Key]] = Queue()
        family = self._family = Family(world, self._again)
        self._stateful_sets = StatefulSets(family)
        self._sync: dict[str, Callable[[Object], None]] = {
            STATEFUL_SETS.kind: self._stateful_sets.sync,
            DEPLOYMENTS.kind: Deployments(family).sync,
            REPLICA_SETS.kind: ReplicaSets(family).sync,
            DAEMON_SETS.kind: DaemonSets(family).sync,
        }

    def lead(self, process: Process | None) -> None:
        """Look at all of them again."""
        super().lead(process)
        self._stateful_sets.retains = process is None or not retention.is_heeded(process)
        for resource in _RESOURCES.values():
            self._queue.add_all((resource, key_of(it)) for it in self.store.entries(resource))

    def heard(self, event: Event) -> None:
        """Note whose pods have changed."""
        entry = event.entry
        if entry.resource is NODES:
            relabelled = event.previous is None or event.previous.labels != entry.labels
            if event.type != MODIFIED_EVENT or relabelled:
                daemons = self.store.entries(DAEMON_SETS)
                self._queue.add_all((DAEMON_SETS, key_of(it)) for it in daemons)
            return
        if entry.resource in _MAKERS:
            self._queue.add((entry.resource, key_of(entry)))
        if entry.resource in _MADE:
            self._hear_made(event)

    def _hear_made(self, event: Event) -> None:
        entry = event.entry
        owner = None
        if b'"ownerReferences"' in entry.text:
            owner = parts.controller(parts.read_kin(entry.text).metadata.ownerReferences)
        gone = event.type == DELETED
        if self._family.note(entry, owner.uid if owner else "", gone=gone) and not gone:
            # Anybody here whom it suits may take it.
            for kind in _RESOURCES.values():
                sets = self.store.entries(kind, entry.namespace)
                self._queue.add_all((kind, key_of(it)) for it in sets)
        resource = _RESOURCES.get(owner.kind) if owner else None
        if owner is not None and resource is not None:
            self._queue.add((resource, (entry.namespace, owner.name)))

    def _again(self, resource: Resource, key: Key, seconds: float) -> None:
        self.world.clock.after(seconds, lambda: self._queue.add((resource, key)))

    def work(self) -> bool:
        """Make what is missing, and take away what is too much."""
        if self.process is None or not self._queue:
            return False
        for resource, key in self._queue.take():
            found = self.store.find(resource, key[1], key[0])
            if found is not None:
                obj = found.value()
                if "deletionTimestamp" not in obj["metadata"]:
                    self._family.refusal = ""
                    self._sync[resource.kind](obj)
                    if why := self._family.refusal:
                        component = f"{resource.singular}-controller"
                        self.world.recorder.record(found, component, WARNING, "FailedCreate", why)
                        self._again(resource, key, _REFUSED)
        return True
