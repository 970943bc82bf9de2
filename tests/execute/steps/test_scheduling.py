"""Pods are kept from nodes of the other kind than those that hold their volumes."""

from __future__ import annotations

from typing import Any

import pytest

from replant.cluster.ports import CSI_NODES, NODES, PODS, VOLUME_ATTACHMENTS
from replant.errors import Conflict
from replant.execute.acts import Cordon, Decision
from replant.execute.patience import Patience
from replant.execute.steps.scheduling import (
    LookAtUnboundPod,
    SchedulingRestriction,
    TaintNode,
    TolerateTaints,
    UnboundPod,
    restriction,
)
from replant.objects import Object
from tests.execute.nodes import AWS, RESTRICTED, Nodes, roll_step, rolling
from tests.inventory.clusters import EBS

KEY = "replant.dev/aws-ebs"
IN_TREE, CSI, SWITCHING = "in-tree", "csi", "switching"
SETTLED = 100.0
"""A moment when the scheduler has heard of all taints."""
CLAIM, VOLUME, DISK = "shop/data", "pv-1", "vol-1"
IN_TREE_NAME = f"{AWS}/aws://us-east-1a/{DISK}"
CSI_NAME = f"kubernetes.io/csi/{EBS}^{DISK}"
STORED: Object = {
    "metadata": {"name": VOLUME},
    "spec": {"awsElasticBlockStore": {"volumeID": f"aws://us-east-1a/{DISK}"}},
}


class Cluster(Nodes):
    """Three nodes with taints that tell their kind, and a restriction at work on them."""

    def __init__(self, *kinds: str) -> None:
        super().__init__()
        for number, kind in enumerate(kinds, 1):
            self.kind(f"n{number}", kind)
        self.stage: SchedulingRestriction = restriction(
            roll_step(RESTRICTED), RESTRICTED, Patience()
        )

    def kind(self, name: str, kind: str, *, taints: str | None = None, **node: Any) -> None:
        """A node of a kind, which its taint tells, unless it tells another or nothing."""
        lists = AWS if kind == CSI else ""
        marks = {"storage.alpha.kubernetes.io/migrated-plugins": lists}
        self.put(CSI_NODES, name, annotations=marks, spec={"drivers": [{"name": EBS}]})
        told = kind if taints is None else taints
        taint = [{"key": KEY, "value": told, "effect": "NoSchedule"}] if told else []
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        status = {**ready, **node.pop("status", {})}
        self.put(NODES, name, spec={"taints": taint, **node}, status=status)

    def unbound(self, name: str, *claims: str) -> None:
        self.put(PODS, name, namespace="shop", spec={"volumes": _volumes(claims)}, status={})

    def bound(self, name: str, node: str, *claims: str, **metadata: Any) -> None:
        spec = {"nodeName": node, "volumes": _volumes(claims)}
        self.put(PODS, name, namespace="shop", spec=spec, status={"phase": "Running"}, **metadata)

    def attachment(self, node: str) -> None:
        source = {"persistentVolumeName": VOLUME}
        spec = {"attacher": EBS, "nodeName": node, "source": source}
        self.put(VOLUME_ATTACHMENTS, "csi-1", spec=spec)

    def decide(self, now: float = SETTLED) -> Decision:
        decision = Decision()
        if not self.stage.holds_up(self.world, now, decision):
            decision = Decision()
            self.stage.keep(self.world.take_touched(), self.world, now, decision)
        return decision

    def look(
        self, decision: Decision, *tolerations: Object, volume: Object | None = STORED
    ) -> None:
        """Answer all looks at pods: each has these tolerations, and its claim this volume."""
        for act in decision.acts:
            if isinstance(act, LookAtUnboundPod):
                pod = self.world.pod((act.namespace, act.pod))
                assert pod is not None
                metadata = {"name": act.pod, "namespace": act.namespace, "resourceVersion": "7"}
                seen = {"metadata": metadata, "spec": {"tolerations": list(tolerations)}}
                claims = dict.fromkeys(pod.claims, volume)
                self.stage.learn(act, UnboundPod(seen, claims), SETTLED)

    def given(self, name: str) -> set[str]:
        """The kinds that a pod is given tolerations for, once it was looked at."""
        found = set()
        for act in self.decide().acts:
            if isinstance(act, TolerateTaints) and act.pod == name:
                found = {it.get("value", "any") for it in act.tolerations if it["key"] == KEY}
        return found


