"""Looks at a cluster for what ``drivers.decisions`` wants to see of a driver."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import msgspec

from replant.cluster.ports import (
    CSI_NODES,
    DAEMON_SETS,
    DEPLOYMENTS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STATEFUL_SETS,
    VOLUME_ATTACHMENTS,
    Applier,
    Reader,
    Resource,
)
from replant.drivers.catalog import CR_NAME, Cloud, Driver, cloud_of
from replant.drivers.decisions import wanted_keys
from replant.drivers.kinds import GROUP, KINDS, VERSIONS, Key
from replant.drivers.operand import Part, Split, part_in, part_of
from replant.drivers.removal import Uses, World, uses_of
from replant.drivers.seen import Look, Seen
from replant.drivers.values import Values
from replant.errors import InputError, Missing, NotServed, ReplantError
from replant.objects import Object, name_of

AT_ONCE = 8
"""So many objects are asked for at a time."""
SURROUNDINGS = 30.0
"""Seconds for which the cloud, the nodes and what is served are taken to be the same."""
OF_OTHERS = (
    "CredentialsRequest",
    "VolumeSnapshotClass",
    "Subscription",
    "ClusterServiceVersion",
    "Storage",
    "ClusterCSIDriver",
    "Infrastructure",
    "ClusterOperator",
    "StorageCluster",
)
"""Kinds that a cluster may not have."""
SNAPSHOTS = Resource(
    "VolumeSnapshot", "volumesnapshots", "snapshot.storage.k8s.io", namespaced=True
)
CONTENTS = Resource("VolumeSnapshotContent", "volumesnapshotcontents", "snapshot.storage.k8s.io")
_OPTIONAL = (SNAPSHOTS, CONTENTS)


class Server(Reader, Protocol):
    """Also tells what it serves."""

    async def groups(self) -> frozenset[str]:
        """The groups of APIs that the cluster has."""
        ...

    async def plurals(self, api_version: str) -> frozenset[str]:
        """What a group has in one version; nothing where it has not that."""
        ...


@dataclass(frozen=True)
class Side:
    """A cluster, and who writes to it."""

    reader: Server
    writer: Applier


@dataclass(frozen=True)
class Sides:
    """Where controllers run, and where nodes are: one cluster, but for Gardener's."""

    controllers: Side
    nodes: Side
    split: Split | None = None

    def of(self, kind: str, namespace: str = "") -> Side:
        """The cluster in which objects of a kind are, or one in a namespace is."""
        with_controllers = part_in(kind, namespace, self.split) is Part.CONTROLLER
        return self.controllers if with_controllers else self.nodes


ShareTypes = Callable[[Object], Awaitable[tuple[str, ...]]]
"""Given the Secret of Manila's driver: the share types; none where there is no such service."""


@dataclass(frozen=True)
class Surroundings:
    """What is the same for all drivers."""

    cloud: Cloud | None
    nodes: int
    served: frozenset[str]
    infrastructure: Object | None


