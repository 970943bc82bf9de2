"""The disruption controller: how many pods of each budget may be missing now."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import convert

from replant.inventory.metadata import LabelSelector
from replant.inventory.selectors import Selector
from replant.objects import Object
from replant.sandbox.controllers import parts
from replant.sandbox.controllers.base import Key, Led, Queue, World, key_of
from replant.sandbox.resources import (
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
)
from replant.sandbox.shelves import DELETED, Entry, Event
from replant.sandbox.sides import Process

_SCALED = {REPLICA_SETS.kind: REPLICA_SETS, STATEFUL_SETS.kind: STATEFUL_SETS}
_DELETION_TIMEOUT = timedelta(minutes=2)
"""So long a pod that was let go counts as gone, if it is not: its eviction may have failed then."""


class Disruption(Led):
    """Keeps the status of PodDisruptionBudgets."""

    hears = (POD_DISRUPTION_BUDGETS, PODS)

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._budgets: Queue[Key] = Queue()
        self._selectors: dict[str, dict[str, Selector]] = {}
        """The budgets of each namespace, and the pods that they mean."""

    def lead(self, process: Process | None) -> None:
        """Look at all budgets again."""
        super().lead(process)
        self._budgets.add_all(key_of(it) for it in self.store.entries(POD_DISRUPTION_BUDGETS))

    def heard(self, event: Event) -> None:
        """Note the budgets whose pods have changed."""
        entry = event.entry
        if entry.resource is PODS:
            for name, selector in self._selectors.get(entry.namespace, {}).items():
                if selector.matches(entry.labels):
                    self._budgets.add((entry.namespace, name))
        elif event.type == DELETED:
            self._selectors.get(entry.namespace, {}).pop(entry.name, None)
        else:
            said = entry.value().get("spec", {}).get("selector")
            if said is not None:
                selector = Selector.of(convert(said, LabelSelector))
                self._selectors.setdefault(entry.namespace, {})[entry.name] = selector
            self._budgets.add(key_of(entry))

    def work(self) -> bool:
        """Count anew."""
        if self.process is None or not self._budgets:
            return False
        for key in self._budgets.take():
            selector = self._selectors.get(key[0], {}).get(key[1])
            if selector is not None:
                self._count(key, selector)
        return True

    def _count(self, key: Key, selector: Selector) -> None:
        found = self.store.entries(PODS, key[0], lambda entry: selector.matches(entry.labels))
        pods = [(entry, parts.read_pod_state(entry.text)) for entry in found]
        there = [it for it in pods if it[1].status.phase not in parts.OVER]
        healthy = sum(pod.status.ready and _stays(pod) for _entry, pod in there)

        def write(budget: Object) -> None:
            spec, before = budget["spec"], budget.get("status") or {}
            expected = len(there)
            if "maxUnavailable" in spec or str(spec.get("minAvailable", "")).endswith("%"):
                expected = self._expected([entry for entry, _pod in there])
            desired = _desired(spec, expected)
            waiting = {
                name: time
                for name, time in (before.get("disruptedPods") or {}).items()
                if any(entry.name == name for entry, pod in pods if _stays(pod))
                and self.world.clock.now() < datetime.fromisoformat(time) + _DELETION_TIMEOUT
            }
            if waiting:
                seconds = _DELETION_TIMEOUT.total_seconds()
                self.world.clock.after(seconds, lambda: self._budgets.add(key))
            ready = healthy - len(waiting)
            budget["status"] = {
                "disruptionsAllowed": max(ready - desired, 0) if expected else 0,
                "currentHealthy": ready,
                "desiredHealthy": desired,
                "expectedPods": expected,
                "observedGeneration": budget["metadata"].get("generation", 1),
            } | ({"disruptedPods": waiting} if waiting else {})

        self.world.change(POD_DISRUPTION_BUDGETS, key, write, "status")

    def _expected(self, pods: list[Entry]) -> int:
        """So many pods there should be, by the word of those who make them."""
        owners: dict[str, int] = {}
        alone = 0
        for pod in pods:
            owner = parts.controller(parts.read_kin(pod.text).metadata.ownerReferences)
            resource = _SCALED.get(owner.kind) if owner else None
            if owner is None or resource is None:
                alone += 1
            elif owner.uid not in owners:
                found = self.store.find(resource, owner.name, pod.namespace)
                owners[owner.uid] = found.value()["spec"].get("replicas", 1) if found else 0
        return alone + sum(owners.values())


def _stays(pod: parts.PodState) -> bool:
    return not pod.metadata.deletionTimestamp


def _desired(spec: Object, expected: int) -> int:
    if (most := spec.get("maxUnavailable")) is not None:
        return max(expected - _share(most, expected), 0)
    return _share(spec.get("minAvailable", 1), expected)


def _share(said: object, whole: int) -> int:
    """A number, or a percentage of the whole, rounded up."""
    text = str(said)
    if text.endswith("%"):
        return -(-int(text[:-1]) * whole // 100)
    return int(text)
