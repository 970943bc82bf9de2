"""What is to be proved: a cluster's beginning, and the moves that somebody wants to make.

Plans and orders written by hand both become a course. A course knows nothing of single nodes:
nodes in the same situation are one group.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from replant.routing import AttachController, Process

OVERTAKEN = frozenset({"kubernetes.io/aws-ebs"})
"""Plugins whose detach waits for half an hour when their driver attaches the disk meanwhile, and is
then begun anew (docs/observed.md)."""


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes in the same situation: the same kubelet, and the driver on all of them or on none."""

    name: str
    kubelet: Process
    driver: bool
    size: int = 2
    """How many nodes; more than two are like two."""


@dataclass(frozen=True, slots=True)
class SwitchMove:
    """All replicas of the control plane are given this, one by one, and then it is confirmed."""

    to: Process
    told: str
    """The move, as a story tells it: what the control plane is given."""


@dataclass(frozen=True, slots=True)
class NodesMove:
    """The kubelets of some groups are given this, node by node."""

    to: dict[str, Process]
    """By the group's name; a group that is not here is left alone."""
    drain: bool
    told: str
    """The move, as a story tells it: what the kubelets are given."""
    forgets: bool = False
    """Whether no detach that the driver has overtaken is waited for until it is begun anew: the
    controllers are restarted in time and at the end, or a node that was left does not come back."""
    restricts: bool = False
    """Whether each node has a taint that tells its kind from before the first kubelet is switched
    until all are alike, and a pod gets a toleration for one kind once nothing of the other kind
    holds its volumes."""
    closes: bool = False
    """Whether a node that is being switched has a taint that no pod tolerates. A cordon alone does
    not keep away pods that tolerate it, such as those of DaemonSets."""


Move = SwitchMove | NodesMove


class OldNodesJoin(Enum):
    """When nodes join that have the gates which nodes had at first."""

    NEVER = "never"
    EVER = "ever"
    """At any time. A node is there for a while before it has the taint of its kind."""
    TAINTED = "tainted"
    """While all nodes have the taint of their kind, and each that joins has it from the first."""


@dataclass(frozen=True, slots=True)
class Course:
    """A beginning and moves, for the volumes of one plugin."""

    plugin: str
    controller: Process
    groups: tuple[NodeGroup, ...]
    moves: tuple[Move, ...] = ()
    attach_controller: AttachController = AttachController.UPSTREAM
    driver: bool = True
    """Whether the driver's controllers are installed: what provisions and attaches."""
    volumes: bool = True
    """Whether there are volumes of the plugin, or may be before the last move is made."""
    at_once: int = 1
    """How many nodes may be cordoned at a time."""
    drain_sees_cloud: bool = True
    """Whether the wait for an empty node sees a detach that the cloud has not finished.

    A node's ``volumesAttached`` does not: the controller takes the name out before it asks the
    cloud. Whoever carries a plan out has to wait longer than that list tells.
    """
    old_nodes_join: OldNodesJoin = OldNodesJoin.NEVER
    drivers_stay: bool = True
    """Whether somebody vouches that no driver is missing on a node for six minutes when a
    kube-controller-manager starts. It matters only to older ones."""
    one_pod_per_volume: bool = False
    """Whether no pod is bound while a node still has the disk of another, as somebody vouches."""
