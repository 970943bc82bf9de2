"""Which volumes can be replaced while in use, which only unused, and which not: with the reason."""

from __future__ import annotations

from typing import Any

import pytest

from replant.errors import Refused
from replant.inventory.model import Inventory
from replant.inventory.selectors import Selector
from replant.plan.convert import Asked, changed_verdicts, make_conversion, make_restoration
from replant.plan.deletion_secrets import DELETION_SECRET
from replant.plan.model import (
    Plan,
    RestoreVolumes,
    SavedVolume,
    ScaleWorkloads,
    SwapVolumes,
    Weight,
)
from replant.plan.situation import situation
from replant.plan.undo import undo_plan
from replant.plan.verdicts import Accepted, How, Judge, Verdict
from replant.swap import twin
from replant.translate import driver_of, plugins
from tests.inventory.clusters import (
    AWS,
    EBS,
    Object,
    attachment,
    csi_node,
    driver,
    inventory_of,
    node,
    obj,
    pod,
    pv,
    pvc,
    storage_class,
)
from tests.plan.clusters import SOURCES

ON, OFF = "n1", "n2"
"""A node that redirects, and one that does not."""
IN_TREE, CSI = f"{AWS}/vol-1", f"kubernetes.io/csi/{EBS}^vol-1"
REF = {"namespace": "shop", "name": "data", "uid": "1"}
DOWN = Accepted(scale_down=True)
OWNED = {"kind": "StatefulSet", "name": "web", "controller": True}


def bound(*, metadata: Object | None = None, phase: str = "Bound", **spec: Any) -> Object:
    """A volume that a claim has."""
    made = pv("db", metadata={"uid": "old", **(metadata or {})}, claimRef=REF, **spec)
    return {**made, "status": {"phase": phase}}


def claim(uid: str = "1", asks: str = "1Gi", has: str = "1Gi", **status: Any) -> Object:
    spec = {"volumeName": "db", "resources": {"requests": {"storage": asks}}}
    status = {"phase": "Bound", "capacity": {"storage": has}, **status}
    labels = {"tier": "data"}
    return pvc("data", metadata={"uid": uid, "labels": labels}, spec=spec, status=status)


def user(name: str = "web-0", on: str = ON, owner: Object | None = OWNED) -> Object:
    metadata = {"ownerReferences": [owner]} if owner else {}
    return pod(name, claim="data", nodeName=on, metadata=metadata)


def workload(kind: str = "StatefulSet", replicas: int = 2, **retention: str) -> Object:
    kept = {"persistentVolumeClaimRetentionPolicy": retention} if retention else {}
    spec = {"replicas": replicas, "template": {"spec": {}}, **kept}
    return obj(kind, "web", "shop", spec=spec)


def cluster(
    *objects: Object,
    server: str = "1.24.17",
    held: Object | None = None,
    everywhere: bool = False,
) -> Inventory:
    """Two nodes with the driver, of which one redirects, or both; the controllers do."""
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    names = [it["metadata"]["name"] for it in objects if it["kind"] == "Node"]
    nodes = [
        node(name, status={**ready, **(held or {}).get(name, {})})
        for name in (ON, OFF)
        if name not in names
    ]
    csi_nodes = [
        csi_node(ON, EBS, migrated=AWS),
        csi_node(OFF, EBS, migrated=AWS if everywhere else ""),
    ]
    flags = {"--feature-gates=CSIMigrationAWS=true"}
    manager = pod("kube-controller-manager-a", "kube-system", nodeName="a", containers=[
        {"name": "c", "command": ["kube-controller-manager", *flags]}],
        metadata={"labels": {"component": "kube-controller-manager", "tier": "control-plane"}},
    )  # fmt: skip
    drivers = [] if any(it["kind"] == "CSIDriver" for it in objects) else [driver()]
    return inventory_of([*objects, *nodes, *csi_nodes, *drivers, manager], server=server)


def judged(inventory: Inventory, accepted: Accepted | None = None) -> Verdict:
    now = situation(inventory, (AWS,))
    return Judge(now, accepted or Accepted()).judge(inventory.by_name["db"])


def attached(name: str, on: str) -> Object:
    return {on: {"volumesAttached": [{"name": name, "devicePath": ""}]}}


