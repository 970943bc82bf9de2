"""How a run went, told from its journal: steps, nodes, pauses, and what a person should know.

A journal has what was about to be done, in order, by one process or several. What was then not
done is there again, so of several entries alike the last one counts. Where processes disagree about
the time, because their machines' clocks do, it stands still rather than going back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from replant.execute.journal import Entry, Mark, Run, State
from replant.execute.timing import read
from replant.plan.model import RollNodes

_NODE = "node "


@dataclass(slots=True)
class Span:
    """Something that lasted."""

    start: float
    end: float
    is_over: bool = False
    """Whether it has come to its end, and not only the journal to its."""


class Switched(NamedTuple):
    """The moment at which a kubelet was given other gates."""

    at: float
    back: bool
    """Whether these are the gates that it had at first."""


@dataclass(slots=True)
class NodeCourse:
    """What became of one node."""

    name: str
    out: list[Span] = field(default_factory=list)
    """When it took no pods."""
    switches: list[Switched] = field(default_factory=list)

    @property
    def is_out(self) -> bool:
        """Whether it takes no pods now, by the journal."""
        return bool(self.out) and not self.out[-1].is_over

    @property
    def was_switched_while_out(self) -> bool:
        """Whether its kubelet was switched while it last took no pods."""
        return bool(self.switches) and self.switches[-1].at >= self.out[-1].start


class Happening(NamedTuple):
    """A turn of events, in a sentence."""

    at: float
    what: str


class Counted(NamedTuple):
    """How many there are from a moment on."""

    at: float
    number: int


@dataclass(slots=True)
class Course:
    """All that the picture and the numbers of a report need."""

    start: float
    end: float
    steps: dict[str, list[Span]] = field(default_factory=dict)
    nodes: dict[str, NodeCourse] = field(default_factory=dict)
    """In the order in which they were begun."""
    pauses: list[Span] = field(default_factory=list)
    """When nobody was at work."""
    happenings: list[Happening] = field(default_factory=list)
    turned: list[float] = field(default_factory=list)
    """When it turned back; once at most."""
    switched: list[Counted] = field(default_factory=list)
    out: list[Counted] = field(default_factory=list)
    processes: int = 1
    moved: set[tuple[bool, str, str]] = field(default_factory=set)
    """Each pod that left a node, once: it may have taken several tries, and processes."""
    annotated: set[str] = field(default_factory=set)
    classes: set[str] = field(default_factory=set)

    @property
    def seconds(self) -> float:
        """From its beginning to the journal's last line."""
        return self.end - self.start

    @property
    def most_out(self) -> int:
        """So many nodes took no pods at the same time, at most."""
        return max((it.number for it in self.out), default=0)

    @property
    def ever_switched(self) -> int:
        """Nodes that were given the plan's gates."""
        return sum(any(not it.back for it in node.switches) for node in self.nodes.values())

    @property
    def switched_back(self) -> int:
        """Nodes that were given the gates that they had at first."""
        return sum(any(it.back for it in node.switches) for node in self.nodes.values())


def course_of(run: Run) -> Course:
    """What the journal of a run tells."""
    telling = _Telling(run)
    for entry in run.entries:
        telling.hear(entry)
    return telling.ended()


