"""What pods want to be attached where: decided when a pod is looked at, and remembered."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from replant.sandbox.controllers import parts
from replant.sandbox.controllers.attachdetach.decisions import NodeReport, wanted_name
from replant.sandbox.controllers.base import Key, Queue, World, discard
from replant.sandbox.controllers.volumes import Volume
from replant.sandbox.resources import CSI_NODES, PODS
from replant.sandbox.sides import AttachController, NodeView, Process


class Looked(NamedTuple):
    """A pod that was looked at: where it is, and the names that were wanted for it so far."""

    uid: str
    node: str
    names: tuple[str, ...]
    volumes: tuple[str, ...]
    """Its PersistentVolumes."""


class Wanted:
    """The names that are wanted on each node, and the pods that want them."""

    def __init__(
        self,
        world: World,
        kind: AttachController,
        reports: Mapping[str, NodeReport],
        changed: Queue[str],
    ) -> None:
        self._world = world
        self._kind = kind
        self._reports = reports
        self._changed = changed
        """The nodes on which something else may be wanted now."""
        self.pods: dict[Key, Looked] = {}
        self.awaiting: dict[Key, set[Key]] = {}
        """Claims that are not bound yet, and the pods that wait for them."""
        self.on_nodes: dict[str, dict[str, set[Key]]] = {}
        self.volumes: dict[str, Volume] = {}
        self.seekers: dict[str, set[str]] = {}
        """On which nodes each name is wanted."""
        self.unwanted_since: dict[tuple[str, str], datetime] = {}
        """When a name that a node has in use was first seen to be wanted no longer."""
        self._views: dict[str, NodeView] = {}
        self._users: dict[str, set[Key]] = {}
        """The pods that were looked at with each PersistentVolume."""
        self._outdated_nodes: set[str] = set()
        self._outdated_volumes: set[str] = set()
        """What has changed since pods were looked at: others would look the same again."""

    # What makes it outdated

    def csi_node_changed(self, node: str) -> None:
        """What a CSINode says counts when a pod is looked at the next time, and not before."""
        self._views.pop(node, None)
        self._outdated_nodes.add(node)

    def volume_added(self, name: str) -> None:
        """A PersistentVolume came: it may have replaced another of its name."""
        if name in self._users:
            self._outdated_volumes.add(name)

    def take_outdated(self) -> list[Key]:
        """The pods for which something else may be decided by now."""
        nodes, volumes = self._outdated_nodes, self._outdated_volumes
        self._outdated_nodes, self._outdated_volumes = set(), set()
        found = self.pods_on(nodes) if nodes else []
        for volume in volumes:
            found += self._users.get(volume, ())
        return found

    def pods_on(self, nodes: set[str]) -> list[Key]:
        """The pods that were looked at on these nodes."""
        return [key for key, it in self.pods.items() if it.node in nodes]

    # Looking

    def look_at(self, key: Key, process: Process) -> None:
        """Decide what a pod wants now; to what it has wanted before that can only add."""
        entry = self._world.store.find(PODS, key[1], key[0])
        known = self.pods.get(key)
        if known is not None and (entry is None or known.uid != entry.uid):
            self._pod_gone(key)  # another one of the same name remembers nothing of it
            known = None
        node = entry.fields["spec.nodeName"] if entry else ""
        if entry is None or not node or entry.fields["status.phase"] in parts.OVER:
            self._pod_gone(key)
            return
        names = known.names if known else ()
        volumes, unbound = self._world.volumes.of_pod(parts.read_pod(entry.text))
        for claim in unbound:
            self.awaiting.setdefault((key[0], claim), set()).add(key)
        report = self._reports.get(node)
        if report is not None and report.managed:
            view = self._view(node)
            for volume in volumes:
                name = wanted_name(volume, process, view, self._kind)
                if name and name not in names:
                    names = (*names, name)
                    self.volumes[name] = volume
        self._note(key, Looked(entry.uid, node, names, tuple(it.pv for it in volumes if it.pv)))

    def _note(self, key: Key, looked: Looked) -> None:
        self.pods[key] = looked
        for pv in looked.volumes:
            self._users.setdefault(pv, set()).add(key)
        node = looked.node
        wanted = self.on_nodes.setdefault(node, {})
        for name in looked.names:
            wanted.setdefault(name, set()).add(key)
            self.seekers.setdefault(name, set()).add(node)
            self.unwanted_since.pop((node, name), None)
        self._changed.add(node)

    def _pod_gone(self, key: Key) -> None:
        known = self.pods.pop(key, None)
        if known is None:
            return
        for pv in known.volumes:
            discard(self._users, pv, key)
        wanted = self.on_nodes.get(known.node, {})
        for name in known.names:
            pods = wanted.get(name, set())
            pods.discard(key)
            if not pods:
                wanted.pop(name, None)
                discard(self.seekers, name, known.node)
        if not wanted:
            self.on_nodes.pop(known.node, None)
        self._changed.add(known.node)

    def _view(self, node: str) -> NodeView:
        if node not in self._views:
            found = self._world.store.find(CSI_NODES, node)
            self._views[node] = parts.node_view(found.text if found else None)
        return self._views[node]
