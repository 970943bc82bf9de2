"""The sandbox on a port of this machine, with a kubeconfig that leads there."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import socket
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import getrandbits

import uvicorn
import yaml

from replant.errors import Refused
from replant.objects import Object, name_of
from replant.sandbox import shapes
from replant.sandbox.admission import Admission
from replant.sandbox.api.app import Api
from replant.sandbox.clock import Clock, LiveClock, Pace, RealClock, VirtualClock
from replant.sandbox.cluster import Cluster
from replant.sandbox.controls import Controls
from replant.sandbox.refusals import ApiError, bad_request
from replant.sandbox.resources import NAMESPACES, Registry, Resource
from replant.sandbox.scenario import Scenario
from replant.sandbox.soundness import Mistake
from replant.sandbox.stage import set_up
from replant.sandbox.store import WINDOW, Store
from replant.sandbox.upkeep import Upkeep

HOST = "127.0.0.1"
VERSION = "1.24.17"
"""Which Kubernetes a sandbox passes for: the last whose migration can be watched as a whole."""
WARM_UP = 60.0
"""So many seconds a scenario's cluster has lived when it is first seen: its pods run by then."""
_BACKLOG = 2048


class Sandbox:
    """An embedded cluster: its store, what it serves, its API, and whatever lives behind it."""

    def __init__(
        self, version: str = VERSION, window: int = WINDOW, clock: Clock | None = None
    ) -> None:
        self.clock = clock or RealClock()
        self.registry = Registry()
        self.store = Store(self.clock.now, _new_uid, window)
        Upkeep(self.store, self.registry, self.clock.now)
        self.api = Api(self.store, self.registry, version)
        Admission(self.store, lambda: self.api.version)
        self.cluster: Cluster | None = None
        """Without one, nothing but what clients do happens here."""

    @classmethod
    def of(cls, scenario: Scenario, by_hand: bool = False, speed: float = 1.0) -> Sandbox:
        """A sandbox with a cluster behind it that has been up for a while.

        Its time goes at a speed, or only when the clock is put forward by hand.
        """
        clock = VirtualClock() if by_hand else LiveClock(WARM_UP, speed)
        sandbox = cls(scenario.kubernetes_version, clock=clock)
        cluster = set_up(scenario, sandbox.store, sandbox.registry, clock)
        for number, obj in enumerate(scenario.objects):
            try:
                sandbox.load([dict(obj)])
            except Refused as error:
                raise Mistake(("objects", number), str(error)) from None
        cluster.run_for(WARM_UP)
        if isinstance(clock, LiveClock):
            clock.go_live()
        sandbox.cluster = cluster
        sandbox.api.controls = Controls(cluster)
        return sandbox

    def load(self, objects: Iterable[Object]) -> None:
        """Put objects in as if they had always been there, and the namespaces that they are in."""
        for obj in objects:
            resource = self.registry.of_kind(str(obj.get("apiVersion")), str(obj.get("kind")))
            if resource is None or not resource.stored:
                raise Refused(f"{name_of(obj)}: the sandbox does not serve {obj.get('apiVersion')}")
            try:
                self._put(resource, obj)
            except ApiError as error:
                raise Refused(f"{name_of(obj)}: {error.message}") from None

    def _put(self, resource: Resource, obj: Object) -> None:
        obj = obj if resource.custom else shapes.without_nulls(obj)
        if why := shapes.wrong(obj, resource.kind):
            raise bad_request(why)
        metadata = obj.get("metadata") or {}
        if resource is NAMESPACES and self.store.find(NAMESPACES, metadata.get("name", "")):
            for unknown_here in ("uid", "resourceVersion"):
                metadata.pop(unknown_here, None)
            self.store.update(NAMESPACES, obj)
            return
        namespace = metadata.get("namespace") or "default"
        if resource.namespaced and not self.store.find(NAMESPACES, namespace):
            self.store.create(NAMESPACES, {"metadata": {"name": namespace}})
        self.store.create(resource, obj, as_it_was=True)


def _new_uid() -> str:
    """A random UUID. Python's own asks the system each time, which 100,000 objects do feel."""
    digits = f"{getrandbits(128):032x}"
    variant = "89ab"[getrandbits(2)]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


class _Server(uvicorn.Server):
    """Keeps the cluster going, and sends those who watch home before it waits for everybody."""

    def __init__(self, config: uvicorn.Config, sandbox: Sandbox) -> None:
        super().__init__(config)
        self._sandbox = sandbox
        self._life: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        cluster = self._sandbox.cluster
        if cluster is not None:
            pace = Pace(self._sandbox.clock, cluster.settle)
            self._sandbox.store.subscribe(lambda _event: pace.wake())
            self._life = asyncio.create_task(pace.keep())
            self._life.add_done_callback(self._end)

    def _end(self, _life: asyncio.Task[None]) -> None:
        """A world that has come to its end is not served any longer."""
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._sandbox.api.bell.close()
        await super().shutdown(sockets)
        if self._life is not None:
            self._life.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._life


def open_port(port: int) -> socket.socket:
    """A socket that listens on a port, or on any if none is named; Refused if it is taken."""
    # Unless it is told the protocol, asyncio lets small answers wait for 40 ms.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
        # Whoever is told of it may come before it is served, and then waits.
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            raise Refused(
                f"Port {port} of {HOST} is in use: end what listens there, or name another with "
                "--port, or none to have a free one chosen."
            ) from None
        raise Refused(f"Port {port} of {HOST} cannot be opened: {error.strerror}.") from None
    return listening


def write_kubeconfig(path: Path, port: int) -> None:
    """Write a kubeconfig that leads to a port of this machine, whole or not at all."""
    named = "replant-sandbox"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": named,
        "contexts": [{"name": named, "context": {"cluster": named, "user": named}}],
        "clusters": [{"name": named, "cluster": {"server": f"http://{HOST}:{port}"}}],
        "users": [{"name": named, "user": {}}],
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w") as file:
                yaml.safe_dump(config, file, sort_keys=False)
            Path(draft).replace(path)
        except OSError:
            Path(draft).unlink()
            raise
    except OSError as error:
        raise Refused(
            f"The kubeconfig cannot be written to {path}: {error.strerror}. Name another file "
            "with --kubeconfig."
        ) from None


def _of_interest(record: logging.LogRecord) -> bool:
    """Not what uvicorn advises whenever a client asks for exec, which is not served here."""
    return not record.getMessage().startswith(
        ("Unsupported upgrade request", "No supported WebSocket library")
    )


def _server(sandbox: Sandbox) -> _Server:
    logging.getLogger("uvicorn.error").addFilter(_of_interest)
    config = uvicorn.Config(
        sandbox.api.app(),
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        backlog=_BACKLOG,
        timeout_graceful_shutdown=3,
    )
    return _Server(config, sandbox)


def serve(sandbox: Sandbox, listening: socket.socket) -> None:
    """Serve until interrupted."""
    with contextlib.suppress(KeyboardInterrupt):
        _server(sandbox).run(sockets=[listening])


@contextlib.contextmanager
def serving(sandbox: Sandbox, listening: socket.socket) -> Iterator[str]:
    """Serve beside the caller, in a thread to which the store then belongs; gives the address."""
    server = _server(sandbox)
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    try:
        while not server.started and thread.is_alive():
            time.sleep(0.01)
        yield f"http://{HOST}:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
