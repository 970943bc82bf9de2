"""What becomes of the disk of a node that dies: its kubelet says nothing any more."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real import records, stories
from tests.real.ground.cloud import Cloud
from tests.real.ground.controlplane import ControlPlane
from tests.real.ground.nodes import LightNode
from tests.real.stories import OFF, ON, Stage, Story, look

FORCED_AFTER = 6 * 60
"""Seconds for which the controller waits for a node to say that a volume is not in use."""


@pytest.fixture
def stage(old: ControlPlane, cloud: Cloud, ground: Path) -> Iterator[Stage]:
    recorded = records.expected(f"dead-nodes/{old.version}").get("orders", [])
    steps = {it["order"]: it["steps"] for it in recorded}
    with stories.stage(old, cloud, ground / "dead-nodes", steps) as stage:
        yield stage


def dies(node: LightNode) -> None:
    """The machine is gone, and what it has written last stays."""
    node.silence()


def gone_at_once(story: Story) -> None:
    """Somebody deletes the pod of a dead node by force."""
    story.volume.api.delete("Pod", story.volume.name, "default", gracePeriodSeconds=0)
    story.end()


@pytest.mark.long
def test_dead_nodes(stage: Stage) -> None:
    stage.controller(ON)
    kept = stage.story("a node that is off dies, and its pod stays")
    in_tree = stage.story("a node that is off dies, and its pod is deleted by force")
    csi = stage.story("a node that is on dies, and its pod is deleted by force")
    moved = stage.story("a node that is on dies, and its pod is started elsewhere")
    for story, gates in ((kept, OFF), (in_tree, OFF), (csi, ON), (moved, ON)):
        story.start(stage.node(gates))
    look("pod started, controller on", kept, in_tree)
    look("pod started on a node that is on, controller on", csi, moved)
    for node in stage.nodes:
        dies(node)
    for story in (in_tree, csi, moved):
        gone_at_once(story)
    time.sleep(FORCED_AFTER + 60)
    look("its node died, and seven minutes later", kept)
    look("its node died and the pod was deleted by force, and seven minutes later", in_tree, csi)
    moved.start(stage.node(ON))
    look("its node died and the pod was started elsewhere", moved)
    gone_at_once(kept)
    orders = [{"order": story.order, "steps": story.steps} for story in stage.stories]
    version = stage.plane.version
    records.check(f"dead-nodes/{version}", {"kubernetesVersion": version, "orders": orders})
