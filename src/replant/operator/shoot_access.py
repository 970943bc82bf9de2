"""The way from a seed to a shoot's API server, by the kubeconfig that the seed keeps for it.

Nothing of a kubeconfig is logged, told or kept: a complaint says what is wrong with it, in words
of ours. One that would have us run a command or read a file of ours is refused.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, Protocol, TypeVar

import msgspec
import yaml

from replant.cluster.live import LiveReader, connect
from replant.cluster.ports import NODES, SECRETS, STORAGE_CLASSES, Reader, Resource, Writer
from replant.cluster.writing import LiveWriter
from replant.errors import Final, InputError, Missing, Unreachable
from replant.gardener.decisions import ClassSeen
from replant.gardener.shoots import part

SECRET_NAMES = ("gardener-internal", "gardener")
"""The first leads there from within the seed; where it is missing the other will do."""
KEY = "kubeconfig"

TIMEOUT = 10.0
"""Seconds for one answer, and for connecting: a shoot that hangs is tried again later."""
PATIENCE = 30.0
"""Seconds for a list as a whole, however slowly it drips in."""
ROLE = "the user of the shoot's kubeconfig must"

_FORBIDDEN = {
    "exec": "names a command",
    "auth-provider": "names an auth-provider",
    "tokenFile": "names a file",
    "client-certificate": "names a file",
    "client-key": "names a file",
    "certificate-authority": "names a file",
}


class NoKubeconfig(Final):
    """There is no kubeconfig for a shoot."""


class BadKubeconfig(Final):
    """A shoot's kubeconfig cannot be used."""


class Shoot(Protocol):
    """A shoot's cluster, as far as its migration needs it."""

    async def kubelets(self) -> dict[str, str]:
        """The version of each node's kubelet."""
        ...

    async def classes(self) -> list[ClassSeen]:
        """Its StorageClasses."""
        ...

    async def delete_class(self, found: ClassSeen) -> None:
        """Delete this very class, as it was seen; Missing if it is gone."""
        ...


Visit = Callable[[str], AbstractAsyncContextManager[Shoot]]
"""Given the namespace of a shoot's control plane, leads to the shoot."""

_Record = TypeVar("_Record")


class _Data(msgspec.Struct):
    data: dict[str, str] | None = None


class _Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None


class _Info(msgspec.Struct, rename="camel"):
    kubelet_version: str = ""


class _Status(msgspec.Struct, rename="camel"):
    node_info: _Info = msgspec.field(default_factory=_Info)


class _Node(msgspec.Struct):
    metadata: _Meta
    status: _Status = msgspec.field(default_factory=_Status)


class _Class(msgspec.Struct):
    metadata: _Meta
    provisioner: str = ""


class _Page(msgspec.Struct):
    items: list[msgspec.Raw] | None = None


def usable(text: bytes) -> dict[str, Any]:
    """What a kubeconfig says; BadKubeconfig if it cannot be used, or must not be."""
    try:
        config = yaml.safe_load(text)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError):
        # Nothing of what was said: it would quote the line, and that may be a key.
        raise BadKubeconfig("is not YAML") from None
    if not isinstance(config, dict):
        raise BadKubeconfig("is not an object")
    for kind, field in (("users", "user"), ("clusters", "cluster"), ("contexts", "context")):
        entries = config.get(kind)
        if not isinstance(entries, list):
            raise BadKubeconfig(f"has no {kind}")
        for entry in entries:
            if not isinstance(part(entry, "name"), str):
                raise BadKubeconfig(f"has an entry without a name in {kind}")
            _must_be_harmless(part(entry, field), kind)
    if not _server(config):
        raise BadKubeconfig("does not name a server by its current context")
    return config


def _must_be_harmless(said: object, kind: str) -> None:
    for field, why in _FORBIDDEN.items():
        if part(said, field) is not None:
            raise BadKubeconfig(f"{why} in {kind}: {field}; only data of its own are used")


