"""Nodes that have joined with other gates since a run was done, by its plan and what nodes list."""

from __future__ import annotations

import pytest

from replant.execute.census_model import Census
from replant.execute.journal import Entry, Header, Mark, Run
from replant.execute.postcheck.joined import JoinedNode, joined
from replant.plan.model import Plan
from tests.execute.nodes import AWS, ENABLE, OFF
from tests.plan.clusters import Kubelet, planned

ON = {"CSIMigrationAWS": True}
EVERYWHERE = frozenset({AWS})
NOWHERE: frozenset[str] = frozenset()


def run_of(plan: Plan, *marks: Mark) -> Run:
    header = Header(id="run", goal=plan.goal, plugins=plan.plugins, started="", by="")
    return Run(header, plan, Census(), [Entry(at="", mark=it) for it in marks])


DONE = run_of(ENABLE, Mark.END)
UNDONE = run_of(ENABLE, Mark.UNDO, Mark.END)
BOTH_KINDS = planned(
    "enable", server="1.24.17", gates=ON, kubelets=[Kubelet(gates=ON), Kubelet(gates=OFF)]
)


@pytest.mark.parametrize(
    ("run", "lists", "expected"),
    [
        pytest.param(DONE, NOWHERE, [JoinedNode("n9", "run", (AWS,), ())], id="old gates"),
        pytest.param(DONE, EVERYWHERE, [], id="new gates"),
        pytest.param(DONE, frozenset({AWS, "kubernetes.io/gce-pd"}), [], id="another plugin"),
        pytest.param(UNDONE, EVERYWHERE, [JoinedNode("n9", "run", (), (AWS,))], id="after an undo"),
        pytest.param(UNDONE, NOWHERE, [], id="old gates after an undo"),
    ],
)
def test_a_node_that_the_plan_does_not_know(
    run: Run, lists: frozenset[str], expected: list[JoinedNode]
) -> None:
    assert [*joined(run, {"n1": NOWHERE, "n9": lists})] == expected


def test_where_the_plan_leaves_nodes_of_both_kinds_nothing_is_said() -> None:
    run = run_of(BOTH_KINDS, Mark.UNDO, Mark.END)
    assert [*joined(run, {"n9": EVERYWHERE})] == []
