"""What a plan starts from: the control plane and the nodes, grouped by what they are given."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from replant.core.routing.dangling import is_taken_from_other_nodes
from replant.errors import Refused
from replant.gates.history import LAST, gate_at
from replant.gates.plugins import BASE_GATE, LIVES, migrated
from replant.gates.versions import Version
from replant.inventory.checks.reading import ABSENT
from replant.inventory.model import Inventory, PodUse, Volume, source_of
from replant.plan.courses import CONTROLLER, plugin_gates
from replant.plan.model import ControlPlane, GivenGates, NodeGroup
from replant.routing import FIRST, Process
from replant.translate import driver_of, plugin_of

SCHEDULER = "kube-scheduler"


@dataclass(frozen=True)
class Situation:
    """A cluster, as far as some plugins are concerned."""

    inventory: Inventory
    plugins: tuple[str, ...]
    server: Version
    controller_gates: Mapping[str, bool] | None = None
    """What kube-controller-manager is given, where a person says it; else what is visible."""

    @cached_property
    def controller(self) -> Process:
        """The controllers, as they are."""
        return Process(self.server, self._controller_gates)

    @cached_property
    def scheduler(self) -> Process:
        """The scheduler, as it is; one that cannot be seen is given what the controllers are."""
        gates = self.inventory.gates.get(SCHEDULER)
        if gates is None:
            return self.controller
        return Process(self.server, self._relevant(gates))

    @cached_property
    def redirected(self) -> frozenset[str]:
        """The plugins that the controllers or a node redirect."""
        on_nodes = frozenset().union(*map(self.inventory.migrated_on, self.inventory.nodes))
        return frozenset(
            it for it in self.plugins if it in on_nodes or self.controller.migrates(it)
        )

    @cached_property
    def replicas(self) -> int:
        """How many kube-controller-managers can be seen."""
        return sum(pod.component == CONTROLLER for pod in self.inventory.control_plane)

    @cached_property
    def hides_flags(self) -> bool:
        """Whether nobody says what the controllers are given."""
        return self.controller_gates is None and not self.replicas

    @cached_property
    def volumes(self) -> list[Volume]:
        """The plugins' volumes."""
        return [it for it in self.inventory.in_tree if it.plugin in self.plugins]

    @cached_property
    def inline_uses(self) -> list[PodUse]:
        """Pods and templates that name such a disk by themselves."""
        return [
            use
            for use, volume in self.inventory.inline_uses()
            if plugin_of(source_of(volume)) in self.plugins
        ]

    @cached_property
    def pods(self) -> list[PodUse]:
        """The pods that use the plugins' volumes, each once."""
        found = {pod.owner: pod for volume in self.volumes for pod in self.inventory.users(volume)}
        found |= {use.owner: use for use in self.inline_uses if use.owner.kind == "Pod"}
        return list(found.values())

    @property
    def empty(self) -> bool:
        """Whether there is surely no volume of these plugins."""
        known = self.inventory.knows("PersistentVolume", "Pod")
        return known and not self.volumes and not self.inline_uses

    @cached_property
    def control_plane(self) -> ControlPlane:
        """The control plane, as a plan writes it down."""
        installed = self.inventory.drivers
        return ControlPlane(
            version=str(self.server),
            gates=dict(self._controller_gates),
            drivers=tuple(it for it in map(driver_of, self.plugins) if it in installed),
            replicas=self.replicas,
        )

    @cached_property
    def groups(self) -> tuple[NodeGroup, ...]:
        """The nodes, those in the same situation together; control-plane nodes last in each."""
        inventory = self.inventory
        members: dict[tuple[str, tuple[tuple[str, bool], ...], tuple[str, ...]], list[str]] = (
            defaultdict(list)
        )
        wanted = tuple(map(driver_of, self.plugins))
        for node in sorted(inventory.nodes, key=lambda it: (inventory.is_control_plane(it), it)):
            there = inventory.drivers_on(node)
            drivers = tuple(it for it in wanted if it in there)
            gates = tuple(sorted(self.kubelet(node).gates.items()))
            members[str(self.kubelet(node).version), gates, drivers].append(node)
        numbered = sorted(members.items())
        return tuple(
            NodeGroup(
                name=f"group-{number}" if len(numbered) > 1 else "all",
                version=version,
                gates=dict(gates),
                drivers=drivers,
                nodes=tuple(nodes),
                cordoned=tuple(it for it in nodes if inventory.cordoned(it)),
            )
            for number, ((version, gates, drivers), nodes) in enumerate(numbered, 1)
        )

    def unread(self, kind: str) -> str:
        """Why nothing is known of a kind, as the end of a sentence; nothing where it was read."""
        return _unread(self.inventory, kind)

    def kubelet(self, node: str) -> Process:
        """A node's kubelet: what it says of its gates, or what its CSINode lets one conclude."""
        version = self.inventory.kubelet_version(node) or self.server
        gates = self.inventory.node_gates.get(node)
        if gates is not None:
            return Process(version, self._relevant(gates))
        redirected = self.inventory.migrated_on(node)
        return Process(version, self._inferred(version, redirected))

    @cached_property
    def _controller_gates(self) -> dict[str, bool]:
        if self.controller_gates is not None:
            return self._relevant(self.controller_gates)
        if self.replicas:
            return self._relevant(self.inventory.gates.get(CONTROLLER, {}))
        # Nodes are switched after the control plane: where one redirects, the controllers do.
        anywhere = frozenset().union(*map(self.inventory.migrated_on, self.inventory.nodes))
        redirected = {it for it in self.plugins if it in anywhere or migrated(it, self.server)}
        return self._inferred(self.server, frozenset(redirected))

    def _inferred(self, version: Version, redirected: frozenset[str]) -> dict[str, bool]:
        """The gates that make a component of this version redirect these plugins and no others."""
        found = {}
        for plugin in self.plugins:
            gate, now = LIVES[plugin].migration_gate, plugin in redirected
            if gate_at(gate, version) and migrated(plugin, version) != now:
                found[gate] = now
        return found

    def _relevant(self, gates: Mapping[str, bool]) -> dict[str, bool]:
        wanted = frozenset().union(*map(plugin_gates, self.plugins))
        return {gate: on for gate, on in gates.items() if gate in wanted}


