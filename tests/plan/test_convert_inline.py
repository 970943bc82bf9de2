"""Which workloads come to name claims instead of disks, how, and which do not."""

from __future__ import annotations

from typing import Any

import pytest

from replant.errors import Refused
from replant.inventory.model import Rollout
from replant.inventory.selectors import Selector
from replant.plan.convert import Asked, make_conversion
from replant.plan.inline import AskedInline, inline_changes, strategic_patch, unavailable
from replant.plan.model import CreateObjects, Plan, RewriteTemplates, ScaleWorkloads, Weight
from replant.plan.soundness import problems
from replant.plan.undo import undo_plan
from replant.plan.verdicts import Accepted
from tests.inventory.clusters import AWS, Object, obj, pod, pv, storage_class
from tests.plan.clusters import Kubelet, inventory_of, tripped

ON = {"CSIMigrationAWS": True}
DATA = {"name": "data", "awsElasticBlockStore": {"volumeID": "vol-9", "fsType": "xfs"}}
RECREATE: Object = {"strategy": {"type": "Recreate"}}
DOWN = Accepted(scale_down=True)


def workload(
    kind: str = "Deployment", name: str = "web", volume: Object = DATA, **spec: Any
) -> Object:
    template = {"spec": {"volumes": [{"name": "tmp", "emptyDir": {}}, volume]}}
    holder: Object = {"template": template}
    if kind == "CronJob":
        holder = {"jobTemplate": {"spec": holder}}
    metadata = spec.pop("metadata", {})
    return obj(kind, name, "shop", metadata=metadata, spec={"replicas": 1, **holder, **spec})


def its_pod(owner: str = "web-5d4f8c7b9f", kind: str = "ReplicaSet", node: str = "n1") -> Object:
    reference = {"kind": kind, "name": owner, "controller": True}
    metadata = {"ownerReferences": [reference]}
    return pod(f"{owner}-x", "shop", metadata=metadata, volumes=[DATA], nodeName=node)


def converted(*extra: Object, migrated: bool = True, **asked: Any) -> Plan:
    gates = ON if migrated else {"CSIMigrationAWS": False}
    kubelets = (Kubelet(gates=gates), Kubelet(gates=gates))
    asked = {"inline": AskedInline(convert=True), **asked}
    inventory = inventory_of(AWS, *extra, volume=False, gates=gates, kubelets=kubelets)
    return make_conversion(Asked(**asked), inventory)


def kinds(plan: Plan) -> list[str]:
    return [type(it).__name__ for it in plan.steps]


ROLLED = ["CreateObjects", "RewriteTemplates"]
SCALED = ["CreateObjects", "ScaleWorkloads", "RewriteTemplates", "ScaleWorkloads"]


def test_nothing_is_done_unless_it_is_asked_for() -> None:
    plan = converted(workload(**RECREATE), inline=AskedInline(), plugins=(AWS,))
    assert not plan.steps


