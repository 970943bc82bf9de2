"""The scheduler: gives each pod the emptiest node that its volumes allow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from heapq import heappop, heappush
from typing import NamedTuple

from replant.objects import Object
from replant.sandbox import changes
from replant.sandbox.controllers import parts
from replant.sandbox.controllers.base import Controller, Key, Queue, World, key_of
from replant.sandbox.controllers.recorder import WARNING
from replant.sandbox.resources import (
    CSI_NODES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
)
from replant.sandbox.shelves import DELETED, Entry, Event
from replant.sandbox.sides import NodeView, Process, Side, VolumeView, count_side
from replant.translate.topology import BETA_ZONE

PODS_ON_A_NODE = 110
IN_TREE_LIMIT = 39
"""So many volumes the in-tree filters allow on a node, roughly."""
_COMPONENT = "default-scheduler"
_SLACK = 8
"""So much larger than it has to be a ranking may become before it is made anew."""


@dataclass(slots=True)
class Room:
    """A node, as the scheduler sees it."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[tuple[str, str], ...]
    view: NodeView
    limit: int
    """Of volumes that count for a driver."""
    pods: int = 0
    volumes: int = 0

    @property
    def zone(self) -> str:
        """Where it is."""
        return self.labels.get(parts.ZONE, "")


class Wish(NamedTuple):
    """What a pod asks of a node."""

    zones: frozenset[str] | None
    labels: tuple[tuple[str, str], ...]
    names: frozenset[str] | None
    terms: tuple[Object, ...]
    tolerations: tuple[Object, ...]
    volumes: tuple[VolumeView, ...]


Ranking = list[tuple[int, str]]
"""A heap of the nodes of a zone, by how many pods each has; what is out of date is passed over."""


