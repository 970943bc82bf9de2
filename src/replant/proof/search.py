"""Looks at everything that may happen, nearest first, until a bad state or the end of it all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import combinations_with_replacement, pairwise, product
from typing import NamedTuple

from replant.proof.badness import Bad, BadState, Cause, problems
from replant.proof.course import Course, OldNodesJoin
from replant.proof.events import Event, may_happen, settled
from replant.proof.story import tell
from replant.proof.world import NOWHERE, Rules, World

_WORST_FIRST = list(BadState)
_FIRST = Cause.DETACHED_UNDER_POD
"""Told however far it is. Not so a detach that is begun anew or forced: it takes its time, and
there is one at the far end of nearly every wrong order."""
_Excuses = frozenset[tuple[BadState, Cause, int]]
"""What may go wrong anyway, and on nodes of which group."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a search found out."""

    states: int
    """How many different states it saw."""
    bad_state: StrEnum | None = None
    """A BadState, or what else has bad states of its own."""
    story: tuple[str, ...] = ()
    """What happens from the beginning to the bad state, in sentences."""
    plugin: str = ""
    """Whose volumes come to harm, where any do."""
    cause: Cause | None = None
    """Why the state is bad."""
    events: tuple[Event, ...] = field(default=(), repr=False, compare=False)
    """The story as events, where they are those of this search."""

    @property
    def safe(self) -> bool:
        """Whether no bad state can be reached."""
        return self.bad_state is None


def verify(course: Course) -> Verdict:
    """Whether any course of events leads to a bad state, and if so, how.

    Told is the shortest way to a disk that is taken from a running pod, if there is one, and
    otherwise the shortest way to any bad state. Each disk is looked at by itself, with two nodes at
    a time: a bad state is about one disk and two nodes at most.
    """
    verdicts = [search(course, pair) for pair in _pairs(course)]
    states = sum(verdict.states for verdict in verdicts)
    unsafe = [verdict for verdict in verdicts if not verdict.safe]
    if not unsafe:
        return Verdict(states)
    nearest = min(unsafe, key=lambda it: (it.cause is not _FIRST, len(it.story)))
    return replace(nearest, states=states, plugin=course.plugin)


def verify_all(courses: Iterable[Course]) -> Verdict:
    """One verdict on several courses: unsafe if one is, and all states counted."""
    return joined(verify(course) for course in courses)


def joined(verdicts: Iterable[Verdict]) -> Verdict:
    """One verdict of several: the first that is unsafe, if one is, and all states counted."""
    known = list(verdicts)
    states = sum(verdict.states for verdict in known)
    return replace(next((it for it in known if not it.safe), Verdict(0)), states=states)


def search(course: Course, groups: tuple[int, ...]) -> Verdict:
    """The verdict for nodes of these groups, each by its place in the course."""
    rules = Rules(course, groups)
    excuses = _excuses(Rules(replace(course, moves=()), groups))
    came_from: dict[World, World | None] = {canonical(settled(rules, rules.start)): None}
    nearest: _Ending | None = None
    ahead = list(came_from)
    while ahead:
        reached: list[World] = []
        worst: _Ending | None = None
        for world in ahead:
            for event in may_happen(rules, world):
                after = canonical(event.world)
                known = after in came_from
                if known and not event.yanks:
                    continue  # judged already; and what is bad at the start is not the moves' fault
                if problem := _fault(rules, event, excuses):
                    worst = _worse(worst, _Ending(world, event, problem))
                elif not known and not event.yanks:  # nobody moves what is lost anyway
                    came_from[after] = world
                    reached.append(after)
        if worst and (nearest is None or worst.problem.cause is _FIRST):
            nearest = worst
        if nearest and nearest.problem.cause is _FIRST:
            break
        ahead = reached
    if nearest is None:
        return Verdict(len(came_from))
    events, problem = _replayed(rules, _path(came_from, nearest.before), nearest)
    story = tuple(tell(rules, events, problem))
    return Verdict(len(came_from), problem.state, story, cause=problem.cause, events=tuple(events))


def _pairs(course: Course) -> Iterator[tuple[int, ...]]:
    numbers = range(len(course.groups))
    if course.old_nodes_join is not OldNodesJoin.NEVER:
        yield from product(numbers, repeat=2)  # one that joins at once has been there
        return
    if sum(group.size for group in course.groups) == 1:
        yield (0,)
        return
    for pair in combinations_with_replacement(numbers, 2):
        if pair[0] != pair[1] or course.groups[pair[0]].size > 1:
            yield pair


class _Told(NamedTuple):
    events: list[Event]
    problem: Bad


class _Ending(NamedTuple):
    before: World
    event: Event
    problem: Bad


def _excuses(untouched: Rules) -> _Excuses:
    """What may go wrong without any move: that is not the moves' fault."""
    start = canonical(untouched.start)
    found: set[tuple[BadState, Cause, int]] = set()
    seen, ahead = {start}, [start]
    while ahead:
        for event in may_happen(untouched, ahead.pop()):
            found.update(_excuse(event.world, it) for it in problems(untouched, event))
            world = canonical(event.world)
            if world not in seen and not event.yanks:
                seen.add(world)
                ahead.append(world)
    return frozenset(found)


def _excuse(world: World, problem: Bad) -> tuple[BadState, Cause, int]:
    group = world.nodes[problem.node].group if problem.node != NOWHERE else NOWHERE
    return problem.state, problem.cause, group


def _fault(rules: Rules, event: Event, excuses: _Excuses) -> Bad | None:
    """The worst that is bad about an event and cannot be excused, if anything is."""
    found = [it for it in problems(rules, event) if _excuse(event.world, it) not in excuses]
    return min(found, key=_rank, default=None) if found else None


def _worse(one: _Ending | None, other: _Ending) -> _Ending:
    """The first of the two, unless the other one is worse."""
    return other if one is None or _rank(other.problem) < _rank(one.problem) else one


def _rank(problem: Bad) -> tuple[int, bool]:
    return _WORST_FIRST.index(problem.state), problem.cause is not _FIRST


def canonical(world: World) -> World:
    """Nodes of the same group may change places: which of them it is makes no difference."""
    nodes = world.nodes
    if all(one <= other for one, other in pairwise(nodes)):
        return world
    order = sorted(range(len(nodes)), key=nodes.__getitem__)
    disk = world.disk if world.disk == NOWHERE else order.index(world.disk)
    return world._replace(nodes=tuple(nodes[it] for it in order), disk=disk)


def _path(came_from: dict[World, World | None], last: World) -> list[World]:
    path = [last]
    while (before := came_from[path[-1]]) is not None:
        path.append(before)
    return path[::-1]


def _replayed(rules: Rules, path: list[World], ending: _Ending) -> _Told:
    """A path with each node keeping its place all the way, and the bad state at its end."""
    world, events = settled(rules, rules.start), []
    for target in path[1:]:
        event = next(it for it in may_happen(rules, world) if canonical(it.world) == target)
        events.append(event)
        world = event.world
    last = canonical(ending.event.world)
    for event in may_happen(rules, world):
        found = [it for it in problems(rules, event) if it[:2] == ending.problem[:2]]
        if found and canonical(event.world) == last:
            return _Told([*events, event], found[0])
    raise AssertionError("a story does not end as it was found to")