def _server(config: dict[str, Any]) -> str:
    """Where the current context leads: without it a client might take another cluster for it."""
    name = part(_entry(config["contexts"], config.get("current-context"), "context"), "cluster")
    server = part(_entry(config["clusters"], name, "cluster"), "server")
    return server if isinstance(server, str) else ""


def _entry(entries: list[Any], name: object, field: str) -> object:
    """What the entry of a name says; of two, a client takes the one that it likes."""
    named = [part(it, field) for it in entries if part(it, "name") == name]
    return named[-1] if named and name else None


async def kubeconfig_of(seed: Reader, namespace: str) -> dict[str, Any]:
    """The kubeconfig of the shoot whose control plane is in a namespace."""
    for name in SECRET_NAMES:
        try:
            body = await seed.get(SECRETS, name, namespace=namespace)
        except Missing:
            continue
        where = f"Secret {namespace}/{name}: {KEY}"
        try:
            encoded = (msgspec.json.decode(body, type=_Data).data or {}).get(KEY, "")
            text = base64.b64decode(encoded, validate=True)
        except (msgspec.DecodeError, binascii.Error, ValueError):
            raise BadKubeconfig(f"{where} is not base64") from None
        if not text.strip():
            raise BadKubeconfig(f"{where} is empty")
        try:
            return usable(text)
        except BadKubeconfig as error:
            raise BadKubeconfig(f"{where} {error}") from None
    names = " nor ".join(SECRET_NAMES)
    raise NoKubeconfig(f"there is neither a Secret {names} in {namespace}")


@asynccontextmanager
async def visit(seed: Reader, namespace: str) -> AsyncIterator[Shoot]:
    """A shoot's cluster; its connections close with the context."""
    config = await kubeconfig_of(seed, namespace)
    async with AsyncExitStack() as held:
        try:
            connecting = connect(config, timeout=TIMEOUT, tries=1, role=ROLE)
            reader = await held.enter_async_context(connecting)
        except InputError:
            raise BadKubeconfig(
                f"the kubeconfig of {namespace} cannot be used: its current context must name a "
                "cluster with a server and a user, with keys and certificates that fit together"
            ) from None
        yield _LiveShoot(reader, LiveWriter(reader))


class _LiveShoot:
    def __init__(self, reader: LiveReader, writer: Writer) -> None:
        self._reader = reader
        self._writer = writer

    async def kubelets(self) -> dict[str, str]:
        nodes = await self._all(NODES, _Node)
        return {it.metadata.name: it.status.node_info.kubelet_version for it in nodes}

    async def classes(self) -> list[ClassSeen]:
        return [
            ClassSeen(
                it.metadata.name,
                it.provisioner,
                it.metadata.uid,
                it.metadata.resource_version,
                leaving=it.metadata.deletion_timestamp is not None,
            )
            for it in await self._all(STORAGE_CLASSES, _Class)
        ]

    async def delete_class(self, found: ClassSeen) -> None:
        await self._writer.delete(STORAGE_CLASSES, found.name, uid=found.uid, version=found.version)

    async def _all(self, resource: Resource, record: type[_Record]) -> list[_Record]:
        found: list[_Record] = []
        decode = msgspec.json.Decoder(record).decode
        try:
            async with asyncio.timeout(PATIENCE):
                async for page in self._reader.list_pages(resource):
                    if page.first:
                        found.clear()
                    items = msgspec.json.decode(page.body, type=_Page).items or []
                    found += [decode(it) for it in items]
        except TimeoutError:
            raise Unreachable(
                f"{self._reader.connection.server}: the list of {resource.plural} did not end "
                f"within {PATIENCE:g} s"
            ) from None
        except msgspec.DecodeError as error:
            raise Final(
                f"{self._reader.connection.server}: the list of {resource.plural} cannot be "
                f"read: {error}"
            ) from error
        return found
