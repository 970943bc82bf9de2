"""The model against the records of real controllers: what was seen the model reaches, and no more.

A step of a record is what was done. Then Kubernetes acts, in the model as it did there, until
nothing is left to do but what took real controllers longer than a step did (``is_slow``). What was
seen must be the only end there is, but for what ``ALSO`` tells, and the next step begins there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from replant.gates.plugins import LIVES
from replant.gates.versions import Version
from replant.proof import Course, NodeGroup, NodesMove
from replant.proof.events import SIDES, Act, Event, may_happen, progress
from replant.proof.world import CSI, IN_TREE, NONE, NOWHERE, Hold, Node, Pod, Rules, World
from replant.routing import Process
from tests.proof.making import GATE, OFF, ON, UNREGISTERED, Making

OBSERVED = Path(__file__).parents[1] / "real/observed"
OLD, NEW = Version(1, 24, 17), Version(1, 36, 3)


def read(name: str) -> Any:
    return json.loads((OBSERVED / name).read_text())


ORDERS = [
    order
    for kind in ("orders", "overtaken", "overtaken-long", "dead-nodes")
    for order in read(f"{kind}/1.24.17.json")["orders"]
]

AWS = Making()
COURSE = AWS.course(
    OFF,
    (AWS.group("n", OFF),),
    AWS.switch(UNREGISTERED),
    AWS.switch(OFF),
    AWS.switch(ON),
    AWS.nodes(ON, "n", drain=False),
    AWS.nodes(OFF, "n", drain=False),
)
RULES = Rules(COURSE, (0, 0))
IS_OFF, IS_UNREGISTERED, IS_ON = (
    RULES.processes.index(AWS.process(it)) for it in (OFF, UNREGISTERED, ON)
)
GIVEN = {IS_UNREGISTERED: 0, IS_OFF: 1, IS_ON: 2}
"""The moves that give the controller its gates."""
SWITCHED_ON, SWITCHED_OFF, DONE = 3, 4, len(COURSE.moves)
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

    def do(world: World) -> World:
        rolling = world._replace(at=GIVEN[leader], rolling=True)
        started = [it.world for it in may_happen(RULES, rolling) if it.act is Act.TAKE_OVER]
        found = [it for it in started if it.leader == leader]
        # One that starts with the same gates, and finds what it knew, changes nothing.
        after = found[0] if found or world.leader != leader else world
        return after._replace(at=DONE, rolling=False)

    return do


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
    return controller(world.leader)(world)


# Nodes 0 and 1: the one on which the pod is first, and the other.
FIRST: dict[str, list[Do]] = {
    "all off": [comes(0)],
    "all on": [controller(IS_ON), on(0), on(1), comes(0)],
    "pod started on the node that is on": [on(0), comes(0)],
    "pod started on the node that is off": [controller(IS_UNREGISTERED), comes(0)],
    "pod started on the node that is off, controller on": [controller(IS_ON), on(1), comes(0)],
    "pod started, controller on": [controller(IS_ON), comes(0)],
    "pod started on a node that is on, controller on": [controller(IS_ON), on(0), on(1), comes(0)],
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
    "controller on, pod gone": [controller(IS_ON)],
    "pod moved to a node that is on": [gone(0), comes(1)],
    "pod moved back to the node that is off": [gone(1), comes(0)],
    "its first node on, pod moved back there": [on(0), gone(1), comes(0)],
    "half an hour later": [lambda world: world],
    "its node died, and seven minutes later": [happens(Act.DIE, 0)],
    "its node died and the pod was deleted by force, and seven minutes later": [
        happens(Act.DIE, 0),
        gone(0),
    ],
    "its node died and the pod was started elsewhere": [happens(Act.DIE, 0), gone(0), comes(1)],
}


TAKES_LONG = {"half an hour later": frozenset({Act.NOTICE, Act.DETACH_ANEW})}
"""By step, what it gave the time to."""


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


BEGINS = (Act.DETACH, Act.DETACH_ANEW)
TAKES = (*BEGINS, Act.DETACHED, Act.DETACHED_UNNOTICED, Act.ATTACH_TAKES)
"""What takes a disk from its node."""


class Moment(NamedTuple):
    world: World
    detached: frozenset[str] = frozenset()


def meanwhile(
    moments: Iterable[Moment], rules: Rules = RULES, slow: frozenset[Act] = frozenset()
) -> Iterator[Moment]:
    """All that Kubernetes may make of it, at rest or not."""
    ahead = list(moments)
    found = set(ahead)
    while ahead:
        moment = ahead.pop()
        yield moment
        for event in events(moment.world, rules, slow):
            detached = moment.detached
            if event.act in TAKES:
                node = moment.world.nodes[event.node]
                assert event.yanks is (node.alive and node.pod is Pod.RUNNING)
            if event.act in BEGINS and moment.world.nodes[event.node].pod:
                by = "CSI" if event.side == CSI else "in-tree"
                detached |= {f"{by}, while the pod is {'Running' if event.yanks else 'Pending'}"}
            after = Moment(event.world, detached)
            if after not in found:
                found.add(after)
                ahead.append(after)


def events(world: World, rules: Rules = RULES, slow: frozenset[Act] = frozenset()) -> list[Event]:
    """What happens by itself, and of what is slow only that which there is time for."""
    return [it for it in progress(rules, world) if it.act in slow or not is_slow(it, world)]


def is_slow(event: Event, world: World) -> bool:
    """Whether it took the real controller longer than a step did.

    It looks at a pod again when the pod changes or after minutes; the in-tree plugin looks at its
    detach after 1, 2, 4, 8, … s, and begins it anew after half an hour.
    """
    looks = event.act is Act.LOOK and bool(world.nodes[event.node].pod)
    return looks or event.act in (Act.NOTICE, Act.DETACH_ANEW)


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


RACE_FOR_THE_DISK = "the in-tree detach and the driver's attach race for the disk"
NOT_REPORTED = "a real kubelet may report the volume in use until after its pod is gone"
BOTH_DETACH = "an in-tree attach may come before the driver's detach, and detach the disk itself"
LOOKED_IN_TIME = "the in-tree plugin may have seen the end of its detach before the driver's attach"
ALSO: dict[tuple[str, str], tuple[str, set[Seen]]] = {
    (
        "right order: controller on, nodes drained and on, and all the way back",
        "plugin registered, drained node off, pod moved there",
    ): (BOTH_DETACH, {Seen("Pending", frozenset(), False, "free", "")}),
    (
        "overtaken: the pod goes back to the node that is off",
        "pod moved back to the node that is off",
    ): (LOOKED_IN_TIME, {Seen("Running", frozenset({"in-tree"}), False, "attached", "")}),
    (
        "overtaken: the pod goes back to its first node, which is on by now",
        "half an hour later",
    ): (LOOKED_IN_TIME, {Seen("Running", frozenset({"csi"}), True, "attached", "")}),
    ("wrong order: drained node on, controller off", "controller on"): (
        RACE_FOR_THE_DISK,
        {
            Seen("Pending", frozenset({"csi"}), True, "free", "in-tree, while the pod is Pending"),
            Seen("Running", frozenset({"csi"}), True, "free", "in-tree, while the pod is Running"),
        },
    ),
    (
        "wrong order: controller off, nodes still on",
        "pod started anew on the node that is on",
    ): (
        NOT_REPORTED,
        {
            Seen("Running", frozenset({"csi", "in-tree"}), True, "attached", ""),
            Seen("Pending", frozenset({"in-tree"}), False, "free", ""),
        },
    ),
}
"""By order and step, what may be seen there besides what was, and why (docs/observed.md)."""


@pytest.mark.parametrize("order", ORDERS, ids=[it["order"] for it in ORDERS])
def test_what_was_seen_the_model_reaches_and_no_more(order: dict[str, Any]) -> None:
    worlds, known = {RULES.start._replace(at=DONE)}, FIRST
    for step in order["steps"]:
        assert step["step"] in known, "a step that nobody has told the model how to take"
        moments = {Moment(world) for world in worlds}
        slow = TAKES_LONG.get(step["step"], frozenset())
        for do in known[step["step"]]:
            done = {it._replace(world=do(it.world)) for it in moments}
            moments = set(meanwhile(done, slow=slow))
        ends = {it: seen(it) for it in moments if not events(it.world, slow=slow)}
        worlds = {it.world for it, what in ends.items() if what == recorded(step, what.disk)}
        assert worlds, (step, set(ends.values()))
        others = {it for it in ends.values() if it != recorded(step, it.disk)}
        _why, also = ALSO.get((order["order"], step["step"]), ("", set()))
        assert others == also
        known = THEN


KINDS: dict[str, Do] = {"in-tree": lambda world: world, "csi": on(0)}


@pytest.mark.parametrize("row", read("dangling/1.24.17.json")["rows"], ids=str)
def test_a_successor_on_another_node_detaches_what_was_detached(row: dict[str, Any]) -> None:
    """The controllers are on; the pod on node 0 has not ended when its successor is bound."""
    nodes = [
        on(number) for number, key in enumerate(("node", "successorsNode")) if row[key] == "csi"
    ]
    world = RULES.start._replace(at=DONE)
    for do in [controller(IS_ON), *nodes, comes(0)]:
        world = do(world)
    running = {it for it in meanwhile([Moment(world)]) if not events(it.world)}
    assert {(it.world.nodes[0].pod, it.detached) for it in running} == {(Pod.RUNNING, frozenset())}
    after = set(meanwhile([it._replace(world=comes(1)(it.world)) for it in running]))
    ends = {it for it in after if not events(it.world)}
    for moments in (after, ends):
        yanked = {by for it in moments for by in it.detached if by.endswith("Running")}
        sides = {it for it in ("in-tree", "CSI") if f"{it}, while the pod is Running" in yanked}
        assert (" and ".join(sorted(sides)) or "no") == row["detachedWhileThePodRuns"]
    assert {attached(it.world.nodes[0]) for it in ends} == {frozenset(row["volumesAttached"])}


ATTACHED = [
    pytest.param(version, row, id=f"{version}-{number}")
    for version in (OLD, NEW)
    for number, row in enumerate(read(f"attach-{version}.json")["rows"])
    if row["csiNode"]  # a node without one is not in this model
]


@pytest.mark.parametrize(("version", "row"), ATTACHED)
def test_a_pod_comes_to_what_it_came_to(version: Version, row: dict[str, Any]) -> None:
    kubelet = Process(OLD, {GATE: row["annotated"]})
    group = NodeGroup("n", kubelet, driver=row["driverListed"])
    course = Course(AWS.plugin, Process(version, row["kcmGates"]), (group,), ())
    rules = Rules(course, (0,))
    assert rules.start.nodes[0].announced is row["annotated"]
    [bound] = [it.world for it in may_happen(rules, rules.start) if it.act is Act.BIND]
    ends = {it.world for it in meanwhile([Moment(bound)], rules) if not events(it.world, rules)}
    [(end,)] = [it.nodes for it in ends]
    assert PODS[end.pod] == row["seen"]["pod"]
    assert attached(end) == {
        "csi" if "/csi/" in it else "in-tree" for it in row["seen"]["volumesAttached"]
    }
    asked = "attached" if end.csi is Hold.HELD else "waiting"
    attachments = [f"ebs.csi.aws.com: {asked}"] if end.wanted & CSI else []
    assert attachments == row["seen"]["volumeAttachments"]


TOLERATED = {"nothing": NONE, "another value": IN_TREE, "the taint": CSI}
SCHEDULED = [
    pytest.param(row, id=f"{version}-{number}")
    for version in (OLD, NEW)
    for number, row in enumerate(read(f"scheduling/{version}.json")["rows"])
    if row["podTolerates"] in TOLERATED and row["node"] != "unschedulable"
]


@pytest.mark.parametrize("row", SCHEDULED)
def test_a_pod_is_bound_where_it_was(row: dict[str, str]) -> None:
    """The taint is that of a node that is on."""
    world = on(0)(RULES.start._replace(at=DONE))
    world = world._replace(
        tainted=row["node"] == "a taint", tolerated=TOLERATED[row["podTolerates"]]
    )
    assert may_bind(RULES, world) is (row["pod"] == "comes")


def may_bind(rules: Rules, world: World) -> bool:
    return any((it.act, it.node) == (Act.BIND, 0) for it in may_happen(rules, world))


@pytest.mark.parametrize("version", [OLD, NEW])
def test_a_cordon_keeps_away_what_does_not_tolerate_it(version: Version) -> None:
    """The model knows a taint that no pod tolerates, and a cordon that some pod may tolerate."""
    rows = read(f"scheduling/{version}.json")["rows"]
    came = {
        it["podTolerates"] for it in rows if (it["node"], it["pod"]) == ("unschedulable", "comes")
    }
    assert came == {"unschedulable"}
    node = RULES.start.nodes[0]._replace(cordoned=True)
    cordoned = RULES.start._replace(nodes=(node, RULES.start.nodes[1]))
    assert may_bind(RULES, cordoned._replace(at=DONE))
    closed = AWS.course(OFF, (AWS.group("n", OFF),), AWS.nodes(ON, "n"))
    assert not may_bind(Rules(closed, (0, 0)), cordoned)


PROVISIONED = [
    pytest.param(version, row, id=f"{version}-{number}")
    for version in (OLD, NEW)
    for number, row in enumerate(read(f"claims/{version}.json")["rows"])
    if row["operation"] == "provision"
]


@pytest.mark.parametrize(("version", "row"), PROVISIONED)
def test_a_claim_is_served_where_it_was(version: Version, row: dict[str, Any]) -> None:
    def served(*, driver: bool) -> bool:
        group = NodeGroup("n", Process(OLD, {}), driver)
        controller = Process(version, row["kcmGates"])
        course = Course(AWS.plugin, controller, (group,), (), driver=driver)
        return Rules(course, (0,)).claims_served[0]

    assert served(driver=False) is (row["seen"]["phase"] == "Bound")  # no driver was there
    assert served(driver=True) is (row["servedBy"] != "nobody")


STARTS = {
    driver: read(f"kubelet/{name}.json")["kubeletStarts"]
    for driver, name in ((False, "1.24.17"), (True, "1.24.17-with-a-driver"))
}


@pytest.mark.parametrize("driver", STARTS, ids=lambda it: "driver" if it else "no driver")
@pytest.mark.parametrize("plugin", LIVES)
def test_a_kubelet_that_starts_writes_what_it_wrote(plugin: str, driver: bool) -> None:
    """Each start found the CSINode as the one before it had left it."""
    first, *others = (Process(OLD, it["gates"]) for it in STARTS[driver])
    moves = tuple(NodesMove({"n": it}, drain=False, told="") for it in others)
    rules = Rules(Course(plugin, first, (NodeGroup("n", first, driver),), moves), (0,))
    world = rules.start
    assert world.nodes[0].announced is (plugin in STARTS[driver][0]["migratedPlugins"])
    for number, start in enumerate(STARTS[driver][1:]):
        switches = may_happen(rules, world._replace(at=number))
        [world] = [it.world for it in switches if it.act is Act.SWITCH_IN_PLACE]
        assert world.nodes[0].announced is (plugin in start["migratedPlugins"])
