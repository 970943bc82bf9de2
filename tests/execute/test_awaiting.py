"""A switch counts by what is seen; what its actuator said is only told if nothing comes of it."""

from __future__ import annotations

from replant.errors import Final, Retryable
from replant.execute.acts import ObservePlace, Switch
from replant.execute.actuators import Place, Replica, Wanted
from replant.execute.awaiting import GRACE, OBSERVE_AGAIN, AwaitedSwitch

PLACE = Place(node="n1")
OBSERVE = ObservePlace(why="", place=PLACE)
SWITCH = Switch(why="", place=PLACE, wanted=Wanted({}))
SEEN = (Replica("n1", {}),)


def test_what_was_seen_before_a_switch_is_looked_at_again() -> None:
    it = AwaitedSwitch()
    assert it.is_to_be_observed(0)
    it.learn(OBSERVE, SEEN, 10)
    assert not it.is_to_be_observed(10 + OBSERVE_AGAIN - 1)
    it.learn(SWITCH, None, 11)
    assert it.is_to_be_observed(11)
    assert (it.switched, it.observed) == (11, SEEN)


def test_a_failure_counts_only_if_nothing_else_is_seen_for_a_while() -> None:
    it = AwaitedSwitch()
    it.learn(SWITCH, Final("the hook has failed"), 100)
    assert it.failure == "the hook has failed"
    assert not it.has_failed(100 + GRACE)
    assert it.has_failed(101 + GRACE)
    it.learn(SWITCH, None, 200)
    assert not it.has_failed(300)


def test_what_may_work_later_is_neither() -> None:
    it = AwaitedSwitch()
    it.learn(SWITCH, Retryable("not now"), 100)
    assert (it.switched, it.failure) == (None, "")
