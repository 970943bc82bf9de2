"""What each node of a step is to come to, and how that is seen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from replant.execute.actuators import Place, Wanted
from replant.execute.world import Attachment, CsiNode, Node
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
        group = replace(group, version=version) if version else group
        listed = _listed(group, change.gates, plan.plugins)
        for node in group.nodes:
            yield Target(node, Wanted(change.gates), listed, frozenset(plan.plugins))


def targets_of_version(step: ChangeVersion, plan: Plan) -> Iterator[Target]:
    """What each node of a cluster lists once its kubelet is of another version."""
    for group in plan.groups:
        listed = _listed(replace(group, version=step.version), {}, plan.plugins)
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
