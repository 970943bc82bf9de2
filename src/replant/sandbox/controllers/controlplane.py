"""The control plane's components as replicas, who leads, and what can be seen of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from uuid import NAMESPACE_DNS, uuid5

from replant.gates.versions import Version
from replant.objects import Object
from replant.sandbox.controllers.base import World, key_of
from replant.sandbox.refusals import ApiError
from replant.sandbox.resources import LEASES, PODS, Resource
from replant.sandbox.shelves import DELETED, Event
from replant.sandbox.sides import Process

Gates = Mapping[str, bool]
Flags = Mapping[str, str]
Lead = Callable[[Process | None], None]
"""Told which replica leads from now on, or that none does."""

CONTROLLER, SCHEDULER, API_SERVER = (
    "kube-controller-manager",
    "kube-scheduler",
    "kube-apiserver",
)
RESTART = 3.0
"""So many seconds a component takes to start again."""
GIVES_UP, EXPIRES = 10.0, 15.0
"""So many seconds a leader tries to renew a Lease that another has taken, and a candidate lets pass
before it takes one that nobody renews."""
GATES_FLAG = "feature-gates"
_FLAG_NAME = re.compile(r"[a-z][a-z0-9-]*")


def flag_problem(flag: str) -> str:
    """Why something cannot be the name of a flag besides those that a component has anyway."""
    if flag == GATES_FLAG:
        return "is given as gates"
    return "" if _FLAG_NAME.fullmatch(flag) else "is not the name of a flag, without its dashes"


@dataclass(frozen=True)
class Told:
    """What a replica is told by its command line, and the version that it is."""

    process: Process
    flags: Flags = field(default_factory=dict)
    """All but its gates, undashed."""

    def with_gates(self, gates: Gates) -> Told:
        """The same with these gates, and no others."""
        return replace(self, process=replace(self.process, gates=dict(gates)))

    def command(self, component: str) -> list[str]:
        """The command line."""
        gates = sorted(self.process.gates.items())
        flags = {GATES_FLAG: ",".join(f"{gate}={str(on).lower()}" for gate, on in gates)}
        flags = (flags if gates else {}) | dict(self.flags)
        return [component, *(f"--{flag}={value}" for flag, value in flags.items())]


@dataclass(slots=True)
class Replica:
    """One replica of a component."""

    component: str
    host: str
    told: Told
    """What it runs with."""
    wanted: Told
    """What it is to run with once it is its turn to be restarted."""
    up: bool = True
    starts: int = 1

    @property
    def name(self) -> str:
        """The pod's."""
        return f"{self.component}-{self.host}"

    @property
    def identity(self) -> str:
        """By which it signs its Lease; each start has its own."""
        return f"{self.host}_{uuid5(NAMESPACE_DNS, f'{self.name}/{self.starts}')}"

    @property
    def process(self) -> Process:
        """What it is and has."""
        return self.told.process


