"""Runs to report on: journals as the engine writes them, of any length, and with any names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from replant.execute.census_model import Census
from replant.execute.journal import Entry, Header, Mark, Run, State
from replant.execute.outages import Outage
from replant.execute.timing import read, written
from replant.execute.verification import CHECKS, Checked, Outcome
from replant.plan.model import (
    API_VERSION,
    KIND,
    Component,
    ControlPlane,
    GivenGates,
    Goal,
    NodeChange,
    NodeGroup,
    NodeMethod,
    Plan,
    Proof,
    RollNodes,
    SwitchControlPlane,
)
from replant.report.run_page import Witness
from replant.routing import AttachController

BEGIN = "2026-03-02T08:00:00.000000Z"
ON: GivenGates = {"CSIMigrationAWS": True}
OFF: GivenGates = {"CSIMigrationAWS": False}
SWITCH, ROLL = "switch-control-plane", "roll-nodes"
MOVED_PER_NODE = 2


def plan_of(nodes: Sequence[str], at_once: int = 2) -> Plan:
    return Plan(
        api_version=API_VERSION,
        kind=KIND,
        goal=Goal.ENABLE,
        plugins=("kubernetes.io/aws-ebs",),
        platform="generic",
        attach_controller=AttachController.UPSTREAM,
        fingerprint="sha256:0123",
        control_plane=ControlPlane(
            version="1.24.17", gates=OFF, drivers=("ebs.csi.aws.com",), replicas=3
        ),
        groups=(
            NodeGroup(name="workers", version="1.24.17", gates=OFF, drivers=(), nodes=tuple(nodes)),
        ),
        preflight=(),
        steps=(
            SwitchControlPlane(
                id=SWITCH,
                title="Give kube-controller-manager CSIMigrationAWS=true",
                why="They ask each node.",
                done_when="All have it.",
                undo="They get back what they had.",
                components=(Component(name="kube-controller-manager", why="", gates=ON),),
            ),
            RollNodes(
                id=ROLL,
                title=f"Give the kubelets of {len(nodes)} nodes CSIMigrationAWS=true",
                why="Each calls the disk by another name.",
                done_when="All list it.",
                undo="Node by node, in the same way.",
                changes=(NodeChange(group="workers", gates=ON, before=OFF),),
                method=NodeMethod.IN_PLACE,
                drain=True,
                max_unavailable=at_once,
                settle_seconds=10,
                each_node=("Cordon it.",),
            ),
        ),
        proof=Proof(safe=True, bad_state=None, states=3360),
    )


@dataclass
class Story:
    """A journal that is being written, with a clock that each line puts forward."""

    nodes: Sequence[str]
    at_once: int = 2
    by: str = "someone@somewhere"
    now: float = field(default_factory=lambda: read(BEGIN))
    entries: list[Entry] = field(default_factory=list)
    undoing: bool = False

    def __post_init__(self) -> None:
        self.plan = plan_of(self.nodes, self.at_once)

    def run(self) -> Run:
        header = Header(
            id="enable-1", goal="enable", plugins=self.plan.plugins, started=BEGIN, by=self.by
        )
        return Run(header, self.plan, Census(), self.entries)

    def wait(self, seconds: float) -> Story:
        self.now += seconds
        return self

    def mark(self, mark: Mark, *, step: str = "", why: str = "") -> Story:
        self.entries.append(Entry(at=written(self.now), mark=mark, step=step, why=why))
        return self.wait(1)

    def act(self, act: str, target: str, why: str = "") -> Story:
        self.entries.append(
            Entry(at=written(self.now), mark=Mark.ACT, step=ROLL, act=act, target=target, why=why)
        )
        return self.wait(1)

    def switch_control_plane(self) -> Story:
        self.mark(Mark.STEP, step=self._id(SWITCH))
        self.act("Switch", "kube-controller-manager")
        return self.mark(Mark.STEP_DONE, step=self._id(SWITCH))

    def begin_roll(self) -> Story:
        return self.mark(Mark.STEP, step=self._id(ROLL))

    def end_roll(self) -> Story:
        return self.mark(Mark.STEP_DONE, step=self._id(ROLL))

    def take_out(self, node: str) -> Story:
        self.act("Cordon", f"node {node}")
        for number in range(MOVED_PER_NODE):
            self.act("Evict", f"pod shop/db-{node}-{number}", f"to drain {node}")
        return self

    def bring_back(self, node: str) -> Story:
        self.act("Switch", f"node {node}")
        return self.act("Uncordon", f"node {node}")

    def roll(self, *nodes: str) -> Story:
        """So many at a time as the plan allows."""
        for start in range(0, len(nodes), self.at_once):
            together = nodes[start : start + self.at_once]
            for node in together:
                self.take_out(node)
            for node in together:
                self.bring_back(node)
        return self

    def turn(self) -> Story:
        self.mark(Mark.UNDO)
        self.undoing = True
        return self

    def end(self) -> Story:
        return self.mark(Mark.END, why=State.UNDONE if self.undoing else State.DONE)

    def _id(self, step: str) -> str:
        return f"undo-{step}" if self.undoing else step


def whole(nodes: Sequence[str], at_once: int = 2, by: str = "someone@somewhere") -> Story:
    """A run without a hitch."""
    story = Story(nodes, at_once, by).switch_control_plane().begin_roll()
    return story.roll(*nodes).end_roll().end()


def witness(outages: Sequence[Outage] = (), halted: str = "", *, checked: bool = True) -> Witness:
    checks = [Checked(word, Outcome.PASSED, well) for word, (_, well) in CHECKS.items()]
    return Witness(outages, checks if checked else (), "ConfigMaps in replant-system", halted)


def outages(count: int) -> Iterator[Outage]:
    for number in range(count, 0, -1):
        yield Outage(f"StatefulSet shop/db-{number}", f"shop/data-{number}", 1, number, number)
