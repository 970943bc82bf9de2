"""A World of a few nodes, and what a step decides about it: no cluster, no clock."""

from __future__ import annotations

from typing import Any

from msgspec import convert

from replant.cluster.ports import CSI_NODES, NODES, PODS, Resource
from replant.execute.acts import Act, Decision
from replant.execute.draining import DrainRules
from replant.execute.outages import Outages
from replant.execute.patience import Patience
from replant.execute.rolling import Rolling
from replant.execute.world import WATCHED, Pod, Record, World
from replant.plan.compose import Choices
from replant.plan.model import Plan, RollNodes
from tests.inventory.clusters import AWS, EBS
from tests.plan.clusters import Kubelet, planned

OFF = {"CSIMigrationAWS": False}
_CLUSTER: dict[str, Any] = {"server": "1.24.17", "gates": OFF, "kubelets": [Kubelet(gates=OFF)] * 3}
RESTRICTED: Plan = planned("enable", **_CLUSTER)
"""For the nodes n1, n2 and n3."""
ENABLE: Plan = planned("enable", wanted={"choices": Choices(one_pod_per_volume=True)}, **_CLUSTER)
"""The same without taints, for tests that are about something else."""


def roll_step(plan: Plan) -> RollNodes:
    (found,) = (it for it in plan.steps if isinstance(it, RollNodes))
    return found


def rolling(plan: Plan = ENABLE, outages: Outages | None = None, **more: Any) -> Rolling:
    given = {"rules": DrainRules(), "patience": Patience(), **more}
    return Rolling(roll_step(plan), plan, "run", outages or Outages(lambda: 0.0), **given)


class Nodes:
    """A World, and the versions of what is in it."""

    def __init__(self, *names: str) -> None:
        self.world = World()
        self._version = 0
        for name in names:
            self.node(name)
            self.csi_node(name)

    def node(
        self, name: str, *, cordoned: bool = False, run: str = "", tainted: bool = True,
        **status: Any,
    ) -> None:  # fmt: skip
        """A node; one that is cordoned has the taint of those that are being switched."""
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        marks = {"replant.dev/cordoned-by": run} if run else {}
        taints = [{"key": "replant.dev/aws-ebs", "value": "switching", "effect": "NoSchedule"}]
        spec = {"unschedulable": cordoned, "taints": taints if cordoned and tainted else []}
        self.put(
            NODES, name, annotations=marks, spec=spec,
            status={**ready, **status},
        )  # fmt: skip

    def csi_node(self, name: str, *, lists: str = "") -> None:
        marks = {"storage.alpha.kubernetes.io/migrated-plugins": lists}
        self.put(CSI_NODES, name, annotations=marks, spec={"drivers": [{"name": EBS}]})

    def pod(self, name: str, node: str, **metadata: Any) -> Pod:
        owner = [{"kind": "StatefulSet", "name": "db", "controller": True}]
        found = self.put(
            PODS, name, spec={"nodeName": node}, namespace="shop", ownerReferences=owner, **metadata
        )
        assert isinstance(found, Pod)
        return found

    def put(
        self,
        resource: Resource,
        name: str,
        spec: dict[str, Any],
        status: dict[str, Any] | None = None,
        **metadata: Any,
    ) -> Record:
        self._version += 1
        named = {"name": name, "uid": f"uid-{name}", "resourceVersion": str(self._version)}
        fields = {"metadata": {**named, **metadata}, "spec": spec}
        if status is not None:
            fields["status"] = status
        record = convert(fields, WATCHED[resource])
        self.world.put(resource, record)
        return record


def only(decision: Decision) -> Act:
    (act,) = decision.acts
    return act


__all__ = ["AWS", "ENABLE", "OFF", "Nodes", "only", "roll_step", "rolling"]
