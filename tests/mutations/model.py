"""Change each rule of the model: a record of real controllers must notice.

``python -m tests.mutations.model [TEXT ...]`` makes every mutant of the rules by which routes and
the proof say what Kubernetes does (those whose names have one of the texts), one at a time, and
plays the records of real components against each. A mutant that no record notices may still differ
from a fact that was read from the sources of Kubernetes; what is left must be in
``equivalent.txt``, with an argument.

A mutant is compiled in a process of its own, a fork of one that has read everything else.
"""

from __future__ import annotations

import argparse
import importlib.abc
import importlib.util
import os
import pickle
import re
import select
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from importlib.machinery import ModuleSpec
from itertools import product
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import pytest

# What is read before the forks, they do not read again: nothing with a rule of the model.
import replant.gates.history
import replant.gates.plugins
import replant.gates.settings
import replant.translate  # noqa: F401
from tests.mutations.changes import Mutant, mutants

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src/replant"
TIME_LIMIT = 60
"""Seconds for one mutant. One that makes the model go round in circles is noticed, too."""
EQUIVALENT = [
    line
    for line in (Path(__file__).parent / "equivalent.txt").read_text().splitlines()
    if line and not line.startswith("#")
]
"""The names of mutants that are no other model; the file says why."""
SHARE_LISTED = 0.05
"""So many mutants may be listed as equivalent at most."""


class By(StrEnum):
    """What notices a mutant."""

    RECORDS = "records of real components"
    FACTS = "facts from the sources"
    LIST = "listed as equivalent"
    NOTHING = "NOTHING"


TESTS: dict[By, tuple[str, ...]] = {
    By.RECORDS: ("tests/routing/test_observed.py", "tests/proof/test_observed.py"),
    By.FACTS: (
        "tests/routing/test_facts.py",
        "tests/routing/test_attaching.py",
        "tests/proof/test_facts.py",
    ),
}
PROOF = "replant.proof."
"""Modules of which only the last tests of each kind know."""


@dataclass(frozen=True)
class Target:
    """A module with rules, and what of it is none: by function, why it is left out."""

    file: str
    left_out: dict[str, str] = field(default_factory=dict)
    parts_left_out: dict[str, str] = field(default_factory=dict)
    """Of the other functions: by a pattern of the names of mutants, why these are left out."""

    @property
    def module(self) -> str:
        return ".".join(Path("replant", self.file).with_suffix("").parts)

    def mutants(self) -> list[Mutant]:
        source = (SOURCES / self.file).read_text()
        found = mutants(self.file, source, lambda name: name not in self.left_out)
        return [
            it for it in found if not any(re.search(part, it.id) for part in self.parts_left_out)
        ]


_WORDS = "it is what a person is told"
_MOVES = "it says what Replant does or waits for, and not what Kubernetes does"
_VOUCHED = "a person vouches for it: it is no rule of Kubernetes"
TARGETS = (
    Target("routing/attaching.py"),
    Target("routing/mounting.py"),
    Target("routing/claims.py", parts_left_out={r" provision: .* in VolumeView": _WORDS}),
    Target("routing/limits.py"),
    Target("routing/names.py"),
    Target(
        "routing/model.py",
        {
            "FIRST": "it says which versions are asked about",
            "Process.__post_init__": "it is for speed",
            "Process.why_not_redirected": _WORDS,
            "Process.why_not_registered": _WORDS,
        },
    ),
    Target(
        "routing/rules.py",
        dict.fromkeys(("_SHARED", "_IN_GENERAL", "_catalogue", "route", "_written"), _WORDS),
        {r"dropped in \{": "a rule that is not there is an error, and no other rule"},
    ),
    Target(
        "core/routing/dangling.py",
        {"is_taken_from_other_nodes": "it puts two rules together, for the plan"},
    ),
    Target(
        "proof/world.py",
        dict.fromkeys(
            (
                "BOTH",
                "Rules.restricts",
                "Rules.goal",
                "Rules.forgets",
                "Rules._moves",
                "Rules._intern",
                "Rules._nodes",
            ),
            _MOVES,
        )
        | dict.fromkeys(("_HOLDING", "Node.holder"), "bad states are defined by it"),
    ),
    Target(
        "proof/events.py",
        dict.fromkeys(
            (
                "may_happen",
                "settled",
                "_reached",
                "_is_to_untaint",
                "_are_alike",
                "_all_there",
                "_moves",
                "_node_moves",
                "_restrictions",
                "_is_restricted",
                "holding_kinds",
                "waits_for_driver",
                "_empty",
            ),
            _MOVES,
        )
        | {"_with": "it makes a world, faster than _replace"},
        {
            r"world\)\) -> yanks$|-> rules\.forgets": _MOVES,
            "rules.course.volumes": "a course without volumes has no pods that use them",
            "tolerat": "it is what Replant has pods tolerate, of taints that are its own",
            "one_pod_per_volume|it.pod or it.mounted|_takes_pods: any": _VOUCHED,
        },
    ),
)


def all_mutants() -> list[Mutant]:
    """Every mutant of every target."""
    return [mutant for target in TARGETS for mutant in target.mutants()]


@dataclass(frozen=True)
class Outcome:
    """What noticed a mutant."""

    mutant: Mutant
    by: By
    test: str
    """The first test that failed."""


class _Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from a mutant's code."""

    def __init__(self, module: str, code: CodeType) -> None:
        self.module, self.code = module, code

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        if fullname != self.module:
            return None
        return importlib.util.spec_from_loader(fullname, self)

    def exec_module(self, module: ModuleType) -> None:
        exec(self.code, module.__dict__)  # noqa: S102  # the code is ours, with one change


