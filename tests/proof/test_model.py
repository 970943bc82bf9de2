"""What holds for every course: the model against itself, and against slower and simpler ways."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replant.gates.versions import Version
from replant.proof import BadState, Course, NodesMove, SwitchMove, verify
from replant.proof.badness import Bad, Cause, _never_runs, problems
from replant.proof.course import Move
from replant.proof.events import Act, Event, may_happen, progress, settled
from replant.proof.search import canonical
from replant.proof.world import NONE, NOWHERE, Node, Pod, Rules, World
from replant.routing import AttachController
from tests.proof.making import BASE, COMPLETED, OFF, ON, STANDALONE, UNREGISTERED, Making

FILE, FILE_OFF_GATE = "CSIMigrationAzureFile", "InTreePluginAzureFileUnregister"
AWS = Making()
AWS_BEFORE_UNREGISTER = Making(Version(1, 20, 15))
FILES = Making(plugin="kubernetes.io/azure-file")

Gates = dict[str, bool]
PLACES: list[tuple[Making, list[Gates]]] = [
    (AWS, [OFF, ON, UNREGISTERED, STANDALONE, {BASE: False}]),
    (AWS_BEFORE_UNREGISTER, [OFF, ON, COMPLETED]),
    (FILES, [{FILE: False}, {FILE: True}, {FILE: True, FILE_OFF_GATE: True}]),
]
SAFE = {
    "enable and complete": AWS.course(
        OFF, (AWS.group("n", OFF),), AWS.switch(ON), AWS.nodes(ON, "n"), AWS.switch(UNREGISTERED)
    ),
    "node-driven, nodes first": AWS.course(
        OFF,
        (AWS.group("n", OFF),),
        AWS.nodes(ON, "n"),
        AWS.switch(ON),
        attach_controller=AttachController.NODE_DRIVEN,
    ),
    "no attach, nodes first": FILES.course(
        {FILE: False},
        (FILES.group("n", {FILE: False}),),
        FILES.nodes({FILE: True}, "n"),
        FILES.switch({FILE: True}),
    ),
}


@st.composite
def courses(draw: st.DrawFn, most: int = 3, least: int = 1) -> Course:
    """Any beginning, right or wrong, and any moves; one group, with its driver or without."""
    making, known = draw(st.sampled_from(PLACES))
    gates = st.sampled_from(known)
    driver = draw(st.sampled_from([True, True, True, False]))
    moves: list[Move] = []
    for _ in range(draw(st.integers(least, most))):
        to, where = draw(gates), draw(st.sampled_from(["controller", "drained", "in place"]))
        if where == "controller":
            moves.append(making.switch(to))
        else:
            moves.append(making.nodes(to, "n", drain=where == "drained"))
    return making.course(
        draw(gates),
        (making.group("n", draw(gates), driver=driver),),
        *moves,
        attach_controller=draw(st.sampled_from(AttachController)),
        driver=driver,
    )


def only_unservable(rules: Rules) -> Iterator[World]:
    """All worlds that are reached through none that is bad for another reason."""
    start = canonical(settled(rules, rules.start))
    seen, ahead = {start}, deque([start])
    while ahead:
        world = ahead.popleft()
        yield world
        for event in may_happen(rules, world):
            states = {problem.state for problem in problems(rules, event)}
            after = canonical(event.world)
            if after not in seen and states <= {BadState.UNSERVABLE}:
                seen.add(after)
                ahead.append(after)


Known = dict[tuple[World, int], bool]


def runs_at_last(rules: Rules, world: World, number: int, known: Known) -> bool:
    """Whether a pod can come to run if nobody but Kubernetes acts, and other pods give way."""
    start, seen, ahead = world, {world}, deque([world])
    while ahead:
        world = ahead.popleft()
        runs = known.get((world, number), world.nodes[number].pod is Pod.RUNNING or None)
        if runs:
            known[start, number] = True
            return True
        if runs is None:
            after = {event.world for event in progress(rules, world)}
            after |= {_deleted(world, it) for it in range(len(world.nodes)) if it != number}
            ahead.extend(after - seen)
            seen |= after
    known |= dict.fromkeys(((it, number) for it in seen), False)
    return False


def _deleted(world: World, number: int) -> World:
    nodes = list(world.nodes)
    nodes[number] = nodes[number]._replace(pod=Pod.ABSENT, wanted=NONE)
    return world._replace(nodes=tuple(nodes))


@settings(deadline=None, max_examples=8)
@given(courses(most=2))
def test_a_pod_never_runs_if_and_only_if_nothing_leads_to_it(course: Course) -> None:
    check_what_never_runs(course)


@pytest.mark.parametrize("gates", [ON, UNREGISTERED])
def test_nor_where_nodes_are_switched_in_place(gates: Gates) -> None:
    nodes = (AWS.group("n", OFF),)
    check_what_never_runs(AWS.course(gates, nodes, AWS.nodes(ON, "n", drain=False)))


def check_what_never_runs(course: Course) -> None:
    # Not where a disk is held by both sides or stranded: that is bad enough, and told first.
    rules = Rules(course, (0, 0))
    waiting: set[tuple[World, int]] = set()
    for world in islice(only_unservable(rules), 1500):
        # Steps of the course matter to neither: worlds that differ in them alone are one.
        still = world._replace(at=len(rules.moves), back=False, rolling=False)
        waiting |= {(still, it) for it, node in enumerate(world.nodes) if _waits(node)}
    known: Known = {}
    for world, number in waiting:
        never = _never_runs(rules, world, world.nodes[number])
        assert (never is None) == runs_at_last(rules, world, number, known), (never, world)


def _waits(node: Node) -> bool:
    return node.pod is Pod.WAITING and node.alive and not node.cordoned


def test_a_pod_that_comes_before_the_last_ones_unmount_runs() -> None:
    rules = Rules(AWS.course(OFF, (AWS.group("n", OFF),)), (0,))
    world = rules.start
    for act in (Act.BIND, Act.ATTACH, Act.MOUNT, Act.DELETE, Act.BIND):
        world = next(it.world for it in may_happen(rules, world) if it.act is act)
    assert runs_at_last(rules, world, 0, {})


def plain_search(course: Course, size: int = 2) -> tuple[BadState | None, int]:
    """As ``search``, but each node is itself; the bad state and how many events lead to it."""
    still = Rules(replace(course, moves=()), (0,) * size)
    excused = {
        _excuse(event, problem)
        for layer in _layers(still, set())
        for event in layer
        for problem in problems(still, event)
    }
    rules = Rules(course, (0,) * size)
    nearest: tuple[BadState | None, int] = (None, 0)
    for length, layer in enumerate(_layers(rules, excused), 1):
        faults = [it for event in layer for it in _faults(rules, event, excused)]
        states = {it.state for it in faults}
        if any(it.cause is Cause.DETACHED_UNDER_POD for it in faults):
            return BadState.YANKED, length
        if states and not nearest[0]:
            nearest = min(states, key=list(BadState).index), length
    return nearest


Excuse = tuple[object, ...]


def _excuse(event: Event, problem: Bad) -> Excuse:
    nodes = event.world.nodes
    group = nodes[problem.node].group if problem.node != NOWHERE else None
    return problem.state, problem.cause, group


def _faults(rules: Rules, event: Event, excused: set[Excuse]) -> list[Bad]:
    return [it for it in problems(rules, event) if _excuse(event, it) not in excused]


def _layers(rules: Rules, excused: set[Excuse]) -> Iterator[list[Event]]:
    ahead = {settled(rules, rules.start)}
    seen = set(ahead)
    while ahead:
        layer = [event for world in ahead for event in may_happen(rules, world)]
        yield layer
        ahead = {
            event.world for event in layer if not rules.moves or not _faults(rules, event, excused)
        } - seen
        seen |= ahead


@settings(deadline=None, max_examples=4)
@given(courses(most=2))
def test_a_search_that_takes_no_short_cut_finds_the_same(course: Course) -> None:
    found = verify(course)
    state, events = plain_search(course)
    assert found.bad_state == state
    assert len(found.story) == (events + 1 if state else 0)
    if state:
        assert found.story[-1].startswith(f"{state.value.capitalize()}: ")
    assert verify(course) == found


def test_nodes_in_the_same_situation_may_change_places() -> None:
    rules = Rules(SAFE["enable and complete"], (0, 0, 0))
    for world in islice(only_unservable(rules), 0, 2500, 25):
        assert canonical(world) == world
        shuffled = [_shuffled(world, places) for places in permutations(range(3))]
        assert {canonical(it) for it in shuffled} == {world}


def _shuffled(world: World, places: tuple[int, ...]) -> World:
    disk = world.disk if world.disk == NOWHERE else places.index(world.disk)
    return world._replace(nodes=tuple(world.nodes[it] for it in places), disk=disk)


@pytest.mark.parametrize("course", SAFE.values(), ids=SAFE)
def test_a_safe_course_is_safe_when_it_is_cut_off_and_when_it_is_turned_round(
    course: Course,
) -> None:
    for length in range(len(course.moves) + 1):
        cut = replace(course, moves=course.moves[:length])
        assert verify(cut).safe
        assert verify(turned_round(cut)).safe


@settings(deadline=None, max_examples=8)
@given(courses(most=2))
def test_what_holds_for_any_course(course: Course) -> None:
    verdict = verify(course)
    still = verify(replace(course, moves=()))
    assert still.safe  # whatever it was before, nobody has done anything
    if verdict.safe:
        assert verify(replace(course, moves=course.moves[:-1])).safe
        if is_sound(course) and not _switches_base_gate(course):
            assert verify(turned_round(course)).safe


def is_sound(course: Course) -> bool:
    """Whether nothing is bad before anything is done."""
    rules = Rules(replace(course, moves=()), (0, 0))
    events = (event for layer in _layers(rules, set()) for event in layer)
    return not any(problem for event in events for problem in problems(rules, event))


def _switches_base_gate(course: Course) -> bool:
    """Then annotations depend on how one came here, and an end is not another's beginning."""
    return any(BASE in process.gates for process in Rules(course, (0, 0)).processes)


def turned_round(course: Course) -> Course:
    """From the course's end to its beginning."""
    controller, kubelet = course.controller, course.groups[0].kubelet
    back: list[Move] = []
    for move in course.moves:
        if isinstance(move, NodesMove):
            back.insert(0, replace(move, to={"n": kubelet}))
            kubelet = move.to["n"]
        else:
            back.insert(0, SwitchMove(controller, move.told))
            controller = move.to
    group = replace(course.groups[0], kubelet=kubelet)
    return replace(course, controller=controller, groups=(group,), moves=tuple(back))


@settings(deadline=None, max_examples=6)
@given(courses(most=2), st.data())
def test_moves_that_change_nothing_change_nothing(course: Course, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(course.moves)))
    before = turned_round(replace(course, moves=course.moves[:place]))  # where it is by then
    if data.draw(st.booleans()):
        idle: Move = SwitchMove(before.controller, "nothing new")
    else:
        drain = data.draw(st.booleans())
        idle = NodesMove({"n": before.groups[0].kubelet}, drain, "nothing new")
    moves = (*course.moves[:place], idle, *course.moves[place:])
    assert verify(replace(course, moves=moves)) == verify(course)
