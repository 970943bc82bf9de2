"""An attachment of an inline volume that the controller forgot, while a run is under way (sandbox).

The pod that needs the disk is on another node, and waits until somebody deletes the attachment.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from replant.cluster.ports import DEPLOYMENTS, VOLUME_ATTACHMENTS
from replant.execute.journal import Mark, State
from replant.objects import Object
from replant.plan.model import Goal
from tests.execute.converting import EBS, MIGRATED, everything, get
from tests.execute.living import Ground, ground, sandbox_of, small
from tests.execute.nodes import AWS
from tests.execute.test_inline import DISK, RECREATE, pods_of, workload

FORGOTTEN = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "VolumeAttachment",
    "metadata": {"name": "forgotten"},
    "spec": {
        "attacher": EBS,
        "nodeName": "workers-1",
        "source": {
            "inlineVolumeSpec": {
                "accessModes": ["ReadWriteOnce"],
                "csi": {"driver": EBS, "volumeHandle": DISK["volumeID"]},
            }
        },
    },
}


def web_on(node: str) -> Object:
    found = workload(**RECREATE)
    volumes = [it for it in found["spec"]["template"]["spec"]["volumes"] if it["name"] == "data"]
    found["spec"]["template"]["spec"]["volumes"] = volumes
    found["spec"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node}
    return found


async def _phases(it: Ground) -> list[str]:
    return [pod["status"]["phase"] for pod in await pods_of(it)]


@pytest.mark.parametrize("goal", [Goal.COMPLETE, Goal.DISABLE])
def test_it_is_deleted_and_the_pod_runs(goal: Goal, tmp_path: Path) -> None:
    async def story(it: Ground) -> None:
        await it.writer.create(VOLUME_ATTACHMENTS, FORGOTTEN)
        await it.timing.sleep(30)
        await it.writer.create(DEPLOYMENTS, web_on("workers-2"), namespace="default")
        await it.timing.sleep(600)
        assert await _phases(it) == ["Pending"]
        plan = await it.plan(goal, AWS, one_pod_per_volume=True)
        result = await it.applying().begin(plan, {})
        assert result.state is State.DONE
        assert result.acts["DeleteAttachment"] == 1
        run = await it.journals().read(result.run)
        (entry,) = (
            it for it in run.entries if it.mark is Mark.ACT and it.act == "DeleteAttachment"
        )
        assert entry.backup is not None
        assert entry.backup["spec"] == FORGOTTEN["spec"]
        await it.timing.sleep(120)
        assert await get(it, VOLUME_ATTACHMENTS, "forgotten") is None
        assert await _phases(it) == ["Running"]
        assert (await it.ask("/sandbox/writes"))["yanked"] == []

    live(story, tmp_path)


def test_one_that_a_pod_uses_stays(tmp_path: Path) -> None:
    """The pod is on the node of the attachment, and waits for its image, say."""

    async def story(it: Ground) -> None:
        await it.writer.create(DEPLOYMENTS, web_on("workers-1"), namespace="default")
        await it.timing.sleep(60)
        assert await _phases(it) == ["Running"]
        before = await everything(it, VOLUME_ATTACHMENTS)
        plan = await it.plan(Goal.COMPLETE, AWS, one_pod_per_volume=True)
        result = await it.applying().begin(plan, {})
        assert "DeleteAttachment" not in result.acts
        assert await everything(it, VOLUME_ATTACHMENTS) == before

    live(story, tmp_path)


def live(story: Any, folder: Path) -> None:
    async def played() -> None:
        async with ground(kubeconfig) as it:
            await it.timing.sleep(120)
            await story(it)

    with sandbox_of(small(workloads=[], **MIGRATED), folder) as kubeconfig:
        asyncio.run(played())
