"""A live cluster to the records of an inventory: each list once, page by page, joined in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from replant.cluster.ports import PODS, SCANNED, Reader, Resource
from replant.errors import Final, Forbidden, Missing, NotServed, ReplantError
from replant.inventory.build import Builder
from replant.inventory.checks.reading import NOT_SERVED
from replant.inventory.controlplane import ControlPlanePod
from replant.inventory.records import TYPES

Complain = Callable[[object], None]
Progress = Callable[[str, int], None]
"""Told the kind and how many of it have been read."""

CONTROL_PLANE = "kube-system"

CONCURRENT_LISTS = 4
"""Enough to keep the line busy; few enough not to be felt by the API server."""

PROBED_NODES = 100
"""So many kubelets are asked for their configuration at the most."""

_Record = TypeVar("_Record")


class _Page(msgspec.Struct, Generic[_Record], gc=False):
    items: list[_Record] | None = None


class _RawPage(msgspec.Struct, gc=False):
    items: list[msgspec.Raw] | None = None


_PAGES = {kind: msgspec.json.Decoder(_Page[record]) for kind, record in TYPES.items()}  # type: ignore[valid-type]
_ITEMS = {kind: msgspec.json.Decoder(record) for kind, record in TYPES.items()}


class _Named(msgspec.Struct, gc=False):
    name: str = ""


class _Object(msgspec.Struct, gc=False):
    metadata: _Named = msgspec.field(default_factory=_Named)


_NAMED = msgspec.json.Decoder(_Object)
_UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_RAW_PAGE = msgspec.json.Decoder(_RawPage)


class Collector:
    """Reads all that a scan needs; what it may not read becomes unknown."""

    def __init__(
        self, reader: Reader, builder: Builder, *, complain: Complain, progress: Progress
    ) -> None:
        self._reader = reader
        self._builder = builder
        self._complain = complain
        self._progress = progress
        self.unknown: dict[str, str] = {}

    async def collect(
        self, *, namespace: str = "", resources: Sequence[Resource] = SCANNED
    ) -> None:
        """Read every list; the first that cannot be read for want of an answer ends it all."""
        places = asyncio.Semaphore(CONCURRENT_LISTS)

        async def one(resource: Resource) -> None:
            async with places:
                await self._list(resource, namespace if resource.namespaced else "")

        try:
            async with asyncio.TaskGroup() as group:
                for resource in resources:
                    group.create_task(one(resource))
        except BaseExceptionGroup as errors:
            # Not except*: until Python 3.11.4 that wraps again whatever is raised in it.
            ours = errors.subgroup(ReplantError)
            if ours is None:
                raise
            raise _first(ours) from None

    async def collect_one(self, resource: Resource, name: str) -> None:
        """Read one object, if it is there."""
        kind = resource.kind
        try:
            record = self._record(kind, msgspec.Raw(await self._reader.get(resource, name)))
        except Forbidden as error:
            self.unknown[kind] = str(error)
        except (Missing, NotServed):
            pass
        else:
            count = self._builder.counts(kind)
            used = record is not None and self._add(kind, record)
            count.seen, count.used, count.passed_over = 1, int(used), int(not used)

    async def collect_what_is_served(
        self, resources: Sequence[Resource], *, namespace: str = ""
    ) -> None:
        """Read lists that a cluster need not have; of those that it has not nothing is said."""
        await self.collect(namespace=namespace, resources=resources)
        for resource in resources:
            if NOT_SERVED in self.unknown.get(resource.kind, ""):
                del self.unknown[resource.kind]

    async def control_plane(self) -> list[ControlPlanePod]:
        """The control plane's components, whichever namespace is scanned."""
        builder = Builder()
        beside = Collector(self._reader, builder, complain=self._complain, progress=_nothing)
        await beside.collect(namespace=CONTROL_PLANE, resources=(PODS,))
        return builder.finish(server=None, unknown={}).control_plane

    async def probe_nodes(self, nodes: Sequence[str]) -> dict[str, dict[str, bool]]:
        """The gates of the kubelets of these nodes, as far as they answer."""
        found: dict[str, dict[str, bool]] = {}
        for node in nodes[:PROBED_NODES]:
            try:
                found[node] = kubelet_gates(await self._reader.node_config(node))
            except (ReplantError, ValueError) as error:
                self._complain(f"the kubelet of {node} was not asked: {error}")
                if isinstance(error, Forbidden):
                    break
        if len(nodes) > PROBED_NODES:
            self._complain(f"only {PROBED_NODES} of {len(nodes)} kubelets were asked")
        return found

    async def _list(self, resource: Resource, namespace: str) -> None:
        kind = resource.kind
        try:
            async for page in self._reader.list_pages(resource, namespace=namespace):
                if page.first:
                    self._builder.forget(kind)
                self._take(kind, page.body)
        except (Forbidden, NotServed) as error:
            self._builder.forget(kind)
            self.unknown[kind] = str(error)

    def _take(self, kind: str, body: bytes) -> None:
        count = self._builder.counts(kind)
        for record in self._records(kind, body):
            used = record is not None and self._add(kind, record)
            count.seen += 1
            count.used += used
            count.passed_over += not used
        self._progress(kind, count.seen)

    def _add(self, kind: str, record: Any) -> bool:
        try:
            return self._builder.add(kind, record)
        except _UNDECODABLE as error:
            self._complain(f"{kind} {record.metadata.name} is passed over: {error}")
            return False

    def _records(self, kind: str, body: bytes) -> Sequence[Any]:
        try:
            return _PAGES[kind].decode(body).items or ()
        except _UNDECODABLE:
            # One object of the page is odd: find it, and take the others.
            return [self._record(kind, raw) for raw in _raw_items(kind, body)]

    def _record(self, kind: str, raw: msgspec.Raw) -> Any:
        try:
            return _ITEMS[kind].decode(raw)
        except _UNDECODABLE as error:
            self._complain(f"{kind} {_name(raw)} is passed over: {error}")
            return None


def _raw_items(kind: str, body: bytes) -> Sequence[msgspec.Raw]:
    try:
        return _RAW_PAGE.decode(body).items or ()
    except _UNDECODABLE as error:
        raise Final(f"a page of the list of {kind} cannot be read: {error}") from error


def _name(raw: msgspec.Raw) -> str:
    """What an odd object calls itself, as far as it can be told."""
    try:
        return _NAMED.decode(raw).metadata.name
    except _UNDECODABLE:
        return "(unnamed)"


class _KubeletConfig(msgspec.Struct, gc=False):
    featureGates: dict[str, bool] | None = None  # noqa: N815


class _Configz(msgspec.Struct, gc=False):
    kubeletconfig: _KubeletConfig = msgspec.field(default_factory=_KubeletConfig)


def kubelet_gates(configz: bytes) -> dict[str, bool]:
    """The gates that a kubelet's configuration names; ValueError where it is none."""
    try:
        return msgspec.json.decode(configz, type=_Configz).kubeletconfig.featureGates or {}
    except msgspec.DecodeError as error:
        raise ValueError(f"its configuration cannot be read: {error}") from error


def _first(errors: BaseExceptionGroup[Any]) -> BaseException:
    inner: BaseException = errors
    while isinstance(inner, BaseExceptionGroup):
        inner = inner.exceptions[0]
    return inner


def _nothing(kind: str, count: int) -> None:
    """No progress is shown."""
