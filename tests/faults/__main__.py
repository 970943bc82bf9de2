"""Every write of whole migrations, with every fault: ``python -m tests.faults small|20-nodes``."""

from __future__ import annotations

import argparse
import resource
import sys
from collections.abc import Iterator

from replant.cluster.answers import Request
from tests.faults.injecting import ANSWERS, KILLS, Fault
from tests.faults.migrations import WEATHERS, small_migrations, twenty_nodes
from tests.faults.stories import Case, CasesAt, Told, disturb, endure

SOME = (Fault.KILL_BEFORE, Fault.KILL_AFTER, Fault.CONFLICT, Fault.LOST)
"""What takes the ways through the code that all faults take together."""


def every(step: int, *, undo: bool, faults: tuple[Fault, ...]) -> CasesAt:
    """Every fault at every so many-th write, and every way to go on from it."""

    def cases(number: int, _request: Request) -> Iterator[Case]:
        if number % step:
            return
        for fault in faults:
            yield Case(fault)
            if fault in KILLS and not undo:
                yield Case(fault, back=True)
        if Fault.KILL_AFTER in faults:
            # At which write the second kill comes is another one each time.
            yield Case(Fault.KILL_AFTER, again=1 + number * 7 % 23)
            if not undo:
                yield Case(Fault.KILL_AFTER, back=True, again=1 + number * 5 % 19)
                yield Case(Fault.KILL_BEFORE, back=True, again=3 + number % 4, turns=True)

    return cases


def killed(step: int) -> CasesAt:
    """A kill before and after every so many-th write; another process resumes."""

    def cases(number: int, _request: Request) -> Iterator[Case]:
        if number % step == 0:
            yield Case(Fault.KILL_BEFORE)
            yield Case(Fault.KILL_AFTER)

    return cases


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("which", choices=("small", "20-nodes"))
    parser.add_argument("--every", type=int, default=1, help="only every so many-th of the writes")
    parser.add_argument(
        "--kills", action="store_true", help="only kills before and after a write, then resumed"
    )
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", default="", help="only migrations with this in their name")
    given = parser.parse_args()
    migrations = small_migrations() if given.which == "small" else twenty_nodes()
    bad = 0
    for migration in migrations:
        if given.only not in migration.name:
            continue
        faults = SOME if migration.reduced else (*KILLS, *ANSWERS)
        step = given.every * migration.every
        cases = every(step, undo=migration.undo, faults=faults)
        if given.kills:
            cases = killed(step)
        bad += show(disturb(migration, cases, given.workers))
        if given.which == "small" and not given.only:
            bad += show(endure(migration, WEATHERS, given.workers))
    return min(bad, 1)


def show(told: Told) -> int:
    """Say what has come of a migration; the number of bad cases."""
    say = sys.stdout.write
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    say(
        f"{told.migration}: {told.writes} writes, {len(told.verdicts)} cases, {len(told.bad)} bad, "
        f"{told.resumed} told to go on though nobody was killed; "
        f"{used.ru_utime + used.ru_stime:.0f} s of one core so far\n"
    )
    for verdict in told.bad:
        say(f"  {verdict.case}\n")
        for problem in verdict.problems:
            say(f"    {problem}\n")
    sys.stdout.flush()
    return len(told.bad)


if __name__ == "__main__":
    sys.exit(main())