HOT: dict[str, Inventory] = {
    "nothing uses it": cluster(bound(), claim(), everywhere=True),
    "no claim has it": cluster({**pv("db"), "status": {"phase": "Available"}}, everywhere=True),
    "its claim is gone and it is kept": cluster(
        bound(phase="Released", persistentVolumeReclaimPolicy="Retain"), everywhere=True
    ),
    "another claim has the name of its own": cluster(
        bound(phase="Released", persistentVolumeReclaimPolicy="Retain"),
        claim(uid="2"),
        everywhere=True,
    ),
    "a pod runs where it is redirected": cluster(
        bound(), claim(), user(), attachment(), held=attached(CSI, ON)
    ),
    "several pods": cluster(bound(), claim(), user(), user("web-1"), attachment()),
    "its node is gone": cluster(bound(), claim(), attachment(node="gone")),
    "read only": cluster(bound(accessModes=["ReadOnlyMany"]), claim(), user()),
    "a block device": cluster(bound(volumeMode="Block"), claim(), user()),
}


@pytest.mark.parametrize("story", HOT)
def test_replaced_while_in_use(story: str) -> None:
    verdict = judged(HOT[story])
    assert (verdict.how, verdict.handle) == (How.HOT, "vol-1"), verdict.why


COLD: dict[str, tuple[Inventory, str]] = {
    "by its in-tree name": (
        cluster(bound(), claim(), user(), workload(), held=attached(IN_TREE, ON)),
        "attached to n1 by the in-tree plugin",
    ),
    "in use by its in-tree name": (
        cluster(bound(), claim(), user(), workload(), held={ON: {"volumesInUse": [IN_TREE]}}),
        "attached to n1 by the in-tree plugin",
    ),
    "where nothing is redirected": (
        cluster(bound(), claim(), user(on=OFF), workload()),
        "n2 does not redirect",
    ),
}


@pytest.mark.parametrize("story", COLD)
def test_replaced_only_unused(story: str) -> None:
    inventory, why = COLD[story]
    refused = judged(inventory)
    assert refused.how is How.REFUSED
    assert why in refused.why
    assert "StatefulSet shop/web must be scaled down" in refused.why
    allowed = judged(inventory, DOWN)
    assert (allowed.how, allowed.names) == (How.COLD, (IN_TREE, CSI))
    assert [str(it) for it in allowed.workloads] == ["StatefulSet shop/web"]


def test_what_nothing_uses_must_be_seen_to_be_free_where_a_pod_could_attach_it_otherwise() -> None:
    """A pod may start on it a moment later, or have ended a moment before."""
    inventory = cluster(bound(), claim())
    verdict = judged(inventory)
    assert (verdict.how, verdict.names, verdict.workloads) == (How.COLD, (IN_TREE, CSI), ())
    (step,) = planned(inventory).steps
    assert isinstance(step, SwapVolumes)
    assert step.volumes[0].free_of == (IN_TREE, CSI)
    assert (step.settle_seconds, step.restart_controllers) == (10, True)


RECLAIM = "reclaim.example.com/storage"


