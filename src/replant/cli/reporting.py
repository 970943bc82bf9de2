"""What a command says on standard error while its results go to standard output."""

from __future__ import annotations

import os
import sys
from typing import IO

import click

from replant.errors import printable

FAILED = 1
"""The exit code of a command that did not do all that it was asked to."""

SHOWN = 20
"""So many lines of one sort are shown; then they are counted."""


def tell(text: str) -> None:
    """Say it on standard error, if anybody is left who reads that: it fails nothing."""
    try:
        click.echo(text, err=True)
    except OSError:
        silence(sys.stderr)


def silence(stream: IO[str]) -> None:
    """Drop what is written to a stream from now on, and what it still holds at the exit too."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class Report:
    """Collects lines by sort and shows the first of each; ``finish`` counts the rest."""

    def __init__(self, *, verbose: bool) -> None:
        self._verbose = verbose
        self._said: dict[str, int] = {}

    def problem(self, message: object) -> None:
        """Something was not done; the command will fail."""
        self._say("error", message)

    def note(self, message: object) -> None:
        """Something was done that a person should know of."""
        self._say("note", message)

    @property
    def failed(self) -> bool:
        """Whether there was a problem."""
        return "error" in self._said

    def finish(self, summary: str) -> None:
        """Say what was not shown, and the summary."""
        for sort, count in self._said.items():
            if count > SHOWN and not self._verbose:
                tell(f"{sort}: {count - SHOWN} more like these (--verbose)")
        tell(summary)

    def repeat(self, said: list[tuple[str, str]]) -> None:
        """Say what a Recording has kept."""
        for sort, message in said:
            self._say(sort, message)

    def _say(self, sort: str, message: object) -> None:
        count = self._said[sort] = self._said.get(sort, 0) + 1
        if self._verbose or count <= SHOWN:
            tell(f"{sort}: {printable(str(message))}")


class Recording(Report):
    """Keeps what is said, so that another process can say it in its turn."""

    def __init__(self) -> None:
        super().__init__(verbose=True)
        self.said: list[tuple[str, str]] = []

    def _say(self, sort: str, message: object) -> None:
        self.said.append((sort, str(message)))