def failing_test(file: str) -> str:
    """The first test of a file that fails, without pytest, which would take most of the time."""
    module = importlib.import_module(".".join(Path(file).with_suffix("").parts))
    for name, test in vars(module).items():
        if name.startswith("test_"):
            for given in given_to(test):
                try:
                    test(**given)
                except Exception:  # noqa: BLE001  # however it fails, the mutant is noticed
                    return f"{file}::{name}"
    return ""


def given_to(test: Callable[..., None]) -> Iterator[dict[str, Any]]:
    """What each run of a test is given: one of each of its parametrizations."""
    marks: list[pytest.Mark] = getattr(test, "pytestmark", [])
    choices = []
    for mark in marks:
        names, values = mark.args
        names = (names,) if isinstance(names, str) else tuple(names)
        choices.append([dict(zip(names, row(it, len(names)), strict=True)) for it in values])
    for chosen in product(*choices):
        yield {name: value for given in chosen for name, value in given.items()}


def row(given: Any, length: int) -> Sequence[Any]:
    """What a test is given by one entry of a parametrization."""
    if isinstance(given, type(pytest.param())):
        return given.values
    return given if length > 1 else (given,)


def noticed(mutant: Mutant | None) -> tuple[By, str]:
    """What notices a mutant, or the model as it is; in a process that ends after this."""
    tests = TESTS
    if mutant:
        [target] = [it for it in TARGETS if it.file == mutant.file]
        code = compile(mutant.module(), str(SOURCES / mutant.file), "exec")
        sys.meta_path.insert(0, _Changed(target.module, code))
        if target.module.startswith(PROOF):
            tests = {by: files[-1:] for by, files in TESTS.items()}
    for by, files in tests.items():
        for file in files:
            try:
                test = failing_test(file)
            except Exception as error:  # noqa: BLE001  # the module with the mutant cannot be read
                test = f"{file}: {error!r}"
            if test:
                return by, test
    return By.NOTHING, ""


def in_a_fork(do: Callable[[], tuple[By, str]]) -> int:
    """Start a function in a process of its own; what is read from the pipe is its answer."""
    reads, writes = os.pipe()
    if os.fork() == 0:
        os.close(reads)
        signal.alarm(TIME_LIMIT)
        try:
            answer = pickle.dumps(do())
        except BaseException as error:  # noqa: BLE001  # whatever it is, the mutant does not work
            answer = pickle.dumps((By.RECORDS, f"does not run: {error!r}"))
        os.write(writes, answer)
        os._exit(0)
    os.close(writes)
    return reads


def answer_of(pipe: int) -> tuple[By, str]:
    """What came of it, or that it did not end in time."""
    with os.fdopen(pipe, "rb") as file:
        answer = file.read()
    os.wait()
    if not answer:
        return By.RECORDS, f"does not end within {TIME_LIMIT} s"
    found: tuple[By, str] = pickle.loads(answer)  # noqa: S301  # our own child wrote it
    return found


def try_all(chosen: Sequence[Mutant], at_once: int) -> Iterator[Outcome]:
    """Try mutants, some at once; the outcomes come as they are there."""
    ahead, running = list(reversed(chosen)), dict[int, Mutant]()
    while ahead or running:
        while ahead and len(running) < at_once:
            mutant = ahead.pop()
            running[in_a_fork(partial(noticed, mutant))] = mutant
        ready, _writable, _failed = select.select(list(running), [], [])
        for pipe in ready:
            mutant = running.pop(pipe)
            by, test = answer_of(pipe)
            yield Outcome(
                mutant, By.LIST if by is By.NOTHING and mutant.id in EQUIVALENT else by, test
            )


def main() -> int:
    """Try the mutants that were asked for; the exit code is 0 only if all are noticed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations.model", description=__doc__)
    parser.add_argument("texts", nargs="*", metavar="TEXT", help="only mutants with it in the name")
    parser.add_argument("--all", action="store_true", help="print those that are noticed, too")
    parser.add_argument("-j", type=int, default=os.cpu_count() or 1, metavar="N", help="N at once")
    given = parser.parse_args()
    began = time.monotonic()
    if early := [it.module for it in TARGETS if it.module in sys.modules]:
        raise SystemExit(f"imported too early, so no mutant of it would be tried: {early}")
    by, test = answer_of(in_a_fork(partial(noticed, None)))
    if by is not By.NOTHING:
        say(f"Without a change {test} fails.")
        return 1
    chosen = [
        it for it in all_mutants() if not given.texts or any(text in it.id for text in given.texts)
    ]
    counts: Counter[By] = Counter()
    superfluous = []
    for outcome in try_all(chosen, given.j):
        counts[outcome.by] += 1
        if given.all or outcome.by is By.NOTHING:
            say(f"{outcome.by}: {outcome.mutant.id}" + f" | {outcome.test}" * bool(outcome.test))
        if outcome.by in TESTS and outcome.mutant.id in EQUIVALENT:
            superfluous.append(outcome.mutant.id)
    for it in superfluous:
        say(f"listed as equivalent, and noticed: {it}")
    told = ", ".join(f"{counts[by]} {by}" for by in By)
    say(f"{len(chosen)} mutants in {time.monotonic() - began:.0f} s: {told}")
    return 1 if counts[By.NOTHING] or superfluous else 0


def say(line: str) -> None:
    """Print a line at once: all of it takes minutes."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