def going(obj: Object) -> Object:
    """An object that is being deleted."""
    return {**obj, "metadata": {**obj["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}


def owned(kind: str) -> Object:
    """The claim, as that of another object."""
    made = claim()
    return {
        **made,
        "metadata": {**made["metadata"], "ownerReferences": [{"kind": kind, "name": "x"}]},
    }


NEVER: dict[str, tuple[Inventory, str]] = {
    "being deleted": (cluster(bound(metadata={"deletionTimestamp": "now"}), claim()), "deleted"),
    "its disk is being deleted": (
        cluster(bound(phase="Released", persistentVolumeReclaimPolicy="Delete")), "about to be",
    ),
    "its disk could not be deleted": (cluster(bound(phase="Failed")), "phase is Failed"),
    "its claim is Lost": (cluster(bound(), claim(phase="Lost")), "Lost"),
    "its claim is not there": (cluster(bound()), "a claim that is not there"),
    "expanding": (cluster(bound(), claim(asks="2Gi")), "expanded"),
    "its driver is expanding it": (
        cluster(bound(), claim(allocatedResourceStatuses={"storage": "NodeResizeInProgress"})),
        "expanded",
    ),
    "its attributes are being modified": (
        cluster(bound(), claim(modifyVolumeStatus={"status": "InProgress"})), "being modified",
    ),
    "its claim is being deleted": (
        cluster(bound(), going(claim()), user()), "Its claim is being deleted",
    ),
    "a finalizer that nobody knows": (
        cluster(bound(metadata={"finalizers": ["kubernetes.io/pv-protection", RECLAIM]}), claim()),
        f"It has the finalizer {RECLAIM}",
    ),
    "its file system is expanding": (
        cluster(bound(), claim(conditions=[{"type": "FileSystemResizePending",
                                            "status": "True"}])),
        "expanded",
    ),
    "Argo CD writes it": (
        cluster(
            bound(metadata={"annotations": {"argocd.argoproj.io/tracking-id": "x"}}), claim(),
            everywhere=True,
        ),
        "Argo CD writes it",
    ),
    "Flux writes it": (
        cluster(bound(metadata={"labels": {"kustomize.toolkit.fluxcd.io/name": "x"}}), claim()),
        "Flux writes it",
    ),
    "an Argo CD writes it that knows its own by the label of charts": (
        cluster(
            bound(metadata={"labels": {"app.kubernetes.io/instance": "shop"}}), claim(),
            everywhere=True,
        ),
        "Argo CD or Helm writes it",
    ),
    "a chart has it": (
        cluster(
            bound(metadata={"labels": {"app.kubernetes.io/managed-by": "Helm"}}), claim(),
            everywhere=True,
        ),
        "Argo CD or Helm writes it",
    ),
    "no driver": (cluster(bound(), claim(), driver("other.csi")), "not installed"),
    "no driver where its pod is": (
        cluster(bound(), claim(), user(on="n3"), node("n3"), csi_node("n3", migrated=AWS)),
        "not registered on n3",
    ),
    "it cannot be translated": (
        cluster(bound(awsElasticBlockStore={"volumeID": ""}), claim()), "volumeID",
    ),
}  # fmt: skip


@pytest.mark.parametrize("story", NEVER)
def test_refused_with_the_reason(story: str) -> None:
    inventory, why = NEVER[story]
    verdict = judged(inventory)
    assert verdict.how is How.REFUSED
    assert why in verdict.why


def test_a_finalizer_that_somebody_accepts_stands_in_the_plan() -> None:
    found, _why = NEVER["a finalizer that nobody knows"]
    plan = make_conversion(Asked(accepted=Accepted(finalizers=(RECLAIM, "other"))), found)
    (step,) = plan.steps
    assert isinstance(step, SwapVolumes)
    assert step.volumes[0].accept_finalizers == (RECLAIM,)
    assert changed_verdicts(plan, situation(found, (AWS,))) == []


RECLAIMER = "csi-reclaim-controller"
RECLAIMS = pod("r", containers=[{"name": "c", "image": f"quay.io/piraeus/{RECLAIMER}:v1"}])


@pytest.mark.parametrize("again", [False, True], ids=["when it is planned", "when it is begun"])
def test_nothing_is_deleted_while_a_controller_runs_that_deletes_storage(again: bool) -> None:
    without = cluster(bound(), claim(), everywhere=True)
    found = cluster(bound(), claim(), RECLAIMS, everywhere=True)
    if again:
        plan = make_conversion(Asked(), without)
        (why,) = changed_verdicts(plan, situation(found, (AWS,)))
        assert RECLAIMER in why
        return
    (blocker,) = make_conversion(Asked(), found).blockers
    assert blocker.check == "controllers"
    accepted = Asked(accepted=Accepted(controllers=(RECLAIMER,)))
    plan = make_conversion(accepted, found)
    assert not plan.blockers
    assert changed_verdicts(plan, situation(found, (AWS,))) == []


LOSING: dict[str, tuple[Inventory, str]] = {
    "a StatefulSet that deletes its claims": (
        cluster(bound(), claim(), user(on=OFF), workload(whenScaled="Delete")),
        "StatefulSet shop/web would delete its claims",
    ),
    "a claim that goes with its pod": (
        cluster(bound(), owned("Pod"), user(on=OFF), workload()), "belongs to Pod x",
    ),
    "a claim of an operator's": (
        cluster(bound(), owned("Database"), user(on=OFF), workload()), "belongs to Database x",
    ),
}  # fmt: skip


@pytest.mark.parametrize("story", LOSING)
def test_nothing_is_scaled_down_whose_claims_might_be_deleted(story: str) -> None:
    inventory, why = LOSING[story]
    verdict = judged(inventory, DOWN)
    assert verdict.how is How.REFUSED
    assert why in verdict.why


@pytest.mark.parametrize("kept", [owned("StatefulSet"), claim()], ids=["a StatefulSet's", "free"])
def test_a_claim_that_stays_when_its_workload_is_scaled_down(kept: Object) -> None:
    found = cluster(bound(), kept, user(on=OFF), workload(whenScaled="Retain"))
    assert judged(found, DOWN).how is How.COLD


BY_HAND: dict[str, tuple[str, Object, bool]] = {
    "nobody deletes it": ("1.27.16", {}, True),
    "the in-tree plugin deletes it": ("1.24.17", {}, False),
    "it was provisioned": ("1.27.16", {"pv.kubernetes.io/provisioned-by": AWS}, False),
}


@pytest.mark.parametrize("story", BY_HAND)
def test_a_disk_that_nobody_deletes_today_is_kept_by_the_policy_retain(story: str) -> None:
    server, annotations, retain = BY_HAND[story]
    volume = bound(metadata={"annotations": annotations}, persistentVolumeReclaimPolicy="Delete")
    verdict = judged(cluster(volume, claim(), server=server, everywhere=True))
    assert (verdict.how, verdict.retain) == (How.HOT, retain), verdict.why
    assert any("reclaim policy Retain" in it for it in verdict.notes) == retain


@pytest.mark.parametrize(
    ("image", "misread"),
    [
        ("kubernetes-dynamic-pvc-8a5f7a3c", False),
        ("kubernetes-dynamic-pvc-8a5f_7a3c", True),
        ("database", True),
    ],
)
def test_an_image_that_ceph_would_take_for_another(image: str, misread: bool) -> None:
    name = "kubernetes.io/rbd"
    source = {**SOURCES[name]["rbd"], "image": image}
    deletion = dict.fromkeys(DELETION_SECRET, "ceph")
    volume = pv(
        "db", rbd=source, metadata={"annotations": deletion}, persistentVolumeReclaimPolicy="Delete"
    )
    found = cluster(volume, driver(driver_of(name)))
    now = situation(found, (name,))
    verdict = Judge(now, Accepted(losses=True)).judge(found.by_name["db"])
    assert (verdict.how is How.REFUSED) == misread, verdict.why
    assert (image in verdict.why) == misread
    knows = Accepted(losses=True, unsuited=True)
    assert Judge(now, knows).judge(found.by_name["db"]).retain == misread


UNSCALABLE: dict[str, tuple[Inventory, str]] = {
    "a naked pod": (cluster(bound(), claim(), user(on=OFF, owner=None)), "Pod shop/web-0"),
    "a DaemonSet": (
        cluster(bound(), claim(), user(on=OFF, owner={**OWNED, "kind": "DaemonSet"})),
        "DaemonSet shop/web",
    ),
    "a node that does not answer": (
        cluster(bound(), claim(), user(on="n3"), workload(), node("n3"), csi_node("n3", EBS)),
        "n3 does not answer",
    ),
}


@pytest.mark.parametrize("story", UNSCALABLE)
def test_what_nobody_can_scale_down_is_refused_even_then(story: str) -> None:
    inventory, why = UNSCALABLE[story]
    verdict = judged(inventory, DOWN)
    assert verdict.how is How.REFUSED
    assert why in verdict.why


@pytest.mark.parametrize("story", [it for it in NEVER if "rgo CD" in it or "chart" in it])
def test_whoever_owns_it_can_be_overruled(story: str) -> None:
    inventory, _why = NEVER[story]
    assert judged(inventory, Accepted(owners=True)).how is How.HOT


@pytest.mark.parametrize("plugin", plugins())
def test_what_is_lost_is_named_and_must_be_accepted(plugin: str) -> None:
    """Only what is really there counts: most volumes lose nothing."""
    disk = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/disk"
    extra: dict[str, Object] = {
        "rbd": {"keyring": "/etc/ceph/key"},
        "cinder": {"secretRef": {"name": "s"}},
        "azure-disk": {"diskURI": disk},
    }
    short = plugin.removeprefix("kubernetes.io/")
    ((field, source),) = SOURCES[plugin].items()
    found = cluster(pv("db", **{field: {**source, **extra.get(short, {})}}), driver("x"))
    now = situation(found, (plugin,))
    volume = found.by_name["db"]
    verdict = Judge(now, Accepted(unsuited=short == "gce-pd")).judge(volume)
    loses = short in ("rbd", "cinder")
    assert ("does not say all" in verdict.why) == loses, verdict.why


def test_what_a_driver_does_not_cope_with_is_refused_unless_somebody_knows_better() -> None:
    for name in ("kubernetes.io/vsphere-volume", "kubernetes.io/gce-pd"):
        found = cluster(pv("db", **SOURCES[name]))
        judge = Judge(situation(found, (name,)), Accepted(losses=True))
        assert judge.judge(found.by_name["db"]).fix.startswith("Say --accept-unsuited")
    zone = {"topology.kubernetes.io/zone": "a"}
    found = cluster(pv("db", metadata={"labels": zone}, **SOURCES["kubernetes.io/gce-pd"]))
    judge = Judge(situation(found, ("kubernetes.io/gce-pd",)), Accepted())
    assert "--accept-unsuited" not in judge.judge(found.by_name["db"]).fix


def test_a_plan_for_what_somebody_knows_better_about_can_be_carried_out() -> None:
    for name in ("kubernetes.io/vsphere-volume", "kubernetes.io/gce-pd"):
        found = cluster(
            {**pv("db", **SOURCES[name]), "status": {"phase": "Available"}},
            driver(driver_of(name)),
        )
        knows = Accepted(unsuited=True, losses=True)
        plan = make_conversion(Asked(plugins=(name,), accepted=knows), found)
        assert len(plan.steps) == 1
        assert changed_verdicts(plan, situation(found, (name,))) == []


def test_what_cannot_be_translated_back_loses_nothing_by_it() -> None:
    zones = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-a"]}
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [zones]}]}}
    plan = planned(cluster(bound(nodeAffinity=affinity), claim(), everywhere=True))
    assert len(plan.steps) == 1
    (said,) = (it.message for it in plan.preflight if it.result is Weight.WARNING)
    assert "could not be translated back" in said
    assert "zone-a is not an AWS zone" in said
    assert "loses" not in said


