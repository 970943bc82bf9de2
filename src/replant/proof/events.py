"""Everything that may happen next: the moves of a course, and what the world does meanwhile.

Each function gives what one actor may do. Nothing here says when: whatever may happen may happen
at any time, in any order, or never.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from replant.proof.course import NodesMove
from replant.proof.world import (
    CSI,
    IN_TREE,
    NONE,
    NOWHERE,
    Hold,
    Node,
    Pod,
    Rules,
    World,
)

SIDES = (IN_TREE, CSI)


class Act(Enum):
    """The kinds of things that happen; ``story`` has a sentence for each."""

    GIVE = "give"
    CONFIRM = "confirm"
    CORDON = "cordon"
    SWITCH = "switch"
    UNCORDON = "uncordon"
    RESTART = "restart"
    SWITCH_IN_PLACE = "switch in place"
    TURN_BACK = "turn back"
    GO_ON = "go on"
    TAKE_OVER = "take over"
    LOOK = "look"
    ATTACH = "attach"
    DETACH = "detach"
    DETACHED = "detached"
    DETACHED_UNNOTICED = "detached, and nobody has noticed"
    NOTICE = "notice"
    DETACH_ANEW = "detach anew"
    BIND = "bind"
    DELETE = "delete"
    MOUNT = "mount"
    UNMOUNT = "unmount"
    DIE = "die"
    RETURN = "return"


class Event(NamedTuple):
    """One thing that happens, and the world after it."""

    act: Act
    node: int
    """Which node it happens on, or NOWHERE."""
    side: int
    """Which side does it, where a side does."""
    world: World
    yanks: bool = False
    """Whether it takes the disk away from a pod that runs."""


def may_happen(rules: Rules, world: World) -> Iterator[Event]:
    """All that may happen next."""
    yield from progress(rules, world)
    yield from _controllers_change(rules, world)
    yield from _nature(rules, world)
    for event in _moves(rules, world):
        yield event._replace(world=settled(rules, event.world))


def progress(rules: Rules, world: World) -> Iterator[Event]:
    """What Kubernetes does by itself, when nobody touches anything."""
    for number, node in enumerate(world.nodes):
        yield from _kubelet(rules, world, number, node)
        if rules.attachable and (node.pod or node.in_tree or node.csi):
            yield from _controller(rules, world, number, node)


def settled(rules: Rules, world: World) -> World:
    """The world, with moves counted as made (or undone) once they are."""
    while 0 <= world.at < len(rules.moves) and _reached(rules, world):
        world = world._replace(at=world.at - 1 if world.back else world.at + 1)
    return world


def _reached(rules: Rules, world: World) -> bool:
    if world.rolling:
        return False
    leader = rules.goal(world)
    if leader is not None:
        return world.leader == leader
    waits = rules.forgets(world) and _detach_waits(world)
    return not waits and _all_there(rules, world)


def _all_there(rules: Rules, world: World) -> bool:
    return all(
        not node.cordoned and rules.goal(world, node) in (node.kubelet, None)
        for node in world.nodes
    )


def _detach_waits(world: World) -> bool:
    """Whether the in-tree plugin waits for the end of a detach that has come to its end."""
    return any(node.in_tree == Hold.UNNOTICED for node in world.nodes)


def _moves(rules: Rules, world: World) -> Iterator[Event]:
    if not rules.moves:
        return
    # Killed at any time, Replant is started again in either direction.
    if world.back:
        yield Event(Act.GO_ON, NOWHERE, NONE, world._replace(back=False, at=max(world.at, 0)))
    elif world != rules.start:
        last = len(rules.moves) - 1
        yield Event(Act.TURN_BACK, NOWHERE, NONE, world._replace(back=True, at=min(world.at, last)))
    if not 0 <= world.at < len(rules.moves):
        return
    goal = rules.goal(world)
    if goal is None:
        yield from _node_moves(rules, world)
    elif not world.rolling:
        yield Event(Act.GIVE, NOWHERE, NONE, world._replace(rolling=True))
    else:
        after = world if world.leader == goal else taken_over(rules, world, goal)
        yield Event(Act.CONFIRM, NOWHERE, NONE, after._replace(rolling=False))


def _node_moves(rules: Rules, world: World) -> Iterator[Event]:
    move = rules.course.moves[world.at]
    drain = isinstance(move, NodesMove) and move.drain
    if rules.forgets(world) and _all_there(rules, world):
        yield Event(Act.RESTART, NOWHERE, NONE, taken_over(rules, world, world.leader))
    cordoned = sum(node.cordoned for node in world.nodes)
    for number, node in enumerate(world.nodes):
        goal = rules.goal(world, node)
        if goal is None:
            continue
        there = node.kubelet == goal
        if not drain and not there and node.alive:
            after = _restarted(rules, node, goal)
            yield Event(Act.SWITCH_IN_PLACE, number, NONE, _with(world, number, after))
        elif drain and not there and not node.cordoned and cordoned < rules.course.at_once:
            after = node._replace(cordoned=True)
            yield Event(Act.CORDON, number, NONE, _with(world, number, after))
        elif node.cordoned and not there and node.alive and _empty(rules, world, node):
            after = _restarted(rules, node, goal)
            yield Event(Act.SWITCH, number, NONE, _with(world, number, after))
        elif node.cordoned and there and node.alive and not waits_for_driver(rules, node):
            after = node._replace(cordoned=False)
            yield Event(Act.UNCORDON, number, NONE, _with(world, number, after))


def waits_for_driver(rules: Rules, node: Node) -> bool:
    """Whether a kubelet redirects to a driver that its node does not have."""
    return rules.kubelet_wants[node.kubelet] == CSI and not rules.driver_on(node)


def _empty(rules: Rules, world: World, node: Node) -> bool:
    """Whether a drained node has nothing of the plugin attached or in use, as far as is seen."""
    seen = [Hold.HELD]
    if rules.course.drain_sees_cloud:
        seen.append(Hold.LETTING_GO)
        if world.disk == NOWHERE:
            seen.append(Hold.UNNOTICED)  # it is noticed sooner than the node is switched
    attached = node.in_tree in seen or node.csi in seen
    return not (node.pod or node.mounted or node.forgotten or attached)


def _restarted(rules: Rules, node: Node, kubelet: int) -> Node:
    """A node whose kubelet was given other gates.

    What the old gates mounted the new kubelet does not report as in use, if it wants another side.
    """
    kept = node.mounted & rules.kubelet_wants[kubelet]
    return node._replace(
        kubelet=kubelet,
        announced=rules.announces(kubelet, node.announced),
        mounted=kept,
        forgotten=node.forgotten | (node.mounted & ~kept),
    )


def _controllers_change(rules: Rules, world: World) -> Iterator[Event]:
    candidates = {world.leader}
    if world.rolling:
        candidates.update(side[NOWHERE] for side in rules.moves[world.at])
    for leader in sorted(candidates):
        after = taken_over(rules, world, leader)
        if after != world:
            yield Event(Act.TAKE_OVER, NOWHERE, NONE, after)


def taken_over(rules: Rules, world: World, leader: int) -> World:
    """A controller that starts forgets what it wanted, and finds it anew from pods and nodes.

    What is attached it knows from the nodes' status and from VolumeAttachments, so no hold is lost.
    A detach that its predecessor waited for nobody waits for any more.
    """
    nodes = tuple(
        node._replace(
            wanted=rules.controller_wants(leader, node) if node.pod else NONE,
            in_tree=Hold.FREE if node.in_tree == Hold.UNNOTICED else node.in_tree,
        )
        for node in world.nodes
    )
    return world._replace(leader=leader, nodes=nodes)


def _controller(rules: Rules, world: World, number: int, node: Node) -> Iterator[Event]:
    leader = world.leader
    if node.pod:
        side = rules.controller_wants(leader, node)
        if side & ~node.wanted:
            looked = node._replace(wanted=node.wanted | side)
            yield Event(Act.LOOK, number, side, _with(world, number, looked))
    in_use = node.mounted | (rules.kubelet_wants[node.kubelet] if node.pod else NONE)
    yanks = node.alive and node.pod == Pod.RUNNING
    for side in SIDES:
        hold = node.holds(side)
        if hold in (Hold.LETTING_GO, Hold.UNNOTICED):
            yield from _ending_detach(rules, world, number, side, yanks=yanks)
        elif side & node.wanted:
            if hold == Hold.FREE and _may_attach(rules, world, number, node, side):
                after = _with(world, number, node.holding(side, Hold.HELD))
                yield Event(Act.ATTACH, number, side, after._replace(disk=number))
        elif (
            hold == Hold.HELD
            and not (side & in_use and node.alive)  # a dead node is not waited for
            and rules.can_detach(side, leader)
        ):
            after = _with(world, number, node.holding(side, Hold.LETTING_GO))
            yield Event(Act.DETACH, number, side, after, yanks)


def _ending_detach(
    rules: Rules, world: World, number: int, side: int, *, yanks: bool
) -> Iterator[Event]:
    """What becomes of a detach that the cloud was asked for.

    If its end was not noticed: a free disk is noticed at the next look. One that is attached is
    taken for the old news of a slow cloud, until the detach counts as failed after half an hour,
    and is begun anew. By then the disk may be on another node, which is as good; or on this one,
    where a pod has had the time to run.
    """
    node, there = world.nodes[number], world.disk == number
    free = _with(world, number, node.holding(side, Hold.FREE))
    if node.holds(side) == Hold.LETTING_GO:
        disk = NOWHERE if there else world.disk
        yield Event(Act.DETACHED, number, side, free._replace(disk=disk), yanks)
        if there and side == IN_TREE and _can_be_overtaken(rules, world):
            unnoticed = _with(world, number, node.holding(side, Hold.UNNOTICED))
            after = unnoticed._replace(disk=disk)
            yield Event(Act.DETACHED_UNNOTICED, number, side, after, yanks)
    elif not there:
        yield Event(Act.NOTICE, number, side, free)
    elif yanks and not rules.forgets(world):
        anew = _with(world, number, node.holding(side, Hold.LETTING_GO))
        yield Event(Act.DETACH_ANEW, number, side, anew, yanks)


def _can_be_overtaken(rules: Rules, world: World) -> bool:
    """Whether the driver may attach a disk before the in-tree plugin sees that it is free.

    Not while no node is the driver's: until one is, the plugin has looked.
    """
    return rules.overtaken and any(
        rules.controller_wants(world.leader, node) == CSI for node in world.nodes
    )


def _may_attach(rules: Rules, world: World, number: int, node: Node, side: int) -> bool:
    """Whether an attach would succeed: the cloud refuses a disk that another node has."""
    if side == IN_TREE and _detach_waits(world):
        return False  # one operation at a time for each name
    return world.disk in (NOWHERE, number) and rules.can_attach(side, world.leader, node)


def _kubelet(rules: Rules, world: World, number: int, node: Node) -> Iterator[Event]:
    if not node.alive:
        return
    side = rules.kubelet_wants[node.kubelet]
    if node.pod == Pod.ABSENT:
        if node.mounted or node.forgotten:
            after = node._replace(mounted=NONE, forgotten=NONE)
            yield Event(Act.UNMOUNT, number, node.mounted, _with(world, number, after))
    elif (node.pod == Pod.WAITING or not side & node.mounted) and rules.can_mount(side, node):
        there = node.holds(side) == Hold.HELD and world.disk == number
        if there or not rules.attachable:
            after = node._replace(pod=Pod.RUNNING, mounted=node.mounted | side)
            yield Event(Act.MOUNT, number, side, _with(world, number, after))


def _nature(rules: Rules, world: World) -> Iterator[Event]:
    for number, node in enumerate(world.nodes):
        if node.pod:
            after = node._replace(pod=Pod.ABSENT, wanted=NONE)
            yield Event(Act.DELETE, number, NONE, _with(world, number, after))
        elif node.alive and not node.cordoned and rules.course.volumes:
            wanted = rules.controller_wants(world.leader, node)
            after = node._replace(pod=Pod.WAITING, wanted=wanted)
            yield Event(Act.BIND, number, NONE, _with(world, number, after))
        if node.alive:
            yield Event(Act.DIE, number, NONE, _with(world, number, node._replace(alive=False)))
        else:
            pod = Pod.WAITING if node.pod else Pod.ABSENT
            after = node._replace(alive=True, pod=pod, mounted=NONE, forgotten=NONE)
            yield Event(Act.RETURN, number, NONE, _with(world, number, after))


def _with(world: World, number: int, node: Node) -> World:
    nodes = world.nodes
    nodes = (*nodes[:number], node, *nodes[number + 1 :])
    # A search makes millions of worlds: this takes a third of the time of _replace.
    return World(world.at, world.back, world.rolling, world.leader, world.disk, nodes)
