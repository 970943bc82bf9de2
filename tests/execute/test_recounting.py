"""What was done in a run, however often it was written down."""

from __future__ import annotations

from typing import Any

import pytest

from replant.execute.journal import Entry, Mark
from replant.execute.recounting import counted, deeds, let_go, on_this_way

AT = "2026-01-01T00:00:00.000000Z"


def act(name: str, target: str, why: str = "", **more: Any) -> Entry:
    return Entry(at=AT, mark=Mark.ACT, step="roll-nodes", act=name, target=target, why=why, **more)


UNDO = Entry(at=AT, mark=Mark.UNDO)
STOP = Entry(at=AT, mark=Mark.STOP)
CORDON = act("Cordon", "node a")


@pytest.mark.parametrize(
    ("entries", "acts"),
    [
        ([], {}),
        ([STOP], {}),
        ([CORDON, STOP, CORDON, act("Cordon", "node b")], {"Cordon": 2}),
        ([act("Evict", "pod x/db-0", f"to drain {it}") for it in "aab"], {"Evict": 2}),
        (
            [
                act("RestartLeader", "controllers", backup={"holder": it, "version": str(number)})
                for number, it in enumerate("aab")
            ],
            {"RestartLeader": 2},
        ),
        ([CORDON, act("Switch", "node a"), UNDO], {}),
        ([CORDON, UNDO, act("Switch", "node a"), STOP, act("Switch", "node a")], {"Switch": 1}),
    ],
)
def test_acts_are_counted_once_and_on_one_way(entries: list[Entry], acts: dict[str, int]) -> None:
    assert counted(deeds(on_this_way(entries))) == acts


def test_pods_that_were_let_go_are_known_by_their_names() -> None:
    entries = [CORDON, act("Evict", "pod shop/naked", "to drain a"), UNDO]
    assert let_go(deeds(entries)) == {"shop/naked"}
