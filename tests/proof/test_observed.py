"""The model against the record of the real controller: whatever was seen, the model can reach.

A step of the record is what was done. Then Kubernetes acts, in the model as it did there, until
nothing is left to do; only looking at a pod again (LOOK) took the real controller longer than a
step did, unless the pod changed or it restarted. What was seen must be among the ends, and the
next step begins there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from replant.proof.events import SIDES, Act, Event, may_happen, progress, taken_over
from replant.proof.world import CSI, IN_TREE, NOWHERE, Hold, Node, Pod, Rules, World
from tests.proof.making import OFF, ON, UNREGISTERED, Making

RECORD = Path(__file__).parents[1] / "real/observed/orders/1.24.17.json"
ORDERS = json.loads(RECORD.read_text())["orders"]

AWS = Making()
COURSE = AWS.course(
    OFF,
    (AWS.group("n", OFF),),
    AWS.switch(UNREGISTERED),
    AWS.nodes(ON, "n", drain=False),
    AWS.nodes(OFF, "n", drain=False),
)
RULES = Rules(COURSE, (0, 0))
IS_OFF, IS_UNREGISTERED, IS_ON = (
    RULES.processes.index(AWS.process(it)) for it in (OFF, UNREGISTERED, ON)
)
SWITCHED_ON, SWITCHED_OFF, DONE = 1, 2, len(COURSE.moves)
"""The moves that switch a node, and none."""
NAMES = {IN_TREE: "in-tree", CSI: "csi"}
PODS = {Pod.ABSENT: "gone", Pod.WAITING: "Pending", Pod.RUNNING: "Running"}

Do = Callable[[World], World]


def happens(act: Act, node: int, at: int = DONE) -> Do:
    """What the model says that such an event makes of a world."""

    def do(world: World) -> World:
        events = may_happen(RULES, world._replace(at=at))
        found = next(it.world for it in events if (it.act, it.node) == (act, node))
        return found._replace(at=DONE, back=False)

    return do


def controller(leader: int) -> Do:
    """A controller starts with these gates."""
    return lambda world: taken_over(RULES, world, leader)


def on(node: int) -> Do:
    return happens(Act.SWITCH_IN_PLACE, node, SWITCHED_ON)


def off(node: int) -> Do:
    return happens(Act.SWITCH_IN_PLACE, node, SWITCHED_OFF)


def switched(world: World) -> World:
    """The pod's node, whichever way it is."""
    return (on(0) if world.nodes[0].kubelet == IS_OFF else off(0))(world)


def gone(node: int) -> Do:
    return happens(Act.DELETE, node)


def comes(node: int) -> Do:
    return happens(Act.BIND, node)


def restarted(world: World) -> World:
    return taken_over(RULES, world, world.leader)


# Nodes 0 and 1: the one on which the pod is first, and the other.
FIRST: dict[str, list[Do]] = {
    "all off": [comes(0)],
    "all on": [controller(IS_ON), on(0), on(1), comes(0)],
    "pod started on the node that is on": [on(0), comes(0)],
    "pod started on the node that is off": [controller(IS_UNREGISTERED), comes(0)],
}
THEN: dict[str, list[Do]] = {
    "controller on": [controller(IS_ON)],
    "controller off": [controller(IS_OFF)],
    "controller on, plugin unregistered": [controller(IS_UNREGISTERED)],
    "controller restarted": [restarted],
    "node on": [on(0)],
    "node off": [off(0)],
    "node on, pod still there": [on(0)],
    "node switched, pod still there": [switched],
    "node switched, then a label of the pod": [switched, happens(Act.LOOK, 0)],
    "drained node on, pod moved there": [on(0), gone(1), comes(0)],
    "all nodes on, plugin unregistered in the controller": [on(1), controller(IS_UNREGISTERED)],
    "pod moved": [gone(0), comes(1)],
    "pod moved; its node is off": [gone(0), comes(1)],
    "pod moved to a node that is off": [gone(0), comes(1)],
    "pod moved back": [gone(1), comes(0)],
    "plugin registered, drained node off, pod moved there": [
        controller(IS_ON),
        off(0),
        gone(1),
        comes(0),
    ],
    "all nodes off, controller off": [off(1), controller(IS_OFF)],
    "pod started anew on the node that is on": [gone(0), comes(0)],
    "pod deleted": [gone(0)],
}


class Seen(NamedTuple):
    """How a step ended, as the record tells it."""

    pod: str
    attached: frozenset[str]
    """Under whose names the node with the pod, or the one where it was, has the disk."""
    by_driver: bool
    """Whether there is a VolumeAttachment, and it says attached."""
    disk: str
    detached_by: str
    """Who detached while there was a pod, and what the pod did then."""


class Moment(NamedTuple):
    world: World
    detached: frozenset[str] = frozenset()


def meanwhile(moments: Iterable[Moment]) -> Iterator[Moment]:
    """All that Kubernetes may make of it, at rest or not."""
    ahead = list(moments)
    found = set(ahead)
    while ahead:
        moment = ahead.pop()
        yield moment
        for event in events(moment.world):
            detached = moment.detached
            if event.act is Act.DETACH and moment.world.nodes[event.node].pod:
                by = "CSI" if event.side == CSI else "in-tree"
                detached |= {f"{by}, while the pod is {'Running' if event.yanks else 'Pending'}"}
            after = Moment(event.world, detached)
            if after not in found:
                found.add(after)
                ahead.append(after)


def events(world: World) -> list[Event]:
    return [it for it in progress(RULES, world) if it.act is not Act.LOOK]


def seen(moment: Moment) -> Seen:
    nodes = moment.world.nodes
    node = max(nodes, key=lambda it: (it.pod, len(attached(it))))
    return Seen(
        PODS[node.pod],
        attached(node),
        any(it.csi is Hold.HELD for it in nodes),
        "free" if moment.world.disk == NOWHERE else "attached",
        " and ".join(sorted(moment.detached)),
    )


def attached(node: Node) -> frozenset[str]:
    return frozenset(NAMES[side] for side in SIDES if node.holds(side) is Hold.HELD)


def recorded(step: dict[str, Any], disk: str) -> Seen:
    return Seen(
        step["pod"],
        frozenset(step["volumesAttached"]),
        step["volumeAttachments"] == ["attached"],
        step.get("disk", disk),  # which side came last was left to chance, and not recorded
        step.get("detachedBy", ""),
    )


@pytest.mark.parametrize("order", ORDERS, ids=[it["order"] for it in ORDERS])
def test_what_was_seen_the_model_reaches(order: dict[str, Any]) -> None:
    worlds, known = {RULES.start._replace(at=DONE)}, FIRST
    for step in order["steps"]:
        assert step["step"] in known, "a step that nobody has told the model how to take"
        moments = {Moment(world) for world in worlds}
        for do in known[step["step"]]:
            done = {it._replace(world=do(it.world)) for it in moments}
            moments = set(meanwhile(done))
        ends = {it: seen(it) for it in moments if not events(it.world)}
        worlds = {it.world for it, what in ends.items() if what == recorded(step, what.disk)}
        assert worlds, (step, set(ends.values()))
        known = THEN
