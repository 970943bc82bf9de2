"""What a new process must know of those before it, and cannot see: when they moved pods."""

from __future__ import annotations

from collections.abc import Iterable

from replant.execute.acts import Evict, RestartLeader, Switch
from replant.execute.actuators import KUBELETS
from replant.execute.journal import Entry, Mark
from replant.execute.leading import OURS, Memory
from replant.execute.timing import read

_NODE = "node "
"""How the target of a switch begins that is a node's kubelet."""


def remembered(entries: Iterable[Entry]) -> Memory:
    """Pods that were moved, and leaders that were restarted, by a journal."""
    memory = Memory()
    for it in entries:
        if it.mark is not Mark.ACT:
            continue
        if it.act == RestartLeader.__name__:
            before = it.backup or {}
            memory = Memory(
                step=it.step, holder=before.get("holder", OURS), version=before.get("version", "")
            )
        elif it.act == Evict.__name__ or (
            it.act == Switch.__name__
            and (it.target.startswith(_NODE) or it.target == KUBELETS.component)
        ):
            since = read(it.at) if memory.since is None else memory.since
            memory = Memory(step=it.step, since=since)
    return memory
