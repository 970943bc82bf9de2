"""What the parts of the sandbox's cluster do, one by one."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, cast

import pytest
from msgspec.json import Decoder

from replant.gates.plugins import LIVES
from replant.inventory import pod_records
from replant.inventory.controlplane import control_plane_pod, merged_gates
from replant.objects import Object
from replant.sandbox.changes import Deletion
from replant.sandbox.clock import BEGINNING, Clock, Pace, RealClock, VirtualClock
from replant.sandbox.cloud import ATTACH, CREATE, DELETE, DETACH, RESIZE, Cloud
from replant.sandbox.cluster import Cluster
from replant.sandbox.controllers.attachdetach.decisions import attachment_name
from replant.sandbox.controllers.parts import ZONE
from replant.sandbox.resources import (
    BUILT_IN,
    CSI_NODES,
    DAEMON_SETS,
    DEPLOYMENTS,
    EVENTS,
    LEASES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
    Registry,
)
from replant.sandbox.sides import Side
from replant.sandbox.store import Store
from replant.sandbox.upkeep import Upkeep
from replant.translate import driver_of, plugin_of
from tests.cli.shell import replant
from tests.sandbox.playing import (
    DRIVER,
    OFF,
    ON,
    PLUGIN,
    Story,
    bound_volume,
    claim_object,
    end_pod,
    names_attached,
    new_cluster,
    phase,
    pod_object,
    pv_object,
    reasons,
    storage_class,
)
from tests.waiting import wait_until_async


def cluster_of(*nodes: str, gates: dict[str, bool] = OFF) -> Cluster:
    cluster = new_cluster(gates=gates)
    cluster.run_driver(DRIVER)
    for name in nodes:
        cluster.add_node(name, gates, drivers=[DRIVER])
    return cluster


def place(cluster: Cluster, name: str) -> str:
    return str(cluster.store.get(PODS, name, "default")["spec"].get("nodeName", ""))


# The cloud


def test_a_second_node_is_refused_and_attaching_takes_time() -> None:
    clock = VirtualClock()
    cloud, answers = Cloud(clock, attach_seconds=3), list[str]()
    cloud.attach("disk", "one", Side.IN_TREE, answers.append)
    cloud.attach("disk", "two", Side.CSI, answers.append)
    clock.ring()
    assert answers == ["disk is already attached to one"]
    assert cloud.attached_to("disk") == ""

    moment = clock.next_moment
    assert moment is not None
    clock.put_forward(moment)
    clock.ring()

    assert answers[1:] == [""]
    assert cloud.attached_to("disk") == "one"
    assert cloud.counts == {(ATTACH, Side.IN_TREE): 1, (ATTACH, Side.CSI): 1}
    assert cloud.delete("disk", Side.CSI) == "disk is attached to one"


def test_who_attaches_a_disk_that_another_detaches_is_told_that_all_is_well() -> None:
    clock = VirtualClock()
    cloud, answers = Cloud(clock), list[str]()
    cloud.place("disk", node="one")
    cloud.detach("disk", "one", Side.IN_TREE, lambda _why: None)
    cloud.attach("disk", "one", Side.CSI, answers.append)
    while (moment := clock.next_moment) is not None:
        clock.put_forward(moment)
        clock.ring()

    assert answers == [""]
    assert cloud.attached_to("disk") == ""


# Attaching and running


def test_both_names_of_a_disk_are_let_go_when_the_pod_goes() -> None:
    story = Story()
    story.controller(ON)
    story.start("one")
    story.look()
    story.kubelet("one", ON)
    story.touch()
    assert story.look()["volumesAttached"] == ["csi", "in-tree"]

    story.end()

    assert story.look() == {
        "pod": "gone",
        "disk": "free",
        "volumeAttachments": [],
        "volumesAttached": [],
    }


def test_after_three_minutes_the_controller_looks_again_by_itself() -> None:
    story = Story()
    story.controller(ON)
    story.start("one")
    story.look()
    story.kubelet("one", ON)
    assert story.look()["volumesAttached"] == ["in-tree"]

    story.cluster.run_for(180)

    assert story.look()["volumesAttached"] == ["csi", "in-tree"]


def test_a_pod_does_not_run_on_a_disk_that_is_not_there() -> None:
    cluster = cluster_of("one")
    bound_volume(cluster, "data", "vol-1")
    cluster.store.create(PODS, pod_object("first", "data", "one"))
    cluster.run_for(10)
    cluster.cloud.detach("vol-1", "one", Side.CSI, lambda _why: None)
    cluster.run_for(10)
    assert cluster.writes.yanked() == ["vol-1"]

    cluster.store.create(PODS, pod_object("second", "data", "one"))
    cluster.run_for(60)

    assert names_attached(cluster, "one") == ["kubernetes.io/aws-ebs/aws://us-east-1a/vol-1"]
    assert phase(cluster, PODS, "second") == "Pending"
    end_pod(cluster, "first")
    end_pod(cluster, "second")
    cluster.store.create(PODS, pod_object("third", "data", "one"))
    cluster.run_for(30)
    assert phase(cluster, PODS, "third") == "Running"


def test_a_pod_that_comes_before_its_claim_is_bound_runs_once_it_is() -> None:
    cluster = cluster_of("one")
    cluster.store.create(PODS, pod_object("early", "data", "one"))
    cluster.run_for(5)
    bound_volume(cluster, "data", "vol-1")
    cluster.run_for(5)

    assert phase(cluster, PODS, "early") == "Running"


def test_a_volume_of_the_pods_own_is_attached_too() -> None:
    cluster = cluster_of("one", gates=ON)
    pod = pod_object("inline", node="one")
    source = {"volumeID": "vol-1", "fsType": "ext4"}
    pod["spec"]["volumes"] = [{"name": "own", "awsElasticBlockStore": source}]
    cluster.store.create(PODS, pod)
    cluster.run_for(10)

    assert phase(cluster, PODS, "inline") == "Running"
    (attachment,) = cluster.store.list(VOLUME_ATTACHMENTS)
    assert attachment["spec"]["source"]["inlineVolumeSpec"]["csi"]["volumeHandle"] == "vol-1"
    assert attachment["metadata"]["finalizers"] == ["external-attacher/ebs-csi-aws-com"]
    end_pod(cluster, "inline")
    cluster.run_for(10)
    assert cluster.store.list(VOLUME_ATTACHMENTS) == []
    assert cluster.cloud.attached_to("vol-1") == ""


@pytest.mark.parametrize("listed", [True, False])
def test_a_leader_that_starts_knows_an_inline_volume_only_by_its_node(*, listed: bool) -> None:
    cluster = cluster_of("one", gates=ON)
    inline = {"csi": {"driver": DRIVER, "volumeHandle": "vol-1"}, "accessModes": ["ReadWriteOnce"]}
    spec = {"attacher": DRIVER, "nodeName": "one", "source": {"inlineVolumeSpec": inline}}
    name = f"kubernetes.io/csi/{DRIVER}^vol-1"
    left = {"metadata": {"name": attachment_name(name, "one")}, "spec": spec}
    cluster.store.create(VOLUME_ATTACHMENTS, left)
    if listed:
        node = cluster.store.get(NODES, "one")
        node["status"]["volumesAttached"] = [{"name": name, "devicePath": ""}]
        cluster.store.update(NODES, node, "status")
    for gates in (OFF, ON):  # each switch starts it anew
        cluster.switch_controller(0, gates)
        cluster.run_for(30)
    assert cluster.control_plane.confirmed(ON)
    cluster.run_for(60)

    assert len(cluster.store.list(VOLUME_ATTACHMENTS)) == (0 if listed else 1)


def test_a_driver_that_comes_late_is_waited_for() -> None:
    cluster = new_cluster(gates=ON)
    cluster.add_node("one", ON)
    bound_volume(cluster, "data", "vol-1")
    cluster.store.create(PODS, pod_object("app", "data", "one"))
    cluster.run_for(200)
    assert phase(cluster, PODS, "app") == "Pending"
    assert "FailedMount" in reasons(cluster, "app")

    cluster.run_driver(DRIVER)
    cluster.run_for(60)
    (attachment,) = cluster.store.list(VOLUME_ATTACHMENTS)
    assert "does not contain driver" in attachment["status"]["attachError"]["message"]
    cluster.register_driver(DRIVER, ["one"])
    cluster.run_for(60)

    assert phase(cluster, PODS, "app") == "Running"


def test_a_node_that_comes_back_runs_its_pods_again() -> None:
    cluster = cluster_of("one")
    bound_volume(cluster, "data", "vol-1")
    cluster.store.create(PODS, pod_object("app", "data", "one"))
    cluster.run_for(30)
    cluster.kill_node("one")
    cluster.run_for(100)
    assert not any(
        it["status"] == "True" for it in cluster.store.get(NODES, "one")["status"]["conditions"]
    )
    cluster.revive_node("one")
    cluster.run_for(30)

    (gap,) = cluster.writes.gaps("vol-1")
    assert not gap.pod_ran
    assert cluster.writes.count("vol-1") == 58
    assert "taints" not in cluster.store.get(NODES, "one")["spec"]


def test_a_node_that_leaves_takes_its_pods_with_it() -> None:
    cluster = cluster_of("one")
    bound_volume(cluster, "data", "vol-1")
    cluster.store.create(PODS, pod_object("app", "data", "one"))
    cluster.run_for(30)
    cluster.remove_node("one")
    cluster.run_for(60)

    assert phase(cluster, PODS, "app") == "gone"
    assert cluster.cloud.attached_to("vol-1") == ""
    assert cluster.store.list(CSI_NODES) == []


def test_nodes_that_were_loaded_get_kubelets_that_are_as_they_say() -> None:
    before = cluster_of("one", gates=ON)
    node, csi_node = before.store.get(NODES, "one"), before.store.get(CSI_NODES, "one")
    cluster = new_cluster(gates=ON)
    cluster.run_driver(DRIVER)
    for resource, obj in ((NODES, node), (CSI_NODES, csi_node)):
        obj["metadata"].pop("resourceVersion")
        cluster.store.create(resource, obj, as_it_was=True)
    cluster.adopt_node("one")
    bound_volume(cluster, "data", "vol-1")
    cluster.store.create(PODS, pod_object("app", "data", "one"))
    cluster.run_for(10)

    assert phase(cluster, PODS, "app") == "Running"
    assert (
        cluster.store.get(CSI_NODES, "one")["metadata"]["annotations"]
        == (csi_node["metadata"]["annotations"])
    )


def test_a_node_that_is_well_is_waited_for_as_long_as_it_says_in_use() -> None:
    story = Story()
    cluster = story.cluster
    story.start("one")
    story.look()
    cluster.kubelets.all.clear()  # from now on what it says of itself stays
    cluster.store.delete(PODS, story.name, "default", Deletion(grace_period=0))
    cluster.run_for(3600)
    assert cluster.cloud.attached_to(story.disk) == "one"

    node = cluster.store.get(NODES, "one")
    node["status"]["volumesInUse"] = []
    cluster.store.update(NODES, node, "status")
    cluster.run_for(10)

    assert cluster.cloud.attached_to(story.disk) == ""


def test_a_disk_that_another_node_has_is_not_even_asked_for() -> None:
    cluster = cluster_of("one", "two")
    bound_volume(cluster, "data", "vol-1")
    for node in ("one", "two"):
        cluster.store.create(PODS, pod_object(node, "data", node))
        cluster.run_for(30)

    assert phase(cluster, PODS, "two") == "Pending"
    assert reasons(cluster, "two") == ["FailedAttachVolume"]
    assert cluster.cloud.counts == {(ATTACH, Side.IN_TREE): 1}
    end_pod(cluster, "one")
    cluster.run_for(10)
    assert phase(cluster, PODS, "two") == "Running"
    assert cluster.cloud.attached_to("vol-1") == "two"


def test_another_pod_of_the_same_name_inherits_nothing() -> None:
    story = Story()
    cluster = story.cluster
    story.controller(ON)
    story.start("one")
    story.look()
    story.kubelet("one", ON)
    # All at one moment: nobody has time to see that there was no pod in between.
    cluster.store.delete(PODS, story.name, "default", Deletion(grace_period=0))
    cluster.store.create(PODS, pod_object(story.name, story.name, "one"))

    assert story.look()["volumesAttached"] == ["csi"]


# All plugins


@pytest.mark.parametrize("plugin", LIVES)
@pytest.mark.parametrize("redirected", [False, True], ids=["in-tree", "csi"])
def test_every_plugins_volumes_are_made_used_and_deleted(plugin: str, redirected: bool) -> None:
    gates = {LIVES[plugin].migration_gate: redirected}
    side = Side.CSI if redirected else Side.IN_TREE
    driver = driver_of(plugin)
    cluster = new_cluster("1.23.17", gates=gates)
    cluster.run_driver(driver)
    cluster.add_node("one", gates, drivers=[driver])
    more = {"volumeBindingMode": "WaitForFirstConsumer", "allowVolumeExpansion": True}
    storage_class = {"metadata": {"name": "standard"}, "provisioner": plugin, **more}
    cluster.store.create(STORAGE_CLASSES, storage_class)
    cluster.store.create(
        PERSISTENT_VOLUME_CLAIMS, claim_object("data", storageClassName="standard")
    )
    cluster.run_for(20)
    assert cluster.cloud.counts == {}, "it waits for a pod"

    cluster.store.create(PODS, pod_object("app", "data"))
    cluster.run_for(30)
    assert phase(cluster, PODS, "app") == "Running"
    (volume,) = cluster.store.list(PERSISTENT_VOLUMES)
    assert plugin_of(volume) == plugin, "whichever side made it, the way back is open"
    claim = cluster.store.get(PERSISTENT_VOLUME_CLAIMS, "data", "default")
    claim["spec"]["resources"]["requests"]["storage"] = "2Gi"
    cluster.store.update(PERSISTENT_VOLUME_CLAIMS, claim)
    cluster.store.delete(PODS, "app", "default")
    cluster.run_for(30)
    cluster.store.delete(PERSISTENT_VOLUME_CLAIMS, "data", "default")
    cluster.run_for(30)

    assert cluster.store.list(PERSISTENT_VOLUMES) == []
    assert cluster.cloud.disks == {}
    wanted = {CREATE, DELETE, RESIZE}
    if plugin == "kubernetes.io/vsphere-volume" and not redirected:
        wanted.discard(RESIZE)
    if plugin not in ("kubernetes.io/azure-file", "kubernetes.io/portworx-volume"):
        wanted |= {ATTACH, DETACH}
    assert set(cluster.cloud.counts) == {(action, side) for action in wanted}


# The control plane


def test_what_replicas_are_told_can_be_scanned() -> None:
    cluster = new_cluster(gates=OFF, replicas=3)
    cluster.switch_controller(1, ON)
    cluster.switch_scheduler(ON)
    cluster.run_for(10)

    decode = Decoder(pod_records.Pod).decode
    found = [control_plane_pod(decode(it.text)) for it in cluster.store.entries(PODS)]
    told = {it.name: it.gates for it in found if it}
    assert told["kube-controller-manager-control-plane-0"] == OFF
    assert told["kube-controller-manager-control-plane-1"] == ON
    assert merged_gates(it for it in found if it)["kube-scheduler"] == ON
    assert not cluster.control_plane.confirmed(ON)


def test_a_plan_can_be_made_for_it() -> None:
    cluster = cluster_of("one", "two", gates=OFF)
    cluster.store.create(STORAGE_CLASSES, {"metadata": {"name": "fast"}, "provisioner": PLUGIN})
    cluster.store.create(PERSISTENT_VOLUME_CLAIMS, claim_object("data", storageClassName="fast"))
    deployment = workload(1)
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    deployment["spec"]["template"]["spec"]["volumes"] = [volume]
    cluster.store.create(DEPLOYMENTS, deployment)
    cluster.run_for(60)
    assert [it["status"]["phase"] for it in web_pods(cluster)] == ["Running"]
    dump = {
        "apiVersion": "v1",
        "kind": "List",
        "items": [it for kind in BUILT_IN if kind.stored for it in cluster.store.list(kind)],
    }

    given = ("-f", "-", "--server-version", "1.24.17", "--plugin", "aws-ebs")
    code, out, _err = replant("plan", "enable", *given, stdin=dump)

    assert "BLOCKER" not in out
    assert "Proof: safe" in out, out
    assert code == 0


def test_when_the_leader_restarts_another_leads() -> None:
    cluster = new_cluster(gates=OFF, replicas=2)
    cluster.switch_controller(0, ON)
    cluster.run_for(10)

    assert cluster.control_plane.leader is cluster.control_plane.replicas[1]
    lease = cluster.store.get(LEASES, "kube-controller-manager", "kube-system")
    assert lease["spec"]["holderIdentity"].startswith("control-plane-1_")


@pytest.mark.parametrize(("replicas", "seconds"), [(2, 15), (1, 10 + 3 + 15)])
def test_a_leader_whose_lease_is_taken_ends_and_another_process_leads(
    replicas: int, seconds: int
) -> None:
    cluster = new_cluster(gates=OFF, replicas=replicas)
    lease = cluster.store.get(LEASES, "kube-controller-manager", "kube-system")
    before = lease["spec"]["holderIdentity"]
    lease["spec"]["holderIdentity"] = "somebody"
    cluster.store.update(LEASES, lease)

    led = []
    for pause in (9, seconds - 9 - 1, 2):
        cluster.run_for(pause)
        led.append(cluster.control_plane.leader)

    first, *_, leader = cluster.control_plane.replicas * 2
    assert led == [first, None, leader]
    lease = cluster.store.get(LEASES, "kube-controller-manager", "kube-system")
    assert lease["spec"]["holderIdentity"] == leader.identity != before
    assert all(it.up for it in cluster.control_plane.replicas)


def test_while_nobody_leads_nothing_is_attached() -> None:
    cluster = cluster_of("one")
    bound_volume(cluster, "data", "vol-1")
    cluster.switch_controller(0, OFF)
    cluster.store.create(PODS, pod_object("app", "data", "one"))
    cluster.settle()
    assert cluster.control_plane.leader is None
    assert cluster.cloud.counts == {}

    cluster.run_for(10)

    assert phase(cluster, PODS, "app") == "Running"


# Scheduling


@pytest.mark.parametrize("said_by", ["affinity", ZONE, "failure-domain.beta.kubernetes.io/zone"])
def test_pods_go_where_their_disk_is_and_not_where_they_may_not(said_by: str) -> None:
    cluster = cluster_of()
    for name, zone in (("a", "us-east-1a"), ("b", "us-east-1b"), ("b2", "us-east-1b")):
        cluster.add_node(name, OFF, zone=zone, drivers=[DRIVER])
    node = cluster.store.get(NODES, "b")
    node["spec"]["unschedulable"] = True
    cluster.store.update(NODES, node)
    there = {"key": "topology.ebs.csi.aws.com/zone", "operator": "In", "values": ["us-east-1b"]}
    terms = {"required": {"nodeSelectorTerms": [{"matchExpressions": [there]}]}}
    affinity: dict[str, Any] = {"nodeAffinity": terms} if said_by == "affinity" else {}
    bound_volume(cluster, "data", "vol-1", **affinity)
    if not affinity:
        volume = cluster.store.get(PERSISTENT_VOLUMES, "data")
        volume["metadata"]["labels"] = {said_by: "us-east-1b"}
        cluster.store.update(PERSISTENT_VOLUMES, volume)
    cluster.store.create(PODS, pod_object("app", "data"))
    cluster.run_for(10)

    assert place(cluster, "app") == "b2"


def test_pods_are_spread_and_wait_where_there_is_no_room_for_their_volumes() -> None:
    cluster = cluster_of()
    for name in ("one", "two"):
        cluster.add_node(name, ON, drivers=[DRIVER], limit=1)
    cluster.switch_controller(0, ON)
    cluster.switch_scheduler(ON)
    cluster.run_for(5)
    for number in range(3):
        bound_volume(cluster, f"data-{number}", f"vol-{number}")
        cluster.store.create(PODS, pod_object(f"app-{number}", f"data-{number}"))
    cluster.run_for(20)

    assert sorted(place(cluster, f"app-{number}") for number in range(3)) == ["", "one", "two"]
    assert "FailedScheduling" in reasons(cluster, "app-2")
    end_pod(cluster, "app-0")
    cluster.run_for(20)
    assert phase(cluster, PODS, "app-2") == "Running"


def test_a_pod_that_is_given_a_node_says_so_at_once() -> None:
    cluster = new_cluster()
    cluster.store.create(PODS, pod_object("app"))
    cluster.run_for(1)
    (waits,) = cluster.store.get(PODS, "app", "default")["status"]["conditions"]
    assert (waits["type"], waits["status"]) == ("PodScheduled", "False")
    cluster.add_node("one")
    cluster.kill_node("one")
    cluster.run_for(1)

    pod = cluster.store.get(PODS, "app", "default")
    assert pod["spec"]["nodeName"] == "one"
    (scheduled,) = pod["status"]["conditions"]
    assert (scheduled["type"], scheduled["status"]) == ("PodScheduled", "True")
    assert "reason" not in scheduled


# Workloads and budgets


def workload(replicas: int | None = None) -> Object:
    labels = {"app": "web"}
    spec: Object = {
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "web", "image": "web"}]},
        },
    }
    if replicas is not None:
        spec["replicas"] = replicas
    return {"metadata": {"name": "web"}, "spec": spec}


def web_pods(cluster: Cluster) -> list[Object]:
    return cluster.store.list(PODS, "default")


def test_a_deployments_pods_are_made_again_and_go_with_it() -> None:
    cluster = cluster_of("one", "two")
    cluster.store.create(DEPLOYMENTS, workload(3))
    cluster.run_for(10)
    status = cluster.store.get(DEPLOYMENTS, "web", "default")["status"]
    assert (status["replicas"], status["availableReplicas"]) == (3, 3)
    before = {it["metadata"]["name"] for it in web_pods(cluster)}

    cluster.store.delete(PODS, min(before), "default")
    cluster.run_for(10)

    after = {it["metadata"]["name"] for it in web_pods(cluster)}
    assert len(after) == 3
    assert len(after & before) == 2
    cluster.store.delete(DEPLOYMENTS, "web", "default")
    cluster.run_for(60)
    assert web_pods(cluster) == []
    assert cluster.store.list(REPLICA_SETS) == []


def test_a_daemon_is_on_every_node_even_a_cordoned_one() -> None:
    cluster = cluster_of("one", "two")
    cluster.store.create(DAEMON_SETS, workload())
    cluster.run_for(10)
    cluster.add_node("three", OFF)
    cluster.run_for(10)

    assert {it["spec"]["nodeName"] for it in web_pods(cluster)} == {"one", "two", "three"}
    status = cluster.store.get(DAEMON_SETS, "web", "default")["status"]
    assert (status["desiredNumberScheduled"], status["numberReady"]) == (3, 3)


@pytest.mark.parametrize(
    ("rule", "allowed"),
    [
        ({"maxUnavailable": 1}, 1),
        ({"minAvailable": 3}, 0),
        ({"minAvailable": "50%"}, 1),
        ({"maxUnavailable": "100%"}, 3),
    ],
    ids=str,
)
def test_a_budget_says_how_many_pods_may_be_missing(rule: Object, allowed: int) -> None:
    cluster = cluster_of("one")
    cluster.store.create(DEPLOYMENTS, workload(3))
    spec: Object = {"selector": {"matchLabels": {"app": "web"}}, **rule}
    budget: Object = {"metadata": {"name": "web"}, "spec": spec}
    cluster.store.create(POD_DISRUPTION_BUDGETS, budget, namespace="default")
    cluster.run_for(10)

    status = cluster.store.get(POD_DISRUPTION_BUDGETS, "web", "default")["status"]
    assert status["disruptionsAllowed"] == allowed
    assert status["currentHealthy"] == 3
    assert status["observedGeneration"] == 1


# Claims


def test_a_claim_takes_the_smallest_volume_that_will_do() -> None:
    cluster = cluster_of()
    for size in ("5Gi", "2Gi", "3Gi"):
        volume = pv_object(f"pv-{size.lower()}", f"vol-{size}", capacity={"storage": size})
        cluster.store.create(PERSISTENT_VOLUMES, volume)
    cluster.run_for(1)
    assert phase(cluster, PERSISTENT_VOLUMES, "pv-5gi") == "Available"
    claim = claim_object("data", storageClassName="")
    claim["spec"]["resources"]["requests"]["storage"] = "2.5Gi"
    cluster.store.create(PERSISTENT_VOLUME_CLAIMS, claim)
    cluster.run_for(1)

    found = cluster.store.get(PERSISTENT_VOLUME_CLAIMS, "data", "default")
    assert found["spec"]["volumeName"] == "pv-3gi"
    assert phase(cluster, PERSISTENT_VOLUMES, "pv-3gi") == "Bound"


@pytest.mark.parametrize(
    ("selector", "taken"),
    [
        ({}, "blue"),
        ({"matchLabels": {"color": "red"}}, "red"),
        ({"matchExpressions": [{"key": "color", "operator": "NotIn", "values": ["blue"]}]}, "red"),
        ({"matchLabels": {"color": "green"}}, ""),
    ],
)
def test_a_claim_takes_only_a_volume_that_it_selects(selector: Object, taken: str) -> None:
    cluster = cluster_of()
    for color, size in (("blue", "1Gi"), ("red", "2Gi")):
        volume = pv_object(color, f"vol-{color}", capacity={"storage": size})
        volume["metadata"]["labels"] = {"color": color}
        cluster.store.create(PERSISTENT_VOLUMES, volume)
    claim = claim_object("data", storageClassName="", selector=selector)
    cluster.store.create(PERSISTENT_VOLUME_CLAIMS, claim)
    cluster.run_for(60)

    found = cluster.store.get(PERSISTENT_VOLUME_CLAIMS, "data", "default")
    assert found["spec"].get("volumeName", "") == taken


@pytest.mark.parametrize("gates", [OFF, ON])
def test_no_disk_is_made_for_a_claim_that_selects_one(gates: dict[str, bool]) -> None:
    cluster = cluster_of(gates=gates)
    cluster.store.create(STORAGE_CLASSES, storage_class())
    selector = {"matchLabels": {"color": "red"}}
    claim = claim_object("data", storageClassName="trial", selector=selector)
    cluster.store.create(PERSISTENT_VOLUME_CLAIMS, claim)
    cluster.run_for(60)

    assert phase(cluster, PERSISTENT_VOLUME_CLAIMS, "data") == "Pending"
    assert "ProvisioningFailed" in reasons(cluster, "data")
    assert not cluster.store.entries(PERSISTENT_VOLUMES)


def test_a_claim_that_a_pod_uses_outlives_its_deletion() -> None:
    cluster = cluster_of("one")
    bound_volume(cluster, "data", "vol-1")
    cluster.store.create(PODS, pod_object("app", "data", "one"))
    cluster.run_for(10)
    cluster.store.delete(PERSISTENT_VOLUME_CLAIMS, "data", "default")
    cluster.store.delete(PERSISTENT_VOLUMES, "data")
    cluster.run_for(60)
    assert phase(cluster, PERSISTENT_VOLUME_CLAIMS, "data") == "Bound"
    assert phase(cluster, PERSISTENT_VOLUMES, "data") == "Bound"

    end_pod(cluster, "app")
    cluster.run_for(30)

    assert phase(cluster, PERSISTENT_VOLUME_CLAIMS, "data") == "gone"
    assert phase(cluster, PERSISTENT_VOLUMES, "data") == "gone"


def test_claims_are_marked_anew_when_the_gates_change() -> None:
    cluster = cluster_of(gates=OFF)
    made = {"pv.kubernetes.io/provisioned-by": PLUGIN}
    bound_volume(cluster, "data", "vol-1", made)
    for gates, mark in ((ON, DRIVER), (OFF, None)):
        cluster.switch_controller(0, gates)
        cluster.run_for(10)
        annotations = cluster.store.get(PERSISTENT_VOLUMES, "data")["metadata"]["annotations"]
        assert annotations.get("pv.kubernetes.io/migrated-to") == mark


def test_events_are_forgotten_after_an_hour() -> None:
    cluster = cluster_of("one")
    bound_volume(cluster, "data", "vol-1")
    cluster.store.create(PODS, pod_object("app", "data", "one"))
    cluster.run_for(60)
    assert reasons(cluster, "app") == ["SuccessfulAttachVolume"]

    cluster.run_for(3600)

    assert cluster.store.list(EVENTS) == []


# Real time


def test_a_cluster_that_is_woken_as_it_ends_does_end() -> None:
    class Soon:
        """A clock with a timer that is an hour away."""

        next_moment = BEGINNING

        def listen(self, _call: object) -> None:
            pass

        def real_seconds_until(self, _moment: object) -> float:
            return 3600

    async def main() -> None:
        pace = Pace(cast(Clock, Soon()), lambda: None)
        keeping = asyncio.create_task(pace.keep())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        pace.wake()
        keeping.cancel()
        await asyncio.wait([keeping], timeout=5)
        assert keeping.cancelled()

    asyncio.run(main())


def test_a_cluster_can_be_left_to_itself_in_real_time() -> None:
    clock = RealClock()
    numbers = iter(range(1, 10_000))
    store = Store(clock.now, lambda: f"{next(numbers):08x}-0000-4000-8000-000000000000")
    registry = Registry()
    Upkeep(store, registry, clock.now)
    cloud = Cloud(clock, attach_seconds=0.05, detach_seconds=0.05)
    cluster = Cluster(store, registry, clock, gates=ON, cloud=cloud)
    cluster.run_driver(DRIVER)
    cluster.add_node("one", ON, drivers=[DRIVER])
    with pytest.raises(TypeError):
        cluster.run_for(1)

    async def live() -> None:
        pace = Pace(clock, cluster.settle)
        store.subscribe(lambda _event: pace.wake())
        keeping = asyncio.create_task(pace.keep())
        await asyncio.sleep(0)
        bound_volume(cluster, "data", "vol-1")
        store.create(PODS, pod_object("app", "data", "one"))
        await wait_until_async(lambda: phase(cluster, PODS, "app") == "Running", "the pod to run")
        keeping.cancel()
        with suppress(asyncio.CancelledError):
            await keeping

    asyncio.run(live())

    assert phase(cluster, PODS, "app") == "Running"
    assert cluster.cloud.attached_to("vol-1") == "one"
    store.delete(PODS, "app", "default", Deletion(grace_period=0))


@pytest.mark.parametrize(
    ("ends_after", "grace", "seconds"), [("", 30, 1), ("12", 30, 12), ("45", 30, 30), ("45", 0, 0)]
)
def test_a_pod_ends_when_its_containers_do_or_its_grace_period(
    ends_after: str, grace: int, seconds: int
) -> None:
    cluster = cluster_of("one")
    bound_volume(cluster, "data", "vol-1")
    pod = pod_object("app", "data", "one")
    pod["metadata"]["annotations"] = {"sandbox.replant.dev/ends-after": ends_after}
    cluster.store.create(PODS, pod)
    cluster.run_for(30)
    cluster.store.delete(PODS, "app", "default", Deletion(grace_period=grace))
    cluster.settle()
    if seconds:
        cluster.run_for(seconds - 0.5)
        assert phase(cluster, PODS, "app") == "Running"
        cluster.run_for(1)
    assert phase(cluster, PODS, "app") == "gone"
