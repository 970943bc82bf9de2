"""What a person sees while a plan is carried out, on terminals of any width and on none."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console
from rich.progress import Progress as Bars

from replant.cli import display
from replant.execute.acts import Progress, Wait
from tests.execute.nodes import ENABLE

STEP = ENABLE.steps[-1]
PDB = Wait("pod shop/db-0 to be let go from n1: [red]budget[/red] \x1b[31mdb", "blocked u", 60)
HALF = Progress(1, 2, "nodes", ("n1",), (3, 7))


def test_lines_say_each_thing_once_and_a_long_wait_every_minute(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = display.Lines()
    lines.step(STEP, 2, 2)
    for seconds in range(150):
        lines.progress(HALF, [(PDB, float(seconds))])
    lines.step_done(STEP)
    said = capsys.readouterr().err.splitlines()
    assert all(re.match(r"\d\d:\d\d:\d\d ", it) for it in said)
    assert [it[9:] for it in said] == [
        f"step 2 of 2, roll-nodes: {STEP.title}",
        "1 of 2 nodes, 3 of 7 volumes; under way: n1",
        *(
            f"waiting for pod shop/db-0 to be let go from n1: [red]budget[/red] \\x1b[31mdb, "
            f"for {seconds} s now"
            for seconds in (20, 80, 140)
        ),
        "roll-nodes is done",
    ]


def test_a_wait_that_comes_back_is_spoken_of_anew(capsys: pytest.CaptureFixture[str]) -> None:
    lines = display.Lines()
    for seconds in (30.0, 1.0, 25.0):
        lines.progress(HALF, [(PDB, seconds)])
    assert capsys.readouterr().err.count("waiting for") == 2


@pytest.mark.parametrize("width", [1, 10, 40, 80, 300])
def test_bars_fit_any_width_and_take_no_orders_from_what_they_show(width: int) -> None:
    screen = io.StringIO()
    console = Console(file=screen, width=width, force_terminal=True, color_system=None)
    with display.bars(console) as shown:
        shown.step(STEP, 1, 1)
        shown.progress(Progress(0, 0, ""), [])
        shown.progress(HALF, [(PDB, 30.0), (PDB, 2.0)])
        shown.note("[bold]a note[/bold] \x1b[31m")
    said = screen.getvalue()
    assert "\x1b[31m" not in said
    if width == 300:
        assert "[bold]a note[/bold]" in said
        assert "1 of 2 nodes, 3 of 7 volumes" in said
        assert "[red]budget[/red]" in said
        assert "(+1), 30 s" in said


def test_a_bar_is_full_when_its_step_is_done() -> None:
    with Bars(console=Console(file=io.StringIO())) as bars:
        shown = display.Steps(bars)
        shown.step(STEP, 1, 2)
        shown.step_done(STEP)
        shown.step(STEP, 2, 2)
        shown.progress(HALF, [])
        assert [it.finished for it in bars.tasks] == [True, False]
