"""What becomes of disks in right and wrong orders of the switch, seen on the real controller."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real import records, stories
from tests.real.ground.cloud import Cloud
from tests.real.ground.controlplane import ControlPlane
from tests.real.stories import OFF, ON, Stage, look

UNREGISTERED = {**ON, "InTreePluginAWSUnregister": True}


@pytest.fixture
def stage(old: ControlPlane, cloud: Cloud, ground: Path) -> Iterator[Stage]:
    recorded = records.expected(f"orders/{old.version}").get("orders", [])
    steps = {it["order"]: it["steps"] for it in recorded}
    with stories.stage(old, cloud, ground / "orders", steps) as stage:
        yield stage


def test_orders(stage: Stage) -> None:
    # Each leaves the controller as the next one wants to find it.
    stage.controller(OFF)
    right_order_there_and_back(stage)
    without_a_drain(stage)
    stage.controller(OFF)
    nodes_on_first(stage)
    controller_off_first(stage)
    unregistered_first(stage)
    all_on(stage)
    orders = [{"order": story.order, "steps": story.steps} for story in stage.stories]
    version = stage.plane.version
    records.check(f"orders/{version}", {"kubernetesVersion": version, "orders": orders})


def right_order_there_and_back(stage: Stage) -> None:
    one, other = stage.node(OFF), stage.node(OFF)
    story = stage.story("right order: controller on, nodes drained and on, and all the way back")
    story.start(one)
    look("all off", story)
    stage.controller(ON)
    look("controller on", story)
    story.start(other)
    look("pod moved; its node is off", story)
    stage.switch(one, ON)
    story.start(one)
    look("drained node on, pod moved there", story)
    stage.switch(other, ON)
    stage.controller(UNREGISTERED)
    look("all nodes on, plugin unregistered in the controller", story)
    story.start(other)
    look("pod moved", story)
    stage.controller(ON)
    stage.switch(one, OFF)
    story.start(one)
    look("plugin registered, drained node off, pod moved there", story)
    stage.switch(other, OFF)
    stage.controller(OFF)
    look("all nodes off, controller off", story)
    story.end()
    look("pod deleted", story)


def without_a_drain(stage: Stage) -> None:
    """All ways at once: for each node, another thing comes first."""
    node_first = stage.story("no drain: node on in place, then controller on")
    controller_first = stage.story("no drain: controller on, then node on in place")
    untouched = stage.story("no drain: controller on, node left off")
    back = stage.story("no drain: all on, then node off in place")
    touched = stage.story("no drain: controller on, then node on in place, and the pod changes")
    without = (node_first, controller_first, untouched, touched)
    for story in without:
        story.start(stage.node(OFF))
    look("all off", *without)
    stage.switch(node_first.node, ON)
    look("node on, pod still there", node_first)
    stage.controller(ON)
    look("controller on", *without)
    back.start(stage.node(ON))
    look("all on", back)
    stage.switch(controller_first.node, ON)
    stage.switch(back.node, OFF)
    look("node switched, pod still there", controller_first, back)
    stage.switch(touched.node, ON)
    touched.touch()
    look("node switched, then a label of the pod", touched)
    stage.controller(ON)
    look("controller restarted", *without, back)
    for story in (*without, back):
        story.end()
    look("pod deleted", *without, back)


def nodes_on_first(stage: Stage) -> None:
    flipped, other = stage.node(ON), stage.node(OFF)
    story = stage.story("wrong order: drained node on, controller off")
    story.start(flipped)
    look("pod started on the node that is on", story)
    story.start(other)
    look("pod moved to a node that is off", story)
    story.start(flipped)
    look("pod moved back", story)
    stage.controller(ON)
    look("controller on", story)


def controller_off_first(stage: Stage) -> None:
    node = stage.node(ON)
    story = stage.story("wrong order: controller off, nodes still on")
    story.start(node)
    look("all on", story)
    stage.controller(OFF)
    look("controller off", story)
    story.start(node)
    look("pod started anew on the node that is on", story)
    stage.switch(node, OFF)
    look("node off", story)


def unregistered_first(stage: Stage) -> None:
    node = stage.node(OFF)
    running = stage.story("wrong order: plugin unregistered in the controller, node still off")
    running.start(node)
    look("all off", running)
    stage.controller(UNREGISTERED)
    look("controller on, plugin unregistered", running)
    running.end()
    look("pod deleted", running)
    fresh = stage.story("wrong order: plugin unregistered in the controller, then a new pod")
    fresh.start(node)
    look("pod started on the node that is off", fresh)
    stage.switch(node, ON)
    look("node on", fresh)
    stage.controller(ON)
    look("controller on, pod gone", running)


def all_on(stage: Stage) -> None:
    one, other = stage.node(ON), stage.node(ON)
    stage.controller(ON)
    story = stage.story("all on: pod moved there and back")
    story.start(one)
    look("all on", story)
    story.start(other)
    look("pod moved", story)
    story.start(one)
    look("pod moved back", story)
