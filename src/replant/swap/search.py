"""Whether anything that may happen while a volume is swapped can do it harm, and if so, how.

Looks at everything that may happen, nearest first, until a harm or the end of it all. It depends
on no cluster and no volume: the disk, the names and the rules are the same for all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import NamedTuple

from replant.proof import Verdict
from replant.swap.actors import Act, Event, may_happen
from replant.swap.conduct import Conduct, Mind
from replant.swap.story import Harm, tell
from replant.swap.world import OTHER, Case, Going, Held, Phase, Reacts, Stage, World, start


@lru_cache(maxsize=2)
def verify_swap(*, back: bool) -> Verdict:
    """The verdict on a plan that makes volumes native, or puts in-tree ones back."""
    return verify_cases(cases(back=back))


def cases(*, back: bool, all_at_once: bool = False) -> Iterator[Case]:
    """All that a swap may start from; what a person does in each is of one kind, or all of it."""
    for deletes, claimed, redirected in product((True, False), repeat=3):
        # Where nobody deletes the disk, it is all one who would. On the way back it only is called
        # otherwise: both volumes are made from the journal, with the finalizers that they had.
        if redirected if back and deletes else deletes or not redirected:
            yield Case(back, deletes, claimed, redirected, all_at_once)
    yield Case(back, deletes=True, claimed=True, redirected=True, by_hand=True)
    # Whoever else would delete the disk, and for whatever policy: it does not look at it.
    yield Case(
        back, deletes=False, claimed=True, redirected=False, other_controller=Reacts.FINALIZER
    )


def verify_cases(wanted: Iterable[Case], conduct: Conduct | None = None) -> Verdict:
    """One verdict on several cases: the shortest of all stories, and all states counted."""
    verdicts = [search(case, conduct or Conduct()) for case in wanted]
    states = sum(it.states for it in verdicts)
    unsafe = [it for it in verdicts if not it.safe]
    nearest = min(unsafe, key=lambda it: len(it.story), default=Verdict(0))
    return replace(nearest, states=states)


class _Edge(NamedTuple):
    """How a world was come to first."""

    number: int
    """Of the world before."""
    before: World
    event: Event


def search(case: Case, conduct: Conduct) -> Verdict:
    """The verdict on one case."""
    mind = Mind(case, conduct)
    worlds = [start(case)]
    numbers = {worlds[0]: 0}
    came_by: list[_Edge | None] = [None]
    followed: list[list[int]] = [[]]
    """By world, those that come to it by themselves."""
    for number, world in enumerate(worlds):  # which grows, so the nearest come first
        for event in may_happen(mind, world):
            if harm := _harm(mind, world, event):
                path = [*_path(came_by, number), _Edge(number, world, event)]
                return _unsafe(mind, len(worlds), path, harm)
            reached = numbers.setdefault(event.world, len(worlds))
            if reached == len(worlds):
                worlds.append(event.world)
                came_by.append(_Edge(number, world, event))
                followed.append([])
            if event.by_itself:
                followed[reached].append(number)
    hopeful = _hopeful(worlds, followed)
    if all(hopeful):
        return Verdict(len(worlds))
    path, last = _to_the_bitter_end(mind, worlds[hopeful.index(False)])
    harm = Harm.UNBOUND if last.replant.stage is Stage.DONE else Harm.STUCK
    path = [*_path(came_by, hopeful.index(False)), *path]
    return _unsafe(mind, len(worlds), path, harm)


def _unsafe(mind: Mind, states: int, path: list[_Edge], harm: Harm) -> Verdict:
    return Verdict(states, harm, tuple(tell(mind, path, harm)))


def _path(came_by: list[_Edge | None], last: int) -> list[_Edge]:
    path: list[_Edge] = []
    while edge := came_by[last]:
        path.append(edge)
        last = edge.number
    return path[::-1]


def _harm(mind: Mind, before: World, event: Event) -> Harm | None:
    """What is bad about an event and the world after it."""
    case, world = mind.case, event.world
    if event.act in (Act.DESTROY, Act.RECLAIM, Act.DETACH):
        return _harm_by_others(before, event.act)
    if _is_deleted(before, world) and not before.redirects:
        return Harm.SWITCHED
    if before.volume and not world.volume and not _is_named(case, world):
        # What a person deletes before Replant has begun with it is the person's own.
        by_person = before.volume.going is Going.BY_A_PERSON and event.act is not Act.CHANGE
        return None if by_person else Harm.LOST
    stage = world.replant.stage
    if stage is before.replant.stage:
        return None
    left_alone = case.claimed and not (world.claim and world.claim.own and not world.claim.going)
    unknown = world.volume is not None and world.volume.finalizers & OTHER
    refused = unknown or not world.redirects
    if stage is Stage.STUCK and not (world.meddled or left_alone or refused):
        return Harm.STUCK
    volume = world.volume
    if stage is Stage.DONE and volume and not left_alone:
        if volume.deletes != (case.deletes and not (case.by_hand and volume.native)):
            return Harm.CHANGED
        # What is put back is as it was before; what a person wrote since is not for it.
        as_was = case.back or world.turned or world.meddled
        if not as_was and volume.labelled != world.labelled:
            return Harm.CHANGED
    return None


def _harm_by_others(before: World, act: Act) -> Harm | None:
    if act is Act.DETACH:
        return Harm.DETACHED
    if act is Act.RECLAIM:
        by_person = before.volume is not None and before.volume.going is Going.BY_A_PERSON
        return None if by_person else Harm.DELETED
    kept = (before.claim is not None and before.claim.own) or not before.fair
    return Harm.DELETED if kept else None


def _is_deleted(before: World, after: World) -> bool:
    """Whether Replant has just deleted the volume."""
    was, now = before.volume, after.volume
    return bool(was and not was.going and (now is None or now.going is Going.BY_REPLANT))


def _is_named(case: Case, world: World) -> bool:
    """Whether the run's own journal names the disk; that its plan does is not enough."""
    journal = world.journal
    from_plan = case.back and not world.turned
    return bool(journal.native or (journal.in_tree and not from_plan))


