"""Where disks are in use, as far as watches tell, and what nodes and controllers say right now."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from replant.core.convert.conditions import (
    Conditions,
    Disk,
    Place,
    conditions_of,
    kubelet_redirects,
)
from replant.execute.world import OVER, CsiNode, Node, World
from replant.gates.versions import Version
from replant.inventory.controlplane import ControlPlanePod
from replant.objects import Object
from replant.plan.model import VolumeSwap
from replant.routing import Process
from replant.routing.names import csi_name, in_tree_name
from replant.swap import moves, twin
from replant.translate import plugin_for_driver


@dataclass(frozen=True, slots=True)
class FreshState:
    """What the API server says right now of the nodes that matter, and of the control plane."""

    version: Version
    controllers: Sequence[ControlPlanePod]
    """The replicas of kube-controller-manager that can be seen."""
    nodes: Mapping[str, Node | None] = field(default_factory=dict)
    """None is one that is gone."""
    csi_nodes: Mapping[str, CsiNode] = field(default_factory=dict)
    _unredirecting: dict[str, list[str]] = field(default_factory=dict)

    def unredirecting(self, plugin: str, world: World) -> list[str]:
        """The nodes that do not redirect a plugin, looked for once: there may be thousands."""
        if plugin not in self._unredirecting:
            self._unredirecting[plugin] = sorted(
                it.metadata.name
                for it in world.nodes()
                if not _redirects(plugin, it, world.csi_node(it.metadata.name), self.version)
            )
        return self._unredirecting[plugin]


def disk_of(volume: VolumeSwap, swap: moves.Swap, sees_controllers: bool) -> Disk:
    """The volume of a step by all of its names."""
    both = (swap.before, swap.after)
    in_tree: Object = next((it["spec"] for it in both if not twin.is_native(it)), {})
    plugin = plugin_for_driver(volume.driver) or ""
    return Disk(
        name=volume.name,
        claim=volume.claim,
        plugin=plugin,
        driver=volume.driver,
        in_tree=in_tree_name(plugin, in_tree) if in_tree else "",
        csi=csi_name(volume.driver, volume.handle),
        in_use=not volume.free_of,
        sees_controllers=sees_controllers,
    )


def nodes_in_use(disks: Iterable[Disk], world: World) -> dict[str, set[str]]:
    """For each disk by its PersistentVolume, the nodes where it is attached, or a pod uses it."""
    found: dict[str, set[str]] = {it.name: set() for it in disks}
    called: dict[str, set[str]] = defaultdict(set)
    for disk in disks:
        for name in (disk.in_tree, disk.csi):
            called[name].add(disk.name)
        for pod in world.pods_using(disk.claim):
            if pod.spec.node_name and pod.status.phase not in OVER:
                found[disk.name].add(pod.spec.node_name)
    for node in world.nodes():
        for name in node.volumes & called.keys():
            for disk_name in called[name]:
                found[disk_name].add(node.metadata.name)
    for name, nodes in found.items():
        nodes.update(it.spec.node_name for it in world.attachments_of(name))
    return found


def conditions(disk: Disk, nodes: Iterable[str], world: World, fresh: FreshState) -> Conditions:
    """Whether the PersistentVolume of a disk may be deleted, which is in use on these nodes."""
    if not disk.in_use:
        return _unused(disk, nodes, world)
    version, plugin = fresh.version, disk.plugin
    controllers = [Process(version, it.gates).migrates(plugin) for it in fresh.controllers]
    # One that is nowhere may be attached anywhere a moment later: no node may do that in the tree.
    places = [
        _place(it, disk, world, fresh, all(controllers))
        for it in sorted(nodes) or fresh.unredirecting(plugin, world)
    ]
    return conditions_of(disk, places, controllers)


def before_create(disk: Disk, world: World) -> Conditions:
    """Whether the PersistentVolume of a disk may be created, which is away.

    While it was away, a kubelet that restarted has unmounted the disk under its pod, and a
    kube-controller-manager that restarted has then deleted the VolumeAttachment. It only goes once
    the external-attacher has detached the disk, for which it needs the PersistentVolume.
    """
    for attachment in world.attachments_of(disk.name):
        metadata, node = attachment.metadata, attachment.spec.node_name
        if not metadata.deletion_timestamp:
            continue
        for pod in world.pods_using(disk.claim):
            if pod.spec.node_name == node and pod.status.phase not in OVER:
                return Conditions(
                    detaching=f"pod {pod.name} to end. The VolumeAttachment {metadata.name} of "
                    f"PersistentVolume {disk.name} is being deleted, so the external-attacher "
                    f"would detach the disk from {node} under the pod as soon as the "
                    "PersistentVolume is there again. Delete the pod"
                )
    return Conditions()


def _unused(disk: Disk, nodes: Iterable[str], world: World) -> Conditions:
    for node in sorted(nodes):
        return Conditions(missing=f"PersistentVolume {disk.name} to be let go by {node}")
    for pod in world.pods_using(disk.claim):
        if pod.status.phase not in OVER:
            return Conditions(missing=f"PersistentVolume {disk.name} to be let go by {pod.name}")
    return Conditions()


def _redirects(plugin: str, node: Node, csi_node: CsiNode, version: Version) -> bool:
    return kubelet_redirects(plugin, csi_node.migrated, node.kubelet or version)


def _place(name: str, disk: Disk, world: World, fresh: FreshState, controllers: bool) -> Place:
    node = fresh.nodes.get(name, world.node(name))
    if node is None:
        # It is gone, and what hangs on it is detached by whoever the controllers ask.
        return Place(node=name, redirects=controllers, has_driver=True, volumes=())
    csi_node = fresh.csi_nodes.get(name, world.csi_node(name))
    return Place(
        node=name,
        redirects=_redirects(disk.plugin, node, csi_node, fresh.version),
        has_driver=disk.driver in csi_node.drivers,
        volumes=node.volumes,
    )
