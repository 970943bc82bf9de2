"""Whether a cluster is well after a plan was carried out: a census of before against one of now.

Things settle: what may still come right is *not yet* so, and whoever asks takes another census and
asks again; what will not is *wrong*. Every sentence says what, where, why, and which log to read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from replant.execute.census_model import Census, Joined
from replant.execute.verifying import disks, objects, workloads
from replant.execute.verifying.comparison import Comparison, Outcome, Problem, Problems
from replant.plan.model import Plan

__all__ = ["CHECKS", "Checked", "Outcome", "verify"]

SHOWN = 10
"""So many objects of a check are named; then they are counted."""

CHECKS: dict[str, tuple[Callable[[Comparison], Problems], str]] = {
    "pods": (workloads.pods, "Every pod that was ready is, or another one in its place."),
    "drained": (disks.drained, "No disk was in use on a node while that was switched."),
    "attached": (disks.attached, "Every disk is attached where its pod is, and nowhere else."),
    "stranded": (disks.stranded, "No disk is held by a side that is no longer asked."),
    "nodes": (objects.nodes, "Every node is ready and takes pods, as before."),
    "announced": (objects.announced, "Every CSINode lists what the plan leaves redirected."),
    "drivers": (objects.drivers, "Every node has the drivers that it redirects to."),
    "marks": (objects.marks, "Every volume is marked as the controllers redirect it."),
    "annotations": (objects.annotated, "Every volume has the annotations of the plan."),
    "volumes": (
        objects.volumes,
        "The spec of every volume is what it was, or what the plan makes of it.",
    ),
    "claims": (objects.claims, "No claim has lost its volume."),
    "classes": (objects.classes, "Every class is what it was, or what the plan makes of it."),
    "mounts": (workloads.mounts, "No pod waits in vain for a volume that it had before."),
}
"""Every check by its word, with what is so when it passes."""


@dataclass(frozen=True, slots=True)
class Checked:
    """One thing that was looked at."""

    check: str
    """What was looked at: a stable word."""
    outcome: Outcome
    message: str
    """A sentence for a person; where it failed, about the first of the objects."""
    objects: tuple[str, ...] = ()
    """Those that are not as they should be, the first of them."""
    more: int = 0
    """How many there are beyond these."""

    @property
    def passed(self) -> bool:
        """Whether all is well."""
        return self.outcome is Outcome.PASSED

    @property
    def concerned(self) -> str:
        """The objects, as a person reads them."""
        return _named(self.objects, self.more)

    @property
    def told(self) -> str:
        """The sentence, and the objects where there are others than the one it is about."""
        others = f" In all: {self.concerned}." if len(self.objects) > 1 else ""
        return self.message + others


def verify(
    plan: Plan, before: Census, now: Census, let_go: frozenset[str] = frozenset()
) -> tuple[Checked, ...]:
    """Every check, for a plan of which all steps are done; for an undo, that plan itself.

    ``before`` may be a baseline. What was not well even then is not held against the plan. Pods
    that were ``let_go``, by namespace and name, may be gone though nobody makes them again.
    """
    comparison = Comparison(plan, Joined(before), Joined(now), let_go)
    return tuple(
        _checked(word, well, list(look(comparison))) for word, (look, well) in CHECKS.items()
    )


def _checked(word: str, well: str, problems: list[Problem]) -> Checked:
    wrong = [it for it in problems if it.outcome is Outcome.WRONG]
    told = wrong or [it for it in problems if it.outcome is Outcome.NOT_YET]
    if not told:
        allowed = f" {problems[0].message}: {_named(*_first(problems))}." if problems else ""
        return Checked(word, Outcome.PASSED, well + allowed)
    return Checked(word, told[0].outcome, told[0].message, *_first(told))


def _first(problems: list[Problem]) -> tuple[tuple[str, ...], int]:
    """The first objects, and how many there are beyond these."""
    found = tuple(dict.fromkeys(it.object for it in problems))
    return found[:SHOWN], max(len(found) - SHOWN, 0)


def _named(objects_: tuple[str, ...], more: int) -> str:
    return ", ".join(objects_) + (f" and {more:,} more" if more else "")
