"""The states that the whole of Replant exists to avoid."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from replant.proof.events import SIDES, Act, Event, waits_for_driver
from replant.proof.world import BOTH, CSI, NONE, NOWHERE, Hold, Node, Pod, Rules, World


class BadState(StrEnum):
    """From the worst to the least bad: of two that are equally near, the first is told."""

    YANKED = "yanked"
    DOUBLY_ATTACHED = "doubly attached"
    DOUBLY_MOUNTED = "doubly mounted"
    """Of a volume that is never attached: nothing takes it from a pod."""
    STRANDED = "stranded"
    UNSERVABLE = "unservable"


class Cause(StrEnum):
    """Why a state is bad; ``story`` has a sentence for each."""

    DETACHED_UNDER_POD = "detached under a running pod"
    DETACHED_ANEW = "detached anew under a running pod"
    DETACHED_AT_LAST = "detached under a running pod after six minutes"
    BOTH_SIDES = "held by both sides"
    MOUNTED_BY_BOTH = "mounted by both sides"
    TWO_NODES = "on two nodes"
    NO_PLUGIN_TO_DETACH = "no plugin to detach it"
    NO_PLUGIN_TO_MOUNT = "the kubelet has no plugin for it"
    NO_DRIVER_TO_MOUNT = "the node has no driver for it"
    NOBODY_ATTACHES = "no side attaches it"
    OTHER_SIDE_ATTACHES = "the side attaches it that the kubelet does not wait for"
    NO_PROVISIONER = "nobody provisions"


_LATE = {Act.DETACH_ANEW: Cause.DETACHED_ANEW, Act.DETACH_FORCED: Cause.DETACHED_AT_LAST}


class Bad(NamedTuple):
    """A bad state, why it is one, and where."""

    state: BadState
    cause: Cause
    node: int = NOWHERE
    side: int = NONE


def problems(rules: Rules, event: Event) -> Iterator[Bad]:
    """All that is bad about an event and the world after it."""
    world = event.world
    if event.yanks:
        yanked = _LATE.get(event.act, Cause.DETACHED_UNDER_POD)
        yield Bad(BadState.YANKED, yanked, event.node, event.side)
    yield from (_held if rules.attachable else _mounted)(rules, world)
    if not rules.claims_served[world.leader]:
        yield Bad(BadState.UNSERVABLE, Cause.NO_PROVISIONER)
    for number, node in enumerate(world.nodes):
        if cause := _never_runs(rules, world, node):
            side = rules.kubelet_wants[node.kubelet]
            yield Bad(BadState.UNSERVABLE, cause, number, side)


def _held(rules: Rules, world: World) -> Iterator[Bad]:
    held_on = []
    for number, node in enumerate(world.nodes):
        if node.holder == BOTH:
            yield Bad(BadState.DOUBLY_ATTACHED, Cause.BOTH_SIDES, number)
        if node.holder:
            held_on.append(number)
            yield from _stranded(rules, world, number, node)
    if len(held_on) > 1:
        yield Bad(BadState.DOUBLY_ATTACHED, Cause.TWO_NODES, held_on[-1])


def _mounted(_rules: Rules, world: World) -> Iterator[Bad]:
    for number, node in enumerate(world.nodes):
        if node.mounted | node.forgotten == BOTH:
            yield Bad(BadState.DOUBLY_MOUNTED, Cause.MOUNTED_BY_BOTH, number)


def _stranded(rules: Rules, world: World, number: int, node: Node) -> Iterator[Bad]:
    for side in SIDES:
        if node.holds(side) == Hold.HELD and not rules.can_detach(side, world.leader):
            yield Bad(BadState.STRANDED, Cause.NO_PLUGIN_TO_DETACH, number, side)


def _never_runs(rules: Rules, world: World, node: Node) -> Cause | None:
    """Why a pod that waits on this node waits for ever, if it does.

    Not a pod that a drain is about to move, and not one on a dead node.
    """
    if not node.alive:
        return None
    if node.cordoned:
        stuck = rules.goal(world, node) == node.kubelet and waits_for_driver(rules, node)
        return Cause.NO_DRIVER_TO_MOUNT if stuck else None
    if node.pod != Pod.WAITING:
        return None
    side = rules.kubelet_wants[node.kubelet]
    if not rules.can_mount(side, node):
        return Cause.NO_DRIVER_TO_MOUNT if side == CSI else Cause.NO_PLUGIN_TO_MOUNT
    if not rules.attachable or node.holds(side) == Hold.HELD:
        return None
    attached_by = rules.controller_wants(world.leader, node)
    if side & (attached_by | node.wanted):
        can = rules.can_attach(side, world.leader, node)
        return None if can else Cause.NOBODY_ATTACHES
    if attached_by and rules.can_attach(attached_by, world.leader, node):
        return Cause.OTHER_SIDE_ATTACHES
    return Cause.NOBODY_ATTACHES
