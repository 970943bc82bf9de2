"""The kubelets: each follows its own gates, in what it says of itself and in what it waits for.

A kubelet reports a pod's volumes as in use under the names that its gates give them, and runs the
pod once they are attached under those names. Given other gates under a running pod it goes on
running it, reports the new names, and no longer knows the old ones. One that starts looks up all
volumes anew: what it does not find, such as that of a claim without its PersistentVolume, it
unmounts under containers that go on, and reports as in use no longer.
"""

from __future__ import annotations

from replant.sandbox.controllers import parts
from replant.sandbox.controllers.base import Controller, Key, Queue, World, key_of
from replant.sandbox.controllers.kubelets.kubelet import Kubelet, Seat, mounting_side
from replant.sandbox.controllers.kubelets.reporting import (
    report_drivers,
    report_in_use,
    report_ready,
    report_running,
    report_version,
    report_zone,
)
from replant.sandbox.controllers.recorder import WARNING
from replant.sandbox.controllers.volumes import Volume
from replant.sandbox.resources import NODES, PERSISTENT_VOLUME_CLAIMS, PODS
from replant.sandbox.shelves import DELETED, Event
from replant.sandbox.sides import NodeView, Process, Side

STOPPING = 1.0
"""So many seconds a pod takes to end that does not say how long it takes."""
FAILED_MOUNT = 123.0
"""After so many seconds a kubelet complains that a volume does not come."""
_LOST_TOUCH = 40.0
"""After so many seconds without a word from it a node counts as not ready."""
_AGAIN = 5.0
_MIRROR = "kubernetes.io/config.mirror"


