"""The taints of Replant: a node tells by them of which kind it is, or that it is being switched."""

from __future__ import annotations

from replant.execute.world import Node

NO_SCHEDULE = "NoSchedule"
SWITCHING = "switching"
"""The kind of a node that is drained and on its way from one kind to the other."""


def key_of(plugin: str) -> str:
    """The taint by which a node tells its kind for a plugin."""
    return f"replant.dev/{plugin.rpartition('/')[2]}"


def is_being_switched(node: Node, plugin: str) -> bool:
    """Whether a node's taint says that it is being switched: no pod tolerates that."""
    key = key_of(plugin)
    return any(it.key == key and it.value == SWITCHING for it in node.spec.taints or ())
