"""Sees, while a run is under way, that a disk was detached under a pod.

It goes by what the attach/detach controller writes to each Node's volumesAttached. A disk that two
nodes list under its two names was taken from the first one; a disk that its node no longer lists
while a pod runs there was detached under that pod.

Watches may be late, so what they show is a suspicion. It counts once looks at the nodes themselves
have shown the same for a while. Until then the run does nothing else.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from replant.execute.acts import Act, Decision, LookAtNode, Wait
from replant.execute.census_model import Census
from replant.execute.emptying import FreshNode
from replant.execute.world import Node, World, precedes
from replant.routing.names import named

CONFIRMED = 10.0
"""Seconds. A detach that fails takes a name from the list and puts it back at once; an API server
may lag behind."""
LOOK_AGAIN = 1.0
ADVICE = "Delete the pods that use it, one after the other, and look at the disk before you resume."


@dataclass(frozen=True)
class _Suspicion:
    """A disk that is not where its pod is, by what is known of these nodes."""

    claim: str
    nodes: tuple[str, ...]
    harm: str


class Detaches:
    """The disks of a census, and which nodes list them."""

    def __init__(self, census: Census) -> None:
        self._claims: dict[str, str] = {}
        """By name of a disk, the claim that it belongs to."""
        for volume in census.volumes:
            if volume.disk and volume.claim and not volume.shared:
                names = filter(None, (volume.disk.in_tree, volume.disk.csi))
                self._claims |= dict.fromkeys(names, volume.claim)
        self._listed: dict[str, dict[str, set[str]]] = defaultdict(dict)
        """By claim and node, the names under which its disk is listed there."""
        self._unlisted: set[tuple[str, str]] = set()
        """By claim and node, where a disk was listed and is no more."""
        self._suspected = ("", 0.0)
        """A claim, and since when its disk seems to be elsewhere than its pod."""
        self._seen: dict[str, float] = {}
        """By node, when a look at it has shown it as it is."""

    def saw(self, before: Node | None, after: Node | None) -> None:
        """A node is not what it was."""
        node = after or before
        if node is None:
            return
        name = node.metadata.name
        was, now = self._disks(before), self._disks(after)
        for claim in was.keys() | now.keys():
            if claim in now:
                self._listed[claim][name] = now[claim]
                self._unlisted.discard((claim, name))
            else:
                self._listed[claim].pop(name, None)
                if after is not None:
                    self._unlisted.add((claim, name))

    def learn(self, act: Act, outcome: object, now: float) -> None:
        """Note a look at a node whose pods were listed after it."""
        if isinstance(act, LookAtNode) and isinstance(outcome, FreshNode):
            node = outcome.node
            if node is None or not precedes(outcome.version, node.metadata.resource_version):
                self._seen[act.node] = now

    def decide(self, world: World, now: float) -> Decision | None:
        """What to look at before anything else is done; nothing if all disks are at their pods."""
        found = self._suspicion(world)
        if found is None:
            self._suspected = "", 0.0
            return None
        if self._suspected[0] != found.claim:
            self._suspected = found.claim, now
        confirmed = self._suspected[1] + CONFIRMED
        if all(self._seen.get(it, 0.0) >= confirmed for it in found.nodes):
            return Decision(failed=f"{found.harm} {ADVICE}")
        why = f"the disk of {found.claim} may have been detached under its pod"
        return Decision(
            acts=[
                LookAtNode(why=why, node=it)
                for it in found.nodes
                if now >= self._seen.get(it, -LOOK_AGAIN) + LOOK_AGAIN
            ],
            waits=[Wait(f"looks at {', '.join(found.nodes)}: {why}", f"disk {found.claim}", 3600)],
            wake=LOOK_AGAIN,
        )

    def _suspicion(self, world: World) -> _Suspicion | None:
        for claim, nodes in self._listed.items():
            sides = {named(it).side for names in nodes.values() for it in names}
            if len(nodes) > 1 and len(sides) > 1:
                where = ", ".join(
                    f"{node} as {', '.join(sorted(names))}" for node, names in sorted(nodes.items())
                )
                return _Suspicion(
                    claim,
                    tuple(sorted(nodes)),
                    f"The disk of {claim} was detached under its pod, or is attached twice: "
                    f"{where}.",
                )
        for claim, node in sorted(self._unlisted):
            pod = next((it for it in world.pods_on(node) if claim in it.claims and it.serves), None)
            if pod is not None:
                return _Suspicion(
                    claim,
                    (node,),
                    f"The disk of {claim} was detached from {node} under pod {pod.name}, which "
                    "still runs there.",
                )
            self._unlisted.discard((claim, node))
        return None

    def _disks(self, node: Node | None) -> dict[str, set[str]]:
        found: dict[str, set[str]] = defaultdict(set)
        for it in (node.status.volumes_attached or ()) if node else ():
            if claim := self._claims.get(it.name):
                found[claim].add(it.name)
        return found