class Replicas:
    """The replicas of one component, and the static pods that show what they are told."""

    def __init__(
        self, world: World, component: str, hosts: list[str], told: Told, lead: Lead | None
    ) -> None:
        self._world = world
        self._lead = lead
        """None for a component whose replicas all work at once."""
        self.component = component
        self.all = [Replica(component, host, told, told) for host in hosts]
        self.leader: Replica | None = None
        self._signed = ""
        """The last of them that has taken the Lease."""
        self._taken = False
        """Whether somebody else has taken it since."""

    def start(self) -> None:
        """All come up, and the first leads."""
        for replica in self.all:
            self._show(replica)
        self._elect(self.all[0])

    def restart(self, replica: Replica, told: Told) -> None:
        """Restart a replica at once; if it led, another leads meanwhile."""
        replica.told = replica.wanted = told
        replica.up = False
        replica.starts += 1
        self._world.remove(PODS, ("kube-system", replica.name), grace=0)
        if replica is self.leader:
            up = None if self._taken else next((it for it in self.all if it.up), None)
            self._elect(up)
        starts = replica.starts
        self._world.clock.after(RESTART, lambda: self._up(replica, starts))

    def roll(self, change: Callable[[Told], Told]) -> None:
        """Have replicas told something else, one after the other, but for those that are already.

        What is changed meanwhile counts as well: it is what they are told in the end. A change that
        fails for one is made to none.
        """
        changed = [change(it.wanted) for it in self.all]
        for replica, wanted in zip(self.all, changed, strict=True):
            replica.wanted = wanted
        self._go_on()

    def _go_on(self) -> None:
        if all(it.up for it in self.all):
            outdated = (it for it in self.all if it.told != it.wanted)
            if replica := next(outdated, None):
                self.restart(replica, replica.wanted)

    def _up(self, replica: Replica, starts: int) -> None:
        if replica.starts != starts:
            return  # it was restarted once more
        replica.up = True
        self._show(replica)
        if self._taken:
            self._stand_by(replica)
        elif self.leader is None:
            self._elect(replica)
        self._go_on()

    def heard(self, event: Event) -> None:
        """Somebody has written a Lease."""
        entry = event.entry
        if self._lead is None or key_of(entry) != ("kube-system", self.component):
            return
        holder = entry.value()["spec"].get("holderIdentity") if event.type != DELETED else ""
        if self._taken or not holder or holder == self._signed:
            return
        self._taken = True
        for replica in self.all:
            if replica is self.leader:
                self._give_up_later(replica)
            elif replica.up:
                self._stand_by(replica)

    def _give_up_later(self, leader: Replica) -> None:
        starts = leader.starts

        def give_up() -> None:
            if leader.starts == starts:
                self.restart(leader, leader.wanted)

        self._world.clock.after(GIVES_UP, give_up)

    def _stand_by(self, replica: Replica) -> None:
        """Take the Lease once it has run out, by what this replica has seen of it."""
        starts = replica.starts

        def take() -> None:
            if self._taken and replica.starts == starts and self.leader is None:
                self._elect(replica)

        self._world.clock.after(EXPIRES, take)

    def _elect(self, replica: Replica | None) -> None:
        self.leader = replica
        if self._lead is None:
            return
        if replica is not None:
            self._sign(replica)
        self._lead(replica.process if replica else None)

    def _sign(self, replica: Replica) -> None:
        self._signed, self._taken = replica.identity, False
        spec = {"holderIdentity": replica.identity, "leaseDurationSeconds": int(EXPIRES)}

        def write(lease: Object) -> None:
            lease["spec"] = spec

        if not self._world.change(LEASES, ("kube-system", self.component), write):
            self._create(LEASES, {"metadata": {"name": self.component}, "spec": spec})

    def _show(self, replica: Replica) -> None:
        component = replica.component
        command = replica.told.command(component)
        image = f"registry.k8s.io/{component}:v{replica.process.version}"
        time = self._world.store.time()
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
                "name": replica.name,
                "labels": {"component": component, "tier": "control-plane"},
                "annotations": {"kubernetes.io/config.mirror": "sandbox"},
            },
            "spec": {
                "nodeName": replica.host,
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
            self._world.store.create(resource, obj, namespace="kube-system", as_it_was=True)


class ControlPlane:
    """All components, each with a replica on every host."""

    def __init__(
        self,
        world: World,
        process: Process,
        flags: Flags,
        replicas: int,
        leads: Mapping[str, Lead],
    ) -> None:
        hosts = [f"control-plane-{number}" for number in range(replicas)]
        told = {CONTROLLER: Told(process, dict(flags))}
        self.components = {
            name: Replicas(world, name, hosts, told.get(name, Told(process)), leads.get(name))
            for name in (CONTROLLER, SCHEDULER, API_SERVER)
        }

    def start(self) -> None:
        """All come up."""
        for replicas in self.components.values():
            replicas.start()

    def heard(self, event: Event) -> None:
        """Somebody has written a Lease."""
        for replicas in self.components.values():
            replicas.heard(event)

    @property
    def replicas(self) -> list[Replica]:
        """Those of kube-controller-manager."""
        return self.components[CONTROLLER].all

    @property
    def leader(self) -> Replica | None:
        """The one of them that leads, if any does."""
        return self.components[CONTROLLER].leader

    def switch(self, number: int, gates: Gates, version: Version | None = None) -> None:
        """Restart a replica of kube-controller-manager at once, with these gates."""
        replica = self.replicas[number]
        told = replica.wanted.with_gates(gates)
        if version:
            told = replace(told, process=replace(told.process, version=version))
        self.components[CONTROLLER].restart(replica, told)

    def confirmed(self, gates: Gates) -> bool:
        """Whether all replicas run with these gates, so that no other can ever lead."""
        return all(it.up and it.process.gates == dict(gates) for it in self.replicas)