def started(*kinds: str) -> Cluster:
    """A cluster whose nodes have had their taints for long."""
    cluster = Cluster(*kinds)
    cluster.decide(0)
    cluster.decide()
    return cluster


def _volumes(claims: tuple[str, ...]) -> list[Object]:
    return [
        {"name": it, "persistentVolumeClaim": {"claimName": it.partition("/")[2]}} for it in claims
    ]


def toleration(kind: str) -> Object:
    return {"key": KEY, "operator": "Equal", "value": kind, "effect": "NoSchedule"}


def test_no_node_is_cordoned_before_all_have_taints_and_the_scheduler_has_heard() -> None:
    cluster, stage = Cluster(IN_TREE, IN_TREE), rolling(RESTRICTED)
    cluster.kind("n3", IN_TREE, taints="")
    (taint,) = stage.decide(cluster.world, 0).acts
    assert isinstance(taint, TaintNode)
    assert [(it.key, it.value, it.effect) for it in taint.taints] == [(KEY, IN_TREE, "NoSchedule")]
    cluster.kind("n3", IN_TREE)
    assert stage.decide(cluster.world, 1).acts == []
    assert [type(it) for it in stage.decide(cluster.world, 20).acts] == [Cordon]


def test_other_taints_stay() -> None:
    cluster = Cluster(IN_TREE, IN_TREE)
    gpu = {"key": "gpu", "value": "yes", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}
    cluster.put(NODES, "n2", spec={"taints": [gpu]}, status={})
    (taint,) = cluster.decide().acts
    assert isinstance(taint, TaintNode)
    first, ours = taint.taints
    assert (first.key, first.effect, first.time_added) == ("gpu", "NoExecute", gpu["timeAdded"])
    assert ours.key == KEY


def test_nodes_that_are_as_they_should_be_get_no_taint() -> None:
    cluster = Cluster(CSI, CSI, CSI)
    for name in ("n1", "n2", "n3"):
        cluster.kind(name, CSI, taints="")
    assert cluster.decide().acts == []


@pytest.mark.parametrize("cordoned", [True, False])
def test_a_node_on_its_way_has_no_kind(cordoned: bool) -> None:
    cluster = started(CSI, IN_TREE, IN_TREE)
    cluster.kind("n2", IN_TREE, unschedulable=cordoned)
    taints = [it.taints[0].value for it in cluster.decide().acts if isinstance(it, TaintNode)]
    assert taints == ([SWITCHING] if cordoned else [])


def test_a_pod_without_such_a_volume_may_go_anywhere() -> None:
    cluster = started(CSI, IN_TREE, IN_TREE)
    cluster.unbound("web")
    cluster.look(cluster.decide())
    assert cluster.given("web") == {"any"}


def test_a_native_volume_keeps_no_pod_from_any_node() -> None:
    cluster = started(CSI, IN_TREE, IN_TREE)
    cluster.unbound("web", CLAIM)
    native = {"csi": {"driver": EBS, "volumeHandle": DISK}}
    cluster.look(cluster.decide(), volume={"metadata": {"name": VOLUME}, "spec": native})
    assert cluster.given("web") == {"any"}


