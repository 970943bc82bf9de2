"""What creates nodes, by what is seen of nodes and Deployments."""

from __future__ import annotations

import pytest

from replant.plan.model import Weight
from tests.inventory.clusters import Object, obj
from tests.plan.clusters import looked, tripped


def marked(*, labels: tuple[str, ...] = (), annotations: tuple[str, ...] = ()) -> Object:
    status = {
        "nodeInfo": {"kubeletVersion": "v1.22.17"},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    metadata = {"labels": dict.fromkeys(labels, "x"), "annotations": dict.fromkeys(annotations, "")}
    return obj("Node", "n9", metadata=metadata, status=status)


def deployment(name: str, replicas: int = 1) -> Object:
    template: Object = {"spec": {"containers": []}}
    return obj("Deployment", name, "kube-system", spec={"replicas": replicas, "template": template})


@pytest.mark.parametrize("goal", ["enable", "disable", "complete"])
@pytest.mark.parametrize(
    ("found", "said"),
    [
        (marked(annotations=("cluster.x-k8s.io/machine",)), "Cluster API (n9)"),
        (marked(annotations=("machine.openshift.io/machine",)), "the Machine API (n9)"),
        (marked(labels=("karpenter.sh/nodepool",)), "Karpenter (n9)"),
        (marked(labels=("karpenter.sh/provisioner-name",)), "Karpenter (n9)"),
        (
            marked(annotations=("cluster-autoscaler.kubernetes.io/scale-down-disabled",)),
            "Cluster Autoscaler (n9)",
        ),
        (marked(labels=("eks.amazonaws.com/nodegroup",)), "a node group of EKS (n9)"),
        (
            deployment("aws-cluster-autoscaler"),
            "Cluster Autoscaler (Deployment kube-system/aws-cluster-autoscaler)",
        ),
        (deployment("karpenter"), "Karpenter (Deployment kube-system/karpenter)"),
    ],
)
def test_what_creates_nodes_is_named(goal: str, found: Object, said: str) -> None:
    ((weight, message),) = tripped(looked(goal, "kubernetes.io/aws-ebs", found), "new-nodes")
    assert weight is Weight.WARNING
    assert message.startswith(f"Nodes are created here by {said}. One that joins")


@pytest.mark.parametrize(
    "found",
    [
        marked(labels=("kubernetes.io/hostname",), annotations=("cluster.x-k8s.io/owner-kind",)),
        deployment("cluster-autoscaler", replicas=0),
        deployment("cluster-autoscaler-exporter"),
    ],
)
def test_what_does_not_create_nodes_is_not(found: Object) -> None:
    checks = looked("enable", "kubernetes.io/aws-ebs", found)
    assert [it.message for it in checks if it.check == "new-nodes"] == [
        "Nothing was found that creates nodes."
    ]
