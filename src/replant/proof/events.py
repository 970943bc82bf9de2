"""Everything that may happen next: the moves of a course, and what the world does meanwhile.

Each function gives what one actor may do. Nothing here says when: whatever may happen may happen
at any time, in any order, or never.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from functools import reduce
from operator import or_
from typing import NamedTuple

from replant.proof.course import NodesMove, OldNodesJoin
from replant.proof.world import (
    BOTH,
    CSI,
    IN_TREE,
    NONE,
    NOWHERE,
    Hold,
    Node,
    Pod,
    Presence,
    Rules,
    World,
)

SIDES = (IN_TREE, CSI)
_FORGOTTEN = (Hold.UNNOTICED, Hold.UNCERTAIN)
"""What a controller that starts does not know."""


class Act(Enum):
    """The kinds of things that happen; ``story`` has a sentence for each."""

    GIVE = "give"
    CONFIRM = "confirm"
    CORDON = "cordon"
    SEE_EMPTY = "see that a node is empty"
    SWITCH = "switch"
    UNCORDON = "uncordon"
    TAINT = "taint"
    TAINT_JOINED = "taint a node that has joined"
    UNTAINT = "untaint"
    TOLERATE = "tolerate"
    TOLERATING_POD_GOES = "the pod that tolerates a taint goes"
    RESTART = "restart"
    SWITCH_IN_PLACE = "switch in place"
    TURN_BACK = "turn back"
    GO_ON = "go on"
    TAKE_OVER = "take over"
    TAKE_OVER_BLIND = "take over while a driver is missing"
    LOOK = "look"
    ATTACH = "attach"
    ATTACH_FAILS = "attach fails, since another node has the disk"
    ATTACH_TAKES = "attach takes the disk from another node"
    DETACH = "detach"
    DETACHED = "detached"
    DETACHED_UNNOTICED = "detached, and nobody has noticed"
    NOTICE = "notice"
    DETACH_ANEW = "detach anew"
    DETACH_FORCED = "detach what is in use, after six minutes"
    BIND = "bind"
    DELETE = "delete"
    MOUNT = "mount"
    UNMOUNT = "unmount"
    JOIN = "join"
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
    return not waits and _all_there(rules, world) and not _is_to_untaint(rules, world)


def _is_to_untaint(rules: Rules, world: World) -> bool:
    """Whether taints are left that nothing needs any more."""
    return world.tainted and rules.restricts(world) and _are_alike(rules, world)


def _are_alike(rules: Rules, world: World) -> bool:
    """Whether all kubelets take the same side."""
    return _kinds(rules, world) != BOTH


def _kinds(rules: Rules, world: World) -> int:
    """The sides that kubelets take."""
    return reduce(or_, map(rules.kind, filter(_is_there, world.nodes)))


def _is_there(node: Node) -> bool:
    """Whether a node has joined."""
    return node.presence != Presence.ABSENT


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
    if rules.restricts(world):
        yield from _restrictions(rules, world)
        if not _all_there(rules, world) and not _is_restricted(rules, world):
            return
    cordoned = sum(node.cordoned for node in world.nodes)
    for number, node in enumerate(world.nodes):
        goal = rules.goal(world, node)
        if goal is None or (node.cordoned and not _tells_kind(rules, world, node)):
            continue
        there = node.kubelet == goal
        if not drain and not there and node.alive:
            after = _restarted(rules, node, goal)
            yield Event(Act.SWITCH_IN_PLACE, number, NONE, _with(world, number, after))
        elif drain and not there and not node.cordoned and cordoned < rules.course.at_once:
            after = node._replace(cordoned=True)
            yield Event(Act.CORDON, number, NONE, _with(world, number, after))
        elif node.cordoned and not there and node.alive:
            yield from _drained(rules, world, number, goal)
        elif node.cordoned and there and node.alive and not waits_for_driver(rules, node):
            after = node._replace(cordoned=False, seen_empty=False)
            yield Event(Act.UNCORDON, number, NONE, _with(world, number, after))


def _tells_kind(rules: Rules, world: World, node: Node) -> bool:
    """Whether a node has the taint without which it is neither switched nor uncordoned."""
    return not rules.restricts(world) or node.presence != Presence.UNTAINTED


def _drained(rules: Rules, world: World, number: int, goal: int) -> Iterator[Event]:
    """What comes of a look at a node that is drained.

    Its kubelet restarts later than the node was seen to be empty. Where pods are kept from the node
    that makes no difference.
    """
    node = world.nodes[number]
    empty = _empty(rules, world, node)
    if node.seen_empty or (empty and rules.closes(world)):
        after = _restarted(rules, node, goal)
        yield Event(Act.SWITCH, number, NONE, _with(world, number, after))
    elif empty:
        after = node._replace(seen_empty=True)
        yield Event(Act.SEE_EMPTY, number, NONE, _with(world, number, after))


def _restrictions(rules: Rules, world: World) -> Iterator[Event]:
    """The taints that keep pods from nodes of the other kind, and what a pod tolerates of them."""
    done = _all_there(rules, world) and _are_alike(rules, world)
    if world.tainted is done:
        act = Act.UNTAINT if done else Act.TAINT
        nodes = tuple(map(_as_others, world.nodes))
        yield Event(act, NOWHERE, NONE, world._replace(tainted=not done, nodes=nodes))
    if done or not world.tainted:
        return
    for number, node in enumerate(world.nodes):
        if node.presence == Presence.UNTAINTED:
            yield Event(Act.TAINT_JOINED, number, NONE, _with(world, number, _as_others(node)))
    kinds = holding_kinds(rules, world)
    if kinds == NONE:
        # The only pod that tolerates one kind comes to tolerate all; if others do too, none does.
        tolerated = _kinds(rules, world)
    else:
        kinds |= world.tolerated
        tolerated = NONE if kinds == BOTH else kinds
    if tolerated & ~world.tolerated:
        after = world._replace(tolerated=world.tolerated | tolerated)
        yield Event(Act.TOLERATE, NOWHERE, tolerated, after)


def _is_restricted(rules: Rules, world: World) -> bool:
    """Whether a kubelet may be switched: no pod goes to a node of a kind that is not there yet."""
    return world.tainted and not world.tolerated & ~_kinds(rules, world)


def holding_kinds(rules: Rules, world: World) -> int:
    """The kinds of nodes on which the disk or a pod that uses it is, as far as is seen.

    An in-tree detach that has begun is written nowhere; a VolumeAttachment stays until its end.
    """
    kinds = NONE
    for node in world.nodes:
        if node.pod:
            kinds |= rules.kind(node)
        kinds |= node.mounted | node.forgotten
        kinds |= (node.in_tree == Hold.HELD) * IN_TREE | bool(node.csi) * CSI
    return kinds


def _as_others(node: Node) -> Node:
    """A node whose taints are like those of the others, if it has joined."""
    return node._replace(presence=Presence.MEMBER) if _is_there(node) else node


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
        announced=rules.announces(kubelet, node.announced, driver=rules.driver_on(node)),
        mounted=kept,
        forgotten=node.forgotten | (node.mounted & ~kept),
        seen_empty=False,
    )


def _controllers_change(rules: Rules, world: World) -> Iterator[Event]:
    candidates = {world.leader}
    if world.rolling:
        candidates.update(side[NOWHERE] for side in rules.moves[world.at])
    for leader in sorted(candidates):
        after = taken_over(rules, world, leader)
        if after != world:
            yield Event(Act.TAKE_OVER, NOWHERE, NONE, after)
        for number, node in enumerate(world.nodes):
            runs = node.alive and node.pod == Pod.RUNNING and node.csi == Hold.HELD
            if runs and rules.is_blind(leader, node):
                blind = after.nodes[number]._replace(wanted=NONE)
                yield Event(Act.TAKE_OVER_BLIND, number, NONE, _with(after, number, blind))


def taken_over(rules: Rules, world: World, leader: int) -> World:
    """A controller that starts forgets what it wanted, and finds it anew from pods and nodes.

    What is attached it knows from the nodes' status and from VolumeAttachments, so no hold is lost.
    A detach that its predecessor waited for nobody waits for any more.
    """
    nodes = tuple(
        node._replace(
            wanted=rules.controller_wants(leader, node) if node.pod else NONE,
            in_tree=_found_in_tree(rules, leader, node),
        )
        for node in world.nodes
    )
    return world._replace(leader=leader, nodes=nodes)


def _found_in_tree(rules: Rules, leader: int, node: Node) -> Hold:
    """How the plugin holds the disk on a node, as a controller that starts has it.

    A VolumeAttachment stays until the driver's detach has ended. It names the stored volume, which
    not every controller translates.
    """
    hold = Hold.FREE if node.in_tree in _FORGOTTEN else node.in_tree
    if hold == Hold.FREE and node.csi and rules.takes_for_in_tree[leader]:
        return Hold.UNCERTAIN
    return hold


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
            if hold == Hold.HELD:
                continue
            if _may_attach(rules, world, number, node, side):
                after = _with(world, number, node.holding(side, Hold.HELD))
                yield Event(Act.ATTACH, number, side, after._replace(disk=number))
            elif world.disk not in (NOWHERE, number) and _is_tried(rules, world, node, side):
                yield from _disputed(rules, world, number, side)
        elif hold in (Hold.HELD, Hold.UNCERTAIN) and rules.can_detach(side, leader):
            in_use_here = bool(side & in_use) and node.alive  # a dead node is not waited for
            yield from _unwanted(rules, world, number, side, in_use=in_use_here, yanks=yanks)


def _unwanted(
    rules: Rules, world: World, number: int, side: int, *, in_use: bool, yanks: bool
) -> Iterator[Event]:
    """What becomes of a disk that no pod wants on a node under the name of a side."""
    after = _with(world, number, world.nodes[number].holding(side, Hold.LETTING_GO))
    if not in_use:
        yield Event(Act.DETACH, number, side, after, yanks)
    elif yanks and rules.needs_driver[world.leader]:
        yield Event(Act.DETACH_FORCED, number, side, after, yanks)


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


def _is_tried(rules: Rules, world: World, node: Node, side: int) -> bool:
    """Whether the controller has a side attach a disk: not while a node has it by that name."""
    free = all(it.holds(side) == Hold.FREE for it in world.nodes)
    return free and rules.can_attach(side, world.leader, node)


def _disputed(rules: Rules, world: World, number: int, side: int) -> Iterator[Event]:
    """What an attach makes of a disk that another node has under its other name."""
    holder = world.nodes[world.disk]
    if side == IN_TREE and rules.attach_may_detach[world.leader]:
        uncertain = _with(world, world.disk, holder.holding(side, Hold.UNCERTAIN))
        yield Event(Act.ATTACH_FAILS, number, side, uncertain)
    if side == CSI and rules.driver_takes:
        after = _with(world, number, world.nodes[number].holding(side, Hold.HELD))
        if holder.in_tree == Hold.LETTING_GO:
            after = _with(after, world.disk, holder.holding(IN_TREE, Hold.FREE))
        yanks = holder.alive and holder.pod == Pod.RUNNING
        yield Event(Act.ATTACH_TAKES, world.disk, side, after._replace(disk=number), yanks)


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
        if not _is_there(node):
            yield from _joins(rules, world, number, node)
            continue
        if node.pod:
            after = node._replace(pod=Pod.ABSENT, wanted=NONE)
            yield Event(Act.DELETE, number, NONE, _with(world, number, after))
        elif _takes_pods(rules, world, node) and rules.course.volumes:
            wanted = rules.controller_wants(world.leader, node)
            bound = _with(world, number, node._replace(pod=Pod.WAITING, wanted=wanted))
            if world.tainted and world.tolerated == BOTH:
                bound = bound._replace(tolerated=NONE)  # there was no other pod that did
            yield Event(Act.BIND, number, NONE, bound)
        if node.alive:
            yield Event(Act.DIE, number, NONE, _with(world, number, node._replace(alive=False)))
        else:
            pod = Pod.WAITING if node.pod else Pod.ABSENT
            after = node._replace(alive=True, pod=pod, mounted=NONE, forgotten=NONE)
            yield Event(Act.RETURN, number, NONE, _with(world, number, after))

    if world.tolerated:
        yield Event(Act.TOLERATING_POD_GOES, NOWHERE, NONE, world._replace(tolerated=NONE))


def _joins(rules: Rules, world: World, number: int, node: Node) -> Iterator[Event]:
    ever = rules.course.old_nodes_join is OldNodesJoin.EVER
    if ever or world.tainted:
        lacks = world.tainted and ever
        after = node._replace(presence=Presence.UNTAINTED if lacks else Presence.MEMBER)
        yield Event(Act.JOIN, number, NONE, _with(world, number, after))


def _takes_pods(rules: Rules, world: World, node: Node) -> bool:
    """Whether the scheduler may bind a pod to a node."""
    if not node.alive or (node.cordoned and rules.closes(world)):
        return False  # a cordon alone does not keep away pods that tolerate it
    tainted = world.tainted and node.presence == Presence.MEMBER
    if tainted and not world.tolerated & rules.kind(node):
        return False
    if rules.course.one_pod_per_volume:
        return not any(it.pod or it.mounted or it.forgotten or it.holder for it in world.nodes)
    return True


def _with(world: World, number: int, node: Node) -> World:
    nodes = world.nodes
    nodes = (*nodes[:number], node, *nodes[number + 1 :])
    # A search makes millions of worlds: this takes a third of the time of _replace.
    return World(
        world.at, world.back, world.rolling, world.leader, world.disk, nodes, world.tolerated,
        world.tainted,
    )  # fmt: skip
