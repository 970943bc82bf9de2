"""What each node of a step is to come to, and how that is seen."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import msgspec

from replant.execute.actuators import Place, Wanted
from replant.execute.world import Attachment, CsiNode, Node, World
from replant.gates.plugins import LIVES
from replant.gates.versions import Version
from replant.plan.courses import CONTROLLER, given
from replant.plan.model import (
    ChangeVersion,
    GivenGates,
    NodeGroup,
    Plan,
    RollNodes,
    Step,
    SwitchControlPlane,
)
from replant.routing import AttachController, Process
from replant.routing.names import csi_name
from replant.translate import driver_of


@dataclass(frozen=True, slots=True)
class Target:
    """What a node's kubelet is to be given, and what its CSINode lists then."""

    node: str
    wanted: Wanted
    listed: frozenset[str]
    """Of the plan's plugins those that it redirects then."""
    plugins: frozenset[str]

    @property
    def place(self) -> Place:
        """Where the actuator finds it."""
        return Place(node=self.node)

    @property
    def shows(self) -> bool:
        """Whether its CSINode alone tells that it has come there."""
        return set(self.wanted.gates) <= {LIVES[it].migration_gate for it in self.plugins}

    def unlisted(self, csi_node: CsiNode) -> str:
        """What a CSINode does not do yet; nothing once the kubelet redirects what it should."""
        mine = csi_node.migrated & self.plugins
        if missing := sorted(self.listed - mine):
            return f"list {', '.join(missing)}"
        if surplus := sorted(mine - self.listed):
            return f"list {', '.join(surplus)} no more"
        return ""

    def absent_drivers(self, csi_node: CsiNode) -> list[str]:
        """The drivers that it needs then and does not have."""
        return sorted(it for it in map(driver_of, self.listed) if it not in csi_node.drivers)


def targets(step: RollNodes, plan: Plan) -> Iterator[Target]:
    """What each node of a step is to come to."""
    groups = {group.name: group for group in plan.groups}
    version = _version_before(step, plan)
    for change in step.changes:
        group = groups[change.group]
        group = msgspec.structs.replace(group, version=version) if version else group
        listed = _listed(group, change.gates, plan.plugins)
        for node in group.nodes:
            yield Target(node, Wanted(change.gates), listed, frozenset(plan.plugins))


class JoinedNodes:
    """The nodes that have joined since a plan was made, and what a step makes of each."""

    def __init__(self, step: RollNodes, plan: Plan) -> None:
        before = _version_before(step, plan)
        versions = {name: before or it.version for it in plan.groups for name in it.nodes}
        self._known = versions.keys()
        self._alike: dict[Version, list[Target]] = defaultdict(list)
        """By minor version: what nodes come to that the plan knows, each different end once."""
        for target in targets(step, plan):
            ends = self._alike[Version.parse(versions[target.node]).first_patch]
            if all((it.wanted, it.listed) != (target.wanted, target.listed) for it in ends):
                ends.append(target)

    def there(self, world: World) -> Iterator[str]:
        """All that are in the cluster."""
        names = (it.metadata.name for it in world.nodes())
        return (it for it in names if it not in self._known)

    def behind(self, world: World) -> list[str]:
        """Those that run with other gates than the nodes of the plan come to."""
        return [it for it in self.there(world) if self.is_behind(it, world)]

    def has(self, name: str) -> bool:
        """Whether a node is one of them."""
        return name not in self._known

    def is_behind(self, name: str, world: World) -> bool:
        """Whether one of them does."""
        node, csi_node = world.node(name), world.csi_node(name)
        # Until its kubelet has written the CSINode, the node is not ready.
        if name in self._known or not (node and node.ready and csi_node.metadata.name):
            return False
        ends = [it for alike in self._alike.values() for it in alike]
        return bool(ends) and all(it.unlisted(csi_node) for it in ends)

    def target(self, node: Node) -> Target | None:
        """What a node is to come to; None where the plan's nodes of its version do not tell."""
        alike = self._alike.get(node.kubelet.first_patch, []) if node.kubelet else []
        return replace(alike[0], node=node.metadata.name) if len(alike) == 1 else None


def targets_of_version(step: ChangeVersion, plan: Plan) -> Iterator[Target]:
    """What each node of a cluster lists once its kubelet is of another version."""
    for group in plan.groups:
        group_then = msgspec.structs.replace(group, version=step.version)
        listed = _listed(group_then, {}, plan.plugins)
        for node in group.nodes:
            yield Target(node, Wanted({}), listed, frozenset(plan.plugins))


def _version_before(step: RollNodes, plan: Plan) -> str:
    """Where the platform has led by then; nothing where it has not."""
    version = ""
    for it in plan.steps:
        if it.id == step.id:
            break
        version = it.version if isinstance(it, ChangeVersion) else version
    return version


def _listed(group: NodeGroup, change: GivenGates, plugins: tuple[str, ...]) -> frozenset[str]:
    before = {gate: on for gate, on in group.gates.items() if on is not None}
    process = Process(Version.parse(group.version), given(before, change))
    return frozenset(plugin for plugin in plugins if process.migrates(plugin))


@dataclass(frozen=True, slots=True)
class Demand:
    """What must hold on every node before the controllers are switched."""

    plugin: str
    listed: bool

    @property
    def told(self) -> str:
        """As the end of a sentence."""
        return f"redirect {self.plugin}" if self.listed else f"redirect {self.plugin} no more"

    def is_met(self, csi_node: CsiNode) -> bool:
        """Whether a node is so."""
        return (self.plugin in csi_node.migrated) is self.listed


def demands(step: SwitchControlPlane, plan: Plan) -> Iterator[Demand]:
    """What a switch of the controllers takes for granted of the nodes."""
    ids = [it.id for it in plan.steps]
    before = _controller(plan, plan.steps[: ids.index(step.id)])
    after = _controller(plan, plan.steps[: ids.index(step.id) + 1])
    for plugin in plan.plugins:
        listens = plan.attach_controller is AttachController.UPSTREAM
        if listens and before.migrates(plugin) and not after.migrates(plugin):
            yield Demand(plugin, listed=False)
        if _is_taken_away(plugin, after) and not _is_taken_away(plugin, before):
            yield Demand(plugin, listed=True)


def _is_taken_away(plugin: str, controller: Process) -> bool:
    return controller.complete(plugin) or not controller.registered(plugin)


def _controller(plan: Plan, done: Iterable[Step]) -> Process:
    """The controllers, after some steps of a plan."""
    gates, version = dict(plan.control_plane.gates), plan.control_plane.version
    for step in done:
        version = step.version if isinstance(step, ChangeVersion) else version
        for component in step.components if isinstance(step, SwitchControlPlane) else ():
            if component.name == CONTROLLER:
                gates |= component.gates
    return Process(Version.parse(version), given({}, gates))


class VolumeNames:
    """How the volumes of some plugins are called on a node, on either side."""

    def __init__(self, plugins: Iterable[str]) -> None:
        drivers = {it: driver_of(it) for it in plugins}
        self._drivers = frozenset(drivers.values())
        self._names = tuple(
            name
            for plugin, driver in drivers.items()
            for name in (f"{plugin}/", csi_name(driver, ""))
        )

    def on(self, node: Node, attachments: Iterable[Attachment] = ()) -> list[str]:
        """Those that are attached to a node or in use there, as far as anybody says so."""
        found = {it for it in node.volumes if it.startswith(self._names)}
        for it in attachments:
            if it.spec.attacher in self._drivers:
                source = it.spec.source.persistent_volume_name
                found.add(f"volume {source}" if source else f"attachment {it.metadata.name}")
        return sorted(found)
