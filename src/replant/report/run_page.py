"""The report of a run as HTML: how it ended, a picture of it, outages, checks, and the plan.

Whatever came from a cluster, a plan or a journal is escaped by ``page_parts.text``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from replant.execute.journal import Mark, Run, State
from replant.execute.outages import Outage
from replant.execute.verification import Checked
from replant.plan.model import AnnotateVolumes, Plan, Proof, ReplaceClasses, RollNodes
from replant.report import plans
from replant.report.page_parts import table, text
from replant.report.page_shell import BACK, PAUSE, TICK, Tile, banner, page, section, tiles
from replant.report.run_course import Course, course_of
from replant.report.run_style import RUN_STYLE
from replant.report.runs import duration
from replant.report.time_scale import clock
from replant.report.timeline import ROWS, timeline
from replant.report.wording import noun_for, number_of

OUTAGES = 200
"""So many claims have a row, the longest outages first; then they are counted."""


@dataclass(frozen=True, slots=True)
class Witness:
    """What the process that makes the report knows beyond the journal."""

    outages: Sequence[Outage]
    checks: Sequence[Checked]
    journal: str
    """Where it is, as a person would look for it."""
    halted: str = ""
    """Why it went no further, if it did not."""


def render(run: Run, witness: Witness) -> str:
    """The whole page."""
    course = course_of(run)
    body = (
        _banner(run, course, witness),
        tiles(_tiles(run.plan, course, witness)),
        _picture(run, course),
        _checks(run, witness.checks),
        _outages(course, witness.outages),
        _happenings(course),
        _plan(run.plan),
        _journal(run, witness.journal),
    )
    return page(
        title=text(f"{run.header.goal} {_outcome(run.state)}"),
        style=RUN_STYLE,
        body="".join(body),
        origin="from the journal of the run",
    )


# How it ended

_SIGNS = {State.DONE: TICK, State.UNDONE: BACK, State.UNFINISHED: PAUSE}


def _outcome(state: State) -> str:
    return "stopped" if state is State.UNFINISHED else state.value


def _banner(run: Run, course: Course, witness: Witness) -> str:
    header = run.header
    begun = (
        f"Run {header.id}, begun {clock(course.start, day=True)} UTC by {header.by}, "
        f"Kubernetes {run.plan.control_plane.version}"
    )
    outcome = _outcome(run.state)
    return banner(
        outcome,
        _SIGNS[run.state],
        outcome.capitalize(),
        f"<p>{text(_summary(run, witness))}</p>"
        f"{_what_next(run)}"
        f'<p class="versions">{text(begun)}</p>',
    )


def _summary(run: Run, witness: Witness) -> str:
    what = f"{run.header.goal} {', '.join(run.header.plugins)}"
    match run.state:
        case State.DONE:
            return f"{what}: every step is done, and the cluster was verified."
        case State.UNDONE:
            return f"{what}: everything is taken back, and the cluster was verified."
    stops = [it.why for it in run.entries if it.mark is Mark.STOP]
    why = witness.halted or (stops[-1] if stops else "Nobody has said why.")
    return f"{what}{' on its way back' * run.undoing}: {why}"


def _what_next(run: Run) -> str:
    if run.state is not State.UNFINISHED:
        return ""
    return (
        "<p>Go on with <code>replant apply --resume</code>, "
        "or go back with <code>replant apply --undo</code>.</p>"
    )


def _tiles(plan: Plan, course: Course, witness: Witness) -> Iterator[Tile]:
    kinds = {type(step) for step in plan.steps}
    if RollNodes in kinds:
        groups = {it.group for step in plan.steps if isinstance(step, RollNodes)
                  for it in step.changes}  # fmt: skip
        nodes = sum(len(it.nodes) for it in plan.groups if it.name in groups)
        switched = course.ever_switched
        yield Tile("nodes", f"of {number_of(nodes, 'node')} switched", f"{switched:,}")
        if course.turned:
            back = course.switched_back
            yield Tile("back", f"{noun_for(back, 'node')} switched back", f"{back:,}")
        moved = len(course.moved)
        yield Tile("pods", f"{noun_for(moved, 'pod')} moved", f"{moved:,}")
    if AnnotateVolumes in kinds:
        annotated = len(course.annotated)
        yield Tile("volumes", f"{noun_for(annotated, 'volume')} annotated", f"{annotated:,}")
    if ReplaceClasses in kinds:
        classes = len(course.classes)
        replaced = f"class{'es' * (classes != 1)} replaced"
        yield Tile("classes", replaced, f"{classes:,}")
    longest = max((it.longest for it in witness.outages), default=0.0)
    yield Tile("outage", "longest outage", duration(longest) if witness.outages else "none")
    yield Tile("duration", "from begin to end", duration(course.seconds))


# How it went


def _picture(run: Run, course: Course) -> str:
    planned = [step.id for step in run.plan.steps]
    steps = [*planned, *(it for it in course.steps if it not in planned)]
    facts = []
    rolls = [it for it in run.plan.steps if isinstance(it, RollNodes)]
    if rolls and course.nodes:
        allowed = max(it.max_unavailable for it in rolls)
        facts.append(
            f"At most {number_of(course.most_out, 'node')} took no pods at the same time; "
            f"the plan allows {allowed:,}."
        )
    if len(course.nodes) > ROWS:
        facts.append(f"These are too many nodes for a line each: {len(course.nodes):,}.")
    told = f'<p class="muted facts">{" ".join(facts)}</p>' if facts else ""
    return section("picture", "How it went", timeline(course, steps) + told)


def _happenings(course: Course) -> str:
    rows = "".join(
        f'<tr><td class="when">{clock(it.at, day=True)}</td><td class="wrap">{text(it.what)}</td>'
        "</tr>\n"
        for it in sorted(course.happenings, key=lambda it: it.at)
    )
    content = _table(("When (UTC)", "What"), rows)
    return section("happenings", "What happened", content)


def _checks(run: Run, checks: Sequence[Checked]) -> str:
    if not checks:
        ended = run.state is not State.UNFINISHED
        why = "Another process has done it." if ended else "The run was stopped before its end."
        content = f'<p class="muted">Nothing was verified by this process. {why}</p>'
        return section("checks", "Verification", content)
    rows = "".join(map(_check_row, checks))
    return section("checks", "Verification", _table(("Check", "Outcome", "What was seen"), rows))


def _check_row(check: Checked) -> str:
    outcome = check.outcome.value
    badge = f'<span class="badge {outcome.replace(" ", "-")}">{outcome}</span>'
    concerned = f'<p class="muted wrap">{text(check.concerned)}</p>' if check.objects else ""
    return (
        f'<tr><th scope="row">{text(check.check)}</th><td>{badge}</td>'
        f'<td class="wrap">{text(check.message)}{concerned}</td></tr>\n'
    )


def _outages(course: Course, outages: Sequence[Outage]) -> str:
    told = "How long nobody served a claim while pods moved, the longest first"
    if course.processes > 1:
        told += "; what moved while no process of this run was at work is not in it"
    content = f'<p class="muted">{told}.</p>'
    if not outages:
        content += "<p>None.</p>"
    else:
        rows = [
            (it.workload, it.claim, f"{it.times:,}", duration(it.longest), duration(it.total))
            for it in outages[:OUTAGES]
        ]
        shown = table(("Workload", "Claim", "Times", "Longest", "In all"), rows, 2)
        content += f'<div class="outages">{shown}</div>'
    if len(outages) > OUTAGES:
        content += (
            f'<p class="muted">And {len(outages) - OUTAGES:,} more, '
            f"none of them longer than {duration(outages[OUTAGES].longest)}.</p>"
        )
    return section("outages", "Outages", content)


# What was planned


def _plan(plan: Plan) -> str:
    steps = "".join(
        f"<li><strong>{text(step.id)}</strong>: {text(step.title)}"
        f"<p>{text(step.why)}</p><p>To undo it: {text(step.undo)}</p></li>\n"
        for step in plan.steps
    )
    whole = (
        "<details><summary>The whole plan</summary>"
        # A line break right after <pre> would be swallowed, so give it one to swallow.
        f"<pre>\n{text(plans.text(plan))}</pre></details>"
    )
    content = f'<ol class="steps">{steps}</ol>{_proof(plan.proof)}{whole}'
    return section("plan", "The plan and its proof", content)


def _proof(proof: Proof | None) -> str:
    if proof is None:
        return "<p>The plan has no proof with it.</p>"
    if proof.safe:
        verdict, badge = "passed", "safe"
        told = (
            f"{proof.states:,} states can be reached while it is carried out, stopped, resumed or "
            "undone, and in none of them is a disk lost."
        )
    else:
        verdict, badge = "wrong", "unsafe"
        told = f"{proof.bad_state or 'a bad state'}: {' '.join(proof.story)}"
    return f'<p class="wrap"><span class="badge {verdict}">{badge}</span> {text(told)}</p>'


def _journal(run: Run, where: str) -> str:
    entries = number_of(len(run.entries), "line")
    what = (
        f"<p>All that was done is written down, before it was done, in <code>{text(where)}</code>: "
        f"{entries}.</p>"
        f'<p class="muted wrap">The plan is for the cluster {text(run.plan.fingerprint)}.</p>'
    )
    return section("journal", "The journal", what)


def _table(headings: Iterable[str], rows: str) -> str:
    head = "".join(f'<th scope="col">{heading}</th>' for heading in headings)
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>\n{rows}</tbody></table></div>"
    )