RBD = "kubernetes.io/rbd"


def rbd_cluster(**parameters: str) -> Inventory:
    """A volume of a class with these parameters; without any, its class is gone."""
    spec = {"storageClassName": "ceph", "persistentVolumeReclaimPolicy": "Delete"}
    made = pv("db", **{**SOURCES[RBD], **spec})
    classes = [storage_class("ceph", RBD, parameters=parameters)] if parameters else []
    return cluster(made, driver("rbd.csi.ceph.com"), *classes)


def test_a_volume_says_with_which_secret_it_is_deleted_or_it_is_refused() -> None:
    given = {"monitors": "m", "adminSecretName": "admin", "adminSecretNamespace": "ceph"}
    for inventory, secret in ((rbd_cluster(**given), ("admin", "ceph")), (rbd_cluster(), ())):
        judge = Judge(situation(inventory, (RBD,)), Accepted(losses=True))
        verdict = judge.judge(inventory.by_name["db"])
        assert tuple(verdict.annotations.values()) == secret
        assert ("needs a secret" in verdict.why) == (not secret)
        assert ("that is not there" in verdict.why) == (not secret)


def test_a_class_that_cannot_be_translated_is_not_said_to_be_gone() -> None:
    inventory = rbd_cluster(monitors="m")
    judge = Judge(situation(inventory, (RBD,)), Accepted(losses=True))
    verdict = judge.judge(inventory.by_name["db"])
    assert verdict.how is How.REFUSED
    assert "StorageClass ceph, which names it, cannot be translated" in verdict.why
    assert "adminSecretName is required and missing" in verdict.why
    assert "not there" not in verdict.why


