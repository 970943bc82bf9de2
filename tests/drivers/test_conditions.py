"""The rules by which conditions come to one, and times without a clock."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replant.drivers.conditions import (
    FALSE,
    GOOD,
    INERTIA,
    TRUE,
    TYPES,
    UNKNOWN,
    Condition,
    clusterwide,
    conditions_of,
    dated,
    no_platform,
    union,
    written,
)
from replant.drivers.stamps import seconds_of, stamp
from replant.objects import Object

NOW = 1_700_000_000.0
WELL = ("AsExpected", "All is well")


def said(kind: str, *conditions: Condition) -> tuple[str, str, str]:
    found = union(kind, conditions)
    return found.status, found.reason, found.message


@pytest.mark.parametrize(
    ("kind", "conditions", "comes_to"),
    [
        ("Available", [Condition("AAvailable", TRUE, "R", "m")], (TRUE, *WELL)),
        ("Degraded", [Condition("ADegraded", FALSE, "R", "m")], (FALSE, *WELL)),
        (
            "Available",
            [
                Condition("BAvailable", FALSE, "Y", "two"),
                Condition("AAvailable", FALSE, "X", "one"),
            ],
            (FALSE, "A_X::B_Y", "AAvailable: one\nBAvailable: two"),
        ),
        # What is bad for certain beats what is not known; both are named.
        (
            "Progressing",
            [
                Condition("AProgressing", UNKNOWN, "U", "?"),
                Condition("BProgressing", TRUE, "T", "!"),
            ],
            (TRUE, "A_U::B_T", "AProgressing: ?\nBProgressing: !"),
        ),
        (
            "Degraded",
            [Condition("ADegraded", UNKNOWN, "Unmanaged", "hands off")],
            (UNKNOWN, "A_Unmanaged", "ADegraded: hands off"),
        ),
        # Every line of a message says whose it is, and good ones are not mentioned.
        (
            "Upgradeable",
            [Condition("AUpgradeable", FALSE, "R", "a\nb"), Condition("BUpgradeable", TRUE)],
            (FALSE, "A_R", "AUpgradeable: a\nAUpgradeable: b"),
        ),
        ("Available", [Condition("ADegraded", TRUE)], (UNKNOWN, "NoData", "")),
    ],
)
def test_union(kind: str, conditions: list[Condition], comes_to: tuple[str, str, str]) -> None:
    assert said(kind, *conditions) == comes_to
    assert said(kind, *reversed(conditions)) == comes_to


@given(st.data())
def test_a_union_is_good_only_if_all_are(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(TYPES))
    statuses = data.draw(st.lists(st.sampled_from((TRUE, FALSE, UNKNOWN)), min_size=1))
    found = union(kind, [Condition(f"P{n}{kind}", it) for n, it in enumerate(statuses)])
    assert (found.status == GOOD[kind]) == (set(statuses) == {GOOD[kind]})
    assert (found.status == UNKNOWN) == (
        UNKNOWN in statuses and set(statuses) <= {UNKNOWN, GOOD[kind]}
    )


def cr(*conditions: Condition) -> Object:
    return {"status": {"conditions": written(conditions)}}


def degraded_since(since: float) -> Object:
    return cr(
        Condition("Available", TRUE, since=since),
        Condition("Progressing", FALSE, since=since),
        Condition("Degraded", TRUE, "Broken", "it is", since=since),
    )


@pytest.mark.parametrize(
    ("age", "status", "reason"),
    [
        (0.0, FALSE, "AsExpected"),
        (INERTIA - 1, FALSE, "AsExpected"),
        (INERTIA, TRUE, "AWSEBSDriver_Broken"),
        (INERTIA + 1, TRUE, "AWSEBSDriver_Broken"),
    ],
)
def test_a_cluster_is_degraded_after_two_minutes(age: float, status: str, reason: str) -> None:
    found, again = clusterwide({"AWSEBSDriver": degraded_since(NOW - age)}, [], NOW)
    degraded = next(it for it in found if it.type == "Degraded")
    assert (degraded.status, degraded.reason) == (status, reason)
    assert again == (INERTIA - age if age < INERTIA else None)


def test_other_conditions_of_a_cluster_do_not_wait() -> None:
    away = cr(Condition("Available", FALSE, "Deploying", "no pod", since=NOW))
    found, _ = clusterwide({"AWSEBSDriver": away}, [], NOW)
    assert found[0] == Condition(
        "Available", FALSE, "AWSEBSDriver_Deploying", "AWSEBSDriverAvailable: no pod", NOW
    )


def test_a_disabled_driver_does_not_count() -> None:
    manila = cr(Condition("Available", FALSE), Condition("Disabled", TRUE))
    ebs = cr(*(Condition(it, GOOD[it]) for it in TYPES))
    found, _ = clusterwide({"ManilaDriver": manila, "AWSEBSDriver": ebs}, [], NOW)
    assert [(it.type, it.status, it.reason) for it in found] == [
        (it, GOOD[it], "AsExpected") for it in TYPES
    ]


def test_a_cluster_without_drivers_is_well() -> None:
    found, again = clusterwide({}, [], NOW)
    assert [(it.status, it.reason, it.message) for it in found] == [
        (GOOD[it], *WELL) for it in TYPES
    ]
    assert again is None


def test_a_cloud_that_is_not_known_yet() -> None:
    first = {it.type: it for it in no_platform([], "not yet", NOW)}
    assert (first["Available"].status, first["Available"].message) == (FALSE, "not yet")
    assert (first["Progressing"].status, first["Progressing"].reason) == (TRUE, "UnknownPlatform")
    assert first["Degraded"].status == FALSE
    later = no_platform([Condition("Available", TRUE, since=NOW - 9)], "not any more", NOW)
    assert later[0] == Condition("Available", TRUE, *WELL, since=NOW - 9)
    assert later[1].status == TRUE


def test_a_condition_keeps_its_date_while_its_status_stays() -> None:
    before = conditions_of(cr(Condition("A", TRUE, "X", since=NOW - 60), Condition("B", TRUE)))
    now = dated(
        [Condition("A", TRUE, "Y"), Condition("B", FALSE), Condition("C", TRUE)], before, NOW
    )
    assert [(it.type, it.since) for it in now] == [("A", NOW - 60), ("B", NOW), ("C", NOW)]


@given(st.integers(0, 253_402_300_799))
def test_stamps_are_those_of_the_calendar(seconds: int) -> None:
    text = stamp(seconds)
    assert text == datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ").zfill(20)
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", None, "yesterday", "2020-01-01", 5])
def test_what_is_no_stamp(text: object) -> None:
    assert seconds_of(text) is None
