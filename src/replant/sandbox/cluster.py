"""A cluster behind the sandbox's API: controllers, kubelets and a cloud, put together."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from itertools import count

from replant.gates.plugins import LIVES
from replant.gates.versions import Version
from replant.objects import Object
from replant.sandbox.changes import Deletion
from replant.sandbox.clock import Clock, VirtualClock
from replant.sandbox.cloud import Cloud
from replant.sandbox.controllers import openshift, parts
from replant.sandbox.controllers.attachdetach import AttachDetach
from replant.sandbox.controllers.attacher import Attacher
from replant.sandbox.controllers.base import Controller, Led, World
from replant.sandbox.controllers.binder import Binder
from replant.sandbox.controllers.controlplane import CONTROLLER, SCHEDULER, ControlPlane
from replant.sandbox.controllers.disruption import Disruption
from replant.sandbox.controllers.driverpods import DriverPods
from replant.sandbox.controllers.expander import Expander
from replant.sandbox.controllers.garbage import Garbage
from replant.sandbox.controllers.kubelets import Kubelets
from replant.sandbox.controllers.kubelets.kubelet import Kubelet
from replant.sandbox.controllers.kubelets.reporting import ZONE_KEYS
from replant.sandbox.controllers.lifecycle import Lifecycle
from replant.sandbox.controllers.protection import Protection
from replant.sandbox.controllers.provisioner import Provisioner
from replant.sandbox.controllers.recorder import Recorder
from replant.sandbox.controllers.resizer import Resizer
from replant.sandbox.controllers.scheduler import Scheduler
from replant.sandbox.controllers.volumes import Volumes
from replant.sandbox.controllers.workloads import Workloads
from replant.sandbox.resources import CSI_DRIVERS, CSI_NODES, LEASES, NODES, PODS, Registry
from replant.sandbox.shelves import ADDED, Event
from replant.sandbox.sides import AttachController, Process, VolumeView
from replant.sandbox.store import Store
from replant.sandbox.writes import Writes

Gates = Mapping[str, bool]

LIMIT = 39
"""So many volumes a node takes, unless it says otherwise."""
_HOSTNAME = "kubernetes.io/hostname"
_OS = "kubernetes.io/os"


class Unsettled(RuntimeError):
    """Controllers went on at one moment for ever: two of them undo each other's work."""


