"""StorageClasses on the sandbox: made again under their names, or beside, and taken back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from replant.cluster.ports import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STATEFUL_SETS,
    STORAGE_CLASSES,
)
from replant.errors import Halted
from replant.execute.journal import State
from replant.execute.making import MADE_BY
from replant.plan.classes import AskedClasses, ClassWay
from tests.execute.converting import EBS, MIGRATED, conversion, everything, get
from tests.execute.living import Ground, ground, sandbox_of, small

AWS = "kubernetes.io/aws-ebs"
REPLACED = AskedClasses(ClassWay.REPLACE)
TWINS = AskedClasses(ClassWay.TWIN, "-csi")
DRIVER = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": EBS}}
"""Of a driver that is installed, and whose controllers do not run."""

Story = Callable[[Ground], Awaitable[None]]


def live(story: Story, folder: Path, **more: Any) -> None:
    async def played() -> None:
        async with ground(kubeconfig) as it:
            await story(it)
            assert (await it.ask("/sandbox/writes"))["yanked"] == []

    with sandbox_of(small(**MIGRATED | more), folder) as kubeconfig:
        asyncio.run(played())


async def provisioner(it: Ground, name: str = "gp2") -> str:
    found = await get(it, STORAGE_CLASSES, name)
    return found["provisioner"] if found else ""


def claim(name: str, **annotations: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "gp2",
        },
    }


def test_a_stateful_set_that_grows_afterwards_gets_native_volumes(tmp_path: Path) -> None:
    async def story(it: Ground) -> None:
        result = await it.applying().begin(await conversion(it, classes=REPLACED), {})
        assert {check.outcome for check in result.checks} == {"passed"}
        assert await provisioner(it) == EBS
        before = {pv["metadata"]["name"] for pv in await everything(it, PERSISTENT_VOLUMES)}
        grown = {"spec": {"replicas": 4}}
        await it.writer.patch(STATEFUL_SETS, "db", grown, namespace="default")
        await it.timing.sleep(300)
        found = await get(it, PERSISTENT_VOLUME_CLAIMS, "data-db-3", "default")
        assert found is not None
        assert found["status"]["phase"] == "Bound"
        after = {pv["metadata"]["name"]: pv for pv in await everything(it, PERSISTENT_VOLUMES)}
        (new,) = after.keys() - before
        assert after[new]["spec"]["csi"]["driver"] == EBS
        assert found["spec"]["volumeName"] == new
        stateful_set = await get(it, STATEFUL_SETS, "db", "default")
        assert stateful_set is not None
        assert stateful_set["status"]["readyReplicas"] == 4

    live(story, tmp_path)


def test_a_class_is_not_deleted_while_a_volume_of_it_is_being_made(tmp_path: Path) -> None:
    async def story(it: Ground) -> None:
        plan = await conversion(it, classes=REPLACED)
        selected = {"volume.kubernetes.io/selected-node": "workers-0"}
        await it.writer.create(
            PERSISTENT_VOLUME_CLAIMS, claim("late", **selected), namespace="default"
        )
        # One that nobody has been asked a volume for does not count.
        await it.writer.create(PERSISTENT_VOLUME_CLAIMS, claim("idle"), namespace="default")
        applying = it.applying()
        it.shown.when_waiting("default/late to get its volume", lambda: applying.stop("seen"))
        with pytest.raises(Halted, match="seen"):
            await applying.begin(plan, {})
        assert await provisioner(it) == AWS
        late = await get(it, PERSISTENT_VOLUME_CLAIMS, "late", "default")
        assert late is not None
        known = late["metadata"]
        await it.writer.delete(
            PERSISTENT_VOLUME_CLAIMS, "late", namespace="default",
            uid=known["uid"], version=known["resourceVersion"],
        )  # fmt: skip
        (run,) = await it.journals().runs()
        await it.applying().resume(run.id)
        assert await provisioner(it) == EBS
        await it.applying().undo(run.id)
        assert await provisioner(it) == AWS

    live(story, tmp_path, drivers=[], workloads=[], objects=[DRIVER])


def test_a_class_that_is_waited_for_is_replaced_as_soon_as_it_can_be(tmp_path: Path) -> None:
    async def story(it: Ground) -> None:
        plan = await conversion(it, classes=REPLACED)
        selected = {"volume.kubernetes.io/selected-node": "workers-0"}
        made = await it.writer.create(
            PERSISTENT_VOLUME_CLAIMS, claim("late", **selected), namespace="default"
        )
        gone = []

        def let_go() -> None:
            patch = {
                "metadata": {
                    "uid": made["metadata"]["uid"],
                    "annotations": dict.fromkeys(selected),
                }
            }
            task = it.writer.patch(PERSISTENT_VOLUME_CLAIMS, "late", patch, namespace="default")
            gone.append(asyncio.ensure_future(task))

        it.shown.when_waiting("default/late to get its volume", let_go)
        assert (await it.applying().begin(plan, {})).state is State.DONE
        assert gone
        assert await provisioner(it) == EBS

    live(story, tmp_path, drivers=[], workloads=[], objects=[DRIVER])


def test_twins_are_made_beside_and_only_what_was_made_is_deleted(tmp_path: Path) -> None:
    async def story(it: Ground) -> None:
        result = await it.applying().begin(await conversion(it, classes=TWINS), {})
        assert {check.outcome for check in result.checks} == {"passed"}
        assert await provisioner(it) == AWS
        assert await provisioner(it, "gp2-csi") == EBS
        found = await get(it, STORAGE_CLASSES, "gp2-csi")
        assert found is not None
        assert found["metadata"]["annotations"] == {MADE_BY: result.run}
        assert (await it.applying().undo(result.run)).state is State.UNDONE
        assert await get(it, STORAGE_CLASSES, "gp2-csi") is None

    live(story, tmp_path)


def test_a_twin_that_somebody_else_has_made_stays(tmp_path: Path) -> None:
    async def story(it: Ground) -> None:
        plan = await conversion(it, classes=TWINS)
        (step,) = (it for it in plan.steps if it.id == "create-classes")
        (theirs,) = getattr(step, "objects")  # noqa: B009
        await it.writer.create(STORAGE_CLASSES, theirs)
        result = await it.applying().begin(plan, {})
        await it.applying().undo(result.run)
        assert await provisioner(it, "gp2-csi") == EBS
        assert any("this run has not made it" in note for note in it.shown.notes)

    live(story, tmp_path, workloads=[])


def test_another_object_of_a_twins_name_is_never_overwritten(tmp_path: Path) -> None:
    async def story(it: Ground) -> None:
        plan = await conversion(it, classes=TWINS)
        other = {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "gp2-csi"},
            "provisioner": "somebody.else",
        }
        await it.writer.create(STORAGE_CLASSES, other)
        with pytest.raises(Halted, match="is not what the plan makes"):
            await it.applying().begin(plan, {})
        assert await provisioner(it, "gp2-csi") == "somebody.else"

    live(story, tmp_path, workloads=[])
