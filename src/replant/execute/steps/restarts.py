"""When kube-controller-manager must not be restarted: its successor would detach a disk in use."""

from __future__ import annotations

from collections.abc import Iterator

from replant.execute.acts import Wait
from replant.execute.steps.taints import is_being_switched
from replant.execute.world import Node, World
from replant.routing import Side
from replant.routing.names import named
from replant.translate import driver_of


def in_the_way_of_a_restart(world: World, timeout: float) -> Iterator[Wait]:
    """What has to be so on nodes before another kube-controller-manager leads.

    It works out anew which disk belongs where, under the names that nodes take by then.
    """
    for node in world.nodes():
        yield from _left_behind(node, world, timeout)
        yield from _driver_missing(node, world, timeout)


def left_behind(node: Node, migrated: frozenset[str], plugins: frozenset[str]) -> list[str]:
    """The volumes of plugins on a node under the names that its kubelet does not use any more."""
    found = []
    for name in node.volumes:
        side, plugin = named(name)
        if plugin in plugins and side is (Side.IN_TREE if plugin in migrated else Side.CSI):
            found.append(name)
    return sorted(found)


def _left_behind(node: Node, world: World, timeout: float) -> Iterator[Wait]:
    plugins = frozenset(named(it).plugin for it in node.volumes)
    switched = frozenset(it for it in plugins if it and is_being_switched(node, it))
    name = node.metadata.name
    listed = world.csi_node(name).migrated
    for volume in left_behind(node, listed, switched):
        yield Wait(
            f"{volume} to be detached from {name}: its pod came after the last look at the node "
            "and before its kubelet was restarted, and a kube-controller-manager that starts now "
            "would detach the disk under it. Scale the pod's workload down to 0",
            f"left behind {name} {volume}",
            timeout,
            f"the kubelet of {name}",
        )


def _driver_missing(node: Node, world: World, timeout: float) -> Iterator[Wait]:
    csi_node = world.csi_node(node.metadata.name)
    attached = {plugin for side, plugin in map(named, node.volumes) if side is Side.CSI}
    for plugin in sorted(attached & csi_node.migrated):
        if (driver := driver_of(plugin)) not in csi_node.drivers:
            name = node.metadata.name
            yield Wait(
                f"the driver {driver} to be registered on {name} before kube-controller-manager is "
                "restarted: one that starts while it is missing may detach the node's disks",
                f"driver {name}",
                timeout,
                f"the driver's pod on {name}, and its kubelet",
            )
