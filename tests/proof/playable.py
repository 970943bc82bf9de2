"""Which counter-examples can be played on real components, and in which order of events.

A search leaves it to chance which of several equally short stories it tells: a pod may be bound at
the very beginning, and the controller first look at it at the end. Played is the same story with
each event where a person would expect it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from replant.proof import Course, NodesMove, verify
from replant.proof.badness import Bad, problems
from replant.proof.events import Act, Event, may_happen, settled
from replant.proof.world import NOWHERE, Rules
from replant.routing import AttachController
from tests.proof.catalogue import COUNTER_EXAMPLES

PLUGIN = "kubernetes.io/aws-ebs"
VERSION = "1.24"
"""The minor of which the proving ground has components with an in-tree EBS plugin."""
NOT_ON_THIS_CLOUD = "the cloud of the proving ground is EC2, which has only aws-ebs volumes"
NOT_BUILT = f"only {VERSION}.17 is built with an in-tree EBS plugin"
NOT_UPSTREAM = "the attach/detach controller of OpenShift is not built"
BEYOND = {
    "wrong: enable, and the controllers go on": (
        "it takes 34 minutes; it was seen in a run of its own (docs/observed.md)"
    ),
    "groups: a drain that does not wait for the cloud": (
        "it needs a cloud that takes its time to detach; EC2 as moto plays it detaches at once"
    ),
}
"""Orders with components that there are, whose stories cannot be played."""
NOT_ACTED = (Act.DETACH_ANEW, Act.DETACH_FORCED, Act.TAKE_OVER_BLIND, Act.DIE, Act.RETURN)
CLAIM, INLINE, EPHEMERAL = "claim", "inline volume", "generic ephemeral volume"
OTHER_KINDS = (
    ("wrong: enable without a drain", INLINE),
    ("wrong: enable without a drain", EPHEMERAL),
    ("closed: disable", INLINE),
)
"""Orders that are played with another kind of volume too."""
KEPT = (Act.TAINT, Act.TAINT_JOINED, Act.UNTAINT, Act.TOLERATE)
_Key = tuple[Act, int, int, int]


class Story(NamedTuple):
    """A counter-example as it can be played."""

    rules: Rules
    events: tuple[Event, ...]
    problem: Bad


def story(course: Course) -> Story:
    """The counter-example that a search finds, with pods bound late and mounts made early."""
    verdict = verify(course)
    groups = tuple(node.group for node in verdict.events[0].world.nodes)
    rules = Rules(course, groups)
    found = Story(rules, verdict.events, _problem(rules, verdict.events, verdict.cause))
    return _moved(_moved(found, Act.BIND, late=True), Act.MOUNT, late=False)


def why_not(name: str) -> str:
    """Why a counter-example of the catalogue is not played; nothing if it is."""
    course = COUNTER_EXAMPLES[name].course
    if course.plugin != PLUGIN:
        return NOT_ON_THIS_CLOUD
    if course.attach_controller is not AttachController.UPSTREAM:
        return NOT_UPSTREAM
    if _versions(course) != {VERSION}:
        return NOT_BUILT
    return BEYOND.get(name, "")


def can_be_acted(found: Story) -> bool:
    """Whether a story has only events that can be done or waited for."""
    acts = [it.act for it in found.events if it.act not in KEPT]
    waits = any(
        one is Act.DETACH and other not in (Act.DETACHED, Act.DETACHED_UNNOTICED)
        for one, other in pairwise(acts)
    )
    return not waits and not set(acts) & set(NOT_ACTED)


class Play(NamedTuple):
    """A counter-example, and the kind of volume with which it is played."""

    order: str
    kind: str

    @property
    def name(self) -> str:
        return self.order if self.kind == CLAIM else f"{self.order}; {self.kind}"


def plays() -> list[Play]:
    """All that is played."""
    orders = [Play(it, CLAIM) for it in COUNTER_EXAMPLES if not why_not(it)]
    return [*orders, *(Play(*it) for it in OTHER_KINDS)]


def _versions(course: Course) -> set[str]:
    processes = [course.controller, *(it.kubelet for it in course.groups)]
    for move in course.moves:
        processes += move.to.values() if isinstance(move, NodesMove) else [move.to]
    return {it.version.of_minor for it in processes}


def _problem(rules: Rules, events: Sequence[Event], cause: object) -> Bad:
    return next(it for it in problems(rules, events[-1]) if it.cause is cause)


def _moved(found: Story, act: Act, *, late: bool) -> Story:
    """The story with each event of a kind as late, or as early, as it ends the same."""
    numbers = [it for it, event in enumerate(found.events) if event.act is act]
    for number in reversed(numbers) if late else numbers:
        keys = [_key(it) for it in found.events]
        key = keys.pop(number)
        places = range(len(keys), number, -1) if late else range(number)
        for place in places:
            events = _replayed(found.rules, [*keys[:place], key, *keys[place:]])
            if events and found.problem in problems(found.rules, events[-1]):
                found = found._replace(events=events)
                break
    return found


def _key(event: Event) -> _Key:
    leader = event.world.leader if event.act is Act.TAKE_OVER else NOWHERE
    return event.act, event.node, event.side, leader


def _replayed(rules: Rules, keys: Sequence[_Key]) -> tuple[Event, ...]:
    """The events of these kinds, one after the other; nothing if one of them cannot happen then."""
    world, events = settled(rules, rules.start), []
    for key in keys:
        event = next((it for it in may_happen(rules, world) if _key(it) == key), None)
        if event is None:
            return ()
        events.append(event)
        world = event.world
    return tuple(events)