class Kubelets(Controller):
    """All kubelets of the cluster."""

    hears = (PODS, NODES, PERSISTENT_VOLUME_CLAIMS)

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.all: dict[str, Kubelet] = {}
        self._pods: Queue[tuple[str, Key]] = Queue()
        self._nodes: Queue[str] = Queue()
        self._awaiting: dict[Key, set[tuple[str, Key]]] = {}
        self._bound: dict[str, dict[Key, None]] = {}
        """The pods of each node, whether or not a kubelet is there."""

    # What is done to them

    def start(self, kubelet: Kubelet) -> None:
        """A kubelet starts for the first time. Its node has been registered."""
        self.all[kubelet.node] = kubelet
        report_drivers(self.world, kubelet)
        report_zone(self.world, kubelet)
        self._find_pods(kubelet)

    def restart(self, node: str, process: Process, seconds: float = 0) -> None:
        """A kubelet starts again in place, with whatever gates, under whatever runs there.

        It takes some seconds, in which nobody looks after its pods; they run on.
        """
        kubelet = self.all[node]
        kubelet.process = process
        kubelet.starting = True
        kubelet.starts += 1
        starts = kubelet.starts

        def started() -> None:
            if kubelet.alive and kubelet.starts == starts and self.all.get(node) is kubelet:
                self._come_up(kubelet)

        if seconds:
            self.world.clock.after(seconds, started)
        else:
            started()

    def _come_up(self, kubelet: Kubelet) -> None:
        kubelet.starting = False
        report_drivers(self.world, kubelet)
        report_version(self.world, kubelet)
        for key, seat in kubelet.seats.items():
            if seat.running:
                self._find_again(kubelet, key, seat)
        self._look_again(kubelet)

    def _look_again(self, kubelet: Kubelet) -> None:
        """Catch up with what has become of its pods while nobody looked."""
        for key, seat in kubelet.seats.items():
            seat.ending = False  # whoever was about to end it has gone meanwhile
            self._pods.add((kubelet.node, key))
        self._find_pods(kubelet)

    def register(self, node: str, drivers: frozenset[str]) -> None:
        """These are the drivers on a node from now on."""
        self.all[node].drivers = drivers
        report_drivers(self.world, self.all[node], only_drivers=True)
        report_zone(self.world, self.all[node])
        self._nodes.add(node)

    def kill(self, node: str) -> None:
        """A node dies: nothing on it runs, and soon it counts as not ready."""
        kubelet = self.all[node]
        kubelet.alive = False
        kubelet.died += 1
        for key, seat in kubelet.seats.items():
            self._stop_writing(key, seat)
            seat.running = False
        died = kubelet.died

        def missed() -> None:
            if not kubelet.alive and kubelet.died == died:
                report_ready(self.world, node, "Unknown", "NodeStatusUnknown")

        self.world.clock.after(_LOST_TOUCH, missed)

    def revive(self, node: str) -> None:
        """A node comes back from a reboot: nothing is mounted, and its pods wait."""
        kubelet = self.all[node]
        kubelet.alive = True
        report_ready(self.world, node, "True", "KubeletReady")
        for seat in kubelet.seats.values():
            seat.restarts += 1
        if kubelet.starting:
            self._come_up(kubelet)  # it died before it was up
        else:
            self._look_again(kubelet)

    def remove(self, node: str) -> None:
        """A node is gone for good."""
        kubelet = self.all.pop(node)
        for key, seat in kubelet.seats.items():
            self._stop_writing(key, seat)

    # What they hear and do

    def heard(self, event: Event) -> None:
        """Note pods that came, changed or went, and nodes that were told of volumes."""
        entry = event.entry
        if entry.resource is PODS:
            self._hear_pod(event)
        elif entry.resource is NODES:
            if event.type != DELETED and entry.name in self.all:
                seats = self.all[entry.name].seats.values()
                if any(not seat.running for seat in seats):
                    self._nodes.add(entry.name)
        elif waiting := self._awaiting.pop(key_of(entry), None):
            self._pods.add_all(waiting)

    def _hear_pod(self, event: Event) -> None:
        node, key = event.entry.fields["spec.nodeName"], key_of(event.entry)
        if not node:
            return
        if event.type == DELETED:
            self._bound.get(node, {}).pop(key, None)
        else:
            self._bound.setdefault(node, {})[key] = None
        kubelet = self.all.get(node)
        if kubelet is None:
            return
        seat = kubelet.seats.get(key)
        if seat and seat.running and seat.uid == event.entry.uid and not _ends(event):
            return  # nothing that may change about a pod that runs matters here
        self._pods.add((node, key))

    def work(self) -> bool:
        """Take pods in and let them go, then look at the nodes where something has changed."""
        if not (self._pods or self._nodes):
            return False
        for node, key in self._pods.take():
            if (kubelet := self.all.get(node)) and kubelet.works:
                self._sync_pod(kubelet, key)
        for node in self._nodes.take():
            if (kubelet := self.all.get(node)) and kubelet.works:
                self._sync_node(kubelet)
        return True

    def _sync_pod(self, kubelet: Kubelet, key: Key) -> None:
        entry = self.store.find(PODS, key[1], key[0])
        here = entry is not None and entry.fields["spec.nodeName"] == kubelet.node
        over = entry is not None and entry.fields["status.phase"] in parts.OVER
        seat = kubelet.seats.get(key)
        if seat is not None and (not here or over or (entry and entry.uid != seat.uid)):
            self._vacate(kubelet, key)
            seat = None
        if entry is None or not here or over:
            return
        pod = parts.read_pod(entry.text)
        if _MIRROR in (pod.metadata.annotations or {}):
            return
        if seat is None:
            seat = kubelet.seats[key] = Seat(entry.uid)
        if seat.volumes is None:
            self._find_volumes(kubelet, key, seat, pod)
        elif seat.unknown:
            self._find_again(kubelet, key, seat)
        if pod.metadata.deletionTimestamp and not seat.ending:
            seat.ending = True
            pause = _seconds_to_end(pod) if seat.running else 0
            self.world.clock.after(pause, lambda: self._end(kubelet, key, seat))

    def _find_volumes(self, kubelet: Kubelet, key: Key, seat: Seat, pod: parts.Pod) -> None:
        volumes, unbound = self.world.volumes.of_pod(pod)
        for claim in unbound:
            self._awaiting.setdefault((key[0], claim), set()).add((kubelet.node, key))
        if not unbound:
            seat.volumes = tuple(volumes)
            self._nodes.add(kubelet.node)
            self._complain_later(kubelet, key, seat)

    def _find_again(self, kubelet: Kubelet, key: Key, seat: Seat) -> None:
        """Look up the volumes of a pod that runs, one by one."""
        entry = self.store.find(PODS, key[1], key[0])
        if entry is None or entry.uid != seat.uid:
            return
        found, unbound = self.world.volumes.of_pod(parts.read_pod(entry.text))
        for claim in unbound:
            self._awaiting.setdefault((key[0], claim), set()).add((kubelet.node, key))
        seat.volumes, seat.unknown = tuple(found), bool(unbound)
        self._nodes.add(kubelet.node)

    def _end(self, kubelet: Kubelet, key: Key, seat: Seat) -> None:
        if not kubelet.works or kubelet.seats.get(key) is not seat:
            return
        self._vacate(kubelet, key)
        # What is unmounted is reported before the pod is let go.
        report_in_use(self.world, kubelet)
        self.world.remove(PODS, key, seat.uid, grace=0)

    def _vacate(self, kubelet: Kubelet, key: Key) -> None:
        self._stop_writing(key, kubelet.seats.pop(key))
        self._nodes.add(kubelet.node)

    def _sync_node(self, kubelet: Kubelet) -> None:
        report_in_use(self.world, kubelet)
        waiting = [it for it in kubelet.seats.items() if not it[1].running and not it[1].ending]
        found = self.store.find(NODES, kubelet.node)
        if not waiting or found is None:
            return
        attached = parts.read_node(found.text).attached
        view = NodeView(csi_node=kubelet.csi_node, drivers=kubelet.drivers)
        for key, seat in waiting:
            if seat.volumes is None:
                continue
            there = [self._is_there(kubelet, it, attached, view) for it in seat.volumes]
            if all(there):
                self._run(kubelet, key, seat)

    def _is_there(
        self, kubelet: Kubelet, volume: Volume, attached: set[str], view: NodeView
    ) -> bool:
        side = mounting_side(volume.view, kubelet.process, view)
        if side is Side.NOBODY:
            return False
        if not volume.view.attachable:
            return True
        if volume.called(side) not in attached:
            return False
        if self.world.cloud.attached_to(volume.disk) == kubelet.node:
            return True
        # It was told so, but there is no such device.
        self.world.clock.after(_AGAIN, lambda: self._nodes.add(kubelet.node))
        return False

    def _run(self, kubelet: Kubelet, key: Key, seat: Seat) -> None:
        seat.running = True
        seat.written = seat.volumes or ()
        name = f"{key[0]}/{key[1]}"
        for volume in seat.written:
            attachable = volume.view.attachable
            self.world.writes.start(volume.disk, name, kubelet.node, attachable=attachable)
        report_running(self.world, key, seat.restarts)

    def _complain_later(self, kubelet: Kubelet, key: Key, seat: Seat) -> None:
        if not seat.volumes:
            return

        def complain() -> None:
            waits = kubelet.seats.get(key) is seat and not seat.running and kubelet.alive
            if waits and (entry := self.store.find(PODS, key[1], key[0])):
                message = "Unable to attach or mount volumes: timed out waiting for the condition"
                self.world.recorder.record(entry, "kubelet", WARNING, "FailedMount", message)
                self.world.clock.after(FAILED_MOUNT, complain)

        self.world.clock.after(FAILED_MOUNT, complain)

    def _stop_writing(self, key: Key, seat: Seat) -> None:
        for volume in seat.written:
            self.world.writes.stop(volume.disk, f"{key[0]}/{key[1]}")

    def _find_pods(self, kubelet: Kubelet) -> None:
        self._pods.add_all((kubelet.node, key) for key in self._bound.get(kubelet.node, ()))
        self._nodes.add(kubelet.node)


def _seconds_to_end(pod: parts.Pod) -> float:
    """As long as its containers take to end after SIGTERM, and no longer than its grace period."""
    said = (pod.metadata.annotations or {}).get(parts.ENDS_AFTER, "")
    takes = float(said) if said.isdecimal() else STOPPING
    return min(takes, pod.metadata.deletionGracePeriodSeconds or 0)


def _ends(event: Event) -> bool:
    entry = event.entry
    over = event.type == DELETED or entry.fields["status.phase"] in parts.OVER
    return over or b'"deletionTimestamp"' in entry.text
