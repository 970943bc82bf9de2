"""Has another kube-controller-manager lead: one that has forgotten which detaches it waits for.

A leader whose Lease is taken away cannot renew it, ends, and is started anew by whoever keeps it
running. That is seen on any platform: each process signs the Lease with a name of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from replant.execute.acts import Act, Decision, Evict, LookAtLeader, RestartLeader, Switch, Wait
from replant.execute.steps.restarts import in_the_way_of_a_restart
from replant.execute.world import World, precedes
from replant.plan.courses import CONTROLLER
from replant.plan.model import (
    ChangeVersion,
    Plan,
    RestoreVolumes,
    RewriteTemplates,
    RollNodes,
    SwapVolumes,
)

LEASE = f"kube-system/{CONTROLLER}"
OURS = "replant-apply"
"""The name under which the Lease is held by nobody: it runs out, and then a candidate takes it."""
LOOK_AGAIN = 2.0
BY_HAND = (
    f"restart {CONTROLLER} now, one replica after the other: there is no Lease {LEASE} by which "
    "Replant could see and have it done. It may still wait for a detach that the driver has "
    "overtaken, and end it under a pod half an hour later (docs/apply.md)"
)


@dataclass(frozen=True, slots=True)
class Leader:
    """Who leads at one moment, by the Lease of this version; without a Lease both are empty."""

    holder: str = ""
    version: str = ""


LOOK = LookAtLeader(why=f"to see which {CONTROLLER} leads", component=CONTROLLER)


def restart_of(leader: Leader) -> RestartLeader | None:
    """What has another lead; nothing where nobody does."""
    if leader.holder in ("", OURS):
        return None
    return RestartLeader(
        why="so that it forgets detaches that the driver has overtaken",
        component=CONTROLLER,
        holder=leader.holder,
        version=leader.version,
    )


def needs_restart(plan: Plan) -> bool:
    """Whether a plan has a step that must not end under the leader under which it began."""
    return any(
        it.restart_controllers_seconds
        if isinstance(it, RollNodes | ChangeVersion)
        else it.restart_controllers
        for it in plan.steps
        if isinstance(
            it, RollNodes | ChangeVersion | SwapVolumes | RestoreVolumes | RewriteTemplates
        )
    )


@dataclass(frozen=True, slots=True)
class Memory:
    """What a journal says of leaders and of the pods that were moved under them."""

    step: str = ""
    """In which a pod was last moved, or a leader restarted."""
    since: float | None = None
    """When the first pod was moved after the last restart."""
    holder: str = ""
    """Who was to lead no more, if nothing was done after that."""
    version: str = ""
    """Of the Lease at that time: what is older tells nothing."""


FRESH_MEMORY = Memory()


class Leading:
    """When a leader has to go, and whether it has gone, in the course of a step that moves pods."""

    def __init__(
        self, step: str, seconds: float, patience: float, memory: Memory, *, back: bool
    ) -> None:
        self._seconds = seconds
        """So long one may lead while pods are moved; 0 is for ever."""
        self._patience = patience
        self._since, self._from, self._version = memory.since, memory.holder, memory.version
        self._seen: Leader | None = None
        self._seen_at: float | None = None
        # What was moved on the way there would be in the way of going back.
        turned = memory.step != step if memory.step else back
        self._asked = bool(self._from) or turned
        self._is_unsafe = False

    def end(self) -> None:
        """Have nobody lead any longer under whom a pod was moved: the last one was."""
        self._asked = self._asked or self._since is not None

    def holds_up(self, now: float, decision: Decision, world: World) -> bool:
        """Whether another has to lead before anything else is done; how is in the decision.

        None is restarted while that could take a disk from a pod, nor are others waited for less.
        """
        if not self._seconds:
            return False
        if self._since is not None and now >= self._since + self._seconds:
            self._asked = True
        if not self._asked:
            return False
        self._go_on(now, decision, world)
        return self._asked

    @property
    def waits_for_nodes(self) -> bool:
        """Whether nobody is restarted yet: something has to be so on nodes before."""
        return self._asked and self._is_unsafe

    @property
    def is_pending(self) -> bool:
        """Whether somebody leads under whom a pod was moved."""
        return bool(self._seconds) and (self._since is not None or self._asked)

    def moved(self, acts: Iterable[Act], now: float) -> None:
        """Note when pods began to be moved."""
        if self._since is None and any(_is_move(it) for it in acts):
            self._since = now

    def learn(self, outcome: object, now: float) -> None:
        """Note who leads; after anything else it is looked at again."""
        self._seen = outcome if isinstance(outcome, Leader) else None
        self._seen_at = now if isinstance(outcome, Leader) else None

    def _go_on(self, now: float, decision: Decision, world: World) -> None:
        seen = self._seen
        self._is_unsafe = False
        if seen is not None and not seen.version:
            decision.notes.append(BY_HAND)
            self._forgotten()
            return
        act: Act | None = None
        if seen is None:
            act = LOOK
        elif precedes(seen.version, self._version):
            pass  # an old answer
        elif seen.holder in ("", OURS):
            self._from = self._from or OURS
        elif waits := list(in_the_way_of_a_restart(world, self._patience)):
            self._is_unsafe = True
            decision.waits += waits
        elif self._from and seen.holder != self._from:
            self._forgotten()
            return
        else:
            self._from, self._version = seen.holder, seen.version
            act = restart_of(seen)
        if act is None and now >= (self._seen_at or 0) + LOOK_AGAIN:
            act = LOOK
        decision.acts += [act] if act else []
        decision.wake = LOOK_AGAIN
        if self._from:
            decision.waits.append(self._wait)

    @property
    def _wait(self) -> Wait:
        return Wait(
            f"another {CONTROLLER} to lead: the Lease {LEASE} was taken from {self._from}",
            f"leader {self._from}",
            self._patience,
            f"{CONTROLLER}. If it runs without leader election, restart it and delete the Lease "
            f"{LEASE}",
        )

    def _forgotten(self) -> None:
        self._asked, self._since, self._from, self._seen = False, None, "", None


def new_leader(step: str, patience: float) -> Leading:
    """What has another lead before anything else is done, whoever leads now."""
    return Leading(step, 1.0, patience, Memory(), back=True)


def _is_move(act: Act) -> bool:
    """Whether a pod may go from a node of one kind to one of the other."""
    return isinstance(act, Evict | Switch)
