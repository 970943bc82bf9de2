"""Keeps the model checker's verdicts, so that a test run searches each order of moves only once.

A search is a pure function of its course, and many tests plan for the same few clusters. The
results are files of one run: its workers and the commands that it runs in forks share them.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from pathlib import Path
from tempfile import NamedTemporaryFile

from replant.proof import search as searching
from replant.proof.course import OVERTAKEN, Course
from replant.proof.search import Verdict


def cache_verdicts_in(folder: Path) -> None:
    """Have every search of this process look in a folder first."""
    search = searching.search

    def cached_search(course: Course, groups: tuple[int, ...]) -> Verdict:
        key = hashlib.sha256(repr((course, groups, OVERTAKEN)).encode()).hexdigest()
        path = folder / key
        try:
            known: Verdict = pickle.loads(path.read_bytes())  # noqa: S301 - written below
        except FileNotFoundError:
            known = search(course, groups)
            with NamedTemporaryFile(dir=folder, delete=False) as file:
                file.write(pickle.dumps(known))
            os.replace(file.name, path)  # noqa: PTH105 - whole or not at all
        return known

    searching.search = cached_search