def _hopeful(worlds: list[World], followed: list[list[int]]) -> list[bool]:
    """For each world, whether it comes to a good end when nobody disturbs anything any more."""
    good = [_is_good_end(it) for it in worlds]
    ahead = [number for number, is_good in enumerate(good) if is_good]
    while ahead:
        for before in followed[ahead.pop()]:
            if not good[before]:
                good[before] = True
                ahead.append(before)
    return good


def _to_the_bitter_end(mind: Mind, first: World) -> tuple[list[_Edge], World]:
    """From a world without hope, what comes by itself to where nothing new ever happens."""
    worlds, numbers = [first], {first: 0}
    came_by: list[_Edge | None] = [None]
    leads_to: list[set[int]] = []
    for number, world in enumerate(worlds):
        leads_to.append(set())
        for event in may_happen(mind, world):
            if not event.by_itself:
                continue
            reached = numbers.setdefault(event.world, len(worlds))
            if reached == len(worlds):
                worlds.append(event.world)
                came_by.append(_Edge(number, world, event))
            leads_to[number].add(reached)
    sizes = [len(_closure(leads_to, number)) for number in range(len(worlds))]
    last = sizes.index(min(sizes))
    return _path(came_by, last), worlds[last]


def _closure(leads_to: list[set[int]], first: int) -> set[int]:
    found, ahead = {first}, [first]
    while ahead:
        news = leads_to[ahead.pop()] - found
        found |= news
        ahead += news
    return found


def _is_good_end(world: World) -> bool:
    stage, claim = world.replant.stage, world.claim
    if not world.disk or stage is Stage.STUCK:
        return True
    if world.held is Held.DETACHING:
        return True  # a person deletes the pod, and then Replant goes on
    if stage is not Stage.DONE:
        return False
    if claim is None or not claim.own or claim.going or world.meddled:
        return True
    return claim.phase is Phase.BOUND and world.volume is not None