class Scheduler(Controller):
    """Binds pods that nobody has bound."""

    hears = (PODS, NODES, CSI_NODES, PERSISTENT_VOLUME_CLAIMS)

    def __init__(self, world: World, process: Process) -> None:
        super().__init__(world)
        self.process = process
        self._leads = True
        self._rooms: dict[str, Room] = {}
        self._rankings: dict[str, Ranking] = {}
        self._placed: dict[Key, tuple[str, int]] = {}
        self._loads: dict[str, list[int]] = {}
        self._queue: Queue[Key] = Queue()
        self._unplaced: dict[Key, str] = {}
        self._awaiting: dict[Key, set[Key]] = {}

    def lead(self, process: Process | None) -> None:
        """Another replica leads from now on, and looks at all that waits; or none does."""
        self._leads = process is not None
        self.process = process or self.process
        self._queue.add_all(self._unplaced)

    def heard(self, event: Event) -> None:
        """Note pods without a node, and whatever may make room for them."""
        entry = event.entry
        if entry.resource is PODS:
            self._hear_pod(event)
        elif entry.resource is NODES:
            self._hear_node(event)
        elif entry.resource is CSI_NODES:
            self._hear_csi_node(event)
        elif waiting := self._awaiting.pop(key_of(entry), None):
            self._queue.add_all(waiting)

    def _hear_pod(self, event: Event) -> None:
        entry, key = event.entry, key_of(event.entry)
        node = entry.fields["spec.nodeName"]
        over = event.type == DELETED or entry.fields["status.phase"] in parts.OVER
        if over:
            self._unplaced.pop(key, None)
            if placed := self._placed.pop(key, None):
                self._load(placed[0], -1, -placed[1])
                self._queue.add_all(self._unplaced)
        elif not node:
            self._queue.add(key)
        elif key not in self._placed:
            self._unplaced.pop(key, None)
            volumes = entry.text.count(b'"persistentVolumeClaim"')
            self._placed[key] = (node, volumes)
            self._load(node, 1, volumes)

    def _load(self, node: str, pods: int, volumes: int) -> None:
        load = self._loads.setdefault(node, [0, 0])
        load[0] += pods
        load[1] += volumes
        if room := self._rooms.get(node):
            room.pods, room.volumes = load
            self._rank(room)

    def _hear_node(self, event: Event) -> None:
        entry = event.entry
        known = self._rooms.get(entry.name)
        read = None if event.type == DELETED else parts.read_node(entry.text)
        if read is None or read.spec.unschedulable or not read.status.ready:
            self._rooms.pop(entry.name, None)
            return
        taints = tuple(
            (it.get("key", ""), it.get("value", ""))
            for it in read.spec.taints or ()
            if it.get("effect") in ("NoSchedule", "NoExecute")
        )
        labels = entry.labels
        if known is not None and (known.taints, known.labels) == (taints, labels):
            return  # most that nodes write says nothing to a scheduler
        found = self.store.find(CSI_NODES, entry.name)
        room = Room(entry.name, labels, taints, *_csi(found))
        room.pods, room.volumes = self._loads.get(entry.name, (0, 0))
        self._rooms[entry.name] = room
        self._rank(room)
        self._queue.add_all(self._unplaced)

    def _hear_csi_node(self, event: Event) -> None:
        if room := self._rooms.get(event.entry.name):
            room.view, room.limit = _csi(None if event.type == DELETED else event.entry)
            self._queue.add_all(self._unplaced)

    def _rank(self, room: Room) -> None:
        ranking = self._rankings.setdefault(room.zone, [])
        heappush(ranking, (room.pods, room.name))
        if len(ranking) > _SLACK * (len(self._rooms) + _SLACK):
            there = (it for it in self._rooms.values() if it.zone == room.zone)
            ranking[:] = sorted((it.pods, it.name) for it in there)

    def work(self) -> bool:
        """Place what waits."""
        if not (self._queue and self._leads):
            return False
        for key in self._queue.take():
            found = self.store.find(PODS, key[1], key[0])
            if found is not None and not found.fields["spec.nodeName"]:
                self._place(found)
        return True

    def _place(self, entry: Entry) -> None:
        pod = parts.read_pod(entry.text)
        if pod.spec.schedulerName != "default-scheduler" or pod.metadata.deletionTimestamp:
            return
        key = key_of(entry)
        bound, missing, waiting = self._claims(key, pod)
        if missing:
            self._fail(entry, f"waiting for the claim {missing[0]} to be bound")
            return
        wish = self._wish(pod, bound)
        room = self._choose(wish)
        if room is None:
            self._fail(entry, "no node is ready, allowed and has room for it and its volumes")
            return
        if waiting:
            self._select(key, waiting, room.name)
            return
        self._unplaced.pop(key, None)

        def bind(obj: Object) -> None:
            changes.bind(obj, room.name, self.store.time())

        self.world.change(PODS, key, bind, "binding")

    def _claims(self, key: Key, pod: parts.Pod) -> tuple[list[Entry], list[str], list[str]]:
        """The volumes that are bound, the claims that must be, and those that wait for a node."""
        bound: list[Entry] = []
        missing: list[str] = []
        waiting: list[str] = []
        for name in parts.claim_names(pod):
            found = self.store.find(PERSISTENT_VOLUME_CLAIMS, name, key[0])
            claim = parts.read_claim(found.text) if found else None
            volume = self.store.find(PERSISTENT_VOLUMES, claim.spec.volumeName) if claim else None
            if claim is not None and volume is not None and claim.status.phase == "Bound":
                bound.append(volume)
                continue
            self._awaiting.setdefault((key[0], name), set()).add(key)
            late = claim is not None and not claim.spec.volumeName and self._binds_late(claim)
            (waiting if late else missing).append(name)
        return bound, missing, waiting

    def _binds_late(self, claim: parts.Claim) -> bool:
        found = self.store.find(STORAGE_CLASSES, claim.spec.storageClassName or "")
        return found is not None and (
            found.value().get("volumeBindingMode") == "WaitForFirstConsumer"
        )

    def _select(self, key: Key, claims: list[str], node: str) -> None:
        def write(obj: Object) -> None:
            obj["metadata"].setdefault("annotations", {}).setdefault(parts.SELECTED_NODE, node)

        self._unplaced[key] = "waiting for its volumes to be made"
        for claim in claims:
            self.world.change(PERSISTENT_VOLUME_CLAIMS, (key[0], claim), write)
            # That was heard before it could be waited for.
            self._awaiting.setdefault((key[0], claim), set()).add(key)

    def _wish(self, pod: parts.Pod, volumes: list[Entry]) -> Wish:
        zones: frozenset[str] | None = None
        views: list[VolumeView] = []
        for entry in volumes:
            affinity = parts.read_volume(entry.text).spec.nodeAffinity
            for said in (_labelled(entry.labels), _zones(affinity)):
                if said is not None:
                    zones = said if zones is None else zones & said
            known = self.world.volumes.of_entry(entry)
            if known is not None and known.view.attachable:
                views.append(known.view)
        required = (
            ((pod.spec.affinity or {}).get("nodeAffinity") or {}).get(
                "requiredDuringSchedulingIgnoredDuringExecution"
            )
            or {}
        ).get("nodeSelectorTerms") or ()
        return Wish(
            zones,
            tuple((pod.spec.nodeSelector or {}).items()),
            _names(required),
            tuple(it for it in required if it.get("matchExpressions")),
            tuple(pod.spec.tolerations or ()),
            tuple(views),
        )

    def _choose(self, wish: Wish) -> Room | None:
        if wish.names is not None:
            rooms = (self._rooms.get(name) for name in sorted(wish.names))
            return next((it for it in rooms if it and self._fits(it, wish)), None)
        zones = self._rankings if wish.zones is None else wish.zones & self._rankings.keys()
        best: Room | None = None
        for zone in sorted(zones):
            found = self._emptiest(self._rankings[zone], wish)
            if found and (best is None or found.pods < best.pods):
                best = found
        return best

    def _emptiest(self, ranking: Ranking, wish: Wish) -> Room | None:
        passed: list[tuple[int, str]] = []
        found: Room | None = None
        last = None
        while ranking and found is None:
            item = heappop(ranking)
            room = self._rooms.get(item[1])
            if room is None or room.pods != item[0] or item == last:
                continue
            last = item
            passed.append(item)
            if self._fits(room, wish):
                found = room
        for item in passed:
            heappush(ranking, item)
        return found

    def _fits(self, room: Room, wish: Wish) -> bool:
        if room.pods >= PODS_ON_A_NODE:
            return False
        if wish.labels and not set(wish.labels) <= room.labels.items():
            return False
        if wish.zones is not None and room.zone not in wish.zones:
            return False
        if wish.terms and not any(_matches(term, room.labels) for term in wish.terms):
            return False
        if room.taints and not all(_tolerated(it, wish.tolerations) for it in room.taints):
            return False
        return all(self._has_room(room, it) for it in wish.volumes)

    def _has_room(self, room: Room, volume: VolumeView) -> bool:
        side = _counted(volume, self.process, room.view)
        if side is Side.NOBODY:
            return True
        limit = room.limit if side is Side.CSI else IN_TREE_LIMIT
        return room.volumes < limit

    def _fail(self, entry: Entry, why: str) -> None:
        key = key_of(entry)
        if self._unplaced.get(key) == why:
            return
        self._unplaced[key] = why
        time = self.store.time()

        def write(obj: Object) -> None:
            said = parts.condition(
                "PodScheduled", "False", time, reason="Unschedulable", message=why
            )
            parts.put_condition(obj, said)

        self.world.change(PODS, key, write, "status")
        self.world.recorder.record(entry, _COMPONENT, WARNING, "FailedScheduling", why)


