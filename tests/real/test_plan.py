"""A plan that Replant makes, carried out word by word on the real controller, and undone."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.real import stories
from tests.real.ground.cloud import Cloud
from tests.real.ground.controlplane import ControlPlane
from tests.real.ground.nodes import DRIVER
from tests.real.ground.processes import wait_for
from tests.real.stories import OFF, Stage, Story, look

REPLANT = Path(sys.executable).with_name("replant")
GATES = "CSIMigrationAWS=false"


@pytest.fixture
def stage(old: ControlPlane, cloud: Cloud, ground: Path) -> Iterator[Stage]:
    driver = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": DRIVER}}
    with stories.stage(old, cloud, ground / "plan") as stage:
        old.api.create({**driver, "spec": {"attachRequired": True, "podInfoOnMount": False}})
        yield stage
        old.api.delete("CSIDriver", DRIVER)


def replant(*arguments: str, stdin: str = "") -> tuple[int, str, str]:
    done = subprocess.run(
        [REPLANT, *arguments], input=stdin, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


def test_a_plan_can_be_carried_out_and_undone(stage: Stage) -> None:
    role = str(stage.plane.role_kubeconfig("scan"))
    live = ("--kubeconfig", role, "--control-plane-gates", GATES)
    stage.controller(OFF)
    nodes = {node.name: node for node in (stage.node(OFF), stage.node(OFF))}
    story = stage.story("a plan")
    story.start_owned(next(iter(nodes.values())))
    look("all off", story)

    code, plan, problems = replant("plan", "enable", "--plugin", "aws-ebs", *live, "-o", "json")
    assert code == 0, plan + problems
    assert json.loads(plan)["proof"]["safe"]
    assert replant("verify", "-", "--live", "--kubeconfig", role, stdin=plan)[0] == 0

    carry_out(json.loads(plan), stage, story)
    assert story.sides() == {"csi"}
    code, _, refusal = replant("verify", "-", "--live", "--kubeconfig", role, stdin=plan)
    assert (code, "another cluster, or this one has changed" in refusal) == (1, True)

    code, back, problems = replant(
        "plan", "undo", "-", "--done", "roll-nodes", "-o", "json", stdin=plan
    )
    assert code == 0, problems
    carry_out(json.loads(back), stage, story)
    assert story.sides() == {"in-tree"}
    assert replant("verify", "-", "--live", "--kubeconfig", role, stdin=plan)[0] == 0


def carry_out(plan: dict[str, Any], stage: Stage, story: Story) -> None:
    """Do what the steps say; the pod runs, its disk attached, behind each of them."""
    groups = {group["name"]: group["nodes"] for group in plan["groups"]}
    known = given(plan["controlPlane"]["gates"])
    for step in plan["steps"]:
        if step["kind"] == "SwitchControlPlane":
            gates = {it["name"]: it["gates"] for it in step["components"]}
            known = given(gates["kube-controller-manager"])
            stage.controller(known)
            look(step["id"], story)
            runs(story)
        else:
            assert step["kind"] == "RollNodes"
            assert step["drain"]
            for change in step["changes"]:
                for node in groups[change["group"]]:
                    roll(node, given(change["gates"]), stage, story)
                    look(f"{step['id']} {node}", story)
                    runs(story)
            if step["restartControllersSeconds"]:
                # On a busy machine the driver overtakes a detach, which is then waited for.
                stage.controller(known)


def roll(name: str, gates: dict[str, bool], stage: Stage, story: Story) -> None:
    others = [node for node in stage.nodes if node.name != name]
    if story.node.name == name:
        story.start_owned(others[0])
    wait_for(lambda: story.volume.attached_to == others[0].instance.id, f"{name} to be empty")
    stage.switch(next(node for node in stage.nodes if node.name == name), gates)


def given(gates: dict[str, bool | None]) -> dict[str, bool]:
    return {gate: on for gate, on in gates.items() if on is not None}


def runs(story: Story) -> None:
    seen = story.steps[-1]
    assert (seen["pod"], seen["disk"]) == ("Running", "attached"), seen
    assert "detachedBy" not in seen
