"""Carries ``replant scan`` out: reads files or a cluster, and hands the inventory to the checks."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from replant.cli.bulk import collector_off
from replant.cli.options import MAX_SIZE_MIB
from replant.cli.reporting import Report
from replant.cluster.files import FileReader
from replant.cluster.ports import FEATURE_GATES, SCANNED_WHERE_SERVED, Reader
from replant.errors import Forbidden, InputError
from replant.gates.versions import Version
from replant.inventory.build import Builder
from replant.inventory.findings import ScanResult
from replant.inventory.model import Inventory
from replant.inventory.scan import scan
from replant.inventory.selectors import Selector
from replant.manifests import sources

if TYPE_CHECKING:
    from replant.cluster.live import LiveReader

OPENSHIFT_APIS = "config.openshift.io"


class Scanning:
    """One run of the command."""

    def __init__(
        self,
        report: Report,
        *,
        paths: tuple[str, ...] = (),
        recursive: bool = False,
        kubeconfig: str | dict[str, Any] | None = None,
        context: str | None = None,
        namespace: str = "",
        selector: Selector | None = None,
        target_version: Version | None = None,
        server_version: Version | None = None,
        probe_nodes: bool = False,
        only: frozenset[str] = frozenset(),
        skip: frozenset[str] = frozenset(),
        max_size: int = MAX_SIZE_MIB,
        detect: bool = False,
    ) -> None:
        self._report = report
        self._paths = paths
        self._recursive = recursive
        self._kubeconfig = kubeconfig
        self._context = context
        self._namespace = namespace
        self._selector = selector
        self._target = target_version
        self._server = server_version
        self._probe_nodes = probe_nodes
        self._only = only
        self._skip = skip
        self._max_size = max_size
        self._collected = Inventory()
        self._detect = detect
        self.controller_gates: dict[str, bool] | None = None
        """What the platform says that kube-controller-manager is given, where its pods do not."""
        self.platform = ""
        """What the cluster is by its APIs, once it was read and if that was asked for."""

    def run(self) -> ScanResult:
        """Read, and judge what was read."""
        with collector_off():
            inventory = self._inventory(with_shoots=True)
            if self._target and inventory.server and self._target < inventory.server.first_patch:
                raise InputError(
                    f"is older than the server, {inventory.server}", source="--target-version"
                )
            return scan(
                inventory,
                target=self._target,
                only=self._only,
                skip=self._skip,
                complete=not self._report.failed,
            )

    def inventory(self) -> Inventory:
        """What the files or the cluster have, but for what only a scan judges."""
        return self._inventory(with_shoots=False)

    def _inventory(self, *, with_shoots: bool) -> Inventory:
        if self._paths:
            return self._from_files()
        asyncio.run(self._from_cluster(with_shoots=with_shoots))
        return self._collected

    def _from_files(self) -> Inventory:
        builder, report = Builder(), self._report
        with _progress() as progress:
            reader = FileReader(
                builder, problem=report.problem, note=report.note, progress=progress
            )
            for path in self._paths:
                for file in sources.find(path, recursive=self._recursive):
                    try:
                        if isinstance(file, InputError):
                            raise file
                        reader.read(sources.read(file, self._max_size))
                    except InputError as error:
                        report.problem(error)
        if not builder.seen_any():
            report.problem("no object was found in the input")
        return self._finish(builder, self._server, reader.unknown())

    async def _from_cluster(self, *, with_shoots: bool) -> None:
        from replant.cluster.collect import Collector
        from replant.cluster.live import connect

        builder = Builder()
        connecting = connect(self._kubeconfig, self._context, notice=self._report.note)
        async with connecting as reader:
            with _progress() as progress:
                collector = Collector(
                    reader, builder, complain=self._report.problem, progress=progress
                )
                server = self._server or await self._version(reader)
                groups = await self._groups(reader) if self._detect or with_shoots else frozenset()
                await collector.collect(namespace=self._namespace)
                if with_shoots:
                    there = [it for it in SCANNED_WHERE_SERVED if it.group in groups]
                    await collector.collect_what_is_served(there, namespace=self._namespace)
            if self._detect:
                self.platform = "openshift" if OPENSHIFT_APIS in groups else ""
            if self.platform:
                from replant.platforms.openshift import controller_gates

                self.controller_gates = await controller_gates(reader)
                await collector.collect_one(FEATURE_GATES, "cluster")
            inventory = self._finish(builder, server, collector.unknown)
            if self._namespace:
                inventory.control_plane = await collector.control_plane()
            if self._probe_nodes:
                inventory.node_gates = await collector.probe_nodes(sorted(inventory.nodes))
        # Not returned: at its end asyncio.run makes a text of its task, the result included.
        self._collected = inventory

    async def _groups(self, reader: LiveReader) -> frozenset[str]:
        try:
            return await reader.groups()
        except Forbidden as error:
            self._report.note(error)
            return frozenset()

    async def _version(self, reader: Reader) -> Version | None:
        try:
            return Version.parse(await reader.server_version())
        except Forbidden as error:
            self._report.note(error)
            return None

    def _finish(
        self, builder: Builder, server: Version | None, unknown: dict[str, str]
    ) -> Inventory:
        return builder.finish(
            server=server, unknown=unknown, namespace=self._namespace, selector=self._selector
        )


@contextmanager
def _progress() -> Iterator[Callable[[str, int], None]]:
    """A line for each kind or file while it is read, on a terminal; nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda _kind, _count: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TextColumn("{task.completed}"))
    console = Console(stderr=True)
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as bars:
        tasks = {}

        def progress(kind: str, count: int) -> None:
            if kind not in tasks:
                tasks[kind] = bars.add_task(f"reading {kind}", total=None)
            bars.update(tasks[kind], completed=count)

        yield progress
