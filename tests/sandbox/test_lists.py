"""Lists over HTTP: those that began too long ago, and what tables say of ages."""

from __future__ import annotations

import httpx
import pytest

from replant.sandbox.api.tables import duration
from replant.sandbox.shelves import SNAPSHOTS

CMS = "/api/v1/namespaces/default/configmaps"


def test_a_list_that_began_too_long_ago_can_go_on_with_what_is_there(http: httpx.Client) -> None:
    for name in "bdf":
        http.post(CMS, json={"metadata": {"name": name}}).raise_for_status()
    first = http.get(CMS, params={"limit": 1}).json()["metadata"]["continue"]
    for number in range(SNAPSHOTS + 1):
        change = {"data": {"n": str(number)}}
        media = {"Content-Type": "application/merge-patch+json"}
        http.patch(f"{CMS}/b", json=change, headers=media).raise_for_status()
        http.get(CMS, params={"limit": 1})
    http.post(CMS, json={"metadata": {"name": "e"}}).raise_for_status()
    expired = http.get(CMS, params={"limit": 1, "continue": first})
    assert (expired.status_code, expired.json()["reason"]) == (410, "Expired")
    rest = http.get(CMS, params={"continue": expired.json()["metadata"]["continue"]}).json()
    assert [it["metadata"]["name"] for it in rest["items"]] == ["d", "e", "f"]


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (-5, "0s"), (0, "0s"), (119, "119s"), (120, "2m"), (125, "2m5s"), (599, "9m59s"),
        (600, "10m"), (3 * 3600 - 1, "179m"), (3 * 3600, "3h"), (3 * 3600 + 60, "3h1m"),
        (8 * 3600, "8h"), (48 * 3600, "2d"), (50 * 3600, "2d2h"), (8 * 86400, "8d"),
        (729 * 86400, "729d"), (730 * 86400, "2y"), (731 * 86400, "2y1d"), (3000 * 86400, "8y"),
    ],
)  # fmt: skip
def test_ages(seconds: int, said: str) -> None:
    assert duration(seconds) == said
