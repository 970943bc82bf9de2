"""Running a process and seeing what it took: seconds on the clock, and its largest memory."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

MIB = 2**20
ROUNDS = 3
"""Machines are noisy: each side runs this often, in turns, and its best counts."""


@dataclass(frozen=True)
class Cost:
    seconds: float
    peak_mib: float


def run(arguments: list[str], out: Path, ends_with: tuple[int, ...] = (0,)) -> Cost:
    """Run a process to its end, its standard output into a file."""
    with out.open("wb") as file:
        start = time.perf_counter()
        process = subprocess.Popen(arguments, stdout=file, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in ends_with:
        raise SystemExit(f"{' '.join(arguments)} ended with {process.returncode}")
    return Cost(seconds, usage.ru_maxrss / 1024)


def python(script: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", script, *arguments]


def floor(script: str, source: Path, out: Path) -> Cost:
    """Run a script that prints the seconds that it measured by itself."""
    cost = run(python(script, str(source)), out)
    return Cost(float(out.read_text()), cost.peak_mib)


def best(costs: list[Cost]) -> Cost:
    return Cost(min(cost.seconds for cost in costs), max(cost.peak_mib for cost in costs))
