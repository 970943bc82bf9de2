"""How a run goes, for whoever looks: bars on a terminal, lines with the time of day elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, cast

from replant.cli.reporting import silence, tell
from replant.errors import printable
from replant.execute.acts import Progress, Wait
from replant.execute.engine import Display
from replant.plan.model import Step

if TYPE_CHECKING:
    from rich.console import Console

REPEAT = 60.0
"""So many seconds after a line about a wait there is another."""
WORTH_A_LINE = 20.0
"""A wait that is shorter is not spoken of: every drain has some."""
BELOW = 8
"""So many lines of a screen are left for what is below the bars."""
REMEMBERED = 86400.0
"""So many seconds count for the time that is left: a single node may take hours."""


@contextmanager
def display_of() -> Iterator[Display]:
    """The display for what standard error is."""
    if not sys.stderr.isatty():
        yield Lines()
        return
    with bars() as display:
        yield display


class Lines:
    """Plain lines, each with the time of day; a wait is repeated every minute."""

    def __init__(self) -> None:
        self._shown = ""
        self._said: dict[str, float] = {}
        """By wait: how long it had lasted when it was last spoken of."""

    def step(self, step: Step, number: int, total: int) -> None:
        """A step begins."""
        self._say(f"step {number} of {total}, {step.id}: {step.title}")

    def progress(self, progress: Progress, waits: Sequence[tuple[Wait, float]]) -> None:
        """Say what is new, and what has been waited for longer than things commonly take."""
        shown = progress.told
        if progress.under_way:
            shown += f"; under way: {', '.join(progress.under_way)}"
        if progress.total and shown != self._shown:
            self._shown = shown
            self._say(shown)
        for wait, seconds in waits:
            if seconds < WORTH_A_LINE:
                self._said.pop(wait.key, None)
            elif seconds - self._said.get(wait.key, -REPEAT) >= REPEAT:
                self._said[wait.key] = seconds
                self._say(f"waiting for {wait.what}, for {seconds:.0f} s now")

    def step_done(self, step: Step) -> None:
        """A step is done."""
        self._say(f"{step.id} is done")

    def note(self, text: str) -> None:
        """Something that a person should know."""
        self._say(text)

    def _say(self, text: str) -> None:
        tell(f"{time.strftime('%H:%M:%S')} {printable(text)}")


@contextmanager
def bars(console: Console | None = None) -> Iterator[Display]:
    """A bar for each step, with how far the last one is below; on standard error by default."""
    from rich.console import Console, RenderableType
    from rich.padding import Padding
    from rich.progress import (
        BarColumn,
        Task,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bars
    from rich.table import Column
    from rich.text import Text

    screen = console or Console(file=cast("IO[str]", Unwatched(sys.stderr)))

    class Shown(Bars):
        """What is waited for may be long: beside the bars it would leave them no room."""

        def get_renderables(self) -> Iterator[RenderableType]:
            # Of many steps the last ones fit: the one that is under way is seen on every screen.
            room = max(1, screen.height - BELOW)
            yield self.make_tasks_table(self.tasks[-room:])
            for task in self.tasks[-1:]:
                for line, style in ((task.fields["what"], ""), (task.fields["waits"], "dim")):
                    if line:
                        yield Padding(Text(line, style), (0, 0, 0, 4))

    class Left(TimeRemainingColumn):
        """Says which of the two times it is."""

        def render(self, task: Task) -> Text:
            known = task.total is not None and not task.finished
            return super().render(task) + " left" if known else Text()

    name = Column(no_wrap=True, max_width=32, overflow="ellipsis")
    columns = (
        TextColumn("{task.description}", table_column=name),
        BarColumn(),  # gives way where there is little room
        TimeElapsedColumn(Column(no_wrap=True)),
        Left(table_column=Column(no_wrap=True)),
    )
    with Shown(*columns, console=screen, speed_estimate_period=REMEMBERED) as shown:
        yield Steps(shown)


class Unwatched:
    """A terminal that may go away: what is drawn on it then is dropped, and the run goes on."""

    def __init__(self, terminal: IO[str]) -> None:
        self._terminal = terminal

    def write(self, text: str) -> int:
        """Draw it, if there is anything to draw on."""
        with self._unless_gone():
            self._terminal.write(text)
        return len(text)

    def flush(self) -> None:
        """Have it seen."""
        with self._unless_gone():
            self._terminal.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._terminal, name)

    @contextmanager
    def _unless_gone(self) -> Iterator[None]:
        try:
            yield
        except OSError:
            silence(self._terminal)


class Steps:
    """Bars of rich, which redraws them by itself."""

    def __init__(self, bars_: Any) -> None:
        self._bars = bars_
        self._task: Any = None

    def step(self, step: Step, number: int, total: int) -> None:
        """A new bar."""
        name = f"{number}/{total} {step.id}"
        self._task = self._bars.add_task(_plain(name), total=None, what="", waits="")

    def progress(self, progress: Progress, waits: Sequence[tuple[Wait, float]]) -> None:
        """How far it is, and what it has waited for longest."""
        longest, seconds = max(waits, key=lambda it: it[1], default=(None, 0.0))
        first = longest.what if longest else ""
        more = f" (+{len(waits) - 1})" if len(waits) > 1 else ""
        since = f", {seconds:.0f} s" if seconds >= WORTH_A_LINE else ""
        self._bars.update(
            self._task,
            completed=progress.done,
            total=progress.total or None,
            what=printable(progress.told) if progress.total else "",
            waits=printable(f"waiting for {first}{more}{since}") if first else "",
        )

    def step_done(self, step: Step) -> None:  # noqa: ARG002
        """The bar is full."""
        total = self._bars.tasks[-1].total or 1
        self._bars.update(self._task, completed=total, total=total, waits="")

    def note(self, text: str) -> None:
        """A line above the bars."""
        self._bars.console.print(_plain(text))


def _plain(text: str) -> str:
    from rich.markup import escape

    return escape(printable(text))
