"""A shoot's control plane is seen in its seed; what Gardener is to do is said once."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from replant.cluster.live import connect
from replant.errors import Final
from replant.execute.actuators import Place, Wanted
from replant.execute.journal import State
from replant.execute.verification import Outcome
from replant.plan.model import Goal, NodeMethod
from replant.platforms.gardener import Gardener, Seat, component_of, controller_gates
from replant.platforms.sandbox import SandboxActuator
from tests.execute.living import ground, sandbox_of, small
from tests.gardener.objects import NAMESPACE, deployment
from tests.operators.seeds import Served, served

CONTROLLER = "kube-controller-manager"
GATES = "--feature-gates=CSIMigrationAWS=true,Other=false"
WELL = {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}


def running(*flags: str, replicas: int = 2, **status: Any) -> dict[str, Any]:
    found = deployment(CONTROLLER, *flags)
    found["spec"]["replicas"] = replicas
    return {**found, "status": WELL | status}


def seat_of(reader: Any) -> Seat:
    return Seat(reader, NAMESPACE, "garden-dev/crazy")


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (running(GATES), ""),
        (running(GATES, observedGeneration=0), "its change has not been seen yet"),
        (running(GATES, replicas=0), "it is scaled down: is the shoot hibernated?"),
        (running(GATES, updatedReplicas=1), "1 of 2 replicas have the change"),
        (running(GATES, replicas=2) | {"status": WELL | {"replicas": 3}},
         "2 of 2 replicas have the change"),
        (running(GATES, availableReplicas=1), "1 of 2 replicas are available"),
    ],
)  # fmt: skip
def test_a_component_is_seen_by_its_deployment(
    found: dict[str, Any], why: str, tmp_path: Path
) -> None:
    async def main(kubeconfig: Path) -> None:
        async with connect(str(kubeconfig)) as reader:
            seat = seat_of(reader)
            replica = await component_of(seat, CONTROLLER)
            assert replica
            assert (replica.ready, replica.why) == (not why, why)
            assert replica.gates == {"CSIMigrationAWS": True, "Other": False}
            assert await controller_gates(seat) == replica.gates
            assert await component_of(seat, "kube-scheduler") is None
            actuator = Gardener(reader, seat, print)
            assert await actuator.observe(Place(component=CONTROLLER)) == (replica,)
            assert await actuator.observe(Place(component="kube-scheduler")) == ()

    with served(tmp_path, "seed", [found]) as seed:
        asyncio.run(main(seed.kubeconfig))


def test_a_deployment_that_cannot_be_read_is_said() -> None:
    class Odd:
        async def get(self, *_given: object, **_more: object) -> bytes:
            return b'{"spec": 5}'

    with pytest.raises(Final, match=f"Deployment {NAMESPACE}/{CONTROLLER} cannot be read"):
        asyncio.run(component_of(seat_of(Odd()), CONTROLLER))


def test_what_is_to_be_done_is_said_once() -> None:
    told: list[str] = []
    actuator = Gardener(None, seat_of(None), told.append)  # type: ignore[arg-type]
    wanted = Wanted({"CSIMigrationAWS": True, "CSIMigration": None})

    async def main() -> None:
        for _each in range(2):
            await actuator.switch(Place(component=CONTROLLER), wanted)
            await actuator.switch(Place(node="n"), wanted)

    asyncio.run(main())
    plane, node = told
    assert plane == (
        "Shoot garden-dev/crazy: have its version, or the annotation of a minor of its own, make "
        f"the webhook change the Deployments in {NAMESPACE} of the seed. For every replica of "
        f"{CONTROLLER}, one after the other: give it --feature-gates=CSIMigrationAWS=true besides "
        "the gates that it has and take CSIMigration out of its --feature-gates, and have it "
        "started anew."
    )
    assert node == (
        "Shoot garden-dev/crazy: n is drained. Have Gardener replace its machine by one whose "
        "kubelet has CSIMigrationAWS on, CSIMigration not given."
    )


class Played(Gardener):
    """As soon as it is said what to do, it is done: Gardener's part is played."""

    seed: Served
    machines: SandboxActuator

    async def switch(self, place: Place, wanted: Wanted) -> None:
        await super().switch(place, wanted)
        await self.machines.switch(place, wanted)
        if not place.node:
            gates = ",".join(f"{gate}={str(on).lower()}" for gate, on in wanted.gates.items() if on)
            told = deployment(place.component, f"--feature-gates={gates}")
            path = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{place.component}"
            patch = {"spec": told["spec"] | {"replicas": 1}}
            async with httpx.AsyncClient(base_url=self.seed.address, trust_env=False) as client:
                for where, body in ((path, patch), (f"{path}/status", {"status": UP})):
                    answered = await client.patch(
                        where,
                        content=json.dumps(body),
                        headers={"Content-Type": "application/merge-patch+json"},
                    )
                    answered.raise_for_status()


UP = {"observedGeneration": 9, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}


def test_a_plan_for_a_shoot_is_carried_out(tmp_path: Path) -> None:
    off = "--feature-gates=CSIMigrationAWS=false"
    plane = {"gates": {"CSIMigrationAWS": False}, "flags": {"cloud-provider": "aws"}}
    components = [
        {**deployment(it, off), "status": UP}
        for it in ("kube-apiserver", CONTROLLER, "kube-scheduler")
    ]

    async def main(seed: Served, kubeconfig: Path) -> None:
        async with connect(str(seed.kubeconfig)) as of_seed, ground(kubeconfig) as it:
            actuator = Played(it.reader, seat_of(of_seed), it.shown.note)
            actuator.seed, actuator.machines = seed, SandboxActuator(it.reader.connection)
            it.actuator = actuator
            plan = await it.plan(
                Goal.ENABLE, wanted={"platform": "gardener"}, method=NodeMethod.REPLACE
            )
            result = await it.applying().begin(plan, {})
            assert result.state is State.DONE
            assert {it.outcome for it in result.checks} == {Outcome.PASSED}, result.checks
            assert sum("is drained. Have Gardener replace" in note for note in it.shown.notes) == 2

    with (
        served(tmp_path, "seed", components) as seed,
        sandbox_of(small(2, controlPlane=plane), tmp_path) as kubeconfig,
    ):
        asyncio.run(main(seed, kubeconfig))
        assert "CSIMigrationAWS=true" in json.dumps(
            seed.get("Deployment", CONTROLLER, NAMESPACE, api="apps/v1")
        )
