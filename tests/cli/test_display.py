"""What a person sees while a plan is carried out, on terminals of any width and on none."""

from __future__ import annotations

import io
import os
import re
from typing import Any

import pytest
from rich.console import Console
from rich.progress import Progress as Bars

from replant.cli import display
from replant.cli.reporting import tell
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


def screen_of(width: int, **more: Any) -> tuple[io.StringIO, Console]:
    screen = io.StringIO()
    return screen, Console(
        file=screen, width=width, force_terminal=True, color_system=None, **{"height": 24, **more}
    )


def last_of(screen: io.StringIO) -> list[str]:
    """The lines that are on a screen in the end, without what moves its cursor."""
    drawn = re.split(r"\x1b\[1A|\r", screen.getvalue())[-1]
    return [it.rstrip() for it in re.sub(r"\x1b\[[^a-zA-Z]*[a-zA-Z]", "", drawn).splitlines()]


@pytest.mark.parametrize("width", [1, 10, 40, 80, 300])
def test_bars_fit_any_width_and_take_no_orders_from_what_they_show(width: int) -> None:
    screen, console = screen_of(width)
    with display.bars(console) as shown:
        shown.step(STEP, 1, 1)
        shown.progress(Progress(0, 0, ""), [])
        shown.progress(HALF, [(PDB, 30.0), (PDB, 2.0)])
        shown.note("[bold]a note[/bold] \x1b[31m")
    said = screen.getvalue()
    assert "\x1b[31m" not in said
    assert all(len(it) <= width for it in last_of(screen))
    if width == 300:
        assert "[bold]a note[/bold]" in said
        assert "[red]budget[/red]" in said
        assert "(+1), 30 s" in said


LONG = Wait(
    "pod shop/db-0 to be let go from workers-1: The disruption budget db needs 3 healthy pods and "
    "has 3 currently",
    "blocked u",
    60,
)
MANY = Progress(2_500, 5_000, "nodes", ("n1",), (26_000, 50_000))


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_a_long_wait_leaves_room_for_the_bar_the_counts_and_the_times(width: int) -> None:
    screen, console = screen_of(width)
    with display.bars(console) as shown:
        shown.step(ENABLE.steps[0], 1, 2)
        shown.step_done(ENABLE.steps[0])
        shown.step(STEP, 2, 2)
        shown.progress(MANY, [(LONG, 30.0)])
    done, under_way, counts, *wait = last_of(screen)
    assert re.fullmatch(r"1/2 switch-control-plane ━+ 0:00:\d\d", done)
    assert re.fullmatch(r"2/2 roll-nodes +━{6,}╸? +0:00:\d\d -:--:-- left", under_way)
    assert counts.strip() == "2,500 of 5,000 nodes, 26,000 of 50,000 volumes"
    assert " ".join(it.strip() for it in wait if it) == f"waiting for {LONG.what}, 30 s"


def test_the_time_left_is_told_by_nodes_that_take_minutes() -> None:
    clock = [0.0]
    screen, console = screen_of(80, get_time=lambda: clock[0])
    with display.bars(console) as shown:
        shown.step(STEP, 1, 1)
        for done in range(4):
            clock[0] = 600.0 * done
            shown.progress(Progress(done, 10, "nodes"), [])
    assert last_of(screen)[0].endswith(" 0:30:00 1:10:00 left")


def test_of_more_steps_than_a_screen_has_lines_the_one_under_way_is_seen() -> None:
    screen, console = screen_of(80, height=12)
    with display.bars(console) as shown:
        for number in range(30):
            shown.step(STEP, number + 1, 30)
            shown.progress(HALF, [(LONG, 30.0)])
    first, *_, under_way, counts, wait, more = last_of(screen)
    assert first.startswith("27/30 ")
    assert under_way.startswith("30/30 roll-nodes ━")
    assert counts.strip() == HALF.told
    assert (wait + more).endswith(", 30 s")


def test_a_bar_is_full_when_its_step_is_done() -> None:
    with Bars(console=Console(file=io.StringIO())) as bars:
        shown = display.Steps(bars)
        shown.step(STEP, 1, 2)
        shown.step_done(STEP)
        shown.step(STEP, 2, 2)
        shown.progress(HALF, [])
        assert [it.finished for it in bars.tasks] == [True, False]


def test_a_terminal_may_go_away_while_bars_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = os.openpty()
    with os.fdopen(theirs, "w") as terminal:
        monkeypatch.setattr("sys.stderr", terminal)
        with display.display_of() as shown:
            shown.step(STEP, 1, 2)
            os.close(ours)
            shown.note("nobody reads this")
            shown.step_done(STEP)
            shown.step(STEP, 2, 2)
            shown.progress(HALF, [(PDB, 30.0)])
            tell("nor this")
