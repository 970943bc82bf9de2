"""Looks, right before volumes are deleted, at what their conversion relies on.

All volumes that wait for such a look share one: it is begun after the last of them has asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

import msgspec

from replant.cluster.ports import CSI_NODES, NODES, PODS, Reader, Resource, Selected
from replant.core.convert.conditions import Conditions, Disk
from replant.errors import Missing
from replant.execute.steps.conditions import (
    FreshState,
    before_create,
    conditions,
    nodes_in_use,
)
from replant.execute.world import DECODERS, CsiNode, Node, World
from replant.gates.versions import Version
from replant.inventory.controlplane import ControlPlanePod, control_plane_pod
from replant.inventory.pod_records import Pod
from replant.plan.courses import CONTROLLER

CONTROL_PLANE = "kube-system"
AT_ONCE = 8
"""So many nodes are read at a time."""


class _Pods(msgspec.Struct):
    items: list[Pod] | None = None


class _CsiNodes(msgspec.Struct):
    items: list[CsiNode] | None = None


class _Batch:
    """Disks that are looked at together."""

    def __init__(self) -> None:
        self.disks: dict[str, Disk] = {}
        self.task: asyncio.Task[Mapping[str, Conditions]] | None = None


class LateLook:
    """Whether PersistentVolumes may be deleted, by what the API server says at that moment."""

    def __init__(self, reader: Reader, world: World) -> None:
        self._reader = reader
        self._world = world
        self._one_at_a_time = asyncio.Lock()
        self._nodes_at_once = asyncio.Semaphore(AT_ONCE)
        self._gathering: _Batch | None = None

    async def conditions(self, disk: Disk) -> Conditions:
        """What is not as its conversion needs it, by a look that begins after this call."""
        batch = self._gathering
        if batch is None or batch.task is None:
            batch = self._gathering = _Batch()
            batch.task = asyncio.create_task(self._look(batch))
        batch.disks[disk.name] = disk
        # Whoever stops waiting does not take the look away from the others.
        return (await asyncio.shield(batch.task))[disk.name]

    def before_create(self, disk: Disk) -> Conditions:
        """What keeps the PersistentVolume from being created, by what watches have told.

        Nothing is asked for: every request would lengthen the time for which it is away.
        """
        return before_create(disk, self._world)

    async def _look(self, batch: _Batch) -> Mapping[str, Conditions]:
        async with self._one_at_a_time:
            self._gathering = None
            return await self._seen(tuple(batch.disks.values()))

    async def _seen(self, disks: tuple[Disk, ...]) -> Mapping[str, Conditions]:
        places = nodes_in_use(disks, self._world)
        wanted = set().union(*(places[it.name] for it in disks if it.in_use))
        if any(it.in_use for it in disks):
            fresh = await self._fresh(sorted(wanted))
        else:
            fresh = FreshState(Version(0, 0), ())
        return {it.name: conditions(it, places[it.name], self._world, fresh) for it in disks}

    async def _fresh(self, names: list[str]) -> FreshState:
        version, controllers, nodes, csi_nodes = await asyncio.gather(
            self._reader.server_version(),
            self._controllers(),
            asyncio.gather(*map(self._node, names)),
            asyncio.gather(*map(self._csi_node, names)),
        )
        return FreshState(
            version=Version.parse(version),
            controllers=controllers,
            nodes=dict(zip(names, nodes, strict=True)),
            csi_nodes=dict(zip(names, csi_nodes, strict=True)),
        )

    async def _node(self, name: str) -> Node | None:
        async with self._nodes_at_once:
            try:
                body = await self._reader.get(NODES, name)
            except Missing:
                return None
        found = DECODERS[NODES].decode(body)
        return found if isinstance(found, Node) else None

    async def _csi_node(self, name: str) -> CsiNode:
        # A list, because that is what the role of a run allows.
        async with self._nodes_at_once:
            bodies = await self._pages(CSI_NODES, Selected(fields=f"metadata.name={name}"))
        found = [
            it for body in bodies for it in msgspec.json.decode(body, type=_CsiNodes).items or ()
        ]
        return found[0] if found else CsiNode()

    async def _controllers(self) -> list[ControlPlanePod]:
        selected = Selected(labels=f"component={CONTROLLER}")
        bodies = await self._pages(PODS, selected, CONTROL_PLANE)
        pods = [it for body in bodies for it in msgspec.json.decode(body, type=_Pods).items or ()]
        return list(filter(None, map(control_plane_pod, pods)))

    async def _pages(
        self, resource: Resource, selected: Selected, namespace: str = ""
    ) -> Iterable[bytes]:
        bodies: list[bytes] = []
        async for page in self._reader.list_pages(resource, namespace=namespace, selected=selected):
            if page.first:
                bodies = []
            bodies.append(page.body)
        return bodies
