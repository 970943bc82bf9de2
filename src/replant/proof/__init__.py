"""Proves that an order of switching loses no volume, or tells the shortest story of how it does."""

from replant.proof.badness import BadState
from replant.proof.course import Course, NodeGroup, NodesMove, SwitchMove
from replant.proof.search import Verdict, joined, verify, verify_all

__all__ = [
    "BadState",
    "Course",
    "NodeGroup",
    "NodesMove",
    "SwitchMove",
    "Verdict",
    "joined",
    "verify",
    "verify_all",
]