class Sight:
    """Looks. What changes rarely it looks at now and then."""

    def __init__(
        self, sides: Sides, values: Values, now: Callable[[], float], share_types: ShareTypes
    ) -> None:
        self._sides = sides
        self._values = values
        self.now = now
        self._share_types = share_types
        self._around: Surroundings | None = None
        self._looked = 0.0
        self._looking = asyncio.Lock()

    async def surroundings(self) -> Surroundings:
        """Where the cluster is; InputError if it should be known and is not."""
        async with self._looking:
            if self._around is None or self.now() >= self._looked + SURROUNDINGS:
                self._around = None
                self._around = await self._look_around()
                self._looked = self.now()
        return self._around

    async def platform_is_known(self) -> bool:
        """Whether it is known where the cluster is, if it should be."""
        try:
            await self.surroundings()
        except InputError:
            return False
        return True

    async def _look_around(self) -> Surroundings:
        served = await self._served()
        infrastructure = None
        if "Infrastructure" in served:
            infrastructure = await self.get("Infrastructure", CR_NAME)
        nodes = await self._first_nodes()
        ids = [it.spec.provider_id for it in nodes]
        cloud = cloud_of(infrastructure, ids)
        return Surroundings(cloud, len(nodes), served, infrastructure)

    async def _served(self) -> frozenset[str]:
        """Kinds of others. A group may be there in another version, or without one of its kinds."""
        found: set[str] = set()
        for part, side in (
            (Part.CONTROLLER, self._sides.controllers),
            (Part.NODE, self._sides.nodes),
        ):
            groups = await side.reader.groups()
            here = {it: KINDS[it] for it in OF_OTHERS if part_of(it) is part}
            versions = {it.api_version for it in here.values()}
            plurals = {
                it: await side.reader.plurals(it)
                for it in sorted(versions)
                if it.partition("/")[0] in groups
            }
            found |= {
                kind for kind, it in here.items() if it.plural in plurals.get(it.api_version, ())
            }
        return frozenset(found)

    async def _first_nodes(self) -> list[_Node]:
        """A page of them is enough to know the cloud, and that there is more than one."""
        async for page in self._sides.nodes.reader.list_pages(NODES):
            return msgspec.json.decode(page.body, type=_Nodes).items
        return []

    async def driver(self, driver: Driver, supposed: Object | None = None) -> Seen:
        """What there is of a driver, but for what is looked at only when it is asked for.

        ``supposed`` is a CR that it is to be seen with instead of its own.
        """
        around = await self.surroundings()
        cr = supposed or await self.cr(driver)
        storage = await self.get("Storage", CR_NAME) if "Storage" in around.served else None
        seen = Seen(
            driver,
            self.now(),
            cloud=around.cloud,
            cr=cr,
            nodes=around.nodes,
            served=around.served,
            infrastructure=around.infrastructure,
            subscriptions=await self._subscriptions(driver, around),
            storage=storage,
            split=self._sides.split,
            vendor=await self._vendor(driver, around),
        )
        if cr is None and not (driver.default and driver.cloud is around.cloud):
            return seen  # nobody asks for it, so there is nothing of it
        seen = replace(seen, classes=await self._list("StorageClass"))
        looked: frozenset[Key] = frozenset()
        # What is found may tell of more: an operand that was adopted has names of its own.
        while new := wanted_keys(seen, self._values) - looked:
            found = await self._objects(new, around.served)
            seen = replace(seen, objects={**seen.objects, **found})
            looked |= new
        return seen

    async def _vendor(self, driver: Driver, around: Surroundings) -> Object | None:
        if driver.own_operator:
            if "StorageCluster" not in around.served:
                return None
            return next(iter(await self._list("StorageCluster")), None)
        if "ClusterCSIDriver" not in around.served:
            return None
        return await self.get("ClusterCSIDriver", driver.name)

    async def _subscriptions(self, driver: Driver, around: Surroundings) -> list[Object]:
        if not driver.olm_package or "Subscription" not in around.served:
            return []
        return await self._list("Subscription")

    async def cr(self, driver: Driver) -> Object | None:
        """What is asked of a driver; nothing where nobody can ask, without its CRD."""
        return await _got(self._sides.nodes.reader, cr_resource(driver), CR_NAME, "")

    async def get(self, kind: str, name: str, namespace: str = "") -> Object | None:
        """One object, if it is there. Of a Secret, only who it is."""
        side = self._sides.of(kind, namespace)
        return await _got(side.reader, resource_of(kind), name, namespace)

    async def _objects(self, keys: Iterable[Key], served: frozenset[str]) -> Mapping[Key, Object]:
        places = asyncio.Semaphore(AT_ONCE)

        async def one(key: Key) -> tuple[Key, Object | None]:
            kind, namespace, name = key
            if kind in OF_OTHERS and kind not in served:
                return key, None
            async with places:
                return key, await self.get(kind, name, namespace)

        found = await asyncio.gather(*(one(it) for it in sorted(keys)))
        return {key: obj for key, obj in found if obj is not None}

    async def closer(self, seen: Seen, at: Iterable[Look]) -> Seen:
        """See also what was asked for."""
        for what in at:
            match what:
                case Look.USES:
                    seen = replace(seen, uses=await self._uses(seen))
                case Look.SHARE_TYPES:
                    seen = await self._with_share_types(seen)
                case Look.WORKLOADS:
                    kinds = (DEPLOYMENTS, STATEFUL_SETS, DAEMON_SETS)
                    lists = [await self._all(it) for it in kinds]
                    seen = replace(seen, workloads=[obj for those in lists for obj in those])
        return seen

    async def _uses(self, seen: Seen) -> Uses:
        return uses_of(
            seen.driver,
            World(
                volumes=await self._slim(PERSISTENT_VOLUMES),
                claims=await self._slim(PERSISTENT_VOLUME_CLAIMS),
                pods=await self._slim(PODS),
                classes=await self._list("StorageClass"),
                attachments=await self._slim(VOLUME_ATTACHMENTS),
                snapshots=[*await self._slim(CONTENTS), *await self._slim(SNAPSHOTS)],
                csi_nodes=await self._slim(CSI_NODES),
            ),
        )

    async def _slim(self, resource: Resource) -> list[Object]:
        """All of a kind, without what nobody asks about: there may be very many."""
        return [_slim(resource.kind, it) for it in await self._all(resource)]

    async def _with_share_types(self, seen: Seen) -> Seen:
        try:
            return replace(seen, share_types=await self._shares(seen))
        except ReplantError as error:
            # Whoever does not tell them is not needed for the rest of the driver.
            return replace(seen, share_trouble=str(error))

    async def _shares(self, seen: Seen) -> tuple[str, ...]:
        kind, namespace, name = seen.secret_key
        reader = self._sides.of(kind, namespace).reader
        body = await reader.get(resource_of(kind), name, namespace=namespace)
        return await self._share_types(msgspec.json.decode(body, type=dict))

    async def _list(self, kind: str) -> list[Object]:
        return await _listed(self._sides.of(kind).reader, resource_of(kind))

    async def _all(self, resource: Resource) -> list[Object]:
        return await _listed(self._sides.nodes.reader, resource)


