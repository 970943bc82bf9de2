"""What a CR says while it cannot be attended to."""

from __future__ import annotations

import pytest

from replant.drivers.conditions import FALSE, TRUE, Condition, phase, written
from replant.drivers.seen import Decision
from replant.drivers.status import failed, whole
from replant.drivers.writes import Status
from replant.objects import Object
from tests.drivers.world import START, World

LATER = START + 60
FOREIGN = phase("ForeignCSIDriver", "is Helm's", degraded=TRUE)
WAITS = phase("WaitingForCredentials", "a secret", available=FALSE)
PART = Condition("CredentialsDegraded", TRUE, "CredentialsMissing", "a secret")


def saying(*told: Condition) -> Object:
    status = {"conditions": written(told)} if told else {}
    return {"metadata": {"resourceVersion": "7"}, "spec": {}, "status": status}


def degraded(status: Status | None) -> tuple[str, str, str]:
    assert status
    (found,) = (it for it in status.status["conditions"] if it["type"] == "Degraded")
    return found["status"], found["reason"], found["message"]


@pytest.mark.parametrize(
    ("told", "reason", "message"),
    [
        ([], "Sync_SyncError", "SyncDegraded: no"),
        (WAITS, "Sync_SyncError", "SyncDegraded: no"),
        (whole([]), "Sync_SyncError", "SyncDegraded: no"),
        (
            whole([PART]),
            "Credentials_CredentialsMissing::Sync_SyncError",
            "CredentialsDegraded: a secret\nSyncDegraded: no",
        ),
        # One cause for all of it is not hidden by another.
        (FOREIGN, "ForeignCSIDriver", "is Helm's"),
    ],
)
def test_it_is_degraded_for_all_that_it_is_degraded_by(
    told: list[Condition], reason: str, message: str
) -> None:
    first = failed(saying(*told), Decision(), "no", LATER)
    assert degraded(first) == (TRUE, reason, message)
    assert first
    types = {it["type"] for it in first.status["conditions"]}
    assert types >= {"Available", "Progressing", "Degraded", "Upgradeable", "SyncDegraded"}
    # The same again is nothing to write, another trouble is.
    now = {**first.object, "status": first.status}
    assert failed(now, Decision(), "no", LATER + 60) is None
    other = failed(now, Decision(), "never", LATER + 60)
    assert degraded(other)[:2] == (TRUE, reason)
    assert other
    (sync,) = (it for it in other.status["conditions"] if it["type"] == "SyncDegraded")
    assert (sync["message"], sync["lastTransitionTime"]) == ("never", "2023-11-14T22:14:20Z")


def test_what_was_decided_of_it_as_it_is_now_holds() -> None:
    cr = saying(*WAITS)
    decided = Status(cr, {"readyReplicas": 1, **saying(*whole([PART]))["status"]})
    held = failed(cr, Decision((decided,)), "no", LATER)
    assert held
    assert held.status["readyReplicas"] == 1
    assert "Credentials_" in degraded(held)[1]
    # Somebody has changed it meanwhile, and it is to be decided about anew.
    cr = {**cr, "metadata": {"resourceVersion": "8"}}
    assert degraded(failed(cr, Decision((decided,)), "no", LATER))[1] == "Sync_SyncError"


def test_it_is_degraded_until_all_has_been_written() -> None:
    """Somebody who undoes what is written would have it change with each turn otherwise."""
    world = World().secret().ask()
    world.settle()
    told = failed(world.cr, Decision(), "it is contested", LATER)
    assert told
    world.write(told)
    (key,) = (it for it in world.objects if it[0] == "DaemonSet")
    del world.objects[key]
    for write in world.decide().writes:
        world.write(write)
    assert key in world.objects
    assert world.conditions()["Degraded"] == ("True", "Sync_SyncError")
    world.settle()
    assert world.conditions()["Degraded"] == ("False", "AsExpected")
