"""What each actor may do next, where a search alone would not notice that it does not."""

from __future__ import annotations

from typing import Any

import pytest

from replant.gates.versions import Version
from replant.proof.events import Act, may_happen, progress, taken_over
from replant.proof.world import CSI, IN_TREE, NOWHERE, Hold, Pod, Rules, World
from tests.proof.making import OFF, ON, STANDALONE, Making

AWS = Making()
HERE, ELSEWHERE = 0, 1
WAITS, RUNS = {"pod": Pod.WAITING}, {"pod": Pod.RUNNING}
HELD, DEAD = {"in_tree": Hold.HELD}, {"alive": False}
MOUNTED, WANTED = {"mounted": IN_TREE}, {"wanted": IN_TREE}
FORGOTTEN = {"forgotten": IN_TREE}
UNNOTICED = {"in_tree": Hold.UNNOTICED}

OFF_NODE = {
    "a pod waits for what is wanted": (WAITS | WANTED, NOWHERE, {Act.ATTACH}),
    "it is attached": (WAITS | WANTED | HELD, HERE, {Act.MOUNT}),
    "the cloud has it elsewhere": (WAITS | WANTED, ELSEWHERE, {Act.ATTACH_FAILS}),
    # A kubelet reports as in use what it waits for, too.
    "not wanted, and waited for": (WAITS | HELD, HERE, {Act.LOOK, Act.MOUNT}),
    "mounted still": (HELD | MOUNTED, HERE, {Act.UNMOUNT}),
    "unmounted": (HELD, HERE, {Act.DETACH}),
    "a dead node is not waited for": (HELD | MOUNTED | DEAD, HERE, {Act.DETACH}),
    "the cloud has been asked": ({"in_tree": Hold.LETTING_GO}, HERE, {Act.DETACHED}),
    "it is done, and nobody looks": (UNNOTICED, NOWHERE, {Act.NOTICE}),
    "and the disk is elsewhere by then": (UNNOTICED, ELSEWHERE, {Act.NOTICE}),
    "while that is waited for": (UNNOTICED | WAITS | WANTED, NOWHERE, {Act.NOTICE}),
}
ON_NODE = {
    "the old name is wanted still": (RUNS | FORGOTTEN | HELD | WANTED, {Act.LOOK}),
    "both are": (RUNS | FORGOTTEN | HELD | {"wanted": IN_TREE | CSI}, {Act.ATTACH}),
    "the cloud has been asked": (
        {"in_tree": Hold.LETTING_GO},
        {Act.DETACHED, Act.DETACHED_UNNOTICED},
    ),
    "the driver has overtaken a detach": (
        RUNS | UNNOTICED | {"csi": Hold.HELD, "mounted": CSI, "wanted": CSI},
        {Act.DETACH_ANEW},
    ),
    "the new one is": (RUNS | FORGOTTEN | HELD | {"wanted": CSI}, {Act.ATTACH, Act.DETACH}),
}


def acts(gates: dict[str, bool], node: dict[str, Any], disk: int) -> set[Act]:
    """What may happen by itself on such a node, with a controller that is on."""
    rules = Rules(AWS.course(ON, (AWS.group("n", gates),)), (0, 0))
    changed, other = rules.start.nodes
    world = rules.start._replace(nodes=(changed._replace(**node), other), disk=disk)
    return {event.act for event in progress(rules, world)}


@pytest.mark.parametrize(("node", "disk", "expected"), OFF_NODE.values(), ids=OFF_NODE)
def test_on_a_node_that_is_off(node: dict[str, Any], disk: int, expected: set[Act]) -> None:
    assert acts(OFF, node, disk) == expected


@pytest.mark.parametrize(("node", "expected"), ON_NODE.values(), ids=ON_NODE)
def test_on_a_node_that_was_switched_on_in_place(node: dict[str, Any], expected: set[Act]) -> None:
    assert acts(ON, node, HERE) == expected


def overtaken(**other: Any) -> tuple[Rules, World]:
    """A world in which the in-tree plugin has not noticed that its detach has come to its end."""
    rules = Rules(AWS.course(ON, (AWS.group("n", OFF),)), (0, 0))
    here, elsewhere = rules.start.nodes
    nodes = here._replace(in_tree=Hold.UNNOTICED), elsewhere._replace(**other)
    return rules, rules.start._replace(nodes=nodes)