def _slim(kind: str, obj: Object) -> Object:
    metadata, spec = obj["metadata"], obj.get("spec") or {}
    about = {it: metadata[it] for it in ("name", "namespace", "annotations") if it in metadata}
    if kind == "Pod":
        spec = {"volumes": spec.get("volumes") or ()}
    return {"kind": kind, "metadata": about, "spec": spec, "status": obj.get("status") or {}}


class _NodeSpec(msgspec.Struct):
    provider_id: str = msgspec.field(default="", name="providerID")


class _Node(msgspec.Struct):
    spec: _NodeSpec = msgspec.field(default_factory=_NodeSpec)


class _Nodes(msgspec.Struct):
    items: list[_Node] = []


class _Page(msgspec.Struct):
    items: list[Object] = []


class _SecretMeta(msgspec.Struct):
    apiVersion: str  # noqa: N815
    kind: str
    metadata: dict[str, object]
    data: dict[str, msgspec.Raw] = {}


async def _listed(reader: Reader, resource: Resource) -> list[Object]:
    # In a list, objects do not say themselves what they are.
    version = f"{resource.group}/{resource.version}" if resource.group else resource.version
    said = {"apiVersion": version, "kind": resource.kind}
    found: list[Object] = []
    try:
        async for page in reader.list_pages(resource):
            if page.first:
                found.clear()
            found += [{**said, **it} for it in msgspec.json.decode(page.body, type=_Page).items]
    except NotServed:
        if resource not in _OPTIONAL:
            raise
    return found


async def _got(reader: Reader, resource: Resource, name: str, namespace: str) -> Object | None:
    try:
        body = await reader.get(resource, name, namespace=namespace)
    except (Missing, NotServed):
        return None
    try:
        if resource.kind == "Secret":
            # What is in it is none of our business, and is not even decoded: keys have names.
            secret = msgspec.json.decode(body, type=_SecretMeta)
            keys = dict.fromkeys(secret.data, "")
            return {"kind": "Secret", "metadata": secret.metadata, "data": keys}
        return msgspec.json.decode(body, type=dict)
    except msgspec.DecodeError as error:
        called = name_of({"kind": resource.kind, "metadata": {"name": name}})
        raise InputError(f"cannot be read: {error}", source=called) from error


def cr_resource(driver: Driver) -> Resource:
    """Where the CRs of a driver are."""
    return Resource(driver.kind, driver.plural, GROUP, VERSIONS[0])


def resource_of(kind: str) -> Resource:
    """Where objects of a kind are."""
    api_version, plural, namespaced = KINDS[kind]
    group, _, version = api_version.rpartition("/")
    return Resource(kind, plural, group, version, namespaced=namespaced)