def planned(inventory: Inventory, *names: str, **more: Any) -> Plan:
    return make_conversion(Asked(names=names, **more), inventory)


def test_a_volume_that_is_named_and_refused_is_a_blocker_and_else_it_is_passed_over() -> None:
    inventory, _why = NEVER["expanding"]
    assert [it.object for it in planned(inventory, "db").blockers] == ["db"]
    all_of_them = planned(inventory)
    assert not all_of_them.blockers
    assert not all_of_them.steps
    assert Weight.WARNING in {it.result for it in all_of_them.preflight}


def test_a_volume_that_is_not_there_is_refused() -> None:
    with pytest.raises(Refused, match="no PersistentVolume nope"):
        planned(HOT["nothing uses it"], "nope")


def test_only_what_is_asked_for_is_chosen() -> None:
    inventory = HOT["nothing uses it"]
    for asked, chosen in (
        ({}, True),
        ({"namespace": "shop"}, True),
        ({"namespace": "other"}, False),
        ({"selector": Selector.parse("tier=data")}, True),
        ({"selector": Selector.parse("tier=web")}, False),
        ({"plugins": (AWS,)}, True),
        ({"plugins": ("kubernetes.io/rbd",)}, False),
    ):
        assert bool(planned(inventory, **{"plugins": (AWS,), **asked}).steps) == chosen, asked


