"""A controller that is killed between its two writes of a detach.

The attach/detach controller first takes a volume out of its node's volumesAttached, and then it
deletes the VolumeAttachment. Here it may not delete any until it has been killed. The next one
knows from both what is attached; a VolumeAttachment of an inline volume names no PersistentVolume.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.proof.playable import CLAIM, INLINE
from tests.real import records, stories
from tests.real.ground.api import Api
from tests.real.ground.cloud import Cloud
from tests.real.ground.controlplane import ControlPlane
from tests.real.ground.nodes import LightNode
from tests.real.ground.processes import settled, wait_for
from tests.real.ground.volumes import end_pod, inline_volume, new_volume, pod_object
from tests.real.stories import ON, Stage

ROLE = "system:controller:attachdetach-controller"
ATTEMPTS = 20
"""Kills. Most of them come between the two writes."""
IN_VAIN = 30
"""Seconds."""


@pytest.fixture
def stage(old: ControlPlane, cloud: Cloud, ground: Path) -> Iterator[Stage]:
    with stories.stage(old, cloud, ground / "killed") as stage:
        yield stage


@contextmanager
def no_deletions(api: Api) -> Iterator[None]:
    """The attach/detach controller may not delete VolumeAttachments."""
    rules = api.get("ClusterRole", ROLE)["rules"]
    changed = [
        {**rule, "verbs": [it for it in rule["verbs"] if it != "delete"]}
        if "volumeattachments" in rule.get("resources", [])
        else rule
        for rule in rules
    ]
    assert changed != rules
    api.patch("ClusterRole", ROLE, {"rules": changed})
    try:
        yield
    finally:
        api.patch("ClusterRole", ROLE, {"rules": rules})


def is_attached(api: Api, node: LightNode, disk: str) -> bool:
    """Whether the node is told so."""
    listed = api.get("Node", node.name)["status"].get("volumesAttached", [])
    return any(disk in it["name"] for it in listed)


def kill_between(stage: Stage, node: LightNode, disk: str) -> None:
    """Kill the controller after its first write, which tells the node that the disk is gone."""
    for _attempt in range(ATTEMPTS):
        wait_for(lambda: not is_attached(stage.plane.api, node, disk), "the first write", 60, 0.01)
        stage.plane.kill_part("kube-controller-manager")
        if not is_attached(stage.plane.api, node, disk):
            return
        stage.plane.restart_controller_manager()
    raise AssertionError("the controller was never killed between its two writes")


def becomes_of(stage: Stage, kind: str) -> dict[str, Any]:
    """A pod goes from one node to another, and the controller is killed meanwhile."""
    api, name = stage.plane.api, f"killed-{kind.split()[0]}"
    one, other = stage.node(ON), stage.node(ON)
    disk = new_volume(api, stage.cloud, name).disk if kind == CLAIM else stage.cloud.disk()

    def start(pod_name: str, node: LightNode) -> None:
        pod = pod_object(pod_name, node.name, name)
        if kind == INLINE:
            pod["spec"]["volumes"] = [inline_volume(name, disk)]
        api.create(pod)

    def phase(pod_name: str) -> str:
        state: str = api.get("Pod", pod_name, "default")["status"]["phase"]
        return state

    start(f"{name}-first", one)
    wait_for(lambda: phase(f"{name}-first") == "Running", "the pod to run")
    with no_deletions(api):
        end_pod(api, f"{name}-first")
        kill_between(stage, one, disk)
    stage.plane.restart_controller_manager()
    start(f"{name}-second", other)
    pod = settled(lambda: phase(f"{name}-second"), IN_VAIN)
    at = {one.instance.id: "the first node", other.instance.id: "the second node", "": "no node"}
    where = at[stage.cloud.attached_to(disk)]
    end_pod(api, f"{name}-second")
    return {"volume": kind, "successor": pod, "diskIsAttachedTo": where}


def test_a_controller_is_killed_between_its_two_writes(stage: Stage) -> None:
    stage.controller(ON)
    version = stage.plane.version
    rows = [becomes_of(stage, kind) for kind in (CLAIM, INLINE)]
    records.check(f"killed/{version}", {"kubernetesVersion": version, "rows": rows})
