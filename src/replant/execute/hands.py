"""Carries acts out, each once, and tells what has come of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

import msgspec
from msgspec import convert

from replant.cluster.ports import (
    DAEMON_SETS,
    DEPLOYMENTS,
    LEASES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
    Reader,
    Resource,
    Selected,
    Writer,
)
from replant.errors import Conflict, Missing
from replant.execute.acts import (
    CORDONED,
    Act,
    Annotate,
    Cordon,
    CreateClass,
    DeleteClass,
    Evict,
    LookAtLeader,
    LookAtNode,
    LookAtObjects,
    ObservePlace,
    RestartLeader,
    Switch,
    Uncordon,
)
from replant.execute.actuators import Actuator
from replant.execute.census_model import disk_of, inline_disk
from replant.execute.leading import OURS, Leader
from replant.execute.lease import look
from replant.execute.making import LookAtThese, MakeObject, RemoveObject
from replant.execute.mirror import Mirror
from replant.execute.retemplating import RewriteTemplate
from replant.execute.rewriting import LookAtPendingClaims
from replant.execute.runtime.late_look import LateLook
from replant.execute.scaling import LookAtWorkload, ScaleWorkload
from replant.execute.steps.attachments import (
    DeleteAttachment,
    FreshAttachment,
    LookAtAttachment,
)
from replant.execute.steps.scheduling import (
    LookAtUnboundPod,
    TaintNode,
    TolerateTaints,
    UnboundPod,
)
from replant.execute.swapper import Sleep, Swapper
from replant.execute.swapping import LookAtVolumes, ReplaceVolume
from replant.execute.world import Node, Pod, precedes
from replant.inventory.storage_records import PersistentVolumeClaim
from replant.objects import PERSISTENT_VOLUME, POD_SPEC_PATHS, Object, name_of

_RESOURCES = {
    it.kind: it
    for it in (
        DEPLOYMENTS, STATEFUL_SETS, DAEMON_SETS, REPLICA_SETS, REPLICATION_CONTROLLERS,
        PERSISTENT_VOLUMES, PERSISTENT_VOLUME_CLAIMS, STORAGE_CLASSES,
    )
}  # fmt: skip
"""What steps name by its kind."""

REQUESTS_AT_ONCE = 8
"""More would not be faster."""

LEADERS = "kube-system"
"""Where components keep their Leases."""


class _Claims(msgspec.Struct):
    items: list[PersistentVolumeClaim] | None = None


class Hands:
    """Through these, and nothing else, a run changes anything."""

    def __init__(
        self, reader: Reader, writer: Writer, mirror: Mirror, actuator: Actuator, sleep: Sleep
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._mirror = mirror
        self._actuator = actuator
        self._swapper = Swapper(reader, writer, LateLook(reader, mirror.world), sleep)
        self._free = asyncio.Semaphore(REQUESTS_AT_ONCE)

    async def do(self, act: Act) -> object:
        """What was seen, or None for what was done; errors are the ports'."""
        match act:
            case ObservePlace():
                return await self._actuator.observe(act.place)
            case Switch():
                await self._actuator.switch(act.place, act.wanted)
                return None
            case LookAtVolumes():
                return await self._swapper.look(act)
            case ReplaceVolume():
                return await self._swapper.replace(act)
        async with self._free:
            if not act.changes:
                return await self._look(act)
            try:
                await self._change(act)
            except (Conflict, Missing):
                # It was decided upon what is no longer so, and a watch may never tell: look.
                if isinstance(act, Cordon | Uncordon | Evict | TaintNode):
                    await self._mirror.look_at(act.node)
                raise
            return None

    async def _look(self, act: Act) -> object:
        match act:
            case LookAtNode():
                return await self._mirror.look_at(act.node)
            case LookAtObjects():
                return await self._all(act.kind)
            case LookAtPendingClaims():
                return await self._pending_claims()
            case LookAtWorkload():
                it = act.workload
                return await self._get(_RESOURCES[it.kind], it.name, it.namespace)
            case LookAtThese():
                return await self._these(act.objects)
            case LookAtUnboundPod():
                return await self._unbound(act)
            case LookAtAttachment():
                return await self._attachment(act)
            case LookAtLeader():
                held = await look(self._reader, act.component, LEADERS)
                return Leader(held.holder, held.metadata.resource_version) if held else Leader()
        return None

    async def _change(self, act: Act) -> None:
        match act:
            case Cordon():
                await self._set_schedulable(act, on=False)
            case Uncordon():
                await self._set_schedulable(act, on=True)
            case Evict():
                await self._writer.evict(act.pod, namespace=act.namespace, uid=act.uid)
            case TaintNode():
                await self._taint(act)
            case TolerateTaints():
                await self._tolerate(act)
            case Annotate():
                await self._annotate(act)
            case RestartLeader():
                await self._take_lead(act)
            case _:
                await self._write(act)

    async def _write(self, act: Act) -> None:
        match act:
            case DeleteClass() | DeleteAttachment():
                metadata = act.before["metadata"]
                is_class = isinstance(act, DeleteClass)
                await self._writer.delete(
                    STORAGE_CLASSES if is_class else VOLUME_ATTACHMENTS,
                    metadata["name"],
                    uid=metadata["uid"],
                    version=metadata["resourceVersion"],
                )
            case CreateClass():
                await self._writer.create(STORAGE_CLASSES, act.after)
            case ScaleWorkload():
                it = act.workload
                known = {"uid": act.uid, "resourceVersion": act.version}
                patch = {"metadata": known, "spec": {"replicas": act.replicas}}
                resource = _RESOURCES[it.kind]
                await self._writer.patch(resource, it.name, patch, namespace=it.namespace)
            case RewriteTemplate():
                await self._rewrite(act)
            case MakeObject():
                namespace = act.obj["metadata"].get("namespace", "")
                resource = _RESOURCES[act.obj["kind"]]
                await self._writer.create(resource, act.obj, namespace=namespace)
            case RemoveObject():
                metadata = act.obj["metadata"]
                await self._writer.delete(
                    _RESOURCES[act.obj["kind"]],
                    metadata["name"],
                    uid=metadata["uid"],
                    version=metadata["resourceVersion"],
                    namespace=metadata.get("namespace", ""),
                )

    async def _set_schedulable(self, act: Cordon | Uncordon, *, on: bool) -> None:
        mark = act.run if isinstance(act, Cordon) else None
        patch = {
            "metadata": {
                "uid": act.uid,
                "resourceVersion": act.version,
                "annotations": {CORDONED: mark},
            },
            "spec": {"unschedulable": None if on else True},
        }
        body = await self._writer.patch(NODES, act.node, patch)
        self._mirror.take(NODES, body)

    async def _taint(self, act: TaintNode) -> None:
        taints = msgspec.to_builtins(act.taints) or None
        known = {"uid": act.uid, "resourceVersion": act.version}
        patch = {"metadata": known, "spec": {"taints": taints}}
        self._mirror.take(NODES, await self._writer.patch(NODES, act.node, patch))

    async def _tolerate(self, act: TolerateTaints) -> None:
        known = {"uid": act.uid, "resourceVersion": act.version}
        patch = {"metadata": known, "spec": {"tolerations": list(act.tolerations)}}
        await self._writer.patch(PODS, act.pod, patch, namespace=act.namespace)

    async def _unbound(self, act: LookAtUnboundPod) -> UnboundPod:
        pod = await self._get(PODS, act.pod, act.namespace)
        if pod is None or pod["metadata"]["uid"] != act.uid or pod["spec"].get("nodeName"):
            return UnboundPod()
        return UnboundPod(pod, await self._volumes(pod))

    async def _volumes(self, pod: Object) -> dict[str, Object | None]:
        """By claim of a pod, with its namespace: the volume that it is bound to, if it is."""
        found: dict[str, Object | None] = {}
        for key in convert(pod, Pod).claims:
            namespace, _, claimed = key.partition("/")
            claim = await self._get(PERSISTENT_VOLUME_CLAIMS, claimed, namespace)
            name = (claim or {"spec": {}})["spec"].get("volumeName")
            found[key] = await self._get(PERSISTENT_VOLUMES, name, "") if name else None
        return found

    async def _attachment(self, act: LookAtAttachment) -> FreshAttachment:
        # Read first: whatever happens to it from here on has its deletion refused.
        attachment = await self._get(VOLUME_ATTACHMENTS, act.attachment, "")
        body = await self._get(NODES, act.node, "")
        if attachment is None or body is None:
            return FreshAttachment()
        node = convert(body, Node)
        pods, version = await self._pods_of(act.node)
        if precedes(version, node.metadata.resource_version):
            return FreshAttachment()  # the list is older than the node, which was read before it
        names = node.volumes
        for pod in pods:
            bound = filter(None, (await self._volumes(pod)).values())
            namespace = pod["metadata"]["namespace"]
            inline = (inline_disk(it, namespace) for it in pod["spec"].get("volumes") or ())
            for disk in filter(None, (*map(disk_of, bound), *inline)):
                names |= {disk.in_tree, disk.csi}
        return FreshAttachment(attachment, frozenset(names))

    async def _pods_of(self, node: str) -> tuple[list[Object], str]:
        found: list[Object] = []
        version = ""
        selected = Selected(fields=f"spec.nodeName={node}")
        async for page in self._reader.list_pages(PODS, selected=selected):
            if page.first:
                found = []
            listed = msgspec.json.decode(page.body)
            found += listed["items"] or ()
            version = listed["metadata"]["resourceVersion"]
        return found, version

    async def _rewrite(self, act: RewriteTemplate) -> None:
        it = act.workload
        changed: Object = {"volumes": list(act.volumes)}
        for key in reversed(POD_SPEC_PATHS[it.kind]):
            changed = {key: changed}
        known = {key: act.found["metadata"][key] for key in ("uid", "resourceVersion")}
        patch = {"metadata": known, **changed}
        await self._writer.patch(_RESOURCES[it.kind], it.name, patch, namespace=it.namespace)

    async def _take_lead(self, act: RestartLeader) -> None:
        # How long it lasts stays as it is: longer than its leader tries to renew it.
        patch = {
            "metadata": {"resourceVersion": act.version},
            "spec": {"holderIdentity": OURS},
        }
        await self._writer.patch(LEASES, act.component, patch, namespace=LEADERS)

    async def _annotate(self, act: Annotate) -> None:
        patch = {
            "metadata": {
                "uid": act.uid,
                "resourceVersion": act.version,
                "annotations": dict(act.annotations),
            }
        }
        await self._writer.patch(PERSISTENT_VOLUMES, act.volume, patch)

    async def _get(self, resource: Resource, name: str, namespace: str) -> Object | None:
        try:
            body = await self._reader.get(resource, name, namespace=namespace)
        except Missing:
            return None
        found: Object = msgspec.json.decode(body)
        return found

    async def _these(self, objects: Iterable[Object]) -> dict[str, Object]:
        found = {}
        for it in objects:
            metadata = it["metadata"]
            namespace = metadata.get("namespace", "")
            seen = await self._get(_RESOURCES[it["kind"]], metadata["name"], namespace)
            if seen is not None:
                found[name_of(it)] = {**seen, "kind": it["kind"]}
        return found

    async def _pending_claims(self) -> tuple[PersistentVolumeClaim, ...]:
        found: list[PersistentVolumeClaim] = []
        async for page in self._reader.list_pages(PERSISTENT_VOLUME_CLAIMS):
            if page.first:
                found = []
            listed = msgspec.json.decode(page.body, type=_Claims).items or ()
            found += [it for it in listed if it.is_pending]
        return tuple(found)

    async def _all(self, kind: str) -> Mapping[str, Object]:
        resource = PERSISTENT_VOLUMES if kind == PERSISTENT_VOLUME else STORAGE_CLASSES
        found: dict[str, Object] = {}
        async for page in self._reader.list_pages(resource):
            if page.first:
                found = {}
            for obj in msgspec.json.decode(page.body)["items"] or ():
                found[obj["metadata"]["name"]] = obj
        return found
