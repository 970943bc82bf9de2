"""A reduced form of what ``make test-faults-small`` does: one fault at each write, in turn."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from replant.cluster.answers import Answer, Request
from replant.errors import Halted
from replant.execute.draining import DrainRules
from replant.execute.patience import Patience
from replant.execute.run import How
from replant.sandbox.resources import NODES, PODS
from tests.faults.injecting import ANSWERS, KILLS, AtWrite, Do, Fault, Process, Weather
from tests.faults.migrations import (
    COMPLETE,
    ENABLE,
    OPENSHIFT,
    OPENSHIFT_CUSTOM,
    UNDO,
    WEATHERS,
)
from tests.faults.stories import (
    Case,
    CasesAt,
    Migration,
    Play,
    Told,
    disturb,
    endure,
    in_loop,
    lived,
)

IN_TURN = (
    *(Case(fault, back=back) for fault in KILLS for back in (False, True)),
    *(Case(fault) for fault in ANSWERS),
    Case(Fault.KILL_AFTER, again=7),
    Case(Fault.KILL_BEFORE, back=True, again=3, turns=True),
)


def in_turn(step: int) -> CasesAt:
    def cases(number: int, _request: Request) -> Iterator[Case]:
        if number % step == 0:
            yield IN_TURN[number // step % len(IN_TURN)]

    return cases


def at(part: str, *cases: Case) -> CasesAt:
    """Cases at the first write to a path with this in it."""
    left = list(cases)

    def at_write(_number: int, request: Request) -> Iterator[Case]:
        if part in f"{request.method} {request.path}":
            yield from left
            left.clear()

    return at_write


def said(told: Told) -> list[str]:
    return [f"{it.case}: {'; '.join(it.problems)[:2000]}" for it in told.bad]


@pytest.mark.parametrize(
    ("migration", "step"),
    [(ENABLE, 3), (UNDO, 8), (COMPLETE, 2)],
    ids=["enable", "undo", "complete"],
)
def test_whatever_becomes_of_a_write_the_end_is_the_same(migration: Migration, step: int) -> None:
    told = disturb(migration, in_turn(step))
    assert said(told) == []
    assert told.unwritten == []
    assert len(told.verdicts) == told.writes // step


KILLED = (
    Case(Fault.KILL_BEFORE), Case(Fault.KILL_AFTER, back=True),
    Case(Fault.KILL_AFTER), Case(Fault.KILL_BEFORE, back=True),
)  # fmt: skip


def test_on_openshift_whoever_is_killed_at_any_write_is_followed_by_another() -> None:
    told = disturb(OPENSHIFT, lambda number, _request: [KILLED[number % len(KILLED)]])
    assert said(told) == []
    assert told.unwritten == []
    assert len(told.verdicts) == told.writes


def test_pools_that_are_held_on_openshift_are_let_go_by_whoever_goes_on() -> None:
    kills = (Case(Fault.KILL_BEFORE), Case(Fault.KILL_AFTER))

    def cases(_number: int, request: Request) -> Iterator[Case]:
        yield from kills if "openshift.io" in request.path else ()

    told = disturb(OPENSHIFT_CUSTOM, cases)
    assert said(told) == []
    assert told.unwritten == []
    assert len(told.verdicts) == 2 * 3  # pools are held, the gates are set, pools go on


@pytest.mark.parametrize("weather", [WEATHERS[2], WEATHERS[7], WEATHERS[-1]], ids=str)
def test_nothing_goes_wrong_with_old_answers_and_lost_events(weather: Weather) -> None:
    told = endure(ENABLE, [weather])
    assert said(told) == []


def test_whoever_resumes_and_is_killed_early_still_goes_all_the_way_back() -> None:
    """Earlier steps are begun once more by then: the last one begun is not the furthest."""
    killed = Case(Fault.KILL_BEFORE, back=True, again=3, turns=True)
    assert said(disturb(ENABLE, at("PUT /sandbox/nodes/workers-2", killed))) == []


@pytest.mark.parametrize("part", ["configmaps", "PATCH /apis/coordination", "eviction"])
def test_a_conflict_that_nobody_caused_is_no_reason_to_stop(part: str) -> None:
    told = disturb(ENABLE, at(part, Case(Fault.CONFLICT)))
    assert said(told) == []
    assert told.resumed == 0


def test_a_cluster_that_is_away_is_waited_for_and_that_is_said() -> None:
    async def story() -> list[str]:
        play = Play(ENABLE)
        await play.come_to_the_start()
        process = play.process(once("eviction", Fault.AWAY))
        assert await lived(play.go(process.ground.applying(), None, back=False)) == ""
        assert not play.watchman.bad
        return process.shown.notes

    assert any("Connection refused; asking again in" in it for it in in_loop(story()))


def test_a_node_that_somebody_else_takes_over_is_not_let_take_pods() -> None:
    """Its cordon was ours; by the time that we would end it, it is theirs."""

    async def story() -> None:
        play = Play(ENABLE)
        await play.come_to_the_start()
        store = play.sandbox.store

        async def at_write(_process: Process, request: Request, do: Do) -> Answer:
            body = msgspec.json.decode(request.body) if "/nodes/workers-0" in request.path else {}
            if body.get("spec") == {"unschedulable": None}:
                node = store.get(NODES, "workers-0")
                del node["metadata"]["annotations"]["replant.dev/cordoned-by"]
                store.update(NODES, node)
            return await do()

        applying = play.process(at_write).ground.applying(how=How(patience=Patience(pods=60)))
        assert play.plan is not None
        with pytest.raises(Halted, match="workers-0 is cordoned and was not before"):
            await applying.begin(play.plan, {})
        assert store.get(NODES, "workers-0")["spec"]["unschedulable"]

    in_loop(story())


def test_a_kubelet_is_not_switched_under_a_pod_that_no_watch_has_told_of() -> None:
    async def story() -> None:
        play = Play(ENABLE)
        await play.come_to_the_start()
        store = play.sandbox.store
        process = play.process(weather=Weather(dropped=1.0, deaf_to="/pods"))

        def comes_unheard() -> None:
            pod = store.get(PODS, "db-2", "default")
            pod["metadata"] = {"name": "late"}
            pod["spec"] |= {"nodeName": "workers-1", "volumes": []}
            store.create(PODS, pod, namespace="default")

        process.shown.when_waiting("detaches (workers-1)", comes_unheard)
        assert play.plan is not None
        how = How(DrainRules(naked_pods=True))
        await process.ground.applying(how=how).begin(play.plan, {})
        assert not store.find(PODS, "late", "default")
        assert not play.watchman.bad

    in_loop(story())


def once(part: str, fault: Fault) -> AtWrite:
    """A fault at the first write to a path with this in it."""
    done: list[Request] = []

    async def at_write(process: Process, request: Request, do: Do) -> Answer:
        if part in request.path and not done:
            done.append(request)
            return await process.suffer(fault, request, do)
        return await do()

    return at_write
