"""Whatever settles for a while by itself is waited for, however little patience somebody has."""

from __future__ import annotations

from typing import Any

import pytest

from replant.execute.acts import Wait
from replant.execute.patience import Patience
from replant.execute.retemplating import Retemplating
from replant.execute.swapping import Backups, Swapping
from replant.plan.model import (
    RewriteTemplates,
    SwapVolumes,
    TemplateChange,
    TemplateVolume,
    VolumeSwap,
)
from tests.execute.nodes import ENABLE, Nodes, only, roll_step, rolling

IMPATIENT, SETTLES = 1.0, 10
WORDS: dict[str, Any] = {"id": "it", "title": "it", "why": "", "done_when": "", "undo": ""}
DISK = "kubernetes.io/aws-ebs/vol-1"


def rolled() -> Wait:
    nodes, stage = Nodes("n1", "n2", "n3"), rolling(patience=Patience(switch=IMPATIENT))
    assert roll_step(ENABLE).settle_seconds == SETTLES
    nodes.node("n1", cordoned=True, run="run")
    (wait,) = stage.decide(nodes.world, 0).waits
    return wait


def swapped(*, restart_controllers: bool = False) -> Wait:
    volume = VolumeSwap(name="pv", driver="ebs.csi.aws.com", handle="vol-1", free_of=(DISK,))
    step = SwapVolumes(
        volumes=(volume,), settle_seconds=SETTLES, restart_controllers=restart_controllers, **WORDS
    )
    stage = Swapping(step, Backups(), at_once=1, timeout=IMPATIENT)
    world = Nodes("n1").world
    stage.learn(only(stage.decide(world, 0)), {}, 0)
    (wait,) = stage.decide(world, 0).waits
    return wait


def rewritten() -> Wait:
    before: dict[str, Any] = {"name": "data", "awsElasticBlockStore": {"volumeID": "vol-1"}}
    after = {"name": "data", "persistentVolumeClaim": {"claimName": "pv"}}
    change = TemplateChange(
        kind="Deployment", namespace="shop", name="web", free_of=(DISK,),
        volumes=(TemplateVolume(before=before, after=after),),
    )  # fmt: skip
    step = RewriteTemplates(workloads=(change,), settle_seconds=SETTLES, **WORDS)
    stage = Retemplating(step, timeout=IMPATIENT)
    world = Nodes("n1").world
    found = {"spec": {"template": {"spec": {"volumes": [before]}}}}
    stage.learn(only(stage.decide(world, 0)), found, 0)
    (wait,) = stage.decide(world, 0).waits
    return wait


@pytest.mark.parametrize(
    "wait",
    [rolled(), swapped(), swapped(restart_controllers=True), rewritten()],
    ids=lambda it: it.key,
)
def test_settling_outlasts_no_patience(wait: Wait) -> None:
    assert wait.timeout > SETTLES
