"""Run the tests against every fault of the table: ``python -m tests.mutations [ID ...]``.

Each fault is planted in a copy of the tree, so the working tree is never changed. A fault counts as
caught only if the test that fails with it passes without it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.mutations.faults import FAULTS, SOURCES, Fault, find_problems, plant

ROOT = Path(__file__).parents[2]
WHOLE_SUITE = ("-n", "2", "--dist", "worksteal", "tests")
TIME_LIMIT = 1200.0
"""Seconds for one run of pytest."""
PYTEST = (
    sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider",
    "-p", "no:randomly",  # the same test is the first to fail in every run
    "--ignore=tests/mutations",  # it fails with every fault: the table no longer fits the source
    "-rfE",
)  # fmt: skip
NOT_COPIED = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".hypothesis", ".*_cache")
COPY_VERSION = "0+copy"
"""Replant says this version where the copy is imported, and not the installed tree."""

_PASSED, _NO_TESTS = 0, 5
_FAILED_TEST = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)


class UnusableCopy(Exception):
    """The tests would not run against the copy with the fault."""


@dataclass(frozen=True)
class Run:
    """What one command printed, and its exit code; None if the time limit ended it."""

    code: int | None
    output: str

    @property
    def first_failure(self) -> str:
        """The id of the first test that failed."""
        found = _FAILED_TEST.search(self.output)
        return found[1] if found else ""

    @property
    def last_lines(self) -> str:
        """The end of what it printed, for an error message."""
        return "\n".join(self.output.splitlines()[-10:])


@dataclass(frozen=True)
class Result:
    """Whether a fault was caught."""

    fault: Fault
    caught_by: str
    """The id of the test; empty if none failed."""
    reason: str
    """Why it does not count as caught."""
    seconds: float

    def __str__(self) -> str:
        outcome = f"caught by {self.caught_by}" if self.caught_by else self.reason
        return f"{self.fault.id} | {outcome} | {self.seconds:.0f} s"


def main() -> int:
    """Try the faults that were asked for; the exit code is 0 only if all were caught."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument("ids", nargs="*", metavar="ID", help="only these faults")
    parser.add_argument("--list", action="store_true", help="print the table and run nothing")
    parser.add_argument(
        "--narrow", action="store_true", help="do not run the whole suite for a fault not caught"
    )
    parser.add_argument("-j", type=int, default=2, metavar="N", help="try N faults at once")
    given = parser.parse_args()
    if unknown := set(given.ids) - {it.id for it in FAULTS}:
        parser.error(f"no such fault: {', '.join(sorted(unknown))}")
    faults = [it for it in FAULTS if not given.ids or it.id in given.ids]
    if given.list:
        for it in faults:
            say(f"{it.id} ({it.file}): {it.why}")
        return 0
    if problems := [problem for it in faults for problem in find_problems(it, ROOT)]:
        for problem in problems:
            say(problem)
        return 1
    try:
        results = asyncio.run(try_faults(faults, at_once=given.j, narrow=given.narrow))
    except UnusableCopy as error:
        say(str(error))
        return 1
    caught = sum(bool(it.caught_by) for it in results)
    say(f"{caught} of {len(results)} faults caught")
    return 0 if caught == len(results) else 1


def say(line: str) -> None:
    """Print a line at once: a whole table takes long."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def try_faults(faults: Sequence[Fault], *, at_once: int, narrow: bool) -> list[Result]:
    """Try every fault, some at once, and print what came of each."""
    places = asyncio.Semaphore(at_once)
    with tempfile.TemporaryDirectory(prefix="replant-mutations-") as name:
        folder = Path(name)
        # Others may edit the working tree meanwhile: all faults are tried against the same tests.
        original = folder / "original"
        shutil.copytree(ROOT, original, ignore=NOT_COPIED)
        await check_imports(copy_tree(original, folder / "import-check"))

        async def try_one(fault: Fault) -> Result:
            async with places:
                result = await try_fault(fault, original, folder / fault.id, narrow=narrow)
            say(str(result))
            return result

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(try_one(it)) for it in faults]
        return [it.result() for it in tasks]


async def try_fault(fault: Fault, original: Path, tree: Path, *, narrow: bool) -> Result:
    """Plant a fault and run its tests, then all tests if these do not catch it."""
    began = time.monotonic()
    copy_tree(original, tree)
    plant(fault, tree)
    try:
        await check_module(fault, tree)
        caught_by, reason = await find_catching_test(fault.tests, original, tree)
        if not caught_by and not narrow:
            caught_by, reason = await find_catching_test(WHOLE_SUITE, original, tree)
    except UnusableCopy as error:
        caught_by, reason = "", f"ERROR: {error}"
    shutil.rmtree(tree)
    return Result(fault, caught_by, reason, time.monotonic() - began)


async def find_catching_test(tests: Sequence[str], original: Path, tree: Path) -> tuple[str, str]:
    """The test that fails in the tree and passes in the original; or none, and why."""
    run = await run_command((*PYTEST, *tests), tree)
    if run.code is None:
        return "", f"NOT CAUGHT: no test failed in {TIME_LIMIT:g} s"
    if run.code == _PASSED:
        return "", "NOT CAUGHT"
    test = run.first_failure
    if not test or run.code == _NO_TESTS:
        raise UnusableCopy(f"pytest {' '.join(tests)} ended with {run.code}:\n{run.last_lines}")
    again = await run_command((*PYTEST, test), original)
    if again.code != _PASSED:
        return "", f"NOT CAUGHT: {test} fails without the fault too"
    return test, ""


def copy_tree(original: Path, tree: Path) -> Path:
    """Copy the original, and say where to."""
    return Path(shutil.copytree(original, tree))


async def check_imports(tree: Path) -> None:
    """See that ``replant`` comes from the copy, although the project is installed as editable."""
    package = tree / SOURCES / "__init__.py"
    package.write_text(f'{package.read_text()}\n__version__ = "{COPY_VERSION}"\n')
    script = str(Path(sys.executable).with_name("replant"))
    for command in ((script,), (sys.executable, "-m", "replant")):
        run = await run_command((*command, "--version"), tree)
        if COPY_VERSION not in run.output:
            raise UnusableCopy(
                f"{' '.join(command)} does not import the copy in {tree}: {run.last_lines}"
            )
    shutil.rmtree(tree)


async def check_module(fault: Fault, tree: Path) -> None:
    """See that the module with the fault can be imported: else every test would catch it."""
    module = ".".join(Path("replant", fault.file).with_suffix("").parts).removesuffix(".__init__")
    script = f"import {module} as it; print(it.__file__)"
    run = await run_command((sys.executable, "-c", script), tree)
    if run.output.strip() != str(tree / SOURCES / fault.file):
        raise UnusableCopy(f"{module} cannot be imported: {run.last_lines}")


async def run_command(command: Sequence[str], tree: Path) -> Run:
    """Run a command in a copy of the tree, with the sources of that copy."""
    paths = [str(tree / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    # To a file: whatever a test leaves running would keep a pipe open.
    with tempfile.TemporaryFile() as output:
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=tree, env=environment, stdin=asyncio.subprocess.DEVNULL, stdout=output,
            stderr=asyncio.subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        code: int | None = None
        try:
            async with asyncio.timeout(TIME_LIMIT):
                code = await process.wait()
        except TimeoutError:
            pass
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        output.seek(0)
        return Run(code, output.read().decode(errors="replace"))


if __name__ == "__main__":
    sys.exit(main())
