"""Deployments whose pods take time to end, while nodes of both kinds are there (sandbox)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from replant.cluster.ports import DEPLOYMENTS, NODES, PERSISTENT_VOLUME_CLAIMS
from replant.errors import Halted
from replant.execute.journal import State
from replant.gates.plugins import LIVES
from replant.objects import Object
from replant.plan.model import Goal
from tests.execute.living import Ground, ground, sandbox_of
from tests.execute.test_plugins import PARAMETERS, scenario

WEBS = 3
ENDS_AFTER = 25
AWS = "kubernetes.io/aws-ebs"
TAKEN = (AWS, "kubernetes.io/azure-disk", "kubernetes.io/cinder", "kubernetes.io/vsphere-volume")
"""Plugins whose disks a pod's successor can take, on a node of the other kind."""


def cluster(plugin: str, gates: dict[str, bool]) -> Object:
    made = scenario(plugin, PARAMETERS.get(plugin, {}))
    made["workloads"] = []
    made["controlPlane"]["gates"] = made["pools"][0]["gates"] = gates
    return made


async def deploy(it: Ground) -> None:
    """Deployments of one pod each, with a claim of their own, and wait until they run."""
    for number in range(WEBS):
        name = f"web-{number}"
        claim: Object = {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }
        await it.writer.create(PERSISTENT_VOLUME_CLAIMS, claim, namespace="default")
        await it.writer.create(DEPLOYMENTS, deployment(name), namespace="default")
    await it.timing.sleep(120)


def deployment(name: str) -> Object:
    labels = {"app": name}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {
                    "labels": labels,
                    "annotations": {"sandbox.replant.dev/ends-after": str(ENDS_AFTER)},
                },
                "spec": {
                    "terminationGracePeriodSeconds": ENDS_AFTER,
                    "volumes": [{"name": "it", "persistentVolumeClaim": {"claimName": name}}],
                    "containers": [
                        {
                            "name": "main",
                            "image": "web",
                            "volumeMounts": [{"name": "it", "mountPath": "/data"}],
                        }
                    ],
                },
            },
        },
    }


async def yanked(it: Ground) -> list[Any]:
    found: list[Any] = (await it.ask("/sandbox/writes"))["yanked"]
    return found


async def tainted(it: Ground) -> list[str]:
    """The nodes that have taints."""
    return [
        node["metadata"]["name"]
        async for page in it.reader.list_pages(NODES)
        for node in msgspec.json.decode(page.body)["items"]
        if node["spec"].get("taints")
    ]


@pytest.mark.parametrize("plugin", TAKEN, ids=[it.rpartition("/")[2] for it in TAKEN])
def test_no_disk_is_detached_under_a_pod(plugin: str, tmp_path: Path) -> None:
    gate = LIVES[plugin].migration_gate

    async def story() -> None:
        async with ground(kubeconfig) as it:
            await deploy(it)
            for goal in (Goal.ENABLE, Goal.DISABLE):
                plan = await it.plan(goal, plugin)
                assert not plan.blockers, plan.blockers
                result = await it.applying().begin(plan, {})
                assert result.state is State.DONE
                assert await yanked(it) == []
                assert await tainted(it) == []

    with sandbox_of(cluster(plugin, {gate: False}), tmp_path) as kubeconfig:
        asyncio.run(story())


def test_without_taints_it_happens_and_the_run_says_so(tmp_path: Path) -> None:
    """Somebody has vouched that no pod is started while another uses its volume, and was wrong."""

    async def story() -> None:
        async with ground(kubeconfig) as it:
            await deploy(it)
            plan = await it.plan(Goal.DISABLE, AWS, one_pod_per_volume=True)
            assert [check.check for check in plan.preflight if check.check == "successors"]
            with pytest.raises(Halted, match="was detached under its pod, or is attached twice"):
                await it.applying().begin(plan, {})
            assert len(await yanked(it)) > 0

    with sandbox_of(cluster(AWS, {"CSIMigrationAWS": True}), tmp_path) as kubeconfig:
        asyncio.run(story())
