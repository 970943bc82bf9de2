from __future__ import annotations

import socket
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from replant.cluster import connection, live, retries
from replant.cluster.answers import retry_after
from replant.cluster.ports import PODS
from replant.errors import Forbidden, Unreachable
from tests.cluster.api_server import Fault, World, cut_short, hang_up, plain, silent, status
from tests.cluster.conftest import Cluster, kubeconfig
from tests.cluster.reading import names

PATH = "/api/v1/pods"
TOO_MANY = "too many requests"


@pytest.fixture(autouse=True)
def _one_pod(cluster: Cluster) -> None:
    cluster.world.serve(PATH, "PodList", ["one"])


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry_After": "7"}, 7.0),
        ({"Retry_After": "0"}, 0.0),
        (
            {
                "Retry_After": "Wed, 01 Jul 2026 10:00:30 GMT",
                "Date": "Wed, 01 Jul 2026 10:00:00 GMT",
            },
            30.0,
        ),
        ({"Retry_After": "Wed, 01 Jul 2015 10:00:30 GMT"}, 0.0),
    ],
)
@pytest.mark.parametrize("code", [429, 503])
def test_the_server_s_wish_is_respected(
    cluster: Cluster, headers: dict[str, str], seconds: float, code: int
) -> None:
    cluster.world.script.append(status(code, TOO_MANY, **headers))
    assert cluster.read(names(PODS)) == ["one"]
    assert cluster.slept == [seconds]
    phrase = {429: "Too Many Requests", 503: "Service Unavailable"}[code]
    reason = f"the answer was {code} {phrase}: {TOO_MANY}"
    again = f"asking again in {seconds:.1f} s"
    assert cluster.noticed == [f"{cluster.server}: GET {PATH}: {reason}; {again}"]


@pytest.mark.parametrize(
    "value", ["", "soon", "-1", "1.5", "\u0663", "Wed, 99 Jul 2026 10:00:30 GMT"]
)
def test_a_wish_that_cannot_be_read_is_none(value: str) -> None:
    assert retry_after({"retry-after": value}) is None


def test_a_wish_to_be_left_alone_for_long_is_not_waited_for(cluster: Cluster) -> None:
    cluster.world.always = status(503, "maintenance", Retry_After="3600")
    with pytest.raises(Unreachable, match=r"asked once.*left alone for 3600 s"):
        cluster.read(names(PODS))
    assert not cluster.slept


@pytest.mark.parametrize(
    "fault",
    [status(500, "etcd"), plain(502, b"<html>"), status(504, "x"), cut_short, hang_up,
     plain(200, b"not gzip", **{"Content-Encoding": "gzip"})],
)  # fmt: skip
def test_what_passes_is_waited_for_longer_each_time(cluster: Cluster, fault: Fault) -> None:
    cluster.world.script.extend([fault] * 3)
    assert cluster.read(names(PODS)) == ["one"]
    assert len(cluster.slept) == 3
    for wait, least in zip(cluster.slept, (0.5, 1.0, 2.0), strict=True):
        assert least <= wait <= least + retries.FIRST_WAIT


def test_a_failure_between_pages_repeats_only_that_page(cluster: Cluster) -> None:
    pods = [f"pod-{number}" for number in range(1201)]
    cluster.world.serve(PATH, "PodList", pods)
    cluster.world.script.extend([None, cut_short, None, status(500, "etcd")])
    assert cluster.read(names(PODS)) == pods
    assert [asked.query.get("continue") for asked in cluster.world.asked] == [
        None, "500", "500", "1000", "1000",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (status(503, "no endpoints"), "the answer was 503 Service Unavailable: no endpoints"),
        (plain(599, b"<html>"), "the answer was 599"),
        (cut_short, "the connection failed: the answer broke off"),
        (hang_up, "the connection failed: Server disconnected"),
    ],
)
def test_in_the_end_it_is_unreachable(cluster: Cluster, fault: Fault, why: str) -> None:
    cluster.world.always = fault
    expected = rf"{cluster.server}: GET {PATH}: {why}.*\(asked {live.TRIES} times\)"
    with pytest.raises(Unreachable, match=expected) as caught:
        cluster.read(names(PODS))
    assert caught.value.__cause__ is not None
    assert len(cluster.world.asked) == live.TRIES
    assert len(cluster.slept) == len(cluster.noticed) == live.TRIES - 1
    assert max(cluster.slept) <= retries.LONGEST_WAIT + retries.FIRST_WAIT


def test_a_server_that_says_nothing_is_unreachable(cluster: Cluster) -> None:
    cluster.world.always = silent
    with pytest.raises(Unreachable, match=r"there was no answer within 0\.05 s \(asked 6 times\)"):
        cluster.read(names(PODS), timeout=0.05)


def test_nobody_there(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, and not listening
        server = f"http://127.0.0.1:{taken.getsockname()[1]}"
        config = kubeconfig(tmp_path / "nobody", server, user={"token": "t"})
        expected = rf"{server}: GET {PATH}: .*Connection refused \(asked 6 times\); check .*nobody"
        with pytest.raises(Unreachable, match=expected):
            Cluster(World(), server, config).read(names(PODS))


def test_a_node_is_not_waited_for(cluster: Cluster) -> None:
    cluster.world.always = status(502, "dial tcp: no route to host")
    with pytest.raises(Unreachable, match=r"nodes/n1/proxy/configz.*no route.*asked 2 times"):
        cluster.read(lambda reader: reader.node_config("n1"))


MAY_NOT = status(403, 'pods is forbidden: RBAC: clusterrole "replant-apply" not found')


def test_a_server_that_was_away_may_not_know_its_rules_yet(cluster: Cluster) -> None:
    cluster.world.script.extend([hang_up, MAY_NOT, None])
    assert cluster.read(names(PODS)) == ["one"]
    assert "403 Forbidden: pods is forbidden" in cluster.noticed[-1]
    assert "but it has only just come back; asking again" in cluster.noticed[-1]


def test_it_counts_from_the_first_answer_however_long_nobody_asked(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who has asked in vain for long waits for longer than a server needs to start."""
    asked_every = count(15.0, 15.0)
    clock = SimpleNamespace(monotonic=lambda: next(asked_every))
    monkeypatch.setattr(connection, "time", clock)
    cluster.world.script.extend([hang_up, MAY_NOT, None])
    assert cluster.read(names(PODS)) == ["one"]


def test_a_server_that_was_there_all_the_time_knows_its_rules(cluster: Cluster) -> None:
    cluster.world.script.append(MAY_NOT)
    with pytest.raises(Forbidden):
        cluster.read(names(PODS))


def test_a_server_that_has_been_back_for_long_knows_its_rules(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_JUST_BACK", 0.0)
    cluster.world.script.extend([hang_up, MAY_NOT])
    with pytest.raises(Forbidden):
        cluster.read(names(PODS))
