"""The pods of CSI drivers: whose log to read when a volume does not come, or does not go.

A driver's pod on a node names its socket, whose folder is called after the driver. The pod that
attaches for it names no driver; it stands in the same namespace, has a container for attaching,
and is called much as the others are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import takewhile

_SOCKET = re.compile(rb'/plugins/([^/"\s]+)/[^/"\s]*\.sock')
_ATTACHER = re.compile(rb'"name":\s*"[^"]*attacher[^"]*"')


@dataclass
class DriverPods:
    """What was found, each pod as namespace/name."""

    on_nodes: dict[str, dict[str, str]] = field(default_factory=dict)
    """The pod of each driver on each node."""
    attachers: list[str] = field(default_factory=list)
    """Those that attach for some driver."""

    def take(self, namespace: str, name: str, node: str, containers: bytes) -> None:
        """Look at a pod; its containers may stay the JSON that they are."""
        # Most pods have to do with no driver: looking for a word is all that these cost.
        if b"/plugins/" in containers and node:
            for driver in drivers_in(containers):
                there = self.on_nodes.setdefault(driver, {})
                there[node] = f"{namespace}/{name}"
        if b"attacher" in containers and _ATTACHER.search(containers):
            self.attachers.append(f"{namespace}/{name}")

    def clear(self) -> None:
        """Forget them all: the list of pods begins again."""
        self.on_nodes.clear()
        self.attachers.clear()

    def on(self, node: str, driver: str) -> str:
        """A driver's pod on a node; nothing where none was found."""
        return self.on_nodes.get(driver, {}).get(node, "")

    def attacher(self, driver: str) -> str:
        """The pod that attaches for a driver, as far as names tell; nothing where they do not."""
        beside = next(iter(self.on_nodes.get(driver, {}).values()), "")
        namespace = beside.partition("/")[0]
        there = [it for it in self.attachers if it.partition("/")[0] == namespace]
        return max(there, key=lambda it: _in_common(it, beside), default="")


def drivers_in(containers: bytes) -> set[str]:
    """The drivers whose sockets are named in what a pod says."""
    return {it.decode(errors="replace") for it in _SOCKET.findall(containers)}


def _in_common(one: str, other: str) -> int:
    return len(list(takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))))
