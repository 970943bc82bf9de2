"""Workloads that name disks by themselves come to name claims, and go back, on the sandbox."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from replant.cluster.ports import (
    DAEMON_SETS,
    DEPLOYMENTS,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
    Resource,
)
from replant.cluster.writing import LiveWriter
from replant.errors import Conflict, Halted
from replant.execute.journal import Mark, State
from replant.objects import Object
from replant.plan.inline import AskedInline, inline_changes, strategic_patch
from replant.plan.verdicts import Accepted
from tests.execute.converting import MIGRATED, conversion, everything, get, inventory_of
from tests.execute.living import Ground, ground, sandbox_of, small

INLINE = AskedInline(convert=True, capacity="8Gi")
DOWN = Accepted(scale_down=True)
DISK = {"volumeID": "vol-0000000000000aaa1", "fsType": "ext4"}
RESOURCES = {it.kind: it for it in (DEPLOYMENTS, STATEFUL_SETS, DAEMON_SETS, REPLICA_SETS)}
RECREATE: Object = {"strategy": {"type": "Recreate"}}

Story = Callable[[Ground], Awaitable[None]]


def workload(kind: str = "Deployment", name: str = "web", **spec: Any) -> Object:
    labels = {"app": name}
    template = {
        "metadata": {"labels": labels},
        "spec": {
            "containers": [
                {
                    "name": "app",
                    "image": "app",
                    "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                }
            ],
            "volumes": [
                {"name": "scratch", "emptyDir": {}},
                {"name": "data", "awsElasticBlockStore": DISK},
                {"name": "settings", "configMap": {"name": "settings"}},
            ],
        },
    }
    counted = {} if kind == "DaemonSet" else {"replicas": 1}
    named = {"serviceName": name} if kind == "StatefulSet" else {}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            **counted,
            **named,
            "selector": {"matchLabels": labels},
            "template": template,
            **spec,
        },
    }


def live(story: Story, folder: Path, *objects: Object, **more: Any) -> None:
    async def played() -> None:
        async with ground(kubeconfig) as it:
            await it.timing.sleep(120)
            await story(it)
            assert (await it.ask("/sandbox/writes"))["yanked"] == []

    scenario = small(workloads=[], objects=[{**it} for it in objects], **more)
    with sandbox_of(scenario, folder) as kubeconfig:
        asyncio.run(played())


def volumes_of(found: Object | None) -> dict[str, Object]:
    assert found is not None
    return {it["name"]: it for it in found["spec"]["template"]["spec"]["volumes"]}


async def pods_of(it: Ground, name: str = "web") -> list[Object]:
    found = await everything(it, PODS)
    mine = [pod for pod in found if (pod["metadata"].get("labels") or {}).get("app") == name]
    return [pod for pod in mine if not pod["metadata"].get("deletionTimestamp")]


def claim_named(volume: Object) -> str:
    assert volume.keys() == {"name", "persistentVolumeClaim"}
    name: str = volume["persistentVolumeClaim"]["claimName"]
    return name


async def seen_native(it: Ground, resource: Resource) -> str:
    """Its template names a claim, whose volume is native, and its pod runs with it."""
    found = await get(it, resource, "web", "default")
    volumes = volumes_of(found)
    assert [*volumes] == ["scratch", "data", "settings"]
    claim = claim_named(volumes["data"])
    bound = await get(it, PERSISTENT_VOLUME_CLAIMS, claim, "default")
    assert bound is not None
    assert bound["status"]["phase"] == "Bound"
    pv = await get(it, PERSISTENT_VOLUMES, bound["spec"]["volumeName"])
    assert pv is not None
    assert pv["spec"]["csi"]["volumeHandle"] == DISK["volumeID"]
    assert pv["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert pv["spec"]["capacity"] == {"storage": "8Gi"}
    (pod,) = await pods_of(it)
    assert any(it.get("persistentVolumeClaim") for it in pod["spec"]["volumes"])
    return claim


async def seen_in_tree(it: Ground, resource: Resource) -> None:
    found = await get(it, resource, "web", "default")
    assert volumes_of(found)["data"] == {"name": "data", "awsElasticBlockStore": DISK}
    assert not await everything(it, PERSISTENT_VOLUMES)
    assert not await everything(it, PERSISTENT_VOLUME_CLAIMS)


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        pytest.param("Deployment", RECREATE, id="recreate"),
        pytest.param(
            "Deployment", {"strategy": {"rollingUpdate": {"maxUnavailable": 1}}}, id="rolling"
        ),
        pytest.param("StatefulSet", {}, id="stateful"),
    ],
)
def test_pods_are_replaced_by_others_with_claims_and_back(
    kind: str, spec: Object, tmp_path: Path
) -> None:
    async def story(it: Ground) -> None:
        before = await pods_of(it)
        plan = await conversion(it, inline=INLINE)
        assert [step.id for step in plan.steps] == ["create-inline-volumes", "rewrite-templates"]
        result = await it.applying().begin(plan, {})
        assert {check.outcome for check in result.checks} == {"passed"}
        await seen_native(it, RESOURCES[kind])
        (pod,) = await pods_of(it)
        assert pod["metadata"]["uid"] != before[0]["metadata"]["uid"]
        run = await it.journals().read(result.run)
        (entry,) = (it for it in run.entries if it.mark is Mark.ACT and it.act == "RewriteTemplate")
        assert volumes_of(entry.backup)["data"]["awsElasticBlockStore"] == DISK
        assert (await it.applying().undo(result.run)).state is State.UNDONE
        await seen_in_tree(it, RESOURCES[kind])

    live(story, tmp_path, workload(kind, **spec), **MIGRATED)


@pytest.mark.parametrize(
    ("kind", "migrated"),
    [("Deployment", True), ("Deployment", False), ("StatefulSet", False), ("ReplicaSet", True)],
)
def test_what_cannot_roll_is_scaled_down_and_up(
    kind: str, tmp_path: Path, *, migrated: bool
) -> None:
    async def story(it: Ground) -> None:
        plan = await conversion(it, inline=INLINE, accepted=DOWN)
        ids = ["create-inline-volumes", "scale-down-inline-1", "rewrite-templates-1"]
        assert [step.id for step in plan.steps] == [*ids, "scale-up-inline-1"]
        result = await it.applying().begin(plan, {})
        assert {check.outcome for check in result.checks} == {"passed"}
        await seen_native(it, RESOURCES[kind])
        # Nobody leads who may wait for a detach that the driver has overtaken.
        assert result.acts.get("RestartLeader", 0) == (0 if migrated else 1)
        assert (await it.applying().undo(result.run)).state is State.UNDONE
        await seen_in_tree(it, RESOURCES[kind])
        assert len(await pods_of(it)) == 1

    live(story, tmp_path, workload(kind), **(MIGRATED if migrated else {}))


def test_a_run_that_is_stopped_in_between_goes_on(tmp_path: Path) -> None:
    async def story(it: Ground) -> None:
        applying = it.applying()
        it.shown.when_waiting("to be rolled out", lambda: applying.stop("enough"))
        with pytest.raises(Halted, match="enough"):
            await applying.begin(await conversion(it, inline=INLINE), {})
        (run,) = await it.journals().runs()
        assert (await it.applying().resume(run.id)).state is State.DONE
        await seen_native(it, DEPLOYMENTS)

    live(story, tmp_path, workload(**RECREATE), **MIGRATED)


def test_a_template_that_somebody_has_changed_is_left_alone(tmp_path: Path) -> None:
    async def story(it: Ground) -> None:
        plan = await conversion(it, inline=INLINE)
        found = await get(it, DEPLOYMENTS, "web", "default")
        volumes = [*volumes_of(found).values()]
        volumes[1] = {"name": "data", "emptyDir": {}}
        patch = {"spec": {"template": {"spec": {"volumes": volumes}}}}
        await it.writer.patch(DEPLOYMENTS, "web", patch, namespace="default")
        with pytest.raises(Halted, match="The volume data of Deployment default/web is neither"):
            await it.applying().begin(plan, {})
        assert volumes_of(await get(it, DEPLOYMENTS, "web", "default"))["data"] == volumes[1]

    live(story, tmp_path, workload(**RECREATE), **MIGRATED)


class OvertakenWriter(LiveWriter):
    """Somebody changes the Deployment right before its template is rewritten."""

    conflicts: int | None = None

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Mapping[str, object],
        *,
        namespace: str = "",
    ) -> Object:
        if resource is not DEPLOYMENTS or self.conflicts is not None:
            return await super().patch(resource, name, patch, namespace=namespace)
        self.conflicts = 0
        label = {"metadata": {"labels": {"changed-by": "another"}}}
        await super().patch(resource, name, label, namespace=namespace)
        try:
            return await super().patch(resource, name, patch, namespace=namespace)
        except Conflict:
            self.conflicts += 1
            raise


def test_a_template_is_not_rewritten_in_a_workload_that_changes_meanwhile(tmp_path: Path) -> None:
    async def story(it: Ground) -> None:
        it.writer = writer = OvertakenWriter(it.reader)
        await it.applying().begin(await conversion(it, inline=INLINE), {})
        assert writer.conflicts == 1
        await seen_native(it, DEPLOYMENTS)

    live(story, tmp_path, workload(**RECREATE), **MIGRATED)


def test_a_claim_that_a_pod_uses_is_not_removed(tmp_path: Path) -> None:
    async def story(it: Ground) -> None:
        result = await it.applying().begin(await conversion(it, inline=INLINE), {})
        claim = await seen_native(it, DEPLOYMENTS)
        (pod,) = await pods_of(it)
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": claim}}
        other = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "guest", "namespace": "default"},
            "spec": {
                "nodeName": pod["spec"]["nodeName"],
                "containers": [{"name": "app", "image": "app"}],
                "volumes": [volume],
            },
        }
        await it.writer.create(PODS, other, namespace="default")
        await it.timing.sleep(30)
        await it.applying().undo(result.run)
        assert await get(it, PERSISTENT_VOLUME_CLAIMS, claim, "default")
        (pv,) = await everything(it, PERSISTENT_VOLUMES)
        assert pv["status"]["phase"] == "Bound"
        assert any("pod default/guest uses it" in note for note in it.shown.notes)

    web = workload(**RECREATE)
    # Where the guest is: one node alone can have the disk.
    web["spec"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "workers-1"}
    live(story, tmp_path, web, **MIGRATED)


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"])
def test_kubectl_merges_the_patch_as_it_is_meant(kind: str, tmp_path: Path) -> None:
    async def patch() -> tuple[Object, Object]:
        async with ground(kubeconfig) as it:
            (change,), odd = inline_changes(await inventory_of(it), "8Gi")
            assert not odd
            made = strategic_patch(change)
        file = tmp_path / "patch.json"
        file.write_text(json.dumps(made))
        command = ["kubectl", "--kubeconfig", str(kubeconfig), "-n", "default", "patch"]
        command += [kind.lower(), "web", "--type=strategic", "--patch-file", str(file)]
        await asyncio.to_thread(subprocess.run, command, check=True, timeout=60)
        async with ground(kubeconfig) as it:
            found = await get(it, RESOURCES[kind], "web", "default")
        assert found is not None
        return made, found

    scenario = small(workloads=[], objects=[workload(kind)], **MIGRATED)
    with sandbox_of(scenario, tmp_path) as kubeconfig:
        made, found = asyncio.run(patch())
    volumes = volumes_of(found)
    assert claim_named(volumes["data"]).startswith("aws-ebs-")
    assert volumes["scratch"].keys() == {"name", "emptyDir"}
    assert volumes["settings"]["configMap"]["name"] == "settings"
    assert len(volumes) == 3
    assert made["kind"] == kind
