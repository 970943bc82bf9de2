"""Nodes that join with old gates while a run is under way (sandbox)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
import yaml

from replant.cluster.ports import NODES
from replant.errors import Halted
from replant.execute.acts import Cordon, Decision
from replant.execute.journal import State
from replant.execute.patience import Patience
from replant.execute.run import How
from replant.plan.model import Goal
from tests.cli.shell import replant
from tests.execute.converting import everything
from tests.execute.living import Ground, ground, sandbox_of, small
from tests.execute.nodes import AWS, OFF, Nodes, rolling
from tests.execute.test_mixed import tainted, yanked

ON = {"CSIMigrationAWS": True}
NEW = "workers-0-r1"


def joins(kubeconfig: Path, gates: dict[str, bool]) -> Callable[[], None]:
    """What has a node join that is like the first one but for its gates."""
    (named,) = yaml.safe_load(kubeconfig.read_text())["clusters"]
    path = f"{named['cluster']['server']}/sandbox/nodes/workers-0/copy"

    def join() -> None:
        httpx.post(path, json={"gates": gates}, trust_env=False).raise_for_status()

    return join


@pytest.mark.parametrize(
    "moment", ["1 of 4 nodes", "3 of 4 nodes"], ids=["in the middle", "near the end"]
)
def test_one_that_joins_while_nodes_are_switched_is_switched_too(
    moment: str, tmp_path: Path
) -> None:
    async def story() -> None:
        async with ground(kubeconfig) as it:
            await it.timing.sleep(120)
            it.shown.when(moment, once(joins(kubeconfig, OFF)))
            result = await it.applying().begin(await it.plan(Goal.ENABLE, AWS), {})
            assert result.state is State.DONE
            assert await it.gates(NEW) == ON
            assert any(NEW in note for note in it.shown.notes)
            assert await tainted(it) == []
            assert await cordoned(it) == []
            assert await yanked(it) == []

    with sandbox_of(small(), tmp_path) as kubeconfig:
        asyncio.run(story())


def test_one_that_joins_after_the_nodes_is_switched_before_the_run_is_done(tmp_path: Path) -> None:
    async def story() -> None:
        async with ground(kubeconfig) as it:
            await it.timing.sleep(120)
            plan = await it.plan(Goal.ENABLE, AWS)
            join = joins(kubeconfig, OFF)
            shown, done = it.shown, it.shown.step_done

            def step_done(step: object) -> None:
                done(step)  # type: ignore[arg-type]
                if (
                    shown.steps.count("roll-nodes done") == 1
                    and shown.steps[-1] == "roll-nodes done"
                ):
                    join()

            shown.step_done = step_done  # type: ignore[method-assign]
            result = await it.applying().begin(plan, {})
            assert result.state is State.DONE
            assert await it.gates(NEW) == ON
            assert shown.steps.count("roll-nodes done") == 2
            assert await yanked(it) == []

    with sandbox_of(small(), tmp_path) as kubeconfig:
        asyncio.run(story())


def test_an_undo_switches_one_that_has_joined_back(tmp_path: Path) -> None:
    async def story() -> None:
        async with ground(kubeconfig) as it:
            await it.timing.sleep(120)
            it.shown.when("1 of 4 nodes", once(joins(kubeconfig, OFF)))
            result = await it.applying().begin(await it.plan(Goal.ENABLE, AWS), {})
            assert (await it.applying().undo(result.run)).state is State.UNDONE
            assert await it.gates(NEW) == OFF
            assert await tainted(it) == []
            assert await cordoned(it) == []
            assert await yanked(it) == []

    with sandbox_of(small(), tmp_path) as kubeconfig:
        asyncio.run(story())


def test_where_no_step_switches_nodes_the_run_says_what_to_do(tmp_path: Path) -> None:
    async def story() -> None:
        async with ground(kubeconfig) as it:
            await it.timing.sleep(120)
            plan = await it.plan(Goal.COMPLETE, AWS)
            joins(kubeconfig, OFF)()
            await it.timing.sleep(60)
            how = How(patience=Patience(switch=60, pods=60))
            with pytest.raises(Halted, match=f"{NEW} to redirect {AWS} before .* is switched"):
                await it.applying(how=how).begin(plan, {})

    on = small()
    on["controlPlane"]["gates"] = on["pools"][0]["gates"] = ON
    with sandbox_of(on, tmp_path) as kubeconfig:
        asyncio.run(story())


def test_status_names_one_that_joins_after_the_run(tmp_path: Path) -> None:
    async def story() -> None:
        async with ground(kubeconfig) as it:
            await it.timing.sleep(120)
            result = await it.applying().begin(await it.plan(Goal.ENABLE, AWS), {})
            assert "Joined" not in await status()
            joins(kubeconfig, OFF)()
            await it.timing.sleep(60)
            said = await status()
            assert f"Joined with other gates since run {result.run}: {NEW}\n" in said
            assert f"  {NEW} does not redirect {AWS}, as other nodes do\n" in said
            assert f"  1. kubectl cordon {NEW}\n" in said
            (found,) = json.loads(await status("-o", "json"))["joined"]
            assert found == {"node": NEW, "run": result.run, "missing": [AWS], "surplus": []}

    async def status(*more: str) -> str:
        code, out, err = await asyncio.to_thread(
            replant, "status", "--kubeconfig", str(kubeconfig), *more
        )
        assert (code, err) == (0, "")
        return out

    with sandbox_of(small(), tmp_path) as kubeconfig:
        asyncio.run(story())


def once(call: Callable[[], None]) -> Callable[[], None]:
    left = [call]
    return lambda: left.pop()() if left else None


async def cordoned(it: Ground) -> list[str]:
    nodes = await everything(it, NODES)
    return [node["metadata"]["name"] for node in nodes if node["spec"].get("unschedulable")]


# Look by look


def switched() -> Nodes:
    """All nodes of the plan are switched."""
    nodes = Nodes("n1", "n2", "n3")
    for name in ("n1", "n2", "n3"):
        nodes.csi_node(name, lists=AWS)
    return nodes


def joined(nodes: Nodes, version: str = "v1.24.17", **more: object) -> Decision:
    """What is decided once a node has joined."""
    stage = rolling()
    assert stage.decide(nodes.world, 0).waits == []
    nodes.node("n4", nodeInfo={"kubeletVersion": version}, **more)  # type: ignore[arg-type]
    nodes.csi_node("n4")
    return stage.decide(nodes.world, 1)


def test_one_of_the_same_version_is_cordoned() -> None:
    (act,) = joined(switched()).acts
    assert isinstance(act, Cordon)
    assert act.node == "n4"


@pytest.mark.parametrize("version", ["v1.23.17", "strange"])
def test_one_of_another_version_is_waited_for(version: str) -> None:
    found = joined(switched(), version)
    assert found.acts == []
    assert not found.done
    (wait,) = found.waits
    assert wait.what.startswith("n4 to be like the other nodes: it has joined with other gates")


def test_one_that_is_not_ready_is_let_be() -> None:
    nodes, stage = switched(), rolling()
    stage.decide(nodes.world, 0)
    nodes.node("n4", conditions=[{"type": "Ready", "status": "False"}])
    assert stage.decide(nodes.world, 1).waits == []


def test_one_that_has_the_new_gates_is_let_be() -> None:
    nodes, stage = switched(), rolling()
    stage.decide(nodes.world, 0)
    nodes.csi_node("n4", lists=AWS)
    nodes.node("n4", nodeInfo={"kubeletVersion": "v1.24.17"})
    found = stage.decide(nodes.world, 1)
    assert (found.acts, found.waits) == ([], [])


def test_one_that_a_killed_process_has_switched_takes_pods_again() -> None:
    nodes, stage = switched(), rolling()
    nodes.csi_node("n4", lists=AWS)
    nodes.node("n4", cordoned=True, run="run", nodeInfo={"kubeletVersion": "v1.24.17"})
    found = stage.decide(nodes.world, 0)
    assert [it.what for it in found.waits] == [
        "the controllers to hear of its CSINode (n4)",
    ]
