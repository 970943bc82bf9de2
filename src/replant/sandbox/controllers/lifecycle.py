"""The controllers of nodes that are gone: their pods are evicted, or cleared away."""

from __future__ import annotations

from functools import partial

from replant.objects import Object
from replant.sandbox.controllers import parts
from replant.sandbox.controllers.base import Led, Queue, World, key_of
from replant.sandbox.resources import NODES, PODS
from replant.sandbox.shelves import DELETED, Event

TOLERATED = 300.0
"""So many seconds pods stay bound to a node that does not answer."""
CLEARED = 40.0
"""After so many seconds pods of a node that was deleted are deleted too."""
_TAINT = "node.kubernetes.io/unreachable"


class Lifecycle(Led):
    """Looks after pods whose kubelet no longer does."""

    hears = (NODES,)

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._silent: set[str] = set()
        self._changed: Queue[str] = Queue()

    def heard(self, event: Event) -> None:
        """Note nodes that have fallen silent, come back or gone."""
        node = event.entry.name
        ready = event.type != DELETED and parts.read_node(event.entry.text).status.ready
        if ready != (node not in self._silent):
            self._changed.add(node)
            if ready:
                self._silent.discard(node)
            else:
                self._silent.add(node)

    def work(self) -> bool:
        """Taint what is silent; soon its pods are to go."""
        if self.process is None or not self._changed:
            return False
        for node in self._changed.take():
            silent, there = node in self._silent, self.store.find(NODES, node) is not None
            if there:
                self._taint(node, silent=silent)
            if silent:
                pause = TOLERATED if there else CLEARED
                self.world.clock.after(pause, partial(self._evict, node))
        return True

    def _taint(self, node: str, *, silent: bool) -> None:
        def write(obj: Object) -> None:
            taints = [it for it in obj["spec"].get("taints") or () if it["key"] != _TAINT]
            if silent:
                taints += [
                    {"key": _TAINT, "effect": effect} for effect in ("NoSchedule", "NoExecute")
                ]
            obj["spec"].pop("taints", None)
            if taints:
                obj["spec"]["taints"] = taints

        self.world.change(NODES, ("", node), write)

    def _evict(self, node: str) -> None:
        if node not in self._silent:
            return
        gone = self.store.find(NODES, node) is None
        bound = self.store.entries(PODS, "", lambda it: it.fields["spec.nodeName"] == node)
        for entry in bound:
            self.world.remove(PODS, key_of(entry), entry.uid, grace=0 if gone else None)
