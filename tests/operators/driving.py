"""A sandbox whose clock is put forward by hand, and the operator of drivers living in it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, TypeVar

import msgspec

from replant.cli.operator import read_values
from replant.cluster.answers import Answer, Request
from replant.cluster.writing import LiveWriter
from replant.drivers.catalog import CR_NAME, DRIVERS
from replant.drivers.crds import crds
from replant.drivers.kinds import GROUP, KINDS, VERSIONS
from replant.drivers.operand import Split
from replant.drivers.sameness import MANAGER
from replant.execute.namespace import NAMESPACE
from replant.objects import Object
from replant.operator.driver_sight import Side, Sides, Sight
from replant.operator.driver_status import CONDITIONS, NAME, OPERATOR, ClusterStatus
from replant.operator.drivers import Drivers
from replant.sandbox.resources import Resource
from replant.sandbox.scenario import Scenario
from replant.sandbox.server import Sandbox
from replant.sandbox.shelves import Event
from tests.faults.injecting import AtWrite, Do, Process, undisturbed

T = TypeVar("T")
EBS, MANILA, CINDER, VSPHERE = (
    "ebs.csi.aws.com",
    "manila.csi.openstack.org",
    "cinder.csi.openstack.org",
    "csi.vsphere.vmware.com",
)
STEP = 5.0


def scenario(**more: Any) -> Scenario:
    said = {
        "apiVersion": "replant.dev/v1alpha1",
        "kind": "Scenario",
        "pools": [{"name": "worker", "count": 3, "zones": ["a", "b", "c"]}],
        "classes": [{"name": "gp2", "plugin": "aws-ebs", "default": True}],
        **more,
    }
    return msgspec.convert(said, Scenario)


def openshift(platform: str = "AWS", **more: Any) -> Scenario:
    pools = [
        {"name": "master", "count": 2, "zones": ["a", "b"]},
        {"name": "worker", "count": 2, "zones": ["a", "b"]},
    ]
    return scenario(openshift={"platform": platform}, **{"pools": pools, **more})


def cloud(name: str = "aws", **more: Any) -> Scenario:
    return scenario(cloud=name, **more)


@dataclass
class Written:
    """A write that was asked for."""

    method: str
    path: str
    body: Any

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


async def no_shares(_secret: Object) -> tuple[str, ...]:
    return ()


class World:
    """A sandbox, and what is asked of it."""

    def __init__(self, told: Scenario, objects: tuple[Object, ...] = ()) -> None:
        self.sandbox = Sandbox.of(told, by_hand=True)
        place = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        self.sandbox.load([place, *crds(), *objects])
        assert self.sandbox.cluster
        self.cluster = self.sandbox.cluster
        self.cluster.settle()
        self.writes: list[Written] = []
        self.asked: set[tuple[str, str]] = set()
        self.changed = False
        self.sandbox.store.subscribe(self._on_event)

    def _on_event(self, _event: Event) -> None:
        self.changed = True

    def now(self) -> float:
        return self.sandbox.clock.now().timestamp()

    # What is there

    def _resource(self, kind: str) -> Resource:
        kinds = {it.kind: f"{GROUP}/{VERSIONS[0]}" for it in DRIVERS.values()}
        kinds |= {name: it.api_version for name, it in KINDS.items()}
        kinds |= {it.kind: it.api_version for it in reversed([*self.sandbox.registry])
                  if not it.custom}  # fmt: skip
        found = self.sandbox.registry.of_kind(kinds[kind], kind)
        assert found, kind
        return found

    def get(self, kind: str, name: str = CR_NAME, namespace: str = "") -> Any:
        found = self.sandbox.store.find(self._resource(kind), name, namespace)
        return found.value() if found else None

    def all(self, kind: str) -> list[Any]:
        return self.sandbox.store.list(self._resource(kind))

    def names(self, kind: str) -> set[str]:
        return {it["metadata"]["name"] for it in self.all(kind)}

    def create(self, obj: Object) -> None:
        self.sandbox.load([obj])
        self.cluster.settle()

    def change(self, kind: str, change: Callable[[Object], None], name: str = CR_NAME,
               namespace: str = "", part: str = "") -> None:  # fmt: skip
        found = self.get(kind, name, namespace)
        change(found)
        self.sandbox.store.update(self._resource(kind), found, part)
        self.cluster.settle()

    def delete(self, kind: str, name: str = CR_NAME, namespace: str = "") -> None:
        self.sandbox.store.delete(self._resource(kind), name, namespace)
        self.cluster.settle()

    def conditions(self, kind: str) -> dict[str, tuple[str, str, str]]:
        """What a CR says: status, reason and message, by type."""
        return _by_type((self.get(kind).get("status") or {}).get("conditions") or ())

    def clusterwide(self) -> dict[str, tuple[str, str, str]]:
        if self.sandbox.registry.of_kind("config.openshift.io/v1", "ClusterOperator"):
            return _by_type(self.get("ClusterOperator", OPERATOR)["status"]["conditions"])
        data = self.get("ConfigMap", NAME, NAMESPACE)["data"]
        return _by_type(msgspec.json.decode(data[CONDITIONS]))

    def registered(self, driver: str) -> set[str]:
        """The nodes whose kubelets know a driver."""
        return {
            it["metadata"]["name"]
            for it in self.all("CSINode")
            if driver in [known["name"] for known in it["spec"].get("drivers") or ()]
        }


def _by_type(conditions: Any) -> dict[str, tuple[str, str, str]]:
    return {it["type"]: (it["status"], it["reason"], it["message"]) for it in conditions}


class _Heard(Process):
    """Whose requests are written down, with what each has to be allowed."""

    heard: set[tuple[str, str]]

    async def ask(self, request: Request) -> Answer:
        answer = await super().ask(request)
        self.heard.add((request.method, request.path))
        if answer.status == HTTPStatus.CREATED:
            # An object that is applied and is not there is created, too.
            self.heard.add(("POST", request.path))
        return answer


@dataclass
class Operator:
    """A process of the operator, which may be killed."""

    world: World
    nodes: World | None = None
    split: Split | None = None
    at_write: AtWrite = undisturbed
    shares: Any = no_shares
    keys: tuple[str, ...] = tuple(DRIVERS)
    step: float = STEP
    """Seconds for which the clock is put forward at a time."""
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        home = self._side(self.world)
        away = self._side(self.nodes) if self.nodes else home
        sides = Sides(home, away, self.split)
        values = read_values(None)
        self.sight = Sight(sides, values, self.world.now, self.shares)
        self.drivers = Drivers(sides, self.sight, values, self.notes.append)
        self.status = ClusterStatus(sides, self.sight, self.world.now)

    def _side(self, world: World) -> Side:
        async def note(process: Process, request: Request, do: Do) -> Answer:
            body = msgspec.json.decode(request.body) if request.body else None
            world.writes.append(Written(request.method, request.path, body))
            return await self.at_write(process, request, do)

        process = _Heard(world.sandbox, lambda: None, note)
        process.heard = world.asked
        return Side(process.ground.reader, LiveWriter(process.ground.reader, MANAGER))

    async def once(self) -> float:
        """Attend to everything once; the seconds after which to look again."""
        waits = [await self.drivers.attend(it) for it in self.keys]
        waits.append(await self.status.tell())
        return min(it for it in waits if it)

    async def live(self, seconds: float) -> None:
        """Let so much time pass, looking whenever it is time or something has changed."""
        worlds = [it for it in (self.world, self.nodes) if it]
        end = self.world.now() + seconds
        while True:
            for it in worlds:
                it.changed = False
            again = await self.once()
            due = min(self.world.now() + again, end)
            while (left := due - self.world.now()) > 0:
                for it in worlds:
                    it.cluster.run_for(min(self.step, left))
                if any(it.changed for it in worlds):
                    break
            if self.world.now() >= end:
                return


def run(main: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(main)
