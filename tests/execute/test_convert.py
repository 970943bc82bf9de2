"""Volumes replaced on the sandbox: under running pods, unused, stopped, disturbed, and put back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from replant.cluster.answers import Request
from replant.cluster.ports import (
    CSI_NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STATEFUL_SETS,
    VOLUME_ATTACHMENTS,
    Resource,
    Writer,
)
from replant.errors import Halted
from replant.execute.journal import State
from replant.execute.journal.files import FileJournals
from replant.execute.patience import Patience
from replant.execute.run import How
from replant.objects import Object
from replant.plan.model import Goal
from replant.plan.verdicts import Accepted
from tests.execute.living import Ground, ground, sandbox_of, small

EBS = "kubernetes.io/aws-ebs"
POLICY, PHASE = "persistentVolumeReclaimPolicy", "phase"

Story = Callable[[Ground], Awaitable[None]]


def live(
    story: Story,
    folder: Path,
    wrap: Callable[[Writer], Writer] = lambda it: it,
    *,
    enabled: bool = True,
    **more: Any,
) -> None:
    """Play a story on a small sandbox of its own; nothing may be yanked in it."""

    async def played() -> None:
        async with ground(kubeconfig) as it:
            if enabled:
                await it.applying().begin(await it.plan(Goal.ENABLE, EBS), {})
        async with ground(kubeconfig, wrap) as it:
            await story(it)
            assert (await it.ask("/sandbox/writes"))["yanked"] == []

    with sandbox_of(small(**more), folder) as kubeconfig:
        asyncio.run(played())


async def listed(it: Ground, resource: Resource) -> dict[str, Object]:
    found: dict[str, Object] = {}
    async for page in it.reader.list_pages(resource):
        for obj in msgspec.json.decode(page.body)["items"]:
            found[obj["metadata"]["name"]] = obj
    return found


async def uids(it: Ground, *resources: Resource) -> dict[str, str]:
    return {
        f"{resource.kind} {name}": obj["metadata"]["uid"]
        for resource in resources
        for name, obj in (await listed(it, resource)).items()
    }


async def native(it: Ground) -> int:
    return sum("csi" in pv["spec"] for pv in (await listed(it, PERSISTENT_VOLUMES)).values())


async def specs(it: Ground) -> dict[str, Any]:
    """What volumes and claims are, but for what the server says of them."""
    said = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields")
    return {
        name: (
            obj["spec"],
            {k: v for k, v in obj["metadata"].items() if k not in said}
            | {
                # Drivers add theirs in any order.
                "finalizers": sorted(obj["metadata"].get("finalizers", ())),
            },
        )
        for resource in (PERSISTENT_VOLUMES, PERSISTENT_VOLUME_CLAIMS)
        for name, obj in (await listed(it, resource)).items()
    }


async def is_well(it: Ground, policy: str = "Delete") -> None:
    for obj in (await listed(it, PERSISTENT_VOLUMES)).values():
        assert obj["spec"][POLICY] == policy
        assert obj["status"][PHASE] == "Bound"
    for obj in (await listed(it, PERSISTENT_VOLUME_CLAIMS)).values():
        assert obj["status"][PHASE] == "Bound"


def test_volumes_become_native_under_their_pods_and_go_back(tmp_path: Path) -> None:
    async def story(it: Ground) -> None:
        untouched = await uids(it, PODS, PERSISTENT_VOLUME_CLAIMS, VOLUME_ATTACHMENTS)
        before = await specs(it)
        assert len([name for name in untouched if name.startswith("VolumeAttachment")]) == 5
        result = await it.applying().begin(await it.plan(Goal.CONVERT, EBS), {})
        assert {check.outcome for check in result.checks} == {"passed"}
        assert await native(it) == 5
        assert await uids(it, PODS, PERSISTENT_VOLUME_CLAIMS, VOLUME_ATTACHMENTS) == untouched
        await is_well(it)
        assert result.outages == []

        (_, run) = await it.journals().runs()
        assert (await it.applying().undo(run.id)).state is State.UNDONE
        assert await native(it) == 0
        assert await specs(it) == before
        assert await uids(it, PODS, PERSISTENT_VOLUME_CLAIMS, VOLUME_ATTACHMENTS) == untouched
        await is_well(it)

    live(story, tmp_path)


def test_a_run_that_is_stopped_goes_on_or_back(tmp_path: Path) -> None:
    async def story(it: Ground) -> None:
        before = await specs(it)
        for back in (True, False):
            journals = FileJournals(tmp_path / f"journal {back}")
            applying = it.applying(journals, How(at_once=1))
            it.shown.when("2 of 5 volumes", partial(applying.stop, "enough"))
            with pytest.raises(Halted, match="enough"):
                await applying.begin(await it.plan(Goal.CONVERT, EBS), {})
            assert 0 < await native(it) < 5
            run = (await journals.runs())[-1]
            it.shown.calls.clear()
            if back:
                assert (await it.applying(journals).undo(run.id)).state is State.UNDONE
                assert await specs(it) == before
            else:
                assert (await it.applying(journals).resume(run.id)).state is State.DONE
                assert await native(it) == 5
        await is_well(it)

    live(story, tmp_path)


def test_where_nothing_is_redirected_workloads_are_scaled_down_for_it(tmp_path: Path) -> None:
    async def story(it: Ground) -> None:
        claims = await uids(it, PERSISTENT_VOLUME_CLAIMS)
        plan = await it.plan(Goal.CONVERT, EBS, accepted=Accepted(scale_down=True))
        result = await it.applying().begin(plan, {})
        assert {check.outcome for check in result.checks} == {"passed"}
        assert result.acts["RestartLeader"] == 2, "once for each workload"
        assert await native(it) == 5
        sets = await listed(it, STATEFUL_SETS)
        assert {name: obj["spec"]["replicas"] for name, obj in sets.items()} == {
            "db": 3, "queue": 2,
        }  # fmt: skip
        assert await uids(it, PERSISTENT_VOLUME_CLAIMS) == claims
        await is_well(it)
        (run,) = await it.journals().runs()
        await it.applying().undo(run.id)
        assert await native(it) == 0
        await is_well(it)

    live(story, tmp_path, enabled=False)


def test_what_was_scaled_up_again_is_not_scaled_down_by_whoever_resumes(tmp_path: Path) -> None:
    async def story(it: Ground) -> None:
        plan = await it.plan(Goal.CONVERT, EBS, accepted=Accepted(scale_down=True))
        names = [step.id for step in plan.steps]
        assert names[3] == "scale-down-2"
        applying = it.applying()
        done = it.shown.step_done

        def stop_after_the_first(step: Any) -> None:
            done(step)
            if step.id == "scale-up-1":
                applying.stop("enough")

        it.shown.step_done = stop_after_the_first  # type: ignore[method-assign]
        with pytest.raises(Halted, match="enough"):
            await applying.begin(plan, {})
        assert await native(it) == 3
        await it.timing.sleep(60)
        pods = {name: uid for name, uid in (await uids(it, PODS)).items() if " db-" in name}
        (run,) = await it.journals().runs()
        it.shown.steps.clear()
        await it.applying().resume(run.id)
        assert it.shown.steps[0] == "scale-down-2"
        assert await native(it) == 5
        assert pods.items() <= (await uids(it, PODS)).items()
        await is_well(it)

    live(story, tmp_path, enabled=False)


class Meddling:
    """A Writer behind which somebody does something, once, right after a kind of write."""

    def __init__(self, writer: Writer, after: str, meddle: Callable[[str], Awaitable[None]]):
        self._writer = writer
        self._after = after
        self._meddle = meddle
        self._done = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._writer, name)

    async def _then(self, verb: str, resource: Resource, name: str) -> None:
        if self._after == f"{verb} {resource.kind}" and not self._done:
            self._done = True
            await self._meddle(name)

    async def create(self, resource: Resource, obj: Object, *, namespace: str = "") -> Object:
        made = await self._writer.create(resource, obj, namespace=namespace)
        await self._then("create", resource, obj["metadata"]["name"])
        return made

    async def patch(
        self, resource: Resource, name: str, patch: Mapping[str, object], *, namespace: str = ""
    ) -> Object:
        made = await self._writer.patch(resource, name, patch, namespace=namespace)
        await self._then("patch", resource, name)
        return made

    async def delete(
        self, resource: Resource, name: str, *, uid: str, version: str, namespace: str = ""
    ) -> Object:
        made = await self._writer.delete(
            resource, name, uid=uid, version=version, namespace=namespace
        )
        await self._then("delete", resource, name)
        return made


MOMENTS = (
    "patch PersistentVolume",
    "delete PersistentVolume",
    "create PersistentVolume",
    "patch PersistentVolumeClaim",
)


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_claim_that_is_deleted_in_the_middle_costs_no_disk(tmp_path: Path, moment: str) -> None:
    """The pods are gone by then, so that nothing holds the claim."""
    deleted: list[str] = []

    async def story(it: Ground) -> None:
        sets = await listed(it, STATEFUL_SETS)
        for name in sets:
            await it.writer.patch(
                STATEFUL_SETS, name, {"spec": {"replicas": 0}}, namespace="default"
            )
        await it.timing.sleep(60)
        plan = await it.plan(Goal.CONVERT, EBS)
        disks = {disk["id"] for disk in await disks_of(it)}

        async def delete_claim(volume: str) -> None:
            claim = next(
                name
                for name, obj in (await listed(it, PERSISTENT_VOLUME_CLAIMS)).items()
                if volume in (name, obj["spec"]["volumeName"])
            )
            deleted.append(claim)
            path = f"/api/v1/namespaces/default/persistentvolumeclaims/{claim}"
            await it.reader.connection.ask(Request("DELETE", path))

        it.writer = Meddling(it.writer, moment, delete_claim)
        await it.applying(how=How(at_once=1)).begin(plan, {})
        assert deleted
        await it.timing.sleep(60)
        volumes = await listed(it, PERSISTENT_VOLUMES)
        assert len(volumes) == 5
        assert await native(it) == 5
        assert {disk["id"] for disk in await disks_of(it)} == disks
        kept = [obj for obj in volumes.values() if obj["status"][PHASE] != "Bound"]
        assert [obj["spec"]["claimRef"]["name"] for obj in kept] == deleted
        assert [obj["spec"][POLICY] for obj in kept] == ["Retain"]
        assert any("Its disk is kept" in note for note in it.shown.notes)

    live(story, tmp_path)


def test_whoever_touches_pods_meanwhile_is_told_of_and_stops_nothing(tmp_path: Path) -> None:
    async def story(it: Ground) -> None:
        plan = await it.plan(Goal.CONVERT, EBS)

        async def meddle(_volume: str) -> None:
            path = "/api/v1/namespaces/default/pods/db-0"
            await it.reader.connection.ask(Request("DELETE", path))
            await it.writer.patch(
                STATEFUL_SETS, "queue", {"spec": {"replicas": 1}}, namespace="default"
            )
            await it.timing.sleep(120)

        it.writer = Meddling(it.writer, "patch PersistentVolume", meddle)
        result = await it.applying(how=How(at_once=1)).begin(plan, {})
        assert {check.outcome for check in result.checks} == {"passed"}
        assert await native(it) == 5
        told = [note for note in it.shown.notes if "since the step began" in note]
        assert [note.split(",")[0] for note in told if "another one" in note] == [
            "Pod default/db-0"
        ]
        assert [note.split(",")[0] for note in told if "Pod" in note and "is gone" in note] == [
            "Pod default/queue-1"
        ]
        assert any(note.startswith("VolumeAttachment") for note in told)

    live(story, tmp_path)


async def disks_of(it: Ground) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await it.ask("/sandbox/disks"))["disks"]
    return found


def test_a_volume_that_is_changed_in_the_middle_is_written_down_anew(tmp_path: Path) -> None:
    async def story(it: Ground) -> None:
        async def label(volume: str) -> None:
            path = f"/api/v1/persistentvolumes/{volume}"
            body = b'{"metadata": {"labels": {"late": "label"}}}'
            await it.reader.connection.ask(
                Request("PATCH", path, {}, body, "application/merge-patch+json")
            )

        it.writer = Meddling(it.writer, "patch PersistentVolume", label)
        await it.applying().begin(await it.plan(Goal.CONVERT, EBS), {})
        labels = [
            obj["metadata"].get("labels", {}).get("late")
            for obj in (await listed(it, PERSISTENT_VOLUMES)).values()
        ]
        assert labels.count("label") == 1
        assert await native(it) == 5
        await is_well(it)

    live(story, tmp_path)


CSI_NODE = "/apis/storage.k8s.io/v1/csinodes/{}"


async def merge(it: Ground, path: str, patch: Object) -> None:
    body = msgspec.json.encode(patch)
    await it.reader.connection.ask(Request("PATCH", path, {}, body, "application/merge-patch+json"))


async def switch_nodes(it: Ground, on: bool) -> None:
    lists = {"storage.alpha.kubernetes.io/migrated-plugins": EBS if on else None}
    for name in await listed(it, CSI_NODES):
        await merge(it, CSI_NODE.format(name), {"metadata": {"annotations": lists}})


async def switch_controllers(it: Ground, on: bool) -> None:
    """A replica that does not redirect comes, and goes."""
    name, namespace = "kube-controller-manager-late", "kube-system"
    if on:
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        await it.reader.connection.ask(Request("DELETE", path, {"gracePeriodSeconds": "0"}))
        return
    command = ["kube-controller-manager", "--feature-gates=CSIMigrationAWS=false"]
    pod: Object = {
        "metadata": {"name": name, "labels": {"component": "kube-controller-manager"}},
        "spec": {"containers": [{"name": "it", "image": "it", "command": command}]},
    }
    await it.writer.create(PODS, pod, namespace=namespace)


@pytest.mark.parametrize(
    ("switch", "why"),
    [
        (switch_nodes, "does not redirect kubernetes.io/aws-ebs"),
        (switch_controllers, "The controllers do not redirect kubernetes.io/aws-ebs"),
    ],
    ids=["nodes", "controllers"],
)
def test_a_volume_is_not_deleted_once_what_it_relies_on_has_changed(
    tmp_path: Path, switch: Callable[[Ground, bool], Awaitable[None]], why: str
) -> None:
    """Somebody switches them after the question, right before the first delete."""

    async def story(it: Ground) -> None:
        volumes = await uids(it, PERSISTENT_VOLUMES)

        async def switch_off(_volume: str) -> None:
            await switch(it, False)

        it.writer = Meddling(it.writer, "patch PersistentVolume", switch_off)
        with pytest.raises(Halted, match=why):
            await it.applying(how=How(at_once=1)).begin(await it.plan(Goal.CONVERT, EBS), {})
        assert await uids(it, PERSISTENT_VOLUMES) == volumes, "nothing is deleted"
        await switch(it, True)
        run = (await it.journals().runs())[-1]
        await it.applying().undo(run.id)
        assert await uids(it, PERSISTENT_VOLUMES) == volumes
        await is_well(it)

    live(story, tmp_path)


def test_a_volume_waits_for_a_driver_that_is_started_anew(tmp_path: Path) -> None:
    async def story(it: Ground) -> None:
        drivers = {
            name: obj["spec"]["drivers"] for name, obj in (await listed(it, CSI_NODES)).items()
        }

        async def unregister(_volume: str) -> None:
            for name in drivers:
                await merge(it, CSI_NODE.format(name), {"spec": {"drivers": []}})

        it.writer = Meddling(it.writer, "patch PersistentVolume", unregister)
        patience = Patience(detach=20)
        with pytest.raises(Halted, match=r"ebs\.csi\.aws\.com to be registered on "):
            await it.applying(how=How(patience=patience, at_once=1)).begin(
                await it.plan(Goal.CONVERT, EBS), {}
            )
        assert await native(it) == 0
        for name, its_drivers in drivers.items():
            await merge(it, CSI_NODE.format(name), {"spec": {"drivers": its_drivers}})
        run = (await it.journals().runs())[-1]
        await it.applying().resume(run.id)
        assert await native(it) == 5
        await is_well(it)

    live(story, tmp_path)