class _Telling:
    """Goes through the entries, one by one."""

    def __init__(self, run: Run) -> None:
        self._now = read(run.header.started)
        self._course = Course(self._now, self._now)
        self._say(f"Begun by {run.header.by}.")
        rolls = [step.id for step in run.plan.steps if isinstance(step, RollNodes)]
        self._rolls = {*rolls, *(f"undo-{it}" for it in rolls)}
        self._back = False
        self._at_work = True
        self._begun: set[str] = set()
        """Steps that this process has begun; it begins none of them twice."""
        self._open: Span | None = None
        self._acts: dict[str, Callable[[Entry], None]] = {
            "Cordon": self._cordon,
            "Uncordon": self._uncordon,
            "Switch": self._switch,
            "RestartLeader": lambda it: self._say(f"{it.target} is restarted, {it.why}."),
            "Evict": lambda it: self._course.moved.add((self._back, it.target, it.why)),
            "Annotate": lambda it: self._course.annotated.add(it.target),
            "CreateClass": lambda it: self._course.classes.add(it.target),
        }

    def hear(self, entry: Entry) -> None:
        """The next line of the journal."""
        if entry.mark in (Mark.LOST, Mark.SERVED):
            return  # what is seen of others, and nothing that is done
        before, self._now = self._now, max(self._now, read(entry.at))
        self._notice_pause(entry, before)
        match entry.mark:
            case Mark.STEP:
                self._begin_step(entry.step)
            case Mark.STEP_DONE:
                self._end_step(is_over=True)
                if entry.step in self._rolls:
                    self._end_absences()
            case Mark.ACT:
                if act := self._acts.get(entry.act):
                    act(entry)
            case Mark.UNDO:
                self._back = True
                self._course.turned.append(self._now)
                self._say("Turned: from here on it goes back.")
            case Mark.STOP:
                self._say(f"Stopped. {entry.why}")
                self._leave()
            case Mark.END:
                undone = entry.why == State.UNDONE
                what = "everything is taken back" if undone else "every step is done"
                self._say(f"Ended: {what}, and verified.")
                self._leave()

    def ended(self) -> Course:
        """There are no more lines."""
        self._end_step(is_over=False)
        self._course.end = self._now
        for node in self._course.nodes.values():
            if node.is_out:
                node.out[-1].end = self._now
        self._count()
        return self._course

    def _notice_pause(self, entry: Entry, before: float) -> None:
        """Another process begins, whether or not the one before could say that it ended."""
        again = entry.mark is Mark.STEP and entry.step in self._begun
        vanished = self._at_work and (again or entry.mark is Mark.UNDO)
        if self._at_work and not vanished:
            return
        if vanished:
            said = "The process was gone without a word."
            self._course.happenings.append(Happening(before, said))
            if self._open:
                self._open.end, self._open = before, None
        self._course.pauses.append(Span(before, self._now, is_over=True))
        self._course.processes += 1
        self._begun.clear()
        self._at_work = True
        if entry.mark is not Mark.UNDO:
            self._say("Another process went on with it.")

    def _leave(self) -> None:
        self._end_step(is_over=False)
        self._at_work = False

    def _begin_step(self, name: str) -> None:
        self._end_step(is_over=False)
        self._begun.add(name)
        self._open = Span(self._now, self._now)
        self._course.steps.setdefault(name, []).append(self._open)

    def _end_step(self, *, is_over: bool) -> None:
        if self._open:
            self._open.end, self._open.is_over = self._now, is_over
        self._open = None

    # Nodes

    def _cordon(self, entry: Entry) -> None:
        node = self._node(entry)
        if node.is_out and not node.was_switched_while_out:
            node.out[-1].start = self._now
        elif not node.is_out:
            node.out.append(Span(self._now, self._now))

    def _uncordon(self, entry: Entry) -> None:
        for span in self._node(entry).out[-1:]:
            span.end, span.is_over = self._now, True

    def _switch(self, entry: Entry) -> None:
        if not entry.target.startswith(_NODE):
            return
        switches = self._node(entry).switches
        if switches and switches[-1].back == self._back:
            switches.pop()
        switches.append(Switched(self._now, self._back))

    def _end_absences(self) -> None:
        """All nodes are done: one that seems to be out was replaced, or never cordoned."""
        for node in self._course.nodes.values():
            if node.is_out and node.was_switched_while_out:
                node.out[-1].end, node.out[-1].is_over = self._now, True
            elif node.is_out:
                node.out.pop()

    def _count(self) -> None:
        nodes = self._course.nodes.values()
        spans = [span for node in nodes for span in node.out]
        self._course.out = _counted(
            [*((it.start, 1) for it in spans), *((it.end, -1) for it in spans if it.is_over)]
        )
        switches = [switch for node in nodes for switch in node.switches]
        self._course.switched = _counted((it.at, -1 if it.back else 1) for it in switches)

    def _node(self, entry: Entry) -> NodeCourse:
        name = entry.target.removeprefix(_NODE)
        return self._course.nodes.setdefault(name, NodeCourse(name))

    def _say(self, what: str) -> None:
        self._course.happenings.append(Happening(self._now, what))


def _counted(changes: Iterable[tuple[float, int]]) -> list[Counted]:
    """How many there are after each change; those that go first, where it is at the same time."""
    counts, number = [], 0
    for at, more in sorted(changes):
        number = max(number + more, 0)
        counts.append(Counted(at, number))
    return counts
