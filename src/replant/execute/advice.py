"""What a person has to do that Replant cannot do yet."""

from __future__ import annotations

from replant.plan.model import NodeMethod, Plan, RollNodes, Step

_OVERTAKEN = "kubernetes.io/aws-ebs"
"""Its in-tree detach waits for 34 minutes when a driver attaches the disk meanwhile."""

RESTART_CONTROLLERS = (
    "restart kube-controller-manager now, one replica after the other: it may still wait for a "
    "detach that the driver has overtaken, and end it under a pod half an hour later "
    "(docs/apply.md). In a roll of more than 25 minutes do so every 25 minutes"
)


def after(step: Step, plan: Plan) -> str:
    """What to do once a step is done; nothing after most."""
    moved = isinstance(step, RollNodes) and step.drain and step.method is NodeMethod.IN_PLACE
    return RESTART_CONTROLLERS if moved and _OVERTAKEN in plan.plugins else ""
