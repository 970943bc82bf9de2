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
        return ", ".join(self.objects) + (f" and {self.more:,} more" if self.more else "")


def verify(plan: Plan, before: Census, now: Census) -> tuple[Checked, ...]:
    """Every check, for a plan of which all steps are done; for an undo, that plan itself.

    ``before`` may be a baseline. What was not well even then is not held against the plan.
    """
    comparison = Comparison(plan, Joined(before), Joined(now))
    return tuple(
        _checked(word, well, list(look(comparison))) for word, (look, well) in CHECKS.items()
    )


def _checked(word: str, well: str, problems: list[Problem]) -> Checked:
    if not problems:
        return Checked(word, Outcome.PASSED, well)
    wrong = [it for it in problems if it.outcome is Outcome.WRONG]
    told = wrong or problems
    objects_ = tuple(dict.fromkeys(it.object for it in told))
    return Checked(
        word, told[0].outcome, told[0].message, objects_[:SHOWN], max(len(objects_) - SHOWN, 0)
    )
