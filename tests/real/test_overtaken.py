"""A detach of the in-tree plugin that the driver's attach overtakes (docs/observed.md)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.real import records, stories
from tests.real.ground.cloud import Cloud
from tests.real.ground.controlplane import ControlPlane
from tests.real.stories import OFF, ON, Stage, Story, look

TIMES_OUT = 36 * 60
"""Seconds. So long at most the in-tree plugin waits for the end of a detach."""
BACK = "overtaken: the pod goes back to the node that is off"
FORGOTTEN = "overtaken: the controller restarts before the detach times out"
LATER = "overtaken: the pod goes back to its first node, which is on by now"
_numbers = count()


@pytest.fixture
def stage(old: ControlPlane, cloud: Cloud, ground: Path) -> Iterator[Stage]:
    steps = {
        order["order"]: order["steps"]
        for name in ("overtaken", "overtaken-long")
        for order in records.expected(f"{name}/{old.version}").get("orders", [])
    }
    with stories.stage(old, cloud, ground / f"overtaken-{next(_numbers)}", steps) as stage:
        yield stage


def overtaken(stage: Stage, order: str) -> Story:
    """A pod that went from a node that is off to one that is on."""
    if not stage.nodes:
        stage.controller(ON)
    story, first, second = stage.story(order), stage.node(OFF), stage.node(ON)
    story.start(first)
    look("pod started on the node that is off, controller on", story)
    story.start(second)
    look("pod moved to a node that is on", story)
    return story


def check(name: str, stage: Stage) -> None:
    orders = [{"order": story.order, "steps": story.steps} for story in stage.stories]
    version = stage.plane.version
    records.check(f"{name}/{version}", {"kubernetesVersion": version, "orders": orders})


def test_it_keeps_the_disk_from_being_attached_in_tree(stage: Stage) -> None:
    story, forgotten = overtaken(stage, BACK), overtaken(stage, FORGOTTEN)
    story.start(stage.nodes[0])
    look("pod moved back to the node that is off", story)
    stage.switch(stage.nodes[2], ON)
    forgotten.start(stage.nodes[2])
    look("its first node on, pod moved back there", forgotten)
    stage.controller(ON)
    look("controller restarted", story, forgotten)
    check("overtaken", stage)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_it_detaches_the_disk_under_a_pod_half_an_hour_later(stage: Stage) -> None:
    story = overtaken(stage, LATER)
    stage.switch(stage.nodes[0], ON)
    story.start(stage.nodes[0])
    look("its first node on, pod moved back there", story)
    moved = time.time()
    while time.time() < moved + TIMES_OUT and story.volume.attached_to:
        time.sleep(1)
    look("half an hour later", story)
    check("overtaken-long", stage)