def test_what_must_be_unused_is_scaled_down_replaced_and_scaled_up_in_the_same_order() -> None:
    inventory, _why = COLD["where nothing is redirected"]
    plan = planned(inventory, accepted=DOWN)
    down, swap, up = plan.steps
    assert isinstance(down, ScaleWorkloads)
    assert isinstance(swap, SwapVolumes)
    assert isinstance(up, ScaleWorkloads)
    assert (down.down, up.down) == (True, False)
    assert down.workloads == up.workloads
    assert [it.replicas for it in down.workloads] == [2]
    assert swap.volumes[0].free_of == (IN_TREE, CSI)
    back = undo_plan(plan, up.id)
    assert [it.down for it in back.steps if isinstance(it, ScaleWorkloads)] == [True, False]


def test_a_plan_is_refused_when_its_volumes_are_no_longer_what_they_were() -> None:
    plan = planned(HOT["nothing uses it"])
    changed = cluster(bound(), claim(), user(on=OFF), workload())
    (why,) = changed_verdicts(plan, situation(changed, (AWS,)))
    assert "n2 does not redirect" in why
    assert changed_verdicts(plan, situation(HOT["several pods"], (AWS,))) == []


@pytest.mark.parametrize("accepted", [False, True], ids=["refused", "accepted"])
def test_a_volume_attributes_class_is_not_lost_in_silence(accepted: bool) -> None:
    before = {**bound(), "metadata": {"name": "db", "uid": "old"}}
    native = {**twin.native(before), "status": {"phase": "Bound"}}
    native["metadata"]["uid"] = "new"
    native["spec"] = {**native["spec"], "volumeAttributesClassName": "gold"}
    saved = {"db": SavedVolume(volume=before)}
    asked = Asked(names=("db",), accepted=Accepted(losses=accepted))
    plan = make_restoration(asked, saved, cluster(native, claim(), user()))
    told = [it for it in plan.preflight if "spec.volumeAttributesClassName: gold" in it.message]
    assert [it.result for it in told] == [Weight.WARNING if accepted else Weight.BLOCKER]
    assert bool(plan.steps) is accepted


def test_what_journals_have_is_put_back_and_nothing_else() -> None:
    before = {**bound(), "metadata": {"name": "db", "uid": "old"}}
    native = {**twin.native(before), "status": {"phase": "Bound"}}
    native["metadata"]["uid"] = "new"
    saved = {"db": SavedVolume(volume=before)}
    inventory = cluster(native, claim(), user())
    (step,) = make_restoration(Asked(), saved, inventory).steps
    assert isinstance(step, RestoreVolumes)
    assert step.id == "restore-volumes"
    with pytest.raises(Refused, match="No journal has PersistentVolume other"):
        make_restoration(Asked(names=("other",)), saved, inventory)
    with pytest.raises(Refused, match="no volume is native by a conversion"):
        make_restoration(Asked(namespace="other"), saved, inventory)
    another = {**native, "spec": {**native["spec"]}}
    another["spec"]["csi"] = {**native["spec"]["csi"], "volumeHandle": "vol-9"}
    with pytest.raises(Refused, match="no volume is native by a conversion"):
        make_restoration(Asked(), saved, cluster(another, claim()))
