"""A pod that comes to a cordoned node after Replant's last look, before its kubelet is restarted.

All pods of DaemonSets tolerate a cordon, and those of some operators; a few tolerate every taint.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.real import applying
from tests.real.applying import Cluster
from tests.real.attaching import GATE
from tests.real.ground.api import Object
from tests.real.ground.cloud import Cloud
from tests.real.ground.nodes import LightNode
from tests.real.ground.processes import wait_for
from tests.real.ground.volumes import new_volume, pod_object
from tests.real.vigil import yanked

CORDON = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}
EVERYTHING = {"operator": "Exists"}
A_WHILE = 15
"""Seconds in which a pod that may come has come; to have its disk it takes some more."""


@pytest.fixture(scope="module")
def cluster(cloud: Cloud, ground: Path) -> Iterator[Cluster]:
    with applying.cluster(cloud, ground / "cordons", gates={GATE: False}) as cluster:
        yield cluster


class Late:
    """A workload that wants to be on the first node that is switched, once it is empty."""

    def __init__(self, cluster: Cluster, name: str, toleration: dict[str, str]) -> None:
        self._cluster = cluster
        self._name = name
        self._toleration = toleration
        self.node: LightNode | None = None
        self.came = False
        """Whether its pod ran before the kubelet was restarted."""
        new_volume(cluster.api, cluster.cloud, name)

    def come(self, node: LightNode) -> None:
        if self.node is not None:
            return
        self.node = node
        template = pod_object(self._name, claim=self._name)["spec"]
        template["tolerations"] = [self._toleration]
        terms = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node.name]}]}
        wanted = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [terms]}}
        template["affinity"] = {"nodeAffinity": wanted}
        labels = {"app": self._name}
        spec: dict[str, Any] = {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": template},
        }
        metadata = {"name": self._name, "namespace": "default"}
        self._cluster.api.create(
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
        )
        try:
            may_come = self._toleration is EVERYTHING
            wait_for(self.runs, f"{self._name} to run", A_WHILE * (6 if may_come else 1))
        except AssertionError:
            return
        self.came = True

    def runs(self) -> bool:
        return [it["status"]["phase"] for it in self._pods()] == ["Running"]

    def scale(self, replicas: int) -> None:
        change = {"spec": {"replicas": replicas}}
        self._cluster.api.patch("Deployment", self._name, change, "default")

    def end(self) -> None:
        self._cluster.api.delete("Deployment", self._name, "default")
        wait_for(lambda: not self._pods(), f"{self._name} to end", 60)

    def _pods(self) -> list[Object]:
        return self._cluster.api.list("Pod", "default", labelSelector=f"app={self._name}")


@pytest.mark.parametrize("goal", ["enable", "disable"])
@pytest.mark.parametrize(
    ("who", "toleration"),
    [
        pytest.param("cordon", CORDON, id="cordon"),
        pytest.param("everything", EVERYTHING, id="everything"),
    ],
)
def test_a_late_pod_keeps_its_disk(
    cluster: Cluster, goal: str, who: str, toleration: dict[str, str]
) -> None:
    """Each goal goes on from what the one before it has come to."""
    late = Late(cluster, f"{who}-{goal}", toleration)
    cluster.before_restart = late.come
    # Without the taints that tell the kind of a node, so that only this is between pod and harm.
    run = cluster.apply(cluster.plan(goal, "--one-pod-per-volume"))
    if toleration is EVERYTHING:
        wait_for(lambda: late.came, "the late pod to come", 300)
        run.until_said("and with it kubernetes.io/")
        assert yanked(cluster.cloud, cluster.nodes) == []
        late.scale(0)
        run.until_said("1 of 3 nodes")
        late.scale(1)
    code, _report = run.ended(400)
    assert late.node is not None, run.said
    assert yanked(cluster.cloud, cluster.nodes) == []
    assert code == 0, f"{run.said}\n{cluster.told()}"
    assert late.came is (toleration is EVERYTHING)
    wait_for(late.runs, "the late pod to run", 60)
    assert cluster.sides() == {"csi" if goal == "enable" else "in-tree"}
    assert yanked(cluster.cloud, cluster.nodes) == []
    late.end()
