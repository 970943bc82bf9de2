"""What creates nodes: its image or template must have the gates, or nodes join with old ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from replant.inventory.model import Inventory
from replant.inventory.node_records import Node
from replant.plan.model import Goal
from replant.plan.preflight.results import Results, listed, warning
from replant.plan.situation import Situation

_MARKS = {
    "cluster.x-k8s.io/machine": "Cluster API",
    "machine.openshift.io/machine": "the Machine API",
    "karpenter.sh/nodepool": "Karpenter",
    "karpenter.sh/provisioner-name": "Karpenter",
    "cluster-autoscaler.kubernetes.io/": "Cluster Autoscaler",
    "eks.amazonaws.com/nodegroup": "a node group of EKS",
    "cloud.google.com/gke-nodepool": "a node pool of GKE",
    "kubernetes.azure.com/agentpool": "a node pool of AKS",
    "kops.k8s.io/instancegroup": "an instance group of kOps",
    "worker.gardener.cloud/pool": "a worker pool of Gardener",
}
"""By a label or annotation of a node, or how it begins: what created the node, or may delete it."""
_WORKLOADS = {"cluster-autoscaler": "Cluster Autoscaler", "karpenter": "Karpenter"}
"""By the end of a Deployment's name."""


def templates(goal: Goal, situation: Situation) -> Results:  # noqa: ARG001
    """Whether something may make nodes while the plan is carried out, and after it."""
    if found := [*_created(situation.inventory)]:
        yield warning(
            f"Nodes are created here by {'; '.join(found)}. One that joins with the old gates is "
            "of the other kind: a pod there may take its disk from a pod on another node, or "
            "never get it.",
            "Before the first node is switched, give the image or template of new nodes the same "
            "gates as the plan, or pause what creates nodes until the plan is carried out.",
        )


def _created(inventory: Inventory) -> Iterator[str]:
    """What creates nodes, and by what that is seen."""
    nodes: dict[str, list[str]] = defaultdict(list)
    for name, node in sorted(inventory.nodes.items()):
        for creator in _creators(node):
            nodes[creator].append(name)
    workloads = {
        creator: f"Deployment {owner.namespace}/{owner.name}"
        for owner, replicas in sorted(inventory.replicas.items(), key=lambda it: str(it[0]))
        for name, creator in _WORKLOADS.items()
        if owner.kind == "Deployment" and owner.name.endswith(name) and replicas
    }
    for creator in sorted(nodes.keys() | workloads.keys()):
        seen = listed(nodes[creator]) if creator in nodes else workloads[creator]
        yield f"{creator} ({seen})"


def _creators(node: Node) -> set[str]:
    keys = (*(node.metadata.labels or ()), *(node.metadata.annotations or ()))
    return {creator for key in keys for mark, creator in _MARKS.items() if key.startswith(mark)}