def test_a_volume_and_a_claim_are_made_for_each_other() -> None:
    plan = converted(workload(**RECREATE))
    create, rewrite = plan.steps
    assert isinstance(create, CreateObjects)
    assert isinstance(rewrite, RewriteTemplates)
    volume, claim = create.objects
    name = volume["metadata"]["name"]
    assert claim["metadata"] == {"name": name, "namespace": "shop"}
    assert claim["spec"]["volumeName"] == name
    assert claim["spec"]["storageClassName"] == volume["spec"]["storageClassName"] == ""
    reference = volume["spec"]["claimRef"]
    assert (reference["namespace"], reference["name"]) == ("shop", name)
    assert volume["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert volume["spec"]["csi"]["volumeHandle"] == "vol-9"
    ((change,),) = (it.volumes for it in rewrite.workloads)
    assert change.before == DATA
    assert change.after == {"name": "data", "persistentVolumeClaim": {"claimName": name}}
    assert rewrite.workloads[0].free_of == ()
    assert not list(problems(plan))


def test_the_way_back_puts_the_templates_back_before_it_deletes() -> None:
    plan = converted(workload(**RECREATE))
    rewrite, remove = undo_plan(plan, "rewrite-templates").steps
    assert isinstance(rewrite, RewriteTemplates)
    assert rewrite.workloads[0].volumes[0].after == DATA
    assert remove.id == "undo-create-inline-volumes"


@pytest.mark.parametrize(
    ("kind", "spec", "wanted"),
    [
        ("Deployment", RECREATE, ROLLED),
        ("Deployment", {"strategy": {"rollingUpdate": {"maxUnavailable": 1}}}, ROLLED),
        ("Deployment", {}, SCALED),
        ("Deployment", {"replicas": 4}, ROLLED),
        ("Deployment", {"replicas": 0}, ROLLED),
        ("StatefulSet", {}, ROLLED),
        ("StatefulSet", {"updateStrategy": {"type": "OnDelete"}}, SCALED),
        ("ReplicaSet", {}, SCALED),
        ("ReplicationController", {}, SCALED),
        ("DaemonSet", {}, ROLLED),
        ("DaemonSet", {"updateStrategy": {"type": "OnDelete"}}, []),
        ("StatefulSet", {"updateStrategy": {"rollingUpdate": {"partition": 1}}}, []),
        ("Deployment", {"paused": True, **RECREATE}, []),
        ("Job", {}, []),
        ("CronJob", {}, []),
    ],
)
def test_how_a_workload_comes_to_its_claim(kind: str, spec: Object, wanted: list[str]) -> None:
    plan = converted(workload(kind, **spec), accepted=DOWN)
    assert kinds(plan) == wanted
    assert len(tripped(plan.preflight, "inline")) == (not wanted)
    without = converted(workload(kind, **spec))
    assert kinds(without) == (wanted if wanted == ROLLED else [])


def test_what_reads_only_may_surge() -> None:
    gce = {"name": "data", "gcePersistentDisk": {"pdName": "disk", "readOnly": True}}
    plugin = "kubernetes.io/gce-pd"
    inventory = inventory_of(plugin, workload(volume=gce), volume=False, server="1.24.17")
    asked = Asked(inline=AskedInline(convert=True), accepted=Accepted(unsuited=True))
    assert kinds(make_conversion(Asked(inline=asked.inline), inventory)) == [], "no zone is known"
    plan = make_conversion(asked, inventory)
    assert kinds(plan) == ROLLED


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_where_the_tree_has_the_disk_it_must_be_free_in_between(kind: str) -> None:
    owner = ("web-5d4f8c7b9f", "ReplicaSet") if kind == "Deployment" else ("web", "StatefulSet")
    there = (workload(kind, **RECREATE), its_pod(*owner))
    plan = converted(*there, migrated=False, accepted=DOWN)
    assert kinds(plan) == SCALED
    (rewrite,) = (it for it in plan.steps if isinstance(it, RewriteTemplates))
    assert rewrite.workloads[0].free_of == (
        "kubernetes.io/aws-ebs/vol-9",
        "kubernetes.io/csi/ebs.csi.aws.com^vol-9",
    )
    assert rewrite.settle_seconds == 10
    ((_, message),) = tripped(converted(*there, migrated=False).preflight, "inline")
    assert "does not redirect" in message


def test_who_shares_a_disk_goes_down_together() -> None:
    there = (workload(name="one"), workload(name="two"))
    plan = converted(*there, its_pod("one-5d4f8c7b9f"), migrated=False, accepted=DOWN)
    assert kinds(plan) == SCALED
    (down,) = (it for it in plan.steps if isinstance(it, ScaleWorkloads) and it.down)
    assert [it.name for it in down.workloads] == ["one", "two"]
    (create,) = (it for it in plan.steps if isinstance(it, CreateObjects))
    assert len(create.objects) == 2


def test_a_naked_pod_is_named_and_old_templates_are_not() -> None:
    naked = pod("naked", "shop", volumes=[DATA])
    owner = [{"kind": "Deployment", "name": "web", "controller": True}]
    old = workload("ReplicaSet", "web-5d4f8c7b9f", metadata={"ownerReferences": owner})
    plan = converted(naked, old)
    ((_, message),) = tripped(plan.preflight, "inline")
    assert "Pod shop/naked stays as it is" in message
    assert not plan.steps


def test_a_disk_never_gets_two_volumes() -> None:
    known = pv("known", awsElasticBlockStore={"volumeID": "vol-9"})
    plan = converted(workload(**RECREATE), known)
    assert "RewriteTemplates" not in kinds(plan)
    ((_, message),) = tripped(plan.preflight, "inline")
    assert "PersistentVolume known" in message
    elsewhere = {**workload(**RECREATE)}
    elsewhere["metadata"] = {"name": "web", "namespace": "other"}
    plan = converted(workload(**RECREATE), elsewhere)
    (rewrite,) = (it for it in plan.steps if isinstance(it, RewriteTemplates))
    assert len(rewrite.workloads) == 1


@pytest.mark.parametrize(
    ("plugin", "source", "changed"),
    [
        ("azure-file", {"azureFile": {"secretName": "key", "shareName": "share"}}, 2),
        ("gce-pd", {"gcePersistentDisk": {"pdName": "disk", "readOnly": True}}, 1),
    ],
)
def test_a_share_may_have_a_volume_for_each_namespace_and_a_disk_may_not(
    plugin: str, source: Object, changed: int
) -> None:
    here = workload(volume={"name": "data", **source})
    there = {**here, "metadata": {"name": "web", "namespace": "other"}}
    name = f"kubernetes.io/{plugin}"
    inventory = inventory_of(name, here, there, volume=False, server="1.24.17")
    asked = Asked(inline=AskedInline(convert=True), accepted=Accepted(unsuited=True))
    plan = make_conversion(asked, inventory)
    (rewrite,) = (it for it in plan.steps if isinstance(it, RewriteTemplates))
    assert len(rewrite.workloads) == changed


def test_a_workload_of_a_repository_is_changed_only_if_that_is_accepted() -> None:
    given = workload(metadata={"labels": {"argocd.argoproj.io/instance": "shop"}}, **RECREATE)
    ((_, message),) = tripped(converted(given).preflight, "inline")
    assert "Argo CD writes it" in message
    assert kinds(converted(given, accepted=Accepted(owners=True))) == ROLLED


def test_the_label_that_charts_give_to_workloads_is_only_warned_of() -> None:
    given = workload(metadata={"labels": {"app.kubernetes.io/instance": "shop"}}, **RECREATE)
    plan = converted(given)
    assert kinds(plan) == ROLLED
    ((weight, message),) = tripped(plan.preflight, "inline")
    assert weight is Weight.WARNING
    assert "by which Argo CD may know its own" in message
    assert not tripped(converted(given, accepted=Accepted(owners=True)).preflight, "inline")


def test_workloads_are_chosen_by_namespace_and_plugin() -> None:
    assert kinds(converted(workload(**RECREATE), namespace="shop")) == ROLLED
    assert not converted(workload(**RECREATE), namespace="other").steps
    with pytest.raises(Refused, match="by namespace and plugin alone"):
        converted(workload(**RECREATE), selector=Selector.parse("a=b"))


def test_classes_come_last() -> None:
    from replant.plan.classes import AskedClasses, ClassWay

    classes = AskedClasses(ClassWay.REPLACE)
    plan = converted(workload(**RECREATE), storage_class(), classes=classes)
    assert kinds(plan) == [*ROLLED, "ReplaceClasses"]


@pytest.mark.parametrize(
    ("missing", "surge", "replicas", "wanted"),
    [
        (None, None, 1, 0),
        (None, None, 3, 0),
        (None, None, 4, 1),
        ("50%", "50%", 1, 0),
        ("50%", "0", 3, 1),
        (0, 0, 5, 1),
        ("10%", "0%", 5, 1),
        (2, 1, 1, 2),
    ],
)
def test_how_many_pods_may_be_missing(
    missing: int | str | None, surge: int | str | None, replicas: int, wanted: int
) -> None:
    rollout = Rollout("RollingUpdate", missing, surge, 0, paused=False, marks=frozenset())
    assert unavailable(rollout, replicas) == wanted


def test_a_patch_takes_the_source_away_and_says_nothing_else() -> None:
    (change,), _ = inline_changes(inventory_of(AWS, workload(), volume=False), "1Gi")
    patch = strategic_patch(change)
    (volume,) = patch["spec"]["template"]["spec"]["volumes"]
    claim = change.objects[1]["metadata"]["name"]
    assert volume == {
        "name": "data",
        "persistentVolumeClaim": {"claimName": claim},
        "awsElasticBlockStore": None,
    }
    assert patch["spec"].keys() == {"template"}
