"""What a conversion does about StorageClasses, and when it refuses to."""

from __future__ import annotations

from typing import Any

import pytest

from replant.errors import Refused
from replant.plan.classes import AskedClasses, ClassWay, refuse_suffix
from replant.plan.convert import Asked, make_conversion
from replant.plan.model import CreateObjects, Plan, RemoveObjects, ReplaceClasses, Weight
from replant.plan.soundness import problems
from replant.plan.undo import undo_plan
from replant.plan.verdicts import Accepted
from tests.inventory.clusters import AWS, EBS, Object, pvc, storage_class
from tests.plan.clusters import inventory_of, tripped

DEFAULT = {"storageclass.kubernetes.io/is-default-class": "true"}
ARGO = {"argocd.argoproj.io/instance": "storage"}
CHARTED = {"app.kubernetes.io/instance": "storage", "app.kubernetes.io/managed-by": "Helm"}
WAITS = "WaitForFirstConsumer"


def converted(*extra: Object, way: str = "replace", suffix: str = "", **asked: Any) -> Plan:
    classes = AskedClasses(ClassWay(way), suffix)
    return make_conversion(Asked(classes=classes, **asked), inventory_of(AWS, *extra))


def pending(name: str = "data", annotations: Object | None = None, **spec: Any) -> Object:
    metadata = {"annotations": annotations or {}}
    return pvc(name, metadata=metadata, spec=spec, status={"phase": "Pending"})


def test_classes_are_left_alone_unless_they_are_asked_for() -> None:
    plan = converted(storage_class(), way="leave")
    assert not [it for it in plan.steps if isinstance(it, ReplaceClasses | CreateObjects)]


def test_a_class_is_made_again_under_its_name_after_the_volumes() -> None:
    fields: Object = {
        "parameters": {"type": "gp3", "fsType": "xfs"},
        "metadata": {"annotations": DEFAULT},
        "reclaimPolicy": "Retain",
        "volumeBindingMode": WAITS,
        "allowVolumeExpansion": True,
    }
    plan = converted(storage_class(**fields))
    step = plan.steps[-1]
    assert isinstance(step, ReplaceClasses)
    ((change,), ids) = step.classes, [it.id for it in plan.steps]
    assert step.after == (ids[-2],)
    assert change.before["provisioner"] == AWS
    assert change.after == {
        **change.before,
        "provisioner": EBS,
        "parameters": {"type": "gp3", "csi.storage.k8s.io/fstype": "xfs"},
    }
    assert change.after["metadata"] == {"name": "gp2", "annotations": DEFAULT}
    assert not plan.blockers
    assert not list(problems(plan))


@pytest.mark.parametrize(
    ("fields", "claim", "blocked"),
    [
        ({}, pending(storageClassName="gp2"), True),
        ({}, pending(storageClassName="other"), False),
        ({}, pending(storageClassName="gp2", volumeName="mine"), False),
        ({}, pending(), False),
        ({"metadata": {"annotations": DEFAULT}}, pending(), True),
        ({"metadata": {"annotations": DEFAULT}}, pending(storageClassName=""), False),
        ({}, pending(annotations={"volume.beta.kubernetes.io/storage-class": "gp2"}), True),
        ({"volumeBindingMode": WAITS}, pending(storageClassName="gp2"), False),
        (
            {"volumeBindingMode": WAITS},
            pending(
                annotations={"volume.kubernetes.io/selected-node": "n1"}, storageClassName="gp2"
            ),
            True,
        ),
        ({}, pvc(spec={"storageClassName": "gp2"}, status={"phase": "Bound"}), False),
    ],
)
def test_a_class_of_which_a_volume_is_being_made_is_not_replaced(
    fields: Object, claim: Object, *, blocked: bool
) -> None:
    plan = converted(storage_class(**fields), claim)
    found = tripped(plan.preflight, "class")
    assert [weight for weight, _ in found] == [Weight.BLOCKER] * blocked
    assert all("PersistentVolumeClaim shop/data" in message for _, message in found)
    assert any(isinstance(it, ReplaceClasses) for it in plan.steps) is not blocked
    assert not converted(storage_class(**fields), claim, way="twin", suffix="-csi").blockers


def test_what_cannot_be_made_again_is_named_and_stays() -> None:
    odd = storage_class("odd", parameters={"zone": "a", "zones": "b,c"})
    foreign = storage_class("disks", "kubernetes.io/gce-pd")
    plan = converted(odd, foreign, storage_class("good"))
    found = [message for _, message in tripped(plan.preflight, "class")]
    assert len(found) == 2
    assert "StorageClass odd stays as it is" in found[0]
    assert "pd.csi.storage.gke.io is not installed" in found[1]
    (step,) = (it for it in plan.steps if isinstance(it, ReplaceClasses))
    assert [it.after["metadata"]["name"] for it in step.classes] == ["good"]
    assert not plan.blockers


def test_what_a_driver_does_not_take_is_named() -> None:
    vsphere = "kubernetes.io/vsphere-volume"
    given = storage_class("thin", vsphere, parameters={"diskformat": "thin", "whatever": "1"})
    classes = AskedClasses(ClassWay.REPLACE)
    plan = make_conversion(Asked(classes=classes), inventory_of(vsphere, given))
    ((weight, message),) = tripped(plan.preflight, "class")
    assert weight is Weight.WARNING
    assert "StorageClass thin loses whatever" in message


@pytest.mark.parametrize(
    ("labels", "owner"), [(ARGO, "Argo CD"), (CHARTED, "Argo CD or Helm")], ids=str
)
def test_a_class_of_a_repository_is_replaced_only_if_that_is_accepted(
    labels: Object, owner: str
) -> None:
    given = storage_class(metadata={"labels": labels})
    (blocker,) = converted(given).blockers
    assert f"{owner} writes it" in blocker.message
    assert not converted(given, accepted=Accepted(owners=True)).blockers


def test_a_twin_stands_beside_and_is_never_the_default() -> None:
    given = storage_class(
        metadata={"annotations": DEFAULT, "labels": {"team": "db", **ARGO, **CHARTED}}
    )
    plan = converted(given, way="twin", suffix="-csi")
    step = plan.steps[-1]
    assert isinstance(step, CreateObjects)
    (made,) = step.objects
    assert made["metadata"] == {"name": "gp2-csi", "labels": {"team": "db"}}
    assert made["provisioner"] == EBS
    assert not list(problems(plan))
    undo = undo_plan(plan, step.id).steps[0]
    assert isinstance(undo, RemoveObjects)
    assert undo.objects == step.objects


def test_a_twin_that_is_there_is_not_made_again() -> None:
    plan = converted(storage_class(), storage_class("gp2-csi", EBS), way="twin", suffix="-csi")
    assert not [it for it in plan.steps if isinstance(it, CreateObjects)]
    assert not plan.blockers
    other = storage_class("gp2-csi", "somebody.else")
    (blocker,) = converted(storage_class(), other, way="twin", suffix="-csi").blockers
    assert "another class of that name" in blocker.message


def test_classes_alone_are_enough_for_a_plan() -> None:
    classes = AskedClasses(ClassWay.REPLACE)
    plan = make_conversion(Asked(classes=classes), inventory_of(AWS, storage_class(), volume=False))
    assert [it.id for it in plan.steps] == ["replace-classes"]
    assert plan.proof is not None
    assert plan.proof.safe


@pytest.mark.parametrize("suffix", ["-CSI", "-csi-", "_csi", ""])
def test_a_suffix_that_no_name_can_have_is_refused(suffix: str) -> None:
    with pytest.raises(Refused):
        refuse_suffix(suffix)
