"""A run as a picture: a lane for each step and node, below one scale of time.

Lanes are inline SVGs side by side with their names, so that lines grow with the page and letters do
not. Where there are too many nodes for that, they are counted over time instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from replant.report.page_parts import text
from replant.report.run_course import Counted, Course, NodeCourse, Span
from replant.report.runs import duration
from replant.report.time_scale import Scale, clock
from replant.report.wording import number_of

ROWS = 60
"""More nodes than these are counted, and not drawn one by one."""
_LANE, _BAR, _TALL = 24, 12, 110
_WIDTH = 1000
_THINNEST = 0.3
"""In percent: what was short is still to be seen."""


def timeline(course: Course, steps: Sequence[str]) -> str:
    """The picture, for steps in this order."""
    drawing = _Drawing(course)
    lanes = [drawing.step(name) for name in steps]
    if len(course.nodes) <= ROWS:
        lanes += [drawing.node(it) for it in course.nodes.values()]
    else:
        lanes += drawing.counted()
    return f'<div class="lanes">{"".join(lanes)}{drawing.axis()}</div>\n{_legend(course)}'


class _Drawing:
    def __init__(self, course: Course) -> None:
        self._course = course
        self._scale = Scale(course.start, course.end, course.pauses)
        self._ticks = list(self._scale.ticks())
        marks = [_line("grid", it.x) for it in self._ticks]
        marks += [self._rect("pause", it, "100%") for it in course.pauses]
        marks += [_line("turn", self._scale.x(it)) for it in course.turned]
        self._behind = "".join(marks)

    def step(self, name: str) -> str:
        spans = self._course.steps.get(name, [])
        bars = "".join(self._rect("step" if it.is_over else "step broken", it) for it in spans)
        return self._lane(name, _told_step(spans), bars, "step-name")

    def node(self, node: NodeCourse) -> str:
        bars = "".join(self._rect("out", it) for it in node.out)
        for at, back in node.switches:
            x = self._scale.x(at)
            sort = "switch back" if back else "switch"
            bars += f'<circle class="{sort}" cx="{x:.2f}%" cy="{_LANE // 2}" r="4.5"/>'
        return self._lane(node.name, _told_node(node), bars)

    def counted(self) -> list[str]:
        """Curves instead of lanes."""
        total = len(self._course.nodes)
        return [
            self._curve("nodes switched", self._course.switched, "switched-area", total),
            self._curve("nodes out of service", self._course.out, "out-area", 0),
        ]

    def axis(self) -> str:
        labels = "".join(
            f'<text x="{it.x:.2f}%" y="15" text-anchor="{_anchor(it.x)}">{it.label}</text>'
            for it in self._ticks
        )
        drawn = f'<svg class="axis" width="100%" height="20" aria-hidden="true">{labels}</svg>'
        return f'<span class="lane-name muted">UTC</span>{drawn}'

    def _lane(self, name: str, told: str, bars: str, sort: str = "") -> str:
        label, told = text(name), text(f"{name}: {told}")
        # A title makes browsers show it under the pointer.
        return (
            f'<span class="lane-name {sort}" title="{label}">{label}</span>'
            f'<svg role="img" aria-label="{told}" width="100%" height="{_LANE}">'
            f"<title>{told}</title>{self._behind}{bars}</svg>"
        )

    def _curve(self, name: str, counts: Sequence[Counted], sort: str, top: int) -> str:
        most = max((it.number for it in counts), default=0)
        path = self._path(_thinned(counts, self._scale), max(top, most, 1))
        told = text(f"{name}: {most:,} at most")
        return (
            f'<span class="lane-name step-name">{name}<br><span class="muted">{most:,} at most'
            f'</span></span><svg role="img" aria-label="{told}" width="100%" height="{_TALL}">'
            f"<title>{told}</title>{self._behind}"
            f'<svg class="{sort}" width="100%" height="{_TALL}" viewBox="0 0 {_WIDTH} 100" '
            f'preserveAspectRatio="none"><path d="{path}"/></svg></svg>'
        )

    def _path(self, counts: Iterable[Counted], top: int) -> str:
        parts, height = ["M0 100"], 100.0
        for at, number in counts:
            x = self._scale.x(at) * _WIDTH / 100
            parts.append(f"L{x:.1f} {height:.1f}")
            height = 100 - 97 * number / top
            parts.append(f"L{x:.1f} {height:.1f}")
        return "".join((*parts, f"L{_WIDTH} {height:.1f}L{_WIDTH} 100Z"))

    def _rect(self, sort: str, span: Span, height: str = "") -> str:
        x = self._scale.x(span.start)
        width = max(self._scale.x(span.end) - x, _THINNEST)
        x = min(x, 100 - width)
        place = f'y="0" height="{height}"' if height else f'y="6" height="{_BAR}" rx="2"'
        return f'<rect class="{sort}" x="{x:.2f}%" width="{width:.2f}%" {place}/>'


def _line(sort: str, x: float) -> str:
    return f'<rect class="{sort}" x="{x:.2f}%" y="0" width="1" height="100%"/>'


def _anchor(x: float) -> str:
    return "start" if x < 4 else "end" if x > 96 else "middle"


def _thinned(counts: Sequence[Counted], scale: Scale) -> Iterable[Counted]:
    """The highest of each thin slice, and the last: more could not be seen."""
    slices: dict[int, Counted] = {}
    for it in counts:
        where = int(scale.x(it.at) * 4)
        if where not in slices or it.number >= slices[where].number:
            slices[where] = it
    yield from slices.values()
    yield from counts[-1:]


def _told_step(spans: Sequence[Span]) -> str:
    if not spans:
        return "not begun"
    end = "done" if spans[-1].is_over else "not done"
    return ", ".join(map(_told_span, spans)) + f"; {end}"


def _told_node(node: NodeCourse) -> str:
    told = [f"out of service {_told_span(it)}" for it in node.out]
    told += [f"switched{' back' * it.back} {clock(it.at)}" for it in node.switches]
    return "; ".join(told)


def _told_span(span: Span) -> str:
    return f"{clock(span.start)} to {clock(span.end)} ({duration(span.end - span.start)})"


def _legend(course: Course) -> str:
    entries = [("step", "a step"), ("step broken", "a step that was broken off")]
    if len(course.nodes) <= ROWS:
        entries += [("out", "a node takes no pods"), ("switch", "its kubelet is switched")]
        if course.switched_back:
            entries.append(("switch back", "and switched back"))
    if course.pauses:
        entries.append(("pause", "nobody at work (not to scale)"))
    if course.turned:
        entries.append(("turn", "the turn to undo"))
    keys = "".join(f"<li>{_key(sort)}{name}</li>" for sort, name in entries)
    nodes = number_of(len(course.nodes), "node")
    return f'<ul class="legend" aria-label="What the picture of {nodes} shows">{keys}</ul>'


def _key(sort: str) -> str:
    if sort.startswith("switch"):
        shape = f'<circle class="{sort}" cx="8" cy="7" r="4.5"/>'
    elif sort == "turn":
        shape = '<rect class="turn" x="7" y="0" width="2" height="14"/>'
    else:
        shape = f'<rect class="{sort}" x="0" y="1" width="16" height="12" rx="2"/>'
    return f'<svg width="16" height="14" aria-hidden="true">{shape}</svg>'
