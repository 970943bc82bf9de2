"""kube-controller-manager as replicas, one of which leads, and what can be seen of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from replant.gates.versions import Version
from replant.objects import Object
from replant.routing import Process
from replant.sandbox.controllers.base import World
from replant.sandbox.refusals import ApiError
from replant.sandbox.resources import LEASES, PODS, Resource

Gates = Mapping[str, bool]
Lead = Callable[[Process | None], None]

CONTROLLER, SCHEDULER, API_SERVER = (
    "kube-controller-manager",
    "kube-scheduler",
    "kube-apiserver",
)
RESTART = 3.0
"""So many seconds a component takes to start again."""


@dataclass(slots=True)
class Replica:
    """One replica of kube-controller-manager."""

    host: str
    process: Process
    up: bool = True
    starts: int = 1

    @property
    def name(self) -> str:
        """The pod's."""
        return f"{CONTROLLER}-{self.host}"


class ControlPlane:
    """The replicas, and the static pods that show what they are told."""

    def __init__(
        self, world: World, version: Version, gates: Gates, replicas: int, lead: Lead
    ) -> None:
        self.world = world
        self.scheduler = Process(version, dict(gates))
        self._lead = lead
        hosts = [f"control-plane-{number}" for number in range(replicas)]
        self.replicas = [Replica(host, Process(version, dict(gates))) for host in hosts]
        self.leader: Replica | None = self.replicas[0]

    def start(self) -> None:
        """All come up, and the first leads."""
        for replica in self.replicas:
            self._show(CONTROLLER, replica.host, replica.process)
            self._show(SCHEDULER, replica.host, self.scheduler)
            self._show(API_SERVER, replica.host, self.scheduler)
        self._elect(self.replicas[0])

    def switch(self, number: int, gates: Gates, version: Version | None = None) -> None:
        """Give a replica these gates, which restarts it; if it led, another leads meanwhile."""
        replica = self.replicas[number]
        replica.process = Process(version or replica.process.version, dict(gates))
        replica.up = False
        replica.starts += 1
        self.world.remove(PODS, ("kube-system", replica.name), grace=0)
        if replica is self.leader:
            self._elect(next((it for it in self.replicas if it.up), None))
        starts = replica.starts
        self.world.clock.after(RESTART, lambda: self._up(replica, starts))

    def switch_scheduler(self, gates: Gates, version: Version | None = None) -> None:
        """Give the schedulers these gates."""
        self.scheduler = Process(version or self.scheduler.version, dict(gates))
        for replica in self.replicas:
            self.world.remove(PODS, ("kube-system", f"{SCHEDULER}-{replica.host}"), grace=0)
            self._show(SCHEDULER, replica.host, self.scheduler)

    def confirmed(self, gates: Gates) -> bool:
        """Whether all replicas run with these gates, so that no other can ever lead."""
        return all(it.up and it.process.gates == dict(gates) for it in self.replicas)

    def _up(self, replica: Replica, starts: int) -> None:
        if replica.starts != starts:
            return  # it was restarted once more
        replica.up = True
        self._show(CONTROLLER, replica.host, replica.process)
        if self.leader is None:
            self._elect(replica)

    def _elect(self, replica: Replica | None) -> None:
        self.leader = replica
        if replica is not None:
            self._sign(replica)
        self._lead(replica.process if replica else None)

    def _sign(self, replica: Replica) -> None:
        spec = {"holderIdentity": replica.host, "leaseDurationSeconds": 15}

        def write(lease: Object) -> None:
            lease["spec"] = spec

        if not self.world.change(LEASES, ("kube-system", CONTROLLER), write):
            self._create(LEASES, {"metadata": {"name": CONTROLLER}, "spec": spec})

    def _show(self, component: str, host: str, process: Process) -> None:
        given = ",".join(f"{gate}={str(on).lower()}" for gate, on in sorted(process.gates.items()))
        command = [component] + ([f"--feature-gates={given}"] if given else [])
        image = f"registry.k8s.io/{component}:v{process.version}"
        time = self.world.store.time()
        status = {
            "phase": "Running",
            "startTime": time,
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": time}],
            "containerStatuses": [
                {"name": component, "image": image, "imageID": "", "ready": True, "restartCount": 0}
            ],
        }
        pod = {
            "metadata": {
                "name": f"{component}-{host}",
                "labels": {"component": component, "tier": "control-plane"},
                "annotations": {"kubernetes.io/config.mirror": "sandbox"},
            },
            "spec": {
                "nodeName": host,
                "hostNetwork": True,
                "priorityClassName": "system-node-critical",
                "containers": [{"name": component, "image": image, "command": command}],
            },
            "status": status,
        }
        self._create(PODS, pod)

    def _create(self, resource: Resource, obj: Object) -> None:
        # It may be there already, with what somebody has loaded.
        with suppress(ApiError):
            self.world.store.create(resource, obj, namespace="kube-system", as_it_was=True)
