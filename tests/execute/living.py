"""A sandbox that runs a migration on a clock of its own, and Replant's engine on it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import msgspec
import yaml

from replant.cluster.answers import Request
from replant.cluster.collect import Collector
from replant.cluster.live import LiveReader, connect
from replant.cluster.ports import Writer
from replant.cluster.writing import LiveWriter
from replant.execute.acts import Progress, Wait
from replant.execute.actuators import Actuator, Place
from replant.execute.journal import Journals
from replant.execute.journal.configmaps import ConfigMapJournals
from replant.execute.run import Applying, How
from replant.execute.timing import Timing
from replant.gates.versions import Version
from replant.inventory.build import Builder
from replant.plan.compose import Choices
from replant.plan.convert import Asked, make_conversion
from replant.plan.make import Wanted, make_plan
from replant.plan.model import Goal, Plan, Step
from replant.platforms.sandbox import SandboxActuator, timing_of
from replant.sandbox.scenario import Scenario
from replant.sandbox.server import Sandbox, open_port, serving, write_kubeconfig


@contextlib.contextmanager
def sandbox_of(scenario: dict[str, Any], folder: Path) -> Iterator[Path]:
    """A sandbox whose clock is run by hand, served beside the test; its kubeconfig."""
    sandbox = Sandbox.of(msgspec.convert(scenario, Scenario), by_hand=True)
    kubeconfig = folder / "kubeconfig"
    with open_port(0) as listening:
        write_kubeconfig(kubeconfig, listening.getsockname()[1])
        with serving(sandbox, listening):
            yield kubeconfig


@contextlib.contextmanager
def shoot_of(scenario: dict[str, Any], folder: Path) -> Iterator[Path]:
    """The same with a control plane that runs elsewhere: none of its pods is known as such."""
    with sandbox_of(scenario, folder) as kubeconfig:
        [named] = yaml.safe_load(kubeconfig.read_text())["clusters"]
        with httpx.Client(base_url=named["cluster"]["server"], trust_env=False) as client:
            pods = "/api/v1/namespaces/kube-system/pods"
            for pod in client.get(pods, params={"labelSelector": "component"}).json()["items"]:
                client.patch(
                    f"{pods}/{pod['metadata']['name']}",
                    content=b'{"metadata": {"labels": null}}',
                    headers={"Content-Type": "application/merge-patch+json"},
                ).raise_for_status()
        yield kubeconfig


@dataclass
class Shown:
    """What a person would have been shown."""

    notes: list[str] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    waits: list[str] = field(default_factory=list)
    calls: dict[str, Callable[[], None]] = field(default_factory=dict)
    waited: dict[str, Callable[[], None]] = field(default_factory=dict)

    def when(self, text: str, call: Callable[[], None]) -> None:
        """Have something called as soon as so much progress is shown."""
        self.calls[text] = call

    def when_waiting(self, text: str, call: Callable[[], None]) -> None:
        """Have something called the first time that something with this in it is waited for."""
        self.waited[text] = call

    def step(self, step: Step, number: int, total: int) -> None:  # noqa: ARG002
        self.steps.append(step.id)

    def progress(self, progress: Progress, waits: Sequence[tuple[Wait, float]]) -> None:
        if call := self.calls.get(f"{progress.done} of {progress.total} {progress.what}"):
            call()
        for wait, _seconds in waits:
            if wait.what not in self.waits:
                self.waits.append(wait.what)
                for text in [it for it in self.waited if it in wait.what]:
                    self.waited.pop(text)()

    def step_done(self, step: Step) -> None:
        self.steps.append(f"{step.id} done")

    def note(self, text: str) -> None:
        self.notes.append(text)


@dataclass
class Ground:
    """One cluster, and what it takes to act on it."""

    reader: LiveReader
    writer: Writer
    actuator: Actuator
    timing: Timing
    shown: Shown = field(default_factory=Shown)

    def journals(self) -> Journals:
        return ConfigMapJournals(self.reader, self.writer, self.timing, self.shown.note)

    def applying(self, journals: Journals | None = None, how: How | None = None) -> Applying:
        return Applying(
            reader=self.reader,
            writer=self.writer,
            actuator=self.actuator,
            journals=journals or self.journals(),
            timing=self.timing,
            display=self.shown,
            how=how or How(),
        )

    async def plan(
        self, goal: Goal, *plugins: str, wanted: dict[str, Any] | None = None, **choices: Any
    ) -> Plan:
        builder = Builder()
        await Collector(
            self.reader, builder, complain=_fail, progress=lambda _kind, _count: None
        ).collect()
        server = Version.parse(await self.reader.server_version())
        inventory = builder.finish(server=server, unknown={}, namespace="", selector=None)
        if goal is Goal.CONVERT:
            return make_conversion(Asked(plugins=plugins, **choices), inventory)
        asked = Wanted(goal, plugins, choices=Choices(**choices), **(wanted or {}))
        return make_plan(asked, inventory)

    async def gates(self, node: str) -> dict[str, bool]:
        """The gates that a kubelet runs with."""
        replicas = await self.actuator.observe(Place(node=node))
        assert replicas is not None
        return dict(replicas[0].gates)

    async def ask(self, path: str) -> Any:
        """What the sandbox itself says, such as /sandbox/disks."""
        answer = await self.reader.connection.ask(Request("GET", path))
        return msgspec.json.decode(answer.body)


def _fail(problem: object) -> None:
    raise AssertionError(problem)


@contextlib.asynccontextmanager
async def ground(
    kubeconfig: Path, wrap: Callable[[Writer], Writer] = lambda it: it
) -> AsyncIterator[Ground]:
    async with connect(str(kubeconfig)) as reader:
        timing = await timing_of(reader.connection)
        actuator = SandboxActuator(reader.connection)
        yield Ground(reader, wrap(LiveWriter(reader)), actuator, timing)


def small(nodes: int = 4, **more: Any) -> dict[str, Any]:
    """A scenario of a few nodes with databases on them."""
    off = {"CSIMigrationAWS": False}
    return {
        "apiVersion": "replant.dev/v1alpha1",
        "kind": "Scenario",
        "kubernetesVersion": "1.24.17",
        "controlPlane": {"replicas": 2, "gates": off, "flags": {"cloud-provider": "aws"}},
        "drivers": ["ebs.csi.aws.com"],
        "pools": [
            {
                "name": "workers",
                "count": nodes,
                "zones": ["us-east-1a"],
                "gates": off,
                "drivers": ["ebs.csi.aws.com"],
            }
        ],
        "classes": [{"name": "gp2", "plugin": "aws-ebs", "default": True}],
        "workloads": [
            {"name": "db", "replicas": 3, "storageClass": "gp2", "maxUnavailable": 1},
            {"name": "queue", "replicas": 2, "storageClass": "gp2"},
        ],
        **more,
    }
