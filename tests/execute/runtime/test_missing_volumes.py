"""A run that stops while a volume is away, and what whoever comes next does first."""

from __future__ import annotations

from pathlib import Path

import pytest

from replant.cluster.ports import PERSISTENT_VOLUMES, PODS, VOLUME_ATTACHMENTS, Resource
from replant.errors import Final, Halted
from replant.execute.following import follow
from replant.execute.journal import Run, State
from replant.execute.run import How
from replant.execute.runtime.missing_volumes import create_missing
from replant.objects import Object
from replant.plan.model import Goal
from tests.execute.living import Ground
from tests.execute.memory import Api
from tests.execute.test_convert import EBS, POLICY, is_well, listed, live, native


class Refusing:
    """A Writer of a cluster whose webhook has broken: no volume can be created."""

    def __init__(self, it: Ground) -> None:
        self._writer = it.writer

    def __getattr__(self, name: str) -> object:
        return getattr(self._writer, name)

    async def create(self, resource: Resource, obj: Object, *, namespace: str = "") -> Object:
        if resource is PERSISTENT_VOLUMES:
            raise Final("the webhook cannot be called")
        return await self._writer.create(resource, obj, namespace=namespace)


async def left_away(it: Ground) -> Run:
    """A run that has stopped between a delete and a create."""
    writer = it.writer
    it.writer = Refusing(it)  # type: ignore[assignment]
    with pytest.raises(Halted, match="the webhook cannot be called"):
        await it.applying(how=How(at_once=2)).begin(await it.plan(Goal.CONVERT, EBS), {})
    it.writer = writer
    return await it.journals().read((await it.journals().runs())[-1].id)


@pytest.mark.parametrize("back", [False, True], ids=["resume", "undo"])
def test_what_is_away_is_created_first(tmp_path: Path, *, back: bool) -> None:
    async def story(it: Ground) -> None:
        run = await left_away(it)
        before = await listed(it, PERSISTENT_VOLUMES)
        assert 0 < len(before) < 5
        found = await follow(it.reader, it.journals(), it.timing.now())
        assert found is not None
        assert len(found.away) == 5 - len(before)

        await create_missing(it.reader, it.writer, run, back=back, notice=it.shown.note)
        volumes = await listed(it, PERSISTENT_VOLUMES)
        assert sorted({*before, *found.away}) == sorted(volumes)
        for name in found.away:
            assert ("csi" in volumes[name]["spec"]) is not back
            assert volumes[name]["spec"][POLICY] == "Retain"
            assert f"PersistentVolume {name} was away, and is created" in it.shown.notes
        found = await follow(it.reader, it.journals(), it.timing.now())
        assert found is not None
        assert found.away == ()
        notes = len(it.shown.notes)
        await create_missing(it.reader, it.writer, run, back=back, notice=it.shown.note)
        assert len(it.shown.notes) == notes, "there is nothing to create any more"

        applying = it.applying()
        result = await (applying.undo if back else applying.resume)(run.header.id)
        assert result.state is (State.UNDONE if back else State.DONE)
        assert await native(it) == (0 if back else 5)
        await is_well(it)

    live(story, tmp_path)


def test_one_whose_disk_would_be_detached_under_its_pod_waits(tmp_path: Path) -> None:
    """A kubelet and a kube-controller-manager have restarted meanwhile."""

    async def story(it: Ground) -> None:
        run = await left_away(it)
        found = await follow(it.reader, it.journals(), it.timing.now())
        assert found is not None
        api = Api()
        attached = {
            pv: obj
            for obj in (await listed(it, VOLUME_ATTACHMENTS)).values()
            if (pv := obj["spec"]["source"].get("persistentVolumeName")) in found.away
        }
        assert attached.keys() == set(found.away)
        for number, obj in enumerate(attached.values()):
            going = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if number == 0 else {}
            body = {**obj, "metadata": {**obj["metadata"], **going}}
            api.objects[VOLUME_ATTACHMENTS.plural, "", obj["metadata"]["name"]] = body
        for name, pod in (await listed(it, PODS)).items():
            api.objects[PODS.plural, pod["metadata"]["namespace"], name] = pod
        notes: list[str] = []
        await create_missing(api, api, run, back=False, notice=notes.append)
        waits, *others = sorted(notes, key=lambda it: "waits for pod" not in it)
        held = next(iter(attached))
        assert waits.startswith(f"PersistentVolume {held} is away, and waits for pod default/")
        assert len(others) == len(attached) - 1
        made = [name for plural, _, name in api.objects if plural == PERSISTENT_VOLUMES.plural]
        assert sorted(made) == sorted(set(found.away) - {held})

    live(story, tmp_path)