FREE = {IN_TREE, CSI}
HOLDERS: dict[str, tuple[Any, set[str]]] = {
    "nothing": (lambda _cluster: None, FREE),
    "a pod on a CSI node": (lambda it: it.bound("old", "n1", CLAIM), {CSI}),
    "one that is to end": (
        lambda it: it.bound("old", "n1", CLAIM, deletionTimestamp="2026-01-01T00:00:00Z"),
        {CSI},
    ),
    "a pod on an in-tree node": (lambda it: it.bound("old", "n2", CLAIM), {IN_TREE}),
    "pods on both": (
        lambda it: (it.bound("old", "n1", CLAIM), it.bound("older", "n2", CLAIM)),
        set(),
    ),
    "a VolumeAttachment": (lambda it: it.attachment("n1"), {CSI}),
    "a node has it attached": (
        lambda it: it.kind("n2", IN_TREE, status={"volumesAttached": [{"name": IN_TREE_NAME}]}),
        {IN_TREE},
    ),
    "a node has it in use": (
        lambda it: it.kind("n1", CSI, status={"volumesInUse": [CSI_NAME]}),
        {CSI},
    ),
    "a node has another disk": (
        lambda it: it.kind("n1", CSI, status={"volumesInUse": [f"{CSI_NAME}0"]}),
        FREE,
    ),
    "a pod that has ended": (
        lambda it: it.put(
            PODS, "old", namespace="shop", status={"phase": "Succeeded"},
            spec={"nodeName": "n1", "volumes": _volumes((CLAIM,))},
        ),
        FREE,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("hold", "expected"), HOLDERS.values(), ids=HOLDERS)
def test_a_pod_follows_what_holds_its_volume(hold: Any, expected: set[str]) -> None:
    cluster = started(CSI, IN_TREE, IN_TREE)
    hold(cluster)
    cluster.unbound("new", CLAIM)
    cluster.look(cluster.decide())
    assert cluster.given("new") == expected


def test_of_two_new_pods_the_second_may_only_go_where_the_first_may() -> None:
    cluster = started(CSI, IN_TREE, IN_TREE)
    cluster.unbound("first", CLAIM)
    cluster.unbound("other", "shop/other")
    cluster.bound("old", "n1", CLAIM)
    cluster.look(cluster.decide(), toleration(CSI))
    cluster.unbound("second", CLAIM)
    cluster.look(cluster.decide())
    assert cluster.given("second") == {CSI}


def test_while_one_may_go_anywhere_the_other_waits() -> None:
    cluster = started(CSI, IN_TREE, IN_TREE)
    cluster.unbound("first", CLAIM)
    cluster.unbound("second", CLAIM)
    cluster.look(cluster.decide())
    given = [act.pod for act in cluster.decide().acts if isinstance(act, TolerateTaints)]
    assert given == ["first"]


def test_a_pod_may_go_elsewhere_too_once_its_volume_is_free() -> None:
    """Its first tolerations may be for nodes that are all gone, or full."""
    cluster = started(CSI, IN_TREE, IN_TREE)
    cluster.bound("old", "n1", CLAIM)
    cluster.unbound("new", CLAIM)
    cluster.look(cluster.decide(), toleration(CSI))
    assert cluster.given("new") == set()
    old = cluster.world.pod(("shop", "old"))
    assert old is not None
    cluster.world.remove(PODS, old)
    assert cluster.given("new") == FREE


def test_a_toleration_that_was_refused_is_decided_upon_a_new_look() -> None:
    cluster = started(CSI, IN_TREE, IN_TREE)
    cluster.unbound("new", CLAIM)
    cluster.look(cluster.decide())
    (act,) = cluster.decide().acts
    cluster.stage.learn(act, Conflict("changed"), SETTLED)
    assert [type(it) for it in cluster.decide().acts] == [LookAtUnboundPod]


def test_no_node_is_switched_while_a_pod_tolerates_what_is_not_there() -> None:
    """It was given its tolerations in a run that was undone."""
    cluster = Cluster(IN_TREE, IN_TREE, IN_TREE)
    cluster.unbound("stray", CLAIM)
    cluster.look(cluster.decide(0), toleration(CSI))
    waiting = Decision()
    assert cluster.stage.holds_up(cluster.world, SETTLED, waiting)
    assert "pod shop/stray to be bound or deleted" in waiting.waits[-1].what


def test_taints_go_once_all_nodes_are_alike() -> None:
    cluster = started(CSI, CSI, IN_TREE)
    waiting, ending = Decision(), Decision()
    assert not cluster.stage.ends(cluster.world, waiting)
    assert waiting.acts == []
    assert "n3 to be like the other nodes" in waiting.waits[0].what
    cluster.kind("n3", CSI)
    assert not cluster.stage.ends(cluster.world, ending)
    assert [(act.node, act.taints) for act in ending.acts if isinstance(act, TaintNode)] == [
        (name, ()) for name in ("n1", "n2", "n3")
    ]
    for name in ("n1", "n2", "n3"):
        cluster.kind(name, CSI, taints="")
    assert cluster.stage.ends(cluster.world, Decision())


def test_a_pod_that_an_api_server_did_not_know_yet_is_looked_at_again() -> None:
    cluster = started(IN_TREE, CSI)
    cluster.unbound("db-0", CLAIM)
    (look,) = cluster.decide().acts
    assert isinstance(look, LookAtUnboundPod)
    cluster.stage.learn(look, UnboundPod(), SETTLED)
    assert cluster.decide().acts == []
    assert cluster.decide(SETTLED + 5).acts == [look]
