"""What the checks look at: a plan, a census of before and one of now, and what follows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property, lru_cache

from replant.execute.census_model import Disk, Joined, Node, Trouble
from replant.gates.versions import Version
from replant.plan.courses import CONTROLLER, given
from replant.plan.model import ChangeVersion, GivenGates, Plan, RollNodes, SwitchControlPlane
from replant.routing import AttachController, NodeView, Process, Route, Side, VolumeView, attach
from replant.translate import driver_of


class Outcome(StrEnum):
    """What a check came to, from good to bad."""

    PASSED = "passed"
    NOT_YET = "not yet"
    """It may still come right by itself."""
    WRONG = "wrong"
    """It will not."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is not as it should be; if it passes, because a person has allowed it."""

    object: str
    message: str
    """What, where, why, and what to do: which log to read."""
    outcome: Outcome = Outcome.NOT_YET


Problems = Iterator[Problem]


@dataclass(frozen=True)
class Comparison:
    """A plan of which all steps are done, and both censuses."""

    plan: Plan
    before: Joined
    now: Joined
    let_go: frozenset[str] = frozenset()
    """Pods, by namespace and name, that had to leave their node."""

    @cached_property
    def _end(self) -> tuple[Process, dict[str, Process]]:
        """The controllers and the kubelets of each group, as the plan leaves them."""
        plan = self.plan
        controller = _process(plan.control_plane.version, plan.control_plane.gates)
        kubelets = {it.name: _process(it.version, it.gates) for it in plan.groups}
        for step in plan.steps:
            if isinstance(step, SwitchControlPlane):
                for component in step.components:
                    if component.name == CONTROLLER:
                        controller = _changed(controller, component.gates)
            elif isinstance(step, RollNodes):
                for change in step.changes:
                    kubelets[change.group] = _changed(kubelets[change.group], change.gates)
            elif isinstance(step, ChangeVersion):
                version = Version.parse(step.version)
                controller = replace(controller, version=version)
                kubelets = {name: replace(it, version=version) for name, it in kubelets.items()}
        return controller, kubelets

    @property
    def controller(self) -> Process:
        """The controllers, as the plan leaves them."""
        return self._end[0]

    @cached_property
    def _redirected(self) -> dict[str, frozenset[str]]:
        kubelets = self._end[1]
        return {
            node: frozenset(it for it in self.plan.plugins if kubelets[group.name].migrates(it))
            for group in self.plan.groups
            for node in group.nodes
        }

    def redirected(self, node: str) -> frozenset[str] | None:
        """The plan's plugins that a node is to redirect; None where the plan does not tell.

        A node that has come since, as where machines are replaced, is as all others if these are
        alike.
        """
        if node in self._redirected:
            return self._redirected[node]
        alike = set(self._redirected.values())
        return alike.pop() if len(alike) == 1 else None

    def is_planned(self, node: str) -> bool:
        """Whether the plan knows a node: it was there when the plan was made."""
        return node in self._redirected

    def switched(self, node: str) -> frozenset[str]:
        """The plan's plugins that a node has begun or ceased to redirect since before."""
        old, new = self.before.nodes.get(node), self.now.nodes.get(node)
        if old is None or new is None:
            return frozenset()
        return (frozenset(old.migrated) ^ frozenset(new.migrated)) & frozenset(self.plan.plugins)

    def concerns(self, plugin: str) -> bool:
        """Whether disks of a plugin are the plan's, and are attached at all."""
        return plugin in self.plan.plugins and view_of(plugin).attachable

    def attaching(self, disk: Disk, node: Node) -> Route:
        """Who is asked to attach a disk to a node, as that node is now."""
        view = NodeView(node.csi_node, frozenset(node.migrated), frozenset(node.drivers))
        volume = view_of(disk.plugin, native=disk.native)
        return _attaching(volume, self.controller, view, self.plan.attach_controller)

    @cached_property
    def disks(self) -> dict[str, Disk]:
        """The disk behind each name."""
        volumes = (it.disk for it in self.now.census.volumes if it.disk)
        inline = (disk for pod in self.now.census.pods for disk in pod.inline)
        return {name: disk for disk in (*volumes, *inline) for name in (disk.csi, disk.in_tree)}

    @cached_property
    def troubles(self) -> dict[str, Trouble]:
        """What was last told about each pod that does not get its volume."""
        return {it.pod: it for it in self.now.census.troubles}

    def title(self, name: str) -> str:
        """What a person calls the volume behind a name."""
        volume = self.now.titles.get(name)
        return f"PersistentVolume {volume}" if volume else f"volume {name}"

    def node_logs(self, node: str, plugin: str = "") -> str:
        """Which logs to read about mounts on a node."""
        driver = driver_of(plugin) if plugin else ""
        pod = self.now.census.driver_pods.on(node, driver)
        beside = f", and of the driver's pod {pod}" if pod else ""
        return f"Read the log of the kubelet of {node}{beside}."

    def attach_logs(self, side: Side, plugin: str) -> str:
        """Which logs to read about what one of the sides attaches and detaches."""
        if side is not Side.CSI:
            return f"Read the log of {CONTROLLER}."
        driver = driver_of(plugin)
        pod = self.now.census.driver_pods.attacher(driver)
        where = f" in the pod {pod}" if pod else ""
        return f"Read the log of the external-attacher of {driver}{where}."


@lru_cache(maxsize=64)
def view_of(plugin: str, *, native: bool = False) -> VolumeView:
    """A volume of a plugin, for those who ask about attaching."""
    return VolumeView(plugin, driver_of(plugin), native, provisioned=False)


def _process(version: str, gates: GivenGates) -> Process:
    return Process(Version.parse(version), given({}, gates))


def _changed(process: Process, gates: GivenGates) -> Process:
    return Process(process.version, given(process.gates, gates))


@lru_cache(maxsize=4096)
def _attaching(
    volume: VolumeView, controller: Process, node: NodeView, adc: AttachController
) -> Route:
    return attach(volume, controller, node, adc)
