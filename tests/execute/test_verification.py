"""Whether a cluster is well after a plan: each check passes in a good world, fails in a bad one."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from replant.cluster import live
from replant.cluster.ports import EVERYTHING, Page, Resource, Selected
from replant.errors import Final
from replant.execute.census import Census, baseline, take_census, volume_digest
from replant.execute.census_model import Attachment, Disk, Node, Pod, Trouble, Volume
from replant.execute.verification import CHECKS, SHOWN, Checked, Outcome, verify
from replant.inventory.driverpods import DriverPods
from replant.plan.model import (
    AnnotateVolumes,
    Goal,
    Plan,
    ReplaceClasses,
    VolumeAnnotations,
)
from replant.plan.undo import undo_plan
from replant.sandbox.cluster import Cluster
from replant.sandbox.resources import (
    DEPLOYMENTS,
    PERSISTENT_VOLUMES,
    PODS,
    STATEFUL_SETS,
    STORAGE_CLASSES,
)
from replant.sandbox.server import Sandbox, open_port, serving, write_kubeconfig
from replant.translate.portworx import SECRET_NAME
from tests.execute.stores import StoreReader, census_of, plan_of
from tests.sandbox.playing import DRIVER, OFF, ON, PLUGIN, UNREGISTERED, pod_object
from tests.sandbox.test_disks import (
    NODE_NAMES,
    all_run,
    disks,
    running_database,
    switch_controllers,
    switch_node,
)
from tests.sandbox.test_scenarios import SMALL, read

PV = "PersistentVolume"
KUBELET = "Read the log of the kubelet of b"


def failed(checked: tuple[Checked, ...]) -> dict[str, Checked]:
    return {it.check: it for it in checked if not it.passed}


def enabled(cluster: Cluster) -> None:
    switch_controllers(cluster, ON)
    for name in NODE_NAMES:
        switch_node(cluster, name, ON)
    cluster.run_for(30)


def disabled(cluster: Cluster) -> None:
    for name in NODE_NAMES:
        switch_node(cluster, name, OFF)
    switch_controllers(cluster, OFF)
    cluster.run_for(30)


# On a cluster that lives


def test_there_and_back_in_the_right_order_is_well_and_so_is_every_undo() -> None:
    cluster = running_database()
    off, enable = census_of(cluster), plan_of(cluster, Goal.ENABLE)
    assert set(failed(verify(enable, off, off))) == {"announced", "marks", "stranded"}

    enabled(cluster)
    on, disable = census_of(cluster), plan_of(cluster, Goal.DISABLE)
    assert failed(verify(enable, baseline(off), on)) == {}

    disabled(cluster)
    again = census_of(cluster)
    assert failed(verify(disable, baseline(on), again)) == {}
    assert failed(verify(undo_plan(enable, "roll-nodes"), baseline(on), again)) == {}
    assert set(failed(verify(enable, off, again))) == {"announced", "marks", "stranded"}


def test_an_undo_from_halfway_does_not_mind_pods_on_nodes_that_were_never_switched() -> None:
    cluster = running_database()
    enable = plan_of(cluster, Goal.ENABLE)
    switch_controllers(cluster, ON)
    empty = next(name for name in NODE_NAMES if not _has_a_database(cluster, name))
    switch_node(cluster, empty, ON)
    begun = census_of(cluster)

    switch_node(cluster, empty, OFF)
    switch_controllers(cluster, OFF)
    cluster.run_for(30)

    now = census_of(cluster)
    assert {it.uid for it in begun.pods} & {it.uid for it in now.pods if it.claims}
    assert failed(verify(undo_plan(enable, "roll-nodes"), baseline(begun), now)) == {}


def _has_a_database(cluster: Cluster, node: str) -> bool:
    return any(it["metadata"]["name"].startswith("db") for it in cluster.pods_on(node))


def test_completing_is_well_with_the_classes_that_the_plan_makes() -> None:
    cluster = running_database()
    enabled(cluster)
    before, complete = census_of(cluster), plan_of(cluster, Goal.COMPLETE)
    switch_controllers(cluster, UNREGISTERED)
    assert failed(verify(complete, before, census_of(cluster)))["classes"].objects == (
        "StorageClass standard",
    )

    (step,) = (it for it in complete.steps if isinstance(it, ReplaceClasses))
    cluster.store.delete(STORAGE_CLASSES, "standard")
    cluster.store.create(STORAGE_CLASSES, dict(step.classes[0].after))
    cluster.run_for(60)

    assert failed(verify(complete, baseline(before), census_of(cluster))) == {}


def test_without_a_drain_the_disk_is_named_though_everything_looks_well() -> None:
    cluster = running_database(replicas=1)
    before, plan = census_of(cluster), plan_of(cluster, Goal.ENABLE)
    switch_controllers(cluster, ON)
    for name in NODE_NAMES:
        cluster.restart_kubelet(name, ON)
    cluster.run_for(120)
    unmended = failed(verify(plan, before, census_of(cluster)))
    assert set(unmended) == {"drained", "attached", "stranded"}

    switch_controllers(cluster, ON)
    cluster.run_for(60)

    assert cluster.writes.yanked() == list(disks(cluster))
    assert all_run(cluster, replicas=1)
    (told,) = failed(verify(plan, baseline(before), census_of(cluster))).values()
    (volume,) = cluster.store.list(PERSISTENT_VOLUMES)
    assert (told.check, told.outcome) == ("drained", Outcome.WRONG)
    assert told.objects == (f"{PV} {volume['metadata']['name']}",)


def test_nodes_before_controllers_leave_a_pod_that_waits_and_its_disk_is_named() -> None:
    cluster = running_database(replicas=1)
    before, plan = census_of(cluster), plan_of(cluster, Goal.ENABLE)
    for name in NODE_NAMES:
        cluster.restart_kubelet(name, ON)
    cluster.store.delete(PODS, "db-0", "default")
    cluster.run_for(300)

    told = failed(verify(plan, before, census_of(cluster)))

    assert told["pods"].objects == told["mounts"].objects == ("Pod default/db-0",)
    assert told["mounts"].outcome is Outcome.NOT_YET
    assert "FailedMount" in told["mounts"].message
    assert told["stranded"].objects == (its_volume_in(cluster),)


def test_a_plugin_that_is_taken_away_too_early_leaves_its_disk_to_both_sides() -> None:
    cluster = running_database(replicas=1)
    before, plan = census_of(cluster), plan_of(cluster, Goal.ENABLE)
    switch_controllers(cluster, UNREGISTERED)
    cluster.run_for(60)

    told = failed(verify(plan, before, census_of(cluster)))

    assert told["attached"].outcome is Outcome.WRONG
    assert told["attached"].objects == (its_volume_in(cluster),)


def its_volume_in(cluster: Cluster) -> str:
    (volume,) = cluster.store.list(PERSISTENT_VOLUMES)
    return f"{PV} {volume['metadata']['name']}"


def test_what_is_scaled_rolled_out_or_deleted_meanwhile_is_nobodys_fault() -> None:
    cluster = running_database()
    containers = [{"name": "web", "image": "web"}]
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers}}
    web = {
        "metadata": {"name": "web"},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    }
    cluster.store.create(DEPLOYMENTS, web, namespace="default")
    cluster.run_for(30)
    before, plan = census_of(cluster), plan_of(cluster, Goal.ENABLE)
    assert sum("web" in it.key for it in before.pods) == 3

    for resource, name, replicas in ((STATEFUL_SETS, "db", 1), (DEPLOYMENTS, "web", 2)):
        scaled = cluster.store.get(resource, name, "default")
        scaled["spec"]["replicas"] = replicas
        if resource is DEPLOYMENTS:
            scaled["spec"]["template"]["spec"]["containers"][0]["image"] = "newer"
        cluster.store.update(resource, scaled)
    cluster.run_for(60)
    now = census_of(cluster)
    assert sum("web" in it.key for it in now.pods) == 2
    assert "pods" not in failed(verify(plan, before, now))

    cluster.store.delete(STATEFUL_SETS, "db", "default")
    cluster.run_for(60)
    assert "pods" not in failed(verify(plan, before, census_of(cluster)))


def test_over_http_it_is_the_same_census(tmp_path: Path) -> None:
    sandbox = Sandbox.of(read(SMALL, tmp_path).scenario())
    config = tmp_path / "config"

    async def take() -> Census:
        async with live.connect(str(config)) as reader:
            return await take_census(reader)

    with closing(open_port(0)) as listening, serving(sandbox, listening):
        write_kubeconfig(config, listening.getsockname()[1])
        taken = asyncio.run(take())

    assert {it.key for it in taken.pods if it.claims} == {"default/db-0", "default/db-1"}
    assert taken == asyncio.run(take_census(StoreReader(sandbox.store)))


# In a world that is well but for one thing


@cache
def world() -> tuple[Plan, Census, Census]:
    """A plan that was carried out well, and the censuses of before and of after it."""
    cluster = running_database()
    before, plan = census_of(cluster), plan_of(cluster, Goal.ENABLE)
    enabled(cluster)
    now = census_of(cluster)
    agent = {name: f"csi/ebs-csi-node-{name}" for name in NODE_NAMES}
    attachers = ["csi/efs-csi-controller-0", "csi/ebs-csi-controller-0", "other/ebs-csi-node-x"]
    return plan, before, replace(now, driver_pods=DriverPods({DRIVER: agent}, attachers))


def database(now: Census) -> Pod:
    return next(it for it in now.pods if it.key == "default/db-0")


def its_volume(now: Census) -> Volume:
    return next(it for it in now.volumes if it.claim == "default/data-db-0")


def its_disk(now: Census) -> Disk:
    disk = its_volume(now).disk
    assert disk is not None
    return disk


def with_pod(now: Census, **changes: Any) -> Census:
    old = database(now)
    return replace(now, pods=tuple(replace(it, **changes) if it is old else it for it in now.pods))


def with_node(now: Census, name: str = "", **changes: Any) -> Census:
    name = name or database(now).node
    nodes = tuple(replace(it, **changes) if it.name == name else it for it in now.nodes)
    return replace(now, nodes=nodes)


def with_volume(now: Census, **changes: Any) -> Census:
    old = its_volume(now)
    volumes = tuple(replace(it, **changes) if it is old else it for it in now.volumes)
    return replace(now, volumes=volumes)


def with_attachment(now: Census, **changes: Any) -> Census:
    volume = its_volume(now).name
    those = tuple(replace(it, **changes) if it.volume == volume else it for it in now.attachments)
    return replace(now, attachments=those)


def without_pod(now: Census) -> Census:
    return replace(now, pods=tuple(it for it in now.pods if it is not database(now)))


def without_attachment(now: Census) -> Census:
    volume = its_volume(now).name
    return replace(now, attachments=tuple(it for it in now.attachments if it.volume != volume))


def on_a_free_node(now: Census, *names: str) -> Census:
    """These are attached to a node where none of them is wanted."""
    free = next(it.name for it in now.nodes if not it.attached)
    return with_node(now, free, attached=names)


def in_tree(now: Census) -> str:
    return its_disk(now).in_tree


def troubled(now: Census, count: int = 3) -> Census:
    pod = database(now)
    trouble = Trouble(pod.key, pod.uid, count, "FailedMount: timed out")
    return replace(with_pod(now, ready=False), troubles=(trouble,))


LEFTOVER = Attachment("csi-1", DRIVER, "gone", "", "kubernetes.io/csi/x^y", True, True, "no way")


Mutation = Callable[[Census], Census]
NOT_YET, WRONG = Outcome.NOT_YET, Outcome.WRONG

BAD: list[tuple[str, str, Mutation, Outcome, str, str]] = [
    ("pods", "not ready", lambda it: with_pod(it, ready=False), NOT_YET,
     "Pod default/db-0", ". Read the log of the kubelet of"),
    ("pods", "told why", troubled, NOT_YET, "Pod default/db-0", "not ready: FailedMount: timed"),
    ("pods", "gone", without_pod, NOT_YET, "Pod default/db-0", "is gone: look at the events"),
    ("pods", "no node", lambda it: with_pod(it, ready=False, node=""), NOT_YET,
     "Pod default/db-0", "kube-scheduler"),
    ("drained", "survived", lambda it: with_pod(it, uid=database(world()[1]).uid), WRONG,
     PV, "See in the cloud whether it is attached"),
    ("attached", "not attached", lambda it: with_node(it, attached=()), NOT_YET,
     PV, f"by {DRIVER}. Read the log of the external-attacher of {DRIVER} in the pod csi/ebs-"),
    ("attached", "by the other side", lambda it: with_node(it, attached=(in_tree(it),)), NOT_YET,
     PV, "but by the other side"),
    ("attached", "by both", lambda it: with_node(it, attached=(in_tree(it), its_disk(it).csi)),
     WRONG, PV, "by both sides at once"),
    ("attached", "by nobody", lambda it: with_node(it, csi_node=False), NOT_YET,
     PV, "by nobody"),
    ("attached", "no attachment", without_attachment, NOT_YET,
     PV, "has no VolumeAttachment"),
    ("attached", "detaching", lambda it: with_attachment(it, deleting=True), NOT_YET,
     PV, "is being detached"),
    ("attached", "refused", lambda it: with_attachment(it, attached=False, error="quota"), NOT_YET,
     PV, "is not attached: quota"),
    ("attached", "elsewhere", lambda it: on_a_free_node(it, its_disk(it).csi), NOT_YET,
     PV, "where no pod has it"),
    ("attached", "lost", lambda it: replace(it, attachments=(*it.attachments, LEFTOVER)),
     NOT_YET, "volume kubernetes.io/csi/x^y", "csi-1 is being deleted, no way"),
    ("stranded", "in-tree", lambda it: on_a_free_node(it, in_tree(it)), NOT_YET,
     PV, f"by {PLUGIN}, but {DRIVER} is asked there now: it must be detached first"),
    ("stranded", "in use", lambda it: with_node(it, in_use=(in_tree(it),)), NOT_YET,
     PV, "the name of the side that it was to leave"),
    ("stranded", "by csi", lambda it: with_node(it, migrated=()), NOT_YET,
     PV, f"by {DRIVER}, but {PLUGIN} is asked there now"),
    ("stranded", "by csi, unreported", lambda it: with_node(it, migrated=(), attached=()), NOT_YET,
     PV, f"by {DRIVER}, but {PLUGIN} is asked there now"),
    ("nodes", "not ready", lambda it: with_node(it, "b", ready=False), NOT_YET, "Node b", KUBELET),
    ("nodes", "cordoned", lambda it: with_node(it, "b", cordoned=True), NOT_YET,
     "Node b", "kubectl uncordon b"),
    ("nodes", "new", lambda it: replace(it, nodes=(*it.nodes, Node("x", False, False))), NOT_YET,
     "Node x", "kubelet of x"),
    ("announced", "not listed", lambda it: with_node(it, "b", migrated=()), NOT_YET,
     "CSINode b", f"does not list {PLUGIN}"),
    ("announced", "new", lambda it: replace(it, nodes=(*it.nodes, Node("x", True, False))), NOT_YET,
     "CSINode x", "kubelet of x"),
    ("drivers", "gone", lambda it: with_node(it, "b", drivers=()), NOT_YET,
     "Node b", f"{KUBELET}, and of the driver's pod csi/ebs-csi-node-b"),
    ("marks", "missing", lambda it: with_volume(it, migrated_to=None), NOT_YET,
     PV, f"must be marked with {DRIVER}"),
    ("marks", "another", lambda it: with_volume(it, migrated_to="x"), NOT_YET,
     PV, "is marked as migrated to x"),
    ("volumes", "changed", lambda it: with_volume(it, digest="0"), WRONG, PV, "your backup"),
    ("claims", "lost", lambda it: replace(it, lost=(("shop/data", "pv"),)), NOT_YET,
     "PersistentVolumeClaim shop/data", "has lost PersistentVolume pv"),
    ("classes", "changed", lambda it: replace(it, classes={"standard": "0"}), WRONG,
     "StorageClass standard", "is not what it should be"),
    ("classes", "gone", lambda it: replace(it, classes={}), WRONG,
     "StorageClass standard", "is gone"),
    ("mounts", "new", troubled, NOT_YET, "Pod default/db-0", "refused its volume 3 times"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("check", "mutation", "outcome", "named", "said"),
    [(row[0], *row[2:]) for row in BAD],
    ids=[f"{row[0]}: {row[1]}" for row in BAD],
)
def test_a_world_that_is_bad_in_one_way_is_told_so(
    check: str, mutation: Mutation, outcome: Outcome, named: str, said: str
) -> None:
    plan, before, now = world()

    told = failed(verify(plan, baseline(before), mutation(now)))[check]

    assert told.outcome is outcome
    assert any(it.startswith(named) for it in told.objects)
    if named == PV:
        assert told.objects == (f"{PV} {its_volume(now).name}",)
    assert said in told.message


def test_a_world_that_is_well_is_told_so_and_every_check_is_seen_to_fail() -> None:
    plan, before, now = world()

    assert failed(verify(plan, before, now)) == {}
    by_hand = {"annotations"}
    assert {row[0] for row in BAD} | by_hand == set(CHECKS)


def test_what_nobody_will_ever_detach_is_wrong() -> None:
    plan, before, now = world()
    controller = plan.control_plane
    gone = replace(plan, control_plane=replace(controller, gates={**ON, **UNREGISTERED}))

    told = failed(verify(gone, before, on_a_free_node(now, in_tree(now))))["stranded"]

    assert told.outcome is WRONG
    assert "nobody detaches it any more" in told.message


def test_annotations_of_the_plan_are_there_and_those_of_its_undo_are_gone() -> None:
    plan, before, now = world()
    name = its_volume(now).name
    token = {SECRET_NAME: "token"}
    wanted = VolumeAnnotations(name=name, annotations={**token}, before={SECRET_NAME: None})
    step = AnnotateVolumes(
        id="annotate-volumes", title="t", why="", done_when="", undo="", volumes=(wanted,)
    )
    plan = replace(plan, steps=(step, *plan.steps))
    annotated = with_volume(now, annotations=token)

    told = failed(verify(plan, before, now))["annotations"]
    assert (told.outcome, told.objects) == (WRONG, (f"{PV} {name}",))
    assert failed(verify(plan, before, annotated)) == {}
    taken_back = undo_plan(plan, "annotate-volumes")
    assert "annotations" in failed(verify(taken_back, before, annotated))
    assert "annotations" not in failed(verify(taken_back, before, now))


Both = Callable[[Census], Census]
WAS_SO: dict[str, Mutation] = {
    "a volume that nobody used": lambda it: on_a_free_node(it, "kubernetes.io/aws-ebs/vol-old"),
    "an attachment to a node that is gone": lambda it: replace(
        it, attachments=(*it.attachments, LEFTOVER)
    ),
    "a lost claim": lambda it: replace(it, lost=(("shop/data", "pv"),)),
    "a cordoned node": lambda it: with_node(it, "b", cordoned=True),
    "a node that is down": lambda it: with_node(it, "b", ready=False),
    "a pod in trouble": troubled,
}


@pytest.mark.parametrize("mutation", WAS_SO.values(), ids=WAS_SO)
@pytest.mark.parametrize("kept", [baseline, lambda it: it], ids=["baseline", "whole"])
def test_what_was_so_before_is_not_held_against_the_plan(mutation: Mutation, kept: Both) -> None:
    plan, before, now = world()
    assert failed(verify(plan, before, mutation(now)))

    assert failed(verify(plan, kept(mutation(before)), mutation(now))) == {}


def workload(owner: str, *names: str, ready: bool = True) -> tuple[Pod, ...]:
    return tuple(Pod(f"shop/{name}", owner, ready) for name in names)


PODS_COMPARED: dict[str, tuple[tuple[Pod, ...], dict[str, Any], str]] = {
    "another pod of the ReplicaSet": (
        workload("ReplicaSet/web-5d9c7b6f4", "web-5d9c7b6f4-a"),
        {"pods": workload("ReplicaSet/web-5d9c7b6f4", "web-5d9c7b6f4-b"),
         "wanted": {"shop/ReplicaSet/web-5d9c7b6f4": 1}},
        "",
    ),
    "too few of the ReplicaSet": (
        workload("ReplicaSet/web-5d9c7b6f4", "web-a", "web-b"),
        {"pods": workload("ReplicaSet/web-5d9c7b6f4", "web-a"),
         "wanted": {"shop/ReplicaSet/web-5d9c7b6f4": 2}},
        "ReplicaSet shop/web",
    ),
    "a DaemonSet that waits": (
        workload("DaemonSet/agent", "agent-a"),
        {"pods": workload("DaemonSet/agent", "agent-b", ready=False),
         "wanted": {"shop/DaemonSet/agent": 1}},
        "DaemonSet shop/agent",
    ),
    "a DaemonSet that lost its node": (
        workload("DaemonSet/agent", "agent-a"), {"wanted": {}}, "",
    ),
    "a job that has ended": (workload("Job/backup", "backup-x"), {}, ""),
    "a pod that nobody made": (workload("", "naked"), {}, "Pod shop/naked"),
    "one that has ended well": (workload("", "naked"), {"ended": ("shop/naked",)}, ""),
    "an operator's pod": (workload("Kafka/logs", "logs-0"), {}, "Kafka shop/logs"),
    "a static pod that restarts": (workload("Node/a", "etcd-a"), {}, "Pod shop/etcd-a"),
    "a static pod of a node that is gone": (workload("Node/left", "etcd-left"), {}, ""),
}  # fmt: skip


@pytest.mark.parametrize(("were", "are", "named"), PODS_COMPARED.values(), ids=PODS_COMPARED)
def test_pods_are_compared_by_what_makes_them(
    were: tuple[Pod, ...], are: dict[str, Any], named: str
) -> None:
    plan = world()[0]
    before = Census(pods=were, nodes=(Node("a", True, False), Node("left", True, False)))
    now = replace(Census(nodes=(Node("a", True, False),)), **are)

    told = failed(verify(plan, before, now)).get("pods")
    allowed = failed(verify(plan, before, now, frozenset(pod.key for pod in were))).get("pods")

    # What others make they make again where it was let go; only what nobody made may be gone.
    assert allowed == (None if named == "Pod shop/naked" else told)
    assert (told.objects if told else ()) == ((named,) if named else ())
    if named == "Pod shop/naked":
        assert told is not None
        assert told.outcome is WRONG


def test_of_many_objects_the_first_are_named_and_the_others_counted() -> None:
    plan, before, now = world()
    volumes = tuple(Volume(f"pv-{number:02}", "0") for number in range(SHOWN + 2))
    changed = tuple(replace(it, digest="1") for it in volumes)

    told = failed(
        verify(
            plan,
            replace(before, volumes=(*before.volumes, *volumes)),
            replace(now, volumes=(*now.volumes, *changed)),
        )
    )["volumes"]

    assert len(told.objects) == SHOWN
    assert told.concerned.endswith("pv-09 and 2 more")
    assert told.told == f"{told.message} In all: {told.concerned}."


def test_of_one_object_the_sentence_is_enough() -> None:
    plan, before, now = world()
    told = failed(verify(plan, before, with_volume(now, digest="1")))["volumes"]
    assert told.told == told.message


# What goes into a census


SPEC = {
    "awsElasticBlockStore": {"volumeID": "vol-1"},
    "capacity": {"storage": "1Gi"},
    "claimRef": {"name": "data", "namespace": "shop", "uid": "1", "resourceVersion": "7"},
    "persistentVolumeReclaimPolicy": "Retain",
}


@pytest.mark.parametrize(
    ("change", "counts"),
    [
        ({"claimRef": {**SPEC["claimRef"], "resourceVersion": "8"}}, False),  # type: ignore[dict-item]
        ({"claimRef": None}, False),
        ({"capacity": {"storage": "2Gi"}}, False),
        ({"awsElasticBlockStore": {"volumeID": "vol-2"}}, True),
        ({"persistentVolumeReclaimPolicy": "Delete"}, True),
        ({"nodeAffinity": {"required": {}}}, True),
    ],
)
def test_a_digest_is_of_what_only_people_change(change: dict[str, Any], counts: bool) -> None:
    assert (volume_digest({**SPEC, **change}) != volume_digest(SPEC)) is counts
    assert volume_digest(dict(reversed(SPEC.items()))) == volume_digest(SPEC)


def test_a_census_of_a_large_cluster_is_small_once_it_is_a_baseline() -> None:
    volumes = tuple(
        Volume(
            f"pvc-{number:08x}-73ab-4e1c-9a52-{number * 7919:012x}", f"{number * 7919:016x}",
            "Bound", f"shop/data-db-{number}", PLUGIN, DRIVER,
            disk=Disk(PLUGIN, False, f"{PLUGIN}/aws://us-east-1a/vol-{number:017x}", "x" * 60),
        )
        for number in range(50_000)
    )  # fmt: skip
    pods = tuple(
        Pod(f"shop/db-{number}-0", f"StatefulSet/db-{number}", True, node="n" * 30, uid="u" * 36,
            claims=(f"shop/data-db-{number}",))
        for number in range(20_000)
    )  # fmt: skip
    kept = baseline(Census(volumes=volumes, pods=pods))
    text = msgspec.json.encode(kept)

    assert msgspec.json.decode(text, type=Census) == kept
    assert len(text) < 8 * 2**20
    assert len(gzip.compress(text)) < 2 * 2**20


def test_a_page_that_cannot_be_read_is_no_census() -> None:
    class Odd(StoreReader):
        async def list_pages(self, *_given: object, **_more: object) -> AsyncIterator[Page]:
            yield Page(b'{"items": [{"metadata": 7}]}', first=True)

    with pytest.raises(Final, match="PersistentVolume cannot be read"):
        asyncio.run(take_census(Odd(running_database().store)))


def test_a_list_that_begins_again_is_counted_once() -> None:
    class Restarting(StoreReader):
        async def list_pages(
            self, resource: Resource, *, namespace: str = "", selected: Selected = EVERYTHING
        ) -> AsyncIterator[Page]:
            for _time in range(2):
                pages = super().list_pages(resource, namespace=namespace, selected=selected)
                async for page in pages:
                    yield page

    store = running_database().store
    once = asyncio.run(take_census(StoreReader(store)))
    assert asyncio.run(take_census(Restarting(store))) == once


def test_drivers_pods_are_known_by_their_socket_and_their_sidecars() -> None:
    cluster = running_database()
    path = f"--kubelet-registration-path=/var/lib/kubelet/plugins/{DRIVER}/csi.sock"
    on_node = pod_object("ebs-csi-node-1", node="a")
    on_node["spec"]["containers"][0]["args"] = [path]
    controller = pod_object("ebs-csi-controller-1", node="b")
    controller["spec"]["containers"].append({"name": "csi-attacher", "image": "attacher"})
    for pod in (on_node, controller, pod_object("other", node="a")):
        cluster.store.create(PODS, pod, namespace="kube-system")
    cluster.run_for(10)

    found = census_of(cluster).driver_pods

    assert found.on("a", DRIVER) == "kube-system/ebs-csi-node-1"
    assert found.on("b", DRIVER) == ""
    assert found.attacher(DRIVER) == "kube-system/ebs-csi-controller-1"
    assert found.attacher("pd.csi.storage.gke.io") == ""


def test_a_pods_own_disk_is_followed_too() -> None:
    cluster = running_database()
    pod = pod_object("own", node="a")
    disk = {"volumeID": "vol-own"}
    pod["spec"]["volumes"] = [{"name": "data", "awsElasticBlockStore": disk}]
    cluster.store.create(PODS, pod, namespace="default")
    cluster.run_for(60)
    before, plan = census_of(cluster), plan_of(cluster, Goal.ENABLE)
    assert [it.in_tree for pod in before.pods for it in pod.inline] == [f"{PLUGIN}/vol-own"]

    switch_controllers(cluster, ON)
    cluster.restart_kubelet("a", ON)
    cluster.run_for(10)

    told = failed(verify(plan, before, census_of(cluster)))["drained"]
    assert f"volume kubernetes.io/csi/{DRIVER}^vol-own" in told.objects


def test_a_native_volume_may_stay_where_it_is_while_its_node_is_switched() -> None:
    plan, before, now = world()
    stayed = with_pod(now, uid=database(before).uid)
    native = replace(its_disk(now), native=True, in_tree="")

    assert "drained" in failed(verify(plan, before, stayed))
    assert "drained" not in failed(verify(plan, before, with_volume(stayed, disk=native)))