def _csi(entry: Entry | None) -> tuple[NodeView, int]:
    if entry is None:
        return parts.node_view(None), IN_TREE_LIMIT
    drivers = parts.read_csi_node(entry.text).spec.drivers or ()
    limits = [it.allocatable["count"] for it in drivers if it.allocatable]
    return parts.node_view(entry.text), min(limits, default=IN_TREE_LIMIT)


@lru_cache(maxsize=4096)
def _counted(volume: VolumeView, process: Process, node: NodeView) -> Side:
    return count_side(volume, process, node)


def _expressions(terms: object) -> Iterator[Object]:
    for term in terms if isinstance(terms, list | tuple) else ():
        yield from term.get("matchExpressions") or ()


def _labelled(labels: Mapping[str, str]) -> frozenset[str] | None:
    """The zones that a volume's label names: in-tree volumes may have no other affinity."""
    said = labels.get(parts.ZONE) or labels.get(BETA_ZONE)
    return frozenset(said.split("__")) if said else None


def _zones(affinity: Object | None) -> frozenset[str] | None:
    """The zones that a volume can be reached from, by whatever key its plugin says them."""
    terms = ((affinity or {}).get("required") or {}).get("nodeSelectorTerms")
    said = [it for it in _expressions(terms) if str(it.get("key")).endswith("/zone")]
    if not said:
        return None
    return frozenset(
        zone for it in said for value in it.get("values") or () for zone in value.split("__")
    )


def _names(terms: object) -> frozenset[str] | None:
    """The nodes that a pod names, as a DaemonSet's do."""
    said = [
        field["values"]
        for term in (terms if isinstance(terms, list | tuple) else ())
        for field in term.get("matchFields") or ()
        if field.get("key") == "metadata.name"
    ]
    return frozenset(name for names in said for name in names) if said else None


def _matches(term: Object, labels: Mapping[str, str]) -> bool:
    return all(_holds(it, labels) for it in term.get("matchExpressions") or ())


def _holds(expression: Object, labels: Mapping[str, str]) -> bool:
    key, values = expression["key"], expression.get("values") or ()
    said = {
        "In": labels.get(key) in values,
        "NotIn": labels.get(key) not in values,
        "Exists": key in labels,
        "DoesNotExist": key not in labels,
    }
    return said.get(expression["operator"], False)


def _tolerated(taint: tuple[str, str], tolerations: tuple[Object, ...]) -> bool:
    for it in tolerations:
        key = it.get("key")
        if not key and it.get("operator") == "Exists":
            return True
        same = it.get("operator") == "Exists" or it.get("value", "") == taint[1]
        if key == taint[0] and same and not it.get("tolerationSeconds"):
            return True
    return False
