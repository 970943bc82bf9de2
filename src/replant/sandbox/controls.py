"""What a person with access to the machines would do to a cluster, done to a sandbox's.

Everything is told as the plain data that the API sends; what cannot be done is an ApiError.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from replant.errors import Refused
from replant.gates.settings import refusals
from replant.gates.versions import Version
from replant.objects import Object
from replant.sandbox.clock import LiveClock
from replant.sandbox.cluster import Cluster
from replant.sandbox.controllers.controlplane import (
    API_SERVER,
    RESTART,
    Replica,
    Replicas,
    Told,
    flag_problem,
)
from replant.sandbox.controllers.kubelets.kubelet import Kubelet
from replant.sandbox.refusals import ApiError, bad_request, conflict, not_found
from replant.sandbox.resources import NODES
from replant.sandbox.writes import Gap

GateChanges = Mapping[str, bool | None]
"""Gates to be given; None takes one away."""
Flags = Mapping[str, str]

_LISTS = ("enable-admission-plugins", "disable-admission-plugins")
"""Flags whose values are lists: what is added or removed are elements of them."""


class Controls:
    """All that can be asked of a cluster, and done to it, past its API."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def overview(self) -> Object:
        """What there is."""
        clock = self._cluster.clock
        return {
            "clock": {
                "now": _written(clock.now()),
                "speed": clock.speed,
                "byHand": clock.by_hand,
            },
            "nodes": len(self._cluster.kubelets.all),
            "components": list(self._cluster.control_plane.components),
        }

    @property
    def version(self) -> str:
        """That of the API servers."""
        return str(self._cluster.control_plane.components[API_SERVER].all[0].process.version)

    # The control plane

    def component(self, name: str) -> Object:
        """What the replicas of a component are told, and whether they are up."""
        return {"replicas": [_shown_replica(it) for it in self._replicas(name).all]}

    def switch_component(
        self,
        name: str,
        gates: GateChanges,
        add_flags: Flags | None = None,
        remove_flags: Flags | None = None,
    ) -> Object:
        """Tell replicas something else, which restarts those to which it is new, one by one."""
        replicas = self._replicas(name)
        adds, removes = add_flags or {}, remove_flags or {}
        for flag in (*adds, *removes):
            if why := flag_problem(flag):
                raise bad_request(f"{flag} {why}")

        def change(told: Told) -> Told:
            process = told.process
            merged = _merged(process.gates, gates)
            _check_gates(name, process.version, merged)
            flags = _with_flags(_without_flags(told.flags, removes), adds)
            return replace(told.with_gates(merged), flags=flags)

        replicas.roll(change)
        return self.component(name)

    def _replicas(self, name: str) -> Replicas:
        components = self._cluster.control_plane.components
        if name not in components:
            said = f'component "{name}" not found: there are {", ".join(components)}'
            raise ApiError(404, "NotFound", said, {"name": name, "kind": "components"})
        return components[name]

    # Nodes

    def node(self, name: str) -> Object:
        """What a node's kubelet is told, and whether it is up."""
        kubelet = self._kubelet(name)
        gates = dict(kubelet.process.gates)
        return {"replicas": [{"name": name, "gates": gates, "ready": kubelet.works}]}

    def switch_node(self, name: str, gates: GateChanges) -> Object:
        """Restart a kubelet with other gates, unless it has them; its pods run on."""
        kubelet = self._kubelet(name)
        if not kubelet.alive:
            raise conflict(NODES, name, "the machine is down, and nothing can be changed on it")
        merged = self._checked(kubelet, gates)
        if merged != kubelet.process.gates:
            self._cluster.restart_kubelet(name, merged, seconds=RESTART)
        return self.node(name)

    def kill(self, name: str) -> Object:
        """Have a machine die without a word, unless it is dead."""
        if self._kubelet(name).alive:
            self._cluster.kill_node(name)
        return self.node(name)

    def revive(self, name: str) -> Object:
        """Have a dead machine boot."""
        if not self._kubelet(name).alive:
            self._cluster.revive_node(name)
        return self.node(name)

    def replace(self, name: str, gates: GateChanges) -> Object:
        """Put a new machine in a node's place; tells of the new one, which has a new name."""
        merged = self._checked(self._kubelet(name), gates)
        return self.node(self._cluster.replace_node(name, merged))

    def copy(self, name: str, gates: GateChanges) -> Object:
        """Have a new machine like another join, as an autoscaler does; tells of the new one."""
        merged = self._checked(self._kubelet(name), gates)
        return self.node(self._cluster.copy_node(name, merged))

    def _kubelet(self, name: str) -> Kubelet:
        kubelet = self._cluster.kubelets.all.get(name)
        if kubelet is None or not self._cluster.store.find(NODES, name):
            raise not_found(NODES, name)
        return kubelet

    @staticmethod
    def _checked(kubelet: Kubelet, gates: GateChanges) -> dict[str, bool]:
        merged = _merged(kubelet.process.gates, gates)
        _check_gates("kubelet", kubelet.process.version, merged)
        return merged

    # Disks

    def disks(self) -> Object:
        """Which disk is where, as the cloud has it."""
        return {
            "disks": [
                {
                    "id": disk.id,
                    "size": disk.size,
                    "zone": disk.zone,
                    "attachedTo": disk.attached_to,
                    "attachingTo": disk.attaching_to,
                    "detaching": disk.detaching,
                }
                for _id, disk in sorted(self._cluster.cloud.disks.items())
            ]
        }

    def writes(self) -> Object:
        """What reached the disks, when nothing did, and which were gone under a pod that ran."""
        writes = self._cluster.writes
        disks = [
            {
                "id": disk,
                "writes": writes.count(disk),
                "gaps": [_shown_gap(gap) for gap in writes.gaps(disk)],
            }
            for disk in sorted(writes.disks())
        ]
        return {"disks": disks, "yanked": sorted(writes.yanked())}

    # Time

    def run_for(self, seconds: float) -> Object:
        """Live through so many seconds at once, where the clock is put forward by hand."""
        clock, store = self._cluster.clock, self._cluster.store
        if not clock.by_hand:
            raise ApiError(409, "Conflict", "the clock goes by itself; only its speed can be set")
        self._cluster.run_for(seconds)
        return {"now": _written(clock.now()), "resourceVersion": str(store.version)}

    def go_at(self, speed: float) -> Object:
        """Let a clock that goes by itself go at another speed."""
        clock, store = self._cluster.clock, self._cluster.store
        if clock.by_hand or not isinstance(clock, LiveClock):
            raise ApiError(409, "Conflict", "the clock is put forward by hand, and has no speed")
        try:
            clock.go_at(speed)
        except Refused as error:
            raise bad_request(str(error)) from None
        return {"now": _written(clock.now()), "resourceVersion": str(store.version)}


