"""What the server answers, and says, where a client asks for what is not served."""

from __future__ import annotations

import logging

import httpx
import pytest

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


@pytest.mark.parametrize("path", ["/api", "/version", DEPLOYMENTS, "/nowhere"])
def test_a_method_that_nothing_takes_is_refused_with_a_status(
    http: httpx.Client, path: str
) -> None:
    answer = http.options(path)
    said = answer.json()
    assert (answer.status_code, said["kind"], said["code"]) == (405, "Status", 405)
    assert said["reason"] == "MethodNotAllowed"


def test_to_apply_the_status_of_nothing_makes_nothing(http: httpx.Client) -> None:
    wants = {"apiVersion": "apps/v1", "kind": "Deployment", "status": {"replicas": 1}}
    answer = http.patch(
        f"{DEPLOYMENTS}/none/status",
        params={"fieldManager": "me"},
        headers={"content-type": "application/apply-patch+yaml"},
        json=wants,
    )
    assert (answer.status_code, answer.json()["reason"]) == (404, "NotFound")


def test_who_asks_for_exec_is_not_told_of_on_the_terminal(
    http: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    # Whoever has served something in this process may have silenced all of it.
    caplog.set_level(logging.INFO, "uvicorn.error")
    upgrade = {"connection": "Upgrade", "upgrade": "websocket"}
    http.get("/api/v1/namespaces/default/pods/p/exec", headers=upgrade)
    assert not caplog.records
    logging.getLogger("uvicorn.error").error("a real error")
    assert [it.message for it in caplog.records] == ["a real error"]