def test_while_a_detach_is_waited_for_nothing_is_attached_under_that_name() -> None:
    rules, world = overtaken(**WAITS, **WANTED)
    assert {it.act for it in progress(rules, world)} == {Act.NOTICE}


def test_who_leads_next_waits_for_no_detach() -> None:
    rules, world = overtaken()
    assert taken_over(rules, world, world.leader) == rules.start


ATTACHED = {
    # version, gates of the controller, of the node; how the driver has it, and the plugin after it
    "by a controller that translates": ("1.24.17", ON, ON, Hold.HELD, Hold.FREE),
    "whatever the node is": ("1.24.17", ON, OFF, Hold.HELD, Hold.FREE),
    "by one that is off": ("1.24.17", OFF, ON, Hold.HELD, Hold.UNCERTAIN),
    "on a node that is off": ("1.24.17", OFF, OFF, Hold.LETTING_GO, Hold.UNCERTAIN),
    "by one that has no plugin": ("1.24.17", STANDALONE, ON, Hold.HELD, Hold.FREE),
    "by one that does not translate": ("1.21.1", ON, ON, Hold.HELD, Hold.UNCERTAIN),
    "by one that reads none": ("1.20.2", OFF, ON, Hold.HELD, Hold.FREE),
    "where there is none": ("1.21.1", ON, ON, Hold.FREE, Hold.FREE),
}


@pytest.mark.parametrize(
    ("version", "gates", "nodes", "csi", "in_tree"), ATTACHED.values(), ids=ATTACHED
)
def test_what_a_controller_that_starts_makes_of_the_drivers_attachments(
    version: str, gates: dict[str, bool], nodes: dict[str, bool], csi: Hold, in_tree: Hold
) -> None:
    making = Making(Version.parse(version))
    rules = Rules(making.course(gates, (making.group("n", nodes),)), (0,))
    world = rules.start._replace(disk=HERE, nodes=(rules.start.nodes[0]._replace(csi=csi),))
    (node,) = taken_over(rules, world, world.leader).nodes
    assert (node.csi, node.in_tree) == (csi, in_tree)


def test_old_gates_may_lead_again_until_all_replicas_are_confirmed() -> None:
    rules = Rules(AWS.course(OFF, (AWS.group("n", OFF),), AWS.switch(ON)), (0,))
    old, new = (rules.processes.index(AWS.process(it)) for it in (OFF, ON))

    def leaders() -> set[int]:
        events = may_happen(rules, world)
        return {world.leader} | {it.world.leader for it in events if it.act is Act.TAKE_OVER}

    world = rules.start
    assert leaders() == {old}
    for leader in (old, new):
        world = rules.start._replace(rolling=True, leader=leader)
        assert leaders() == {old, new}
    world = next(it.world for it in may_happen(rules, world) if it.act is Act.CONFIRM)
    assert leaders() == {new}


def node_moves(*nodes: dict[str, Any], driver: bool = True) -> list[Act]:
    """What a drained switch may do next, to nodes in these states."""
    group = AWS.group("n", OFF, driver=driver)
    moves = AWS.nodes(ON, "n", restricts=False)
    rules = Rules(AWS.course(ON, (group,), moves), (0,) * len(nodes))
    changed = tuple(it._replace(**to) for it, to in zip(rules.start.nodes, nodes, strict=True))
    world = rules.start._replace(nodes=changed)
    kinds = (Act.CORDON, Act.SWITCH, Act.UNCORDON)
    return [event.act for event in may_happen(rules, world) if event.act in kinds]


CORDONED, SWITCHED = {"cordoned": True}, {"cordoned": True, "kubelet": 0, "announced": True}


def test_a_drained_switch_takes_one_node_at_a_time() -> None:
    assert node_moves({}, {}) == [Act.CORDON, Act.CORDON]
    assert node_moves(CORDONED, {}) == [Act.SWITCH]
    assert node_moves(CORDONED | HELD, {}) == []
    assert node_moves(CORDONED | DEAD, {}) == []


def test_a_node_is_uncordoned_once_its_driver_is_there() -> None:
    assert node_moves(SWITCHED) == [Act.UNCORDON]
    assert node_moves(SWITCHED, driver=False) == []
