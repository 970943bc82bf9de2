"""Objects that a step makes, and their undoing: what comes next, from what is seen."""

from __future__ import annotations

from typing import Any

from replant.execute.acts import Decision
from replant.execute.making import (
    MADE_BY,
    LookAtThese,
    MakeObject,
    Making,
    RemoveObject,
    Removing,
    marked,
)
from replant.execute.world import World
from replant.objects import Object, name_of
from replant.plan.model import CreateObjects, RemoveObjects

RUN = "convert-1"
PV: Object = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {"name": "disk"},
    "spec": {"csi": {"volumeHandle": "vol-1"}, "claimRef": {"namespace": "shop", "name": "disk"}},
}
PVC: Object = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "disk", "namespace": "shop"},
    "spec": {"volumeName": "disk", "storageClassName": ""},
}
TOLD: dict[str, Any] = {"id": "s", "title": "t", "why": "", "done_when": "", "undo": ""}


def as_found(obj: Object, phase: str = "Bound", run: str = RUN, **metadata: Any) -> Object:
    made = marked(obj, run) if run else obj
    known = {"uid": "u", "resourceVersion": "7", **metadata}
    return {**made, "metadata": {**made["metadata"], **known}, "status": {"phase": phase}}


def decided(stage: Making | Removing, *seen: Object) -> Decision:
    look = LookAtThese(why="", objects=())
    stage.learn(look, {name_of(it): it for it in seen}, 100.0)
    return stage.decide(World(), 100.0)


def making(*seen: Object) -> Decision:
    step = CreateObjects(**TOLD, objects=(PV, PVC))
    return decided(Making(step, RUN, timeout=60), *seen)


def removing(*seen: Object) -> Decision:
    step = RemoveObjects(**TOLD, objects=(PV, PVC))
    return decided(Removing(step, RUN, timeout=60), *seen)


def test_they_are_made_one_after_the_other_with_the_mark_of_the_run() -> None:
    (act,) = making().acts
    assert isinstance(act, MakeObject)
    assert act.obj == marked(PV, RUN)
    (act,) = making(as_found(PV, "Available")).acts
    assert isinstance(act, MakeObject)
    assert act.obj["metadata"]["annotations"] == {MADE_BY: RUN}
    assert act.obj["kind"] == "PersistentVolumeClaim"


def test_a_claim_counts_once_it_is_bound() -> None:
    waiting = making(as_found(PV), as_found(PVC, "Pending"))
    assert not waiting.done
    assert [it.what for it in waiting.waits] == [
        "PersistentVolumeClaim shop/disk to be Bound to its volume"
    ]
    assert making(as_found(PV), as_found(PVC)).done


def test_what_the_server_adds_is_no_difference_and_another_disk_is() -> None:
    richer = as_found(PV)
    richer["spec"] = {**PV["spec"], "volumeMode": "Filesystem"}
    assert making(richer, as_found(PVC)).done
    other = as_found(PV)
    other["spec"] = {**PV["spec"], "csi": {"volumeHandle": "vol-2"}}
    assert "somebody else has made it" in making(other, as_found(PVC)).failed


def test_one_that_is_being_deleted_is_waited_for() -> None:
    going = as_found(PV, deletionTimestamp="2024-01-01T00:00:00Z")
    for decision in (making(going), removing(going)):
        assert not decision.acts
        assert [it.key for it in decision.waits] == ["PersistentVolume disk"]


def test_the_last_goes_first_as_it_was_seen() -> None:
    (act,) = removing(as_found(PV), as_found(PVC)).acts
    assert isinstance(act, RemoveObject)
    assert act.target == "PersistentVolumeClaim shop/disk"
    assert act.backup == as_found(PVC)
    (act,) = removing(as_found(PV, "Released")).acts
    assert act.target == "PersistentVolume disk"
    assert removing().done


def test_what_is_of_another_run_or_of_nobody_stays_with_its_volume() -> None:
    for run in ("convert-0", ""):
        decision = removing(as_found(PV), as_found(PVC, run=run))
        assert decision.done
        assert len(decision.notes) == 2