class Cluster:
    """What Kubernetes does by itself, with everything that tests and actuators can do to it."""

    def __init__(
        self,
        store: Store,
        registry: Registry,
        clock: Clock,
        *,
        version: str = "1.24.17",
        gates: Gates | None = None,
        flags: Mapping[str, str] | None = None,
        replicas: int = 1,
        attach_controller: AttachController = AttachController.UPSTREAM,
        cloud: Cloud | None = None,
        provider: str = "sandbox",
    ) -> None:
        self.store = store
        self.registry = registry
        self.clock = clock
        self.version = Version.parse(version)
        self._provider = provider
        self.cloud = cloud or Cloud(clock)
        self.writes = Writes(clock, self.cloud)
        self._world = world = World(
            store,
            registry,
            clock,
            self.cloud,
            Volumes(store),
            Recorder(store, clock),
            self.writes,
        )
        led: list[Led] = [
            Binder(world),
            Expander(world),
            Protection(world),
            Workloads(world),
            Garbage(world),
            Disruption(world),
            Lifecycle(world),
            AttachDetach(world, attach_controller),
        ]

        def lead(process: Process | None) -> None:
            for controller in led:
                controller.lead(process)

        told = Process(self.version, dict(gates or {}))
        self.scheduler = Scheduler(world, told)
        leads = {CONTROLLER: lead, SCHEDULER: self.scheduler.lead}
        self.control_plane = ControlPlane(world, told, flags or {}, replicas, leads)
        self.kubelets = Kubelets(world)
        self.attacher, self.provisioner, self.resizer = (
            Attacher(world),
            Provisioner(world),
            Resizer(world),
        )
        self._controllers: list[Controller] = [
            *led,
            self.scheduler,
            self.kubelets,
            self.attacher,
            self.provisioner,
            self.resizer,
            DriverPods(
                world,
                self.kubelets,
                {
                    b"attacher": self.attacher,
                    b"provisioner": self.provisioner,
                    b"resizer": self.resizer,
                },
            ),
        ]
        self._listeners_to_all = [it.heard for it in self._controllers if it.hears_all]
        heard = {resource for controller in self._controllers for resource in controller.hears}
        self._listeners = {
            resource: [it.heard for it in self._controllers if resource in it.hears]
            + self._listeners_to_all
            for resource in heard
        }
        self._listeners[LEASES] = [self.control_plane.heard, *self._listeners_to_all]
        self._catch_up(registry)
        store.subscribe(self._heard)
        self.control_plane.start()

    def be_openshift(self, asked: openshift.Asked) -> None:
        """Have OpenShift's operators look after the control plane and the nodes."""
        openshift.set_up(asked, self._world, self.control_plane, self.kubelets, self._add)

    def _add(self, controller: Controller) -> None:
        """One more, which is told of everything."""
        self._controllers.append(controller)
        self._listeners_to_all.append(controller.heard)
        for listeners in self._listeners.values():
            listeners.append(controller.heard)

    def _catch_up(self, registry: Registry) -> None:
        """Hear of all that is there already. Nodes first: the others are about them."""
        stored = {it.qualified: it for it in registry if it.stored and it is not NODES}
        for resource in (NODES, *stored.values()):
            for entry in self.store.entries(resource):
                self._heard(Event(ADDED, entry, None))

    def _heard(self, event: Event) -> None:
        for listener in self._listeners.get(event.entry.resource, self._listeners_to_all):
            listener(event)

    # Time

    def settle(self, most: int = 10_000) -> None:
        """Let everybody act until nothing is left to do at this moment."""
        with _uncollected():
            for _turn in range(most):
                # All get their turn, whoever was busy before them.
                busy = [controller.work() for controller in self._controllers]
                if not any(busy) and not self.clock.ring():
                    return
        raise Unsettled(f"Controllers have not come to rest after {most} turns.")

    def run_for(self, seconds: float) -> None:
        """Live through so many seconds of virtual time."""
        clock = self.clock
        if not (isinstance(clock, VirtualClock) and clock.by_hand):
            raise TypeError("only a clock that does not go by itself can be put forward")
        end = clock.now() + timedelta(seconds=seconds)
        self.settle()
        while (moment := clock.next_moment) is not None and moment <= end:
            clock.put_forward(moment)
            self.settle()
        clock.put_forward(end)

    def run_until(self, wanted: Callable[[], bool], seconds: float = 600) -> bool:
        """Live until something is so, or so many seconds have passed; tells which."""
        step = 1.0
        self.settle()
        for _second in range(int(seconds / step)):
            if wanted():
                return True
            self.run_for(step)
        return wanted()

    # Nodes

    def add_node(
        self,
        name: str,
        gates: Gates | None = None,
        *,
        version: str = "",
        zone: str = "us-east-1a",
        drivers: Iterable[str] = (),
        labels: Mapping[str, str] | None = None,
        csi_node: bool = True,
        limit: int = LIMIT,
    ) -> None:
        """A node joins, with a kubelet that has these gates."""
        process = Process(Version.parse(version) if version else self.version, dict(gates or {}))
        here = frozenset(drivers)
        # Its drivers would add these at once.
        said = {ZONE_KEYS[it]: zone for it in sorted(here) if it in ZONE_KEYS}
        node = _node(name, process.version, zone, {**said, **(labels or {})}, self.store)
        node["spec"]["providerID"] = f"{self._provider}:///{zone}/{name}"
        self.store.create(NODES, node)
        self.kubelets.start(Kubelet(name, process, here, csi_node, limit))

    def adopt_node(self, name: str) -> None:
        """Give a node that is in the store a kubelet that is as its CSINode says."""
        node = self.store.get(NODES, name)
        info = (node.get("status") or {}).get("nodeInfo") or {}
        version = Version.parse(info.get("kubeletVersion") or str(self.version))
        found = self.store.find(CSI_NODES, name)
        view = parts.node_view(found.text if found else None)
        listed = {life.migration_gate: plugin in view.migrated for plugin, life in LIVES.items()}
        bare = Process(version, {})
        gates = {
            gate: on
            for (gate, on), plugin in zip(listed.items(), LIVES, strict=True)
            if bare.migrates(plugin) != on
        }
        process = Process(version, gates)
        self.kubelets.start(Kubelet(name, process, view.drivers, csi_node=True, limit=LIMIT))

    def remove_node(self, name: str) -> None:
        """A node leaves for good."""
        self.kubelets.remove(name)
        self.store.delete(NODES, name)
        if self.store.find(CSI_NODES, name):
            self.store.delete(CSI_NODES, name)

    def replace_node(self, name: str, gates: Gates) -> str:
        """A new machine takes a node's place under a new name, which is told."""
        new = self.copy_node(name, gates)
        self.remove_node(name)
        for pod in self.pods_on(name):
            metadata = pod["metadata"]
            at_once = Deletion(grace_period=0)
            self.store.delete(PODS, metadata["name"], metadata["namespace"], at_once)
        return new

    def copy_node(self, name: str, gates: Gates) -> str:
        """A new machine like another joins, with these gates and a new name, which is told."""
        kubelet = self.kubelets.all[name]
        labels = dict(self.store.entry(NODES, name).labels)
        labels.pop(_HOSTNAME, None)
        new = self._successor(name)
        self.add_node(
            new,
            gates,
            version=str(kubelet.process.version),
            zone=labels.get(parts.ZONE, ""),
            drivers=kubelet.drivers - kubelet.from_pods,
            labels=labels,
            csi_node=kubelet.csi_node,
            limit=kubelet.limit,
        )
        return new

    def _successor(self, name: str) -> str:
        """The name with the next number of a replacement that nobody has."""
        base, _, number = name.rpartition("-r")
        if not (base and number.isdecimal()):
            base, number = name, "0"
        names = (f"{base}-r{it}" for it in count(int(number) + 1))
        return next(it for it in names if not self.store.find(NODES, it))

    def kill_node(self, name: str) -> None:
        """A node dies without a word."""
        self.kubelets.kill(name)

    def revive_node(self, name: str) -> None:
        """It comes back, rebooted."""
        self.kubelets.revive(name)

    def restart_kubelet(
        self, node: str, gates: Gates, version: str = "", *, seconds: float = 0
    ) -> None:
        """Start a kubelet again with these gates, under whatever runs on its node."""
        old = self.kubelets.all[node].process
        new = Version.parse(version) if version else old.version
        self.kubelets.restart(node, Process(new, dict(gates)), seconds)

    # The control plane

    def switch_controller(self, replica: int, gates: Gates, version: str = "") -> None:
        """Start a replica of kube-controller-manager again with these gates."""
        self.control_plane.switch(replica, gates, Version.parse(version) if version else None)

    def switch_scheduler(self, gates: Gates) -> None:
        """Start the schedulers again with these gates, one after the other."""
        self.control_plane.components[SCHEDULER].roll(lambda told: told.with_gates(gates))

    # Drivers

    def run_driver(
        self,
        driver: str,
        *,
        attacher: bool = True,
        provisioner: bool = True,
        resizer: bool = True,
    ) -> None:
        """Install a driver, with its controllers or some of them; nodes are another matter."""
        if not self.store.find(CSI_DRIVERS, driver):
            spec = {"attachRequired": VolumeView.of(_native(driver)).attachable}
            self.store.create(CSI_DRIVERS, {"metadata": {"name": driver}, "spec": spec})
        if attacher:
            self.attacher.run(driver)
        if provisioner:
            self.provisioner.run(driver)
        if resizer:
            self.resizer.run(driver)

    def stop_driver(self, driver: str) -> None:
        """End a driver's controllers."""
        for controller in (self.attacher, self.provisioner, self.resizer):
            controller.stop(driver)

    def register_driver(self, driver: str, nodes: Iterable[str]) -> None:
        """Have a driver run on nodes, and be known to their kubelets."""
        for node in nodes:
            self.kubelets.register(node, self.kubelets.all[node].drivers | {driver})

    def pods_on(self, node: str) -> list[Object]:
        """The pods of a node: for tests, not for controllers."""
        return self.store.list(PODS, "", lambda it: it.fields["spec.nodeName"] == node)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without looking for garbage: much is decoded, and what it leaves behind is in no circle."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _native(driver: str) -> Object:
    return {"metadata": {}, "spec": {"csi": {"driver": driver}}}


def _node(
    name: str, version: Version, zone: str, labels: Mapping[str, str], store: Store
) -> Object:
    room = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    ready = parts.condition("Ready", "True", store.time(), reason="KubeletReady")
    return {
        "metadata": {
            "name": name,
            "labels": {_HOSTNAME: name, _OS: "linux", parts.ZONE: zone, **labels},
            "annotations": {parts.MANAGED_ATTACH: "true"},
        },
        "spec": {},
        "status": {
            "conditions": [ready],
            "capacity": room,
            "allocatable": dict(room),
            "nodeInfo": {"kubeletVersion": f"v{version}"},
        },
    }