def situation(
    inventory: Inventory, plugins: tuple[str, ...], gates: Mapping[str, bool] | None = None
) -> Situation:
    """The situation for some plugins, or for all that the cluster uses; Refused says why not."""
    if inventory.server is None:
        raise Refused("The cluster's version is not known; say it with --server-version.")
    if not FIRST <= inventory.server.first_patch <= LAST:
        raise Refused(
            f"Kubernetes {inventory.server.of_minor} is not known here, only {FIRST.of_minor} "
            f"to {LAST.of_minor}."
        )
    for kind in ("Node", "CSINode", "PersistentVolume"):
        if unread := _unread(inventory, kind):
            raise Refused(f"A plan needs every {kind}, {unread}")
    if not inventory.nodes:
        raise Refused("The cluster has no node.")
    used = in_use(inventory)
    chosen = plugins or tuple(plugin for plugin in LIVES if plugin in used)
    if not chosen:
        raise Refused(
            "The cluster has no volume that a driver could take over; "
            "say which plugin is meant with --plugin."
        )
    return Situation(inventory, chosen, inventory.server, gates)


def in_use(inventory: Inventory) -> frozenset[str | None]:
    """The plugins that have a volume, or are named by a pod or a template."""
    stored = {volume.plugin for volume in inventory.in_tree}
    return frozenset(
        stored | {plugin_of(source_of(volume)) for _, volume in inventory.inline_uses()}
    )


def _unread(inventory: Inventory, kind: str) -> str:
    why = inventory.unknown.get(kind, "")
    return "and there is none in the files." if why == ABSENT else why and f"but: {why}"


def base_gate_off(process: Process) -> bool:
    """Whether a component redirects nothing at all."""
    return process.gates.get(BASE_GATE) is False and gate_at(BASE_GATE, process.version) is not None


def changed(process: Process, change: GivenGates) -> tuple[GivenGates, GivenGates]:
    """A change of gates, and what a component is given of them before it."""
    return change, {gate: process.gates.get(gate) for gate in change}


def disks_may_be_taken(situation: Situation) -> bool:
    """Whether a pod's disk can be taken by its successor on a node of the other kind."""
    return any(is_taken_from_other_nodes(it, situation.server) for it in situation.plugins)