def _merged(given: Mapping[str, bool], changes: GateChanges) -> dict[str, bool]:
    merged = {**given, **changes}
    return {gate: on for gate, on in merged.items() if on is not None}


def _check_gates(component: str, version: Version, gates: Mapping[str, bool]) -> None:
    """ApiError if a component would not start with these gates."""
    if found := refusals(version, gates):
        listed = "; ".join(str(it) for it in found)
        raise bad_request(f"{component} {version} would not start: {listed}")


def _with_flags(flags: Flags, adds: Flags) -> dict[str, str]:
    result = dict(flags)
    for flag, value in adds.items():
        if flag in _LISTS:
            both = [*_elements(result.get(flag, "")), *_elements(value)]
            value = ",".join(dict.fromkeys(both))
        result[flag] = value
    return result


def _without_flags(flags: Flags, removes: Flags) -> dict[str, str]:
    """Without these; ApiError if one has another value, since then it is not the one meant."""
    result = dict(flags)
    for flag, value in removes.items():
        there = result.pop(flag, None)
        if there is None:
            continue
        if flag in _LISTS:
            gone = _elements(value)
            if left := [it for it in _elements(there) if it not in gone]:
                result[flag] = ",".join(left)
        elif there != value:
            said = f"--{flag} is {there}, not {value}, and stays"
            raise ApiError(409, "Conflict", said)
    return result


def _elements(value: str) -> list[str]:
    return [it for it in value.split(",") if it]


def _shown_replica(replica: Replica) -> Object:
    return {
        "name": replica.name,
        "gates": dict(replica.process.gates),
        "flags": dict(replica.told.flags),
        "ready": replica.up,
    }


def _shown_gap(gap: Gap) -> Object:
    end = _written(gap.end) if gap.end else None
    return {"start": _written(gap.start), "end": end, "podRan": gap.pod_ran}


def _written(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
