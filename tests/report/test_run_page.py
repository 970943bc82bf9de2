"""The report of a run: what its journal says, in numbers that agree, and nothing else runs."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replant.execute.journal import Mark, Run
from replant.execute.outages import Outage
from replant.execute.verification import Checked, Outcome
from replant.report.run_course import course_of
from replant.report.run_page import OUTAGES, Witness, render
from replant.report.run_style import RUN_STYLE
from replant.report.time_scale import Scale
from replant.report.timeline import ROWS
from replant.report.wording import plain
from tests.report import runs, samples
from tests.report.test_page import ATTRIBUTES, TAGS, Page

NODES = [f"workers-{number}" for number in range(6)]
ALLOWED_TAGS = TAGS - {"script"} | {"ol", "ul", "li", "strong", "br"}
ALLOWED_ATTRIBUTES = ATTRIBUTES | {"title", "preserveaspectratio"}


def page_of(run: Run, witness: Witness | None = None) -> Page:
    page = Page()
    page.feed(render(run, witness or runs.witness()))
    page.close()
    assert page.open == []
    return page


def tiles(html: str) -> dict[str, str]:
    return dict(re.findall("<dt>(.+?)</dt><dd>(.+?)</dd>", html))


def lanes(html: str) -> list[str]:
    """What a reader of the picture is told of each of its lanes."""
    return re.findall('<svg role="img" aria-label="(.+?)"', html)


# Whatever names there are

OUTAGE = st.builds(
    Outage,
    workload=samples.TEXTS,
    claim=samples.TEXTS,
    times=st.integers(1, 9),
    longest=st.floats(0, 1e6),
    total=st.floats(0, 1e6),
)
CHECKED = st.builds(
    Checked,
    check=samples.TEXTS,
    outcome=st.sampled_from(Outcome),
    message=samples.TEXTS,
    objects=st.lists(samples.TEXTS, max_size=3).map(tuple),
    more=st.integers(0, 5),
)


@settings(deadline=None)
@given(
    nodes=st.lists(samples.TEXTS, min_size=1, max_size=4, unique=True),
    by=samples.TEXTS,
    why=samples.TEXTS,
    outages=st.lists(OUTAGE, max_size=3),
    checks=st.lists(CHECKED, max_size=3),
    journal=samples.TEXTS,
)
def test_nothing_from_anywhere_is_a_tag_or_fetched(
    nodes: list[str],
    by: str,
    why: str,
    outages: list[Outage],
    checks: list[Checked],
    journal: str,
) -> None:
    run = runs.whole(nodes, by=by).run()
    run.entries[-1:] = runs.Story(nodes).mark(Mark.STOP, why=why).entries
    page = page_of(run, Witness(outages, checks, journal, why))
    assert {tag for tag, _ in page.tags} <= ALLOWED_TAGS
    assert {name for _, attributes in page.tags for name in attributes} <= ALLOWED_ATTRIBUTES
    assert not {"src", "href", "style"} & {name for _, given in page.tags for name in given}
    assert page.texts["style"] == RUN_STYLE
    names = [given["title"] for _, given in page.tags if "title" in given]
    assert names == [runs.SWITCH, runs.ROLL, *map(plain, nodes)]


def test_a_page_has_no_script_and_its_policy_allows_none() -> None:
    html = render(runs.whole(NODES).run(), runs.witness())
    assert "<script" not in html
    assert "script-src" not in html
    assert "default-src 'none'; style-src 'sha256-" in html
    assert "://" not in html


def test_there_are_no_control_characters() -> None:
    html = render(runs.whole(["\x1b[31m", "\u202e"], by="\x00").run(), runs.witness())
    assert not [char for char in html if not char.isprintable() and char != "\n"]


# Counts


@settings(deadline=None)
@given(
    count=st.integers(1, 2 * ROWS),
    at_once=st.integers(1, 9),
    stopped=st.integers(0, 2 * ROWS),
    again=st.booleans(),
)
def test_numbers_agree_with_the_journal(
    count: int, at_once: int, stopped: int, again: bool
) -> None:
    nodes = [f"node-{number}" for number in range(count)]
    done, rest = nodes[:stopped], nodes[stopped:]
    story = runs.Story(nodes, at_once).switch_control_plane().begin_roll().roll(*done)
    if again:
        story.wait(5000).switch_control_plane().begin_roll().roll(*rest).end_roll().end()
    course, html = course_of(story.run()), render(story.run(), runs.witness())
    switched = nodes if again else done
    assert course.ever_switched == len(switched)
    assert course.most_out == min(at_once, max(len(done), len(rest) if again else 0))
    assert [it.number for it in course.switched] == list(range(1, len(switched) + 1))
    assert tiles(html)[f"of {count} node{'s' * (count != 1)} switched"] == str(len(switched))
    moved = len(switched) * runs.MOVED_PER_NODE
    assert tiles(html)["pods moved"] == str(moved)
    rows = [it for it in lanes(html) if it.startswith("node-")]
    assert len(rows) == (len(switched) if len(switched) <= ROWS else 0)
    assert all(it.count("switched") == 1 for it in rows)


def test_five_thousand_nodes_are_curves_of_a_page_that_stays_small() -> None:
    html = render(
        runs.whole([f"node-{number}" for number in range(5000)], 50).run(),
        runs.witness(list(runs.outages(20_000))),
    )
    assert lanes(html)[-2:] == ["nodes switched: 5,000 at most", "nodes out of service: 50 at most"]
    assert "At most 50 nodes took no pods at the same time; the plan allows 50." in html
    assert html.count("<tr>") < OUTAGES + 50
    assert "And 19,800 more, none of them longer than" in html
    assert len(html) < 200_000


# What happened


def told(run: Run) -> list[str]:
    return [it.what for it in course_of(run).happenings]


def test_a_run_that_was_stopped_says_why_and_how_to_go_on() -> None:
    story = runs.Story(NODES).switch_control_plane().begin_roll().take_out("workers-0")
    run = story.mark(Mark.STOP, why="It was <interrupted>.").run()
    html = render(run, runs.witness(halted="It was <interrupted>.", checked=False))
    assert "<h1>Stopped</h1>" in html
    assert "It was &lt;interrupted&gt;." in html
    assert "replant apply --resume" in html
    assert "Nothing was verified" in html
    assert "roll-nodes: 08:00:03 to 08:00:07 (4 s); not done" in lanes(html)


def test_a_run_that_was_taken_back_shows_both_ways() -> None:
    story = runs.Story(NODES).switch_control_plane().begin_roll().roll(*NODES[:3])
    story.mark(Mark.STOP, why="Enough.").wait(3600).turn()
    story.begin_roll().roll(*NODES[:3]).end_roll().switch_control_plane().end()
    html = render(story.run(), runs.witness())
    assert "<h1>Undone</h1>" in html
    assert tiles(html)["of 6 nodes switched"] == "3"
    assert tiles(html)["nodes switched back"] == "3"
    assert tiles(html)["pods moved"] == str(2 * 3 * runs.MOVED_PER_NODE)
    assert course_of(story.run()).switched[-1].number == 0
    names = [it.partition(":")[0] for it in lanes(html)]
    assert names[:4] == [runs.SWITCH, runs.ROLL, f"undo-{runs.ROLL}", f"undo-{runs.SWITCH}"]
    assert told(story.run()) == [
        "Begun by someone@somewhere.",
        "Stopped. Enough.",
        "Turned: from here on it goes back.",
        "Ended: everything is taken back, and verified.",
    ]


@pytest.mark.parametrize(
    "until",
    [
        lambda it: it.mark(Mark.STEP, step=runs.SWITCH),
        lambda it: it.switch_control_plane(),
        lambda it: it.switch_control_plane().begin_roll().take_out("workers-0"),
        lambda it: it.switch_control_plane().begin_roll().roll(*NODES).end_roll(),
    ],
)
def test_a_process_that_was_gone_without_a_word_is_noticed(
    until: Callable[[runs.Story], runs.Story],
) -> None:
    story = until(runs.Story(NODES))
    gone = story.now - 1
    story.wait(600).switch_control_plane().begin_roll().roll(*NODES).end_roll().end()
    course = course_of(story.run())
    assert course.processes == 2
    assert all(it.out for it in course.nodes.values())
    assert [(it.start, it.end - it.start) for it in course.pauses] == [(gone, 601)]
    assert told(story.run()) == [
        "Begun by someone@somewhere.",
        "The process was gone without a word.",
        "Another process went on with it.",
        "Ended: every step is done, and verified.",
    ]


def test_a_node_that_was_out_when_a_process_was_gone_stays_out_until_it_is_brought_back() -> None:
    story = runs.Story(NODES).switch_control_plane().begin_roll().take_out("workers-0")
    story.wait(600).switch_control_plane().begin_roll().bring_back("workers-0").end_roll().end()
    course = course_of(story.run())
    (out,) = course.nodes["workers-0"].out
    assert out.end - out.start > 600


def test_of_entries_alike_the_last_one_counts() -> None:
    story = runs.Story(NODES).switch_control_plane().begin_roll()
    story.act("Cordon", "node a").wait(60).take_out("a").act(
        "Evict", "pod shop/db-a-0", "to drain a"
    )
    story.act("Switch", "node a").wait(60).bring_back("a").act("Uncordon", "node a")
    story.act("Cordon", "node never").end_roll()
    course = course_of(story.run())
    (out,) = course.nodes["a"].out
    assert (out.start, out.end) == (course.start + 65, course.start + 132)
    assert [it.at - course.start for it in course.nodes["a"].switches] == [130]
    assert len(course.moved) == runs.MOVED_PER_NODE
    assert course.nodes["never"].out == []


def test_a_clock_that_goes_back_makes_nothing_last_less_than_nothing() -> None:
    story = runs.Story(NODES).switch_control_plane().begin_roll().roll(*NODES[:3])
    story.now -= 1000
    story.switch_control_plane().begin_roll().roll(*NODES[3:]).end_roll().end()
    course = course_of(story.run())
    lasting = [course.pauses, *course.steps.values(), *(it.out for it in course.nodes.values())]
    assert all(it.end >= it.start for spans in lasting for it in spans)
    assert "<h1>Done</h1>" in render(story.run(), runs.witness())


def test_a_long_pause_does_not_squeeze_the_work() -> None:
    story = runs.Story(NODES).switch_control_plane().begin_roll().roll(*NODES[:3])
    story.mark(Mark.STOP, why="Friday.").wait(3 * 86400)
    story.switch_control_plane().begin_roll().roll(*NODES[3:]).end_roll().end()
    course = course_of(story.run())
    scale = Scale(course.start, course.end, course.pauses)
    assert scale.x(course.start) == 0
    assert scale.x(course.end) == pytest.approx(100)
    assert scale.x(course.pauses[0].end) - scale.x(course.pauses[0].start) < 5
    places = [it.x for it in scale.ticks()]
    assert 2 < len(places) < 12
    assert places == sorted(places)


def test_a_run_that_has_only_begun_has_a_page() -> None:
    html = render(runs.Story(NODES).run(), runs.witness(halted="The cluster is gone."))
    assert "The cluster is gone." in html
    assert "switch-control-plane: not begun" in lanes(html)
