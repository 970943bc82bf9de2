"""Who may lead while pods are moved: decided look by look, and from journals of other processes."""

from __future__ import annotations

from typing import Any

import pytest

from replant.errors import Conflict, Missing, ReplantError, Uncertain
from replant.execute.acts import Act, Decision, Evict, RestartLeader, Switch
from replant.execute.actuators import Place, Wanted
from replant.execute.journal import Entry, Mark
from replant.execute.leading import BY_HAND, LOOK, OURS, Leader, Leading, Memory
from replant.execute.remembering import remembered
from replant.execute.timing import read, written
from replant.execute.world import World

STEP = "roll-nodes"
EVICT = Evict(why="to drain n1", namespace="shop", pod="db-0", uid="u", node="n1")
FIRST, SECOND = Leader("host_1", "5"), Leader("host_2", "9")
TAKEN = Leader(OURS, "6")


def leading(memory: Memory | None = None, *, back: bool = False, seconds: float = 1200) -> Leading:
    return Leading(STEP, seconds, 900, memory or Memory(), back=back)


def decided(it: Leading, now: float) -> tuple[bool, list[Act], Decision]:
    decision = Decision()
    held = it.holds_up(now, decision, World())
    return held, decision.acts, decision


def restarted(it: Leading, now: float) -> RestartLeader:
    """It looks, and takes the lead away from whom it sees."""
    assert decided(it, now)[:2] == (True, [LOOK])
    it.learn(FIRST, now)
    held, (act,), _ = decided(it, now)
    assert held
    assert isinstance(act, RestartLeader)
    assert (act.holder, act.version) == (FIRST.holder, FIRST.version)
    return act


def test_nobody_is_restarted_before_a_pod_was_moved() -> None:
    it = leading()
    it.end()
    assert decided(it, 10_000)[:2] == (False, [])
    assert not it.is_pending


def test_at_the_end_another_leads_and_that_is_seen() -> None:
    it = leading()
    it.moved([EVICT], 100)
    assert decided(it, 200)[:2] == (False, [])
    it.end()
    restarted(it, 300)
    it.learn(None, 301)
    it.learn(TAKEN, 302)
    held, acts, decision = decided(it, 303)
    assert (held, acts) == (True, [])
    (wait,) = decision.waits
    assert wait.what == (
        "another kube-controller-manager to lead: the Lease "
        "kube-system/kube-controller-manager was taken from host_1"
    )
    assert decided(it, 304)[1] == [LOOK]
    it.learn(SECOND, 330)
    assert decided(it, 330)[:2] == (False, [])
    assert not it.is_pending


@pytest.mark.parametrize(
    "moves", [EVICT, Switch(why="", place=Place(node="n1"), wanted=Wanted({}))]
)
def test_so_it_is_in_between_once_it_has_been_long(moves: Act) -> None:
    it = leading(seconds=1200)
    it.moved([moves], 100)
    it.moved([moves], 1200)
    assert decided(it, 1299)[0] is False
    restarted(it, 1300)


@pytest.mark.parametrize("outcome", [Conflict("other"), Uncertain("lost"), Missing("gone")])
def test_what_has_failed_is_looked_at_again(outcome: ReplantError) -> None:
    it = leading(back=True)
    restarted(it, 0)
    it.learn(outcome, 1)
    assert decided(it, 1)[1] == [LOOK]
    it.learn(Leader(FIRST.holder, "7"), 1)
    (again,) = decided(it, 1)[1]
    assert isinstance(again, RestartLeader)
    assert again.version == "7"


def test_an_old_answer_tells_nothing() -> None:
    it = leading(back=True)
    restarted(it, 0)
    it.learn(None, 1)
    it.learn(Leader("host_0", "4"), 1)  # who led before the one that was seen
    assert decided(it, 1)[:2] == (True, [])
    assert decided(it, 3)[1] == [LOOK]


def test_without_a_lease_a_person_is_told() -> None:
    it = leading(back=True)
    it.learn(Leader(), 0)
    held, acts, decision = decided(it, 0)
    assert (held, acts, decision.notes) == (False, [], [BY_HAND])


def test_a_lease_that_nobody_holds_is_waited_for() -> None:
    it = leading(back=True)
    it.learn(Leader("", "4"), 0)
    assert decided(it, 0)[:2] == (True, [])
    it.learn(FIRST, 5)
    assert decided(it, 5)[:2] == (False, [])


def test_where_it_does_not_matter_nobody_is_restarted() -> None:
    it = leading(back=True, seconds=0)
    it.moved([EVICT], 0)
    it.end()
    assert decided(it, 9999)[:2] == (False, [])


def entry(at: float, act: str, step: str = STEP, **more: Any) -> Entry:
    return Entry(at=written(at), mark=Mark.ACT, step=step, act=act, **more)


RESTART = entry(50, "RestartLeader", backup={"holder": FIRST.holder, "version": FIRST.version})
JOURNALS: dict[str, tuple[list[Entry], Memory]] = {
    "nothing was done": ([], Memory()),
    "only the controllers were switched": (
        [entry(1, "Switch", "switch-control-plane", target="kube-controller-manager")], Memory(),
    ),
    "pods were moved": (
        [entry(10, "Cordon", target="node n1"), entry(20, "Evict"), entry(30, "Evict")],
        Memory(STEP, 20.0),
    ),
    "kubelets were switched": ([entry(20, "Switch", target="node n1")], Memory(STEP, 20.0)),
    "the platform was asked": ([entry(20, "Switch", target="kubelets")], Memory(STEP, 20.0)),
    "a leader was restarted after that": (
        [entry(20, "Evict"), RESTART], Memory(STEP, None, FIRST.holder, FIRST.version),
    ),
    "and pods were moved after that": (
        [entry(20, "Evict"), RESTART, entry(60, "Evict"), entry(70, "Evict")], Memory(STEP, 60.0),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("entries", "memory"), JOURNALS.values(), ids=JOURNALS)
def test_what_a_journal_tells(entries: list[Entry], memory: Memory) -> None:
    found = remembered(entries)
    assert found == memory
    assert read(written(20)) == 20.0


def test_another_process_counts_from_when_the_first_one_moved_a_pod() -> None:
    it = leading(Memory(STEP, 100.0))
    it.moved([EVICT], 1000)
    assert decided(it, 1299)[0] is False
    restarted(it, 1300)


def test_another_process_sees_whether_what_was_meant_was_done() -> None:
    """The one before it was killed before it could take the lead away, or after that."""
    memory = Memory(STEP, None, FIRST.holder, FIRST.version)
    restarted(leading(memory), 0)

    it = leading(memory)
    it.learn(SECOND, 0)
    assert decided(it, 0)[:2] == (False, [])


@pytest.mark.parametrize(
    ("memory", "back", "begins"),
    [
        (Memory(), True, True),
        (Memory(), False, False),
        (Memory("undo-roll-nodes", 10.0), True, True),
        (Memory(STEP, 10.0), True, False),
    ],
    ids=["a way back", "a way there", "another step moved pods", "this step moved them"],
)
def test_a_way_back_begins_with_a_leader_that_has_forgotten(
    memory: Memory, *, back: bool, begins: bool
) -> None:
    assert decided(leading(memory, back=back), 20)[0] is begins
