"""A seed and a shoot, each a sandbox of its own, with every write to them written down."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import yaml
from starlette.applications import Starlette
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from replant.cluster.live import connect
from replant.cluster.writing import LiveWriter
from replant.gardener.providers import Provider
from replant.operator.gardener_seed import Migration
from replant.operator.shoot_access import visit
from replant.operator.telling import Teller
from replant.sandbox.api.app import Api
from replant.sandbox.server import VERSION, Sandbox, open_port, serving, write_kubeconfig
from tests.gardener.objects import LISTED, NAMESPACE, deployment

SCENARIO = Path(__file__).parents[2] / "src/replant/sandbox/scenarios/gardener-seed.yaml"
CLUSTER_PATH = "/apis/extensions.gardener.cloud/v1alpha1/clusters"
READS = ("GET", "HEAD")
PATIENCE = 60
"""Seconds that one look may take: who goes round in circles is to fail, not to hang."""


def definitions() -> Iterator[dict[str, Any]]:
    """The kinds of Gardener, as the scenario that ships has them."""
    for obj in yaml.safe_load(SCENARIO.read_text())["objects"]:
        if obj["kind"] == "CustomResourceDefinition":
            yield obj


@dataclass
class Audit:
    """What was asked of an API server, and what it was made to do about it."""

    writes: list[tuple[str, str, Any]] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    under_way: int = 0
    most: int = 0
    """So many requests, watches aside, were answered at once at the most."""
    delay: float = 0.0
    """So many seconds every answer takes, so that those asked for at once are seen to be."""
    fail: Callable[[int], str] = lambda _number: ""
    """Given a write's number: 'before' and 'after' have it answered with 500."""

    def clear(self) -> None:
        self.writes.clear()
        self.reads.clear()
        self.most = 0

    def changes(self) -> list[tuple[str, str, Any]]:
        """The writes without events."""
        return [it for it in self.writes if not it[1].endswith("/events")]


class _AuditedApi(Api):
    def __init__(self, sandbox: Sandbox, audit: Audit) -> None:
        super().__init__(sandbox.store, sandbox.registry, VERSION)
        self._audit = audit

    def app(self) -> Starlette:
        app = super().app()
        app.add_middleware(_Audited, audit=self._audit)
        return app


class _Audited:
    def __init__(self, app: ASGIApp, audit: Audit) -> None:
        self._app = app
        self._audit = audit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        audit = self._audit
        watching = b"watch=true" in scope.get("query_string", b"")
        if scope["method"] in READS:
            audit.reads.append(scope["path"])
        audit.under_way += not watching
        audit.most = max(audit.most, audit.under_way)
        try:
            await asyncio.sleep(audit.delay)
            if scope["method"] in READS:
                await self._app(scope, receive, send)
            else:
                await self._write(scope, receive, send)
        finally:
            audit.under_way -= not watching

    async def _write(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        said = json.loads(body) if body else None
        how = self._audit.fail(len(self._audit.writes))
        self._audit.writes.append((scope["method"], scope["path"], said))

        async def again() -> Message:
            return {"type": "http.request", "body": body}

        async def nowhere(_message: Message) -> None: ...

        if how != "before":
            await self._app(scope, again, nowhere if how else send)
        if how:
            await send({"type": "http.response.start", "status": 500, "headers": []})
            await send({"type": "http.response.body", "body": b"{}"})


@dataclass
class Served:
    """A sandbox that is up."""

    sandbox: Sandbox
    kubeconfig: Path
    address: str
    audit: Audit

    def get(self, kind: str, name: str, namespace: str = "", api: str = "v1") -> dict[str, Any]:
        resource = self.sandbox.registry.of_kind(api, kind)
        assert resource
        return self.sandbox.store.get(resource, name, namespace)

    def annotations(self, name: str = NAMESPACE) -> set[str]:
        api = "extensions.gardener.cloud/v1alpha1"
        found = self.get("Cluster", name, api=api)["metadata"].get("annotations") or {}
        return {it.rpartition("/")[2] for it in found}

    def classes(self) -> set[str]:
        resource = self.sandbox.registry.of_kind("storage.k8s.io/v1", "StorageClass")
        assert resource
        return {it["metadata"]["name"] for it in self.sandbox.store.list(resource)}

    def events(self) -> list[tuple[str, str, str]]:
        resource = self.sandbox.registry.of_kind("v1", "Event")
        assert resource
        return sorted(
            (it["involvedObject"]["name"], it["reason"], it["message"])
            for it in self.sandbox.store.list(resource)
        )


@contextlib.contextmanager
def served(folder: Path, name: str, objects: Iterable[dict[str, Any]]) -> Iterator[Served]:
    sandbox, audit = Sandbox(), Audit()
    sandbox.api = _AuditedApi(sandbox, audit)
    sandbox.load(objects)
    kubeconfig = folder / name
    with open_port(0) as listening:
        write_kubeconfig(kubeconfig, listening.getsockname()[1])
        with serving(sandbox, listening) as address:
            yield Served(sandbox, kubeconfig, address, audit)


def node(name: str, version: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"nodeInfo": {"kubeletVersion": version}},
    }


def storage_class(name: str, provisioner: str) -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
    }


def secret(kubeconfig: str, name: str = "gardener-internal", namespace: str = NAMESPACE) -> Any:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "data": {"kubeconfig": base64.b64encode(kubeconfig.encode()).decode()},
    }


def control_plane(namespace: str = NAMESPACE) -> list[dict[str, Any]]:
    """What there is in a seed of a shoot that is not new."""
    return [
        {
            "apiVersion": "extensions.gardener.cloud/v1alpha1",
            "kind": "ControlPlane",
            "metadata": {"name": "crazy", "namespace": namespace},
            "spec": {
                "type": "aws",
                "region": "eu-west-1",
                "secretRef": {"name": "cloudprovider", "namespace": namespace},
            },
        },
        *(
            deployment(it, namespace=namespace)
            for it in ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
        ),
    ]


def stored(cluster: dict[str, Any]) -> dict[str, Any]:
    """A Cluster as it is put into a store, which gives it its version."""
    metadata = {key: it for key, it in cluster["metadata"].items() if key != "resourceVersion"}
    return {**cluster, "metadata": metadata}


class Reached(Protocol):
    """A seed that can be come to."""

    @property
    def kubeconfig(self) -> Path: ...


def attend(
    seed: Reached,
    name: str = NAMESPACE,
    provider: Provider = LISTED,
    notes: list[str] | None = None,
) -> float | None:
    """One look at a Cluster by a process that has just begun."""
    said: list[str] = [] if notes is None else notes

    async def main() -> float | None:
        async with asyncio.timeout(PATIENCE), connect(str(seed.kubeconfig), tries=1) as reader:
            writer = LiveWriter(reader)
            migration = Migration(
                provider,
                reader,
                writer,
                partial(visit, reader),
                Teller(writer, said.append),
                said.append,
            )
            return await migration.attend(name)

    return asyncio.run(main())
