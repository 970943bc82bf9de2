"""What is sent, and to whom: once, to the server that was named, through whatever leads there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from replant.cluster.live import LiveReader
from replant.cluster.ports import PERSISTENT_VOLUMES, PODS
from replant.cluster.writing import LiveWriter
from replant.errors import Final, Uncertain, Unreachable
from tests.cluster.api_server import World, hang_up, plain, serving
from tests.cluster.conftest import Cluster, kubeconfig
from tests.cluster.reading import names

PATH = "/api/v1/pods"


WRITES: dict[str, Callable[[LiveWriter], Awaitable[object]]] = {
    "DELETE": lambda it: it.delete(PERSISTENT_VOLUMES, "data", uid="u", version="1"),
    "PUT": lambda it: it.replace(PERSISTENT_VOLUMES, {"metadata": {"name": "data"}}),
}


@pytest.mark.parametrize("method", WRITES)
def test_a_write_is_not_sent_again_over_another_connection(cluster: Cluster, method: str) -> None:
    """Others do so, for it should make no difference; but the answer would be another one."""
    cluster.world.serve(PATH, "PodList", ["one"])
    cluster.world.script.extend([None, hang_up, None])

    async def ask(reader: LiveReader) -> None:
        await names(PODS)(reader)  # from here on there is a connection
        with pytest.raises(Uncertain, match="Server disconnected"):
            await WRITES[method](LiveWriter(reader))

    cluster.read(ask)
    assert [it.method for it in cluster.world.asked] == ["GET", method]


def test_a_server_that_points_elsewhere_is_not_followed(cluster: Cluster) -> None:
    """There the token would be given to somebody else."""
    other = World()
    other.serve(PATH, "PodList", ["one"])
    with serving(other) as elsewhere:
        cluster.world.always = plain(302, b"", Location=f"{elsewhere}{PATH}")
        with pytest.raises(Final, match="302 Found"):
            cluster.read(names(PODS))
    assert not other.asked


def test_the_proxy_of_the_environment_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = World()
    proxy.serve(PATH, "PodList", ["one"])
    with serving(proxy) as address:
        monkeypatch.setenv("HTTP_PROXY", address)
        server = "http://cluster.invalid"
        config = kubeconfig(tmp_path / "far", server, user={"token": "t"})
        far = Cluster(proxy, server, config)
        assert far.read(names(PODS)) == ["one"]
        monkeypatch.setenv("NO_PROXY", "cluster.invalid")
        with pytest.raises(Unreachable):
            far.read(names(PODS))
    assert len(proxy.asked) == 1


def test_a_kubeconfig_names_its_own_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = World()
    proxy.serve(PATH, "PodList", ["one"])
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    with serving(proxy) as address:
        server = "http://cluster.invalid"
        user = {"token": "t"}
        config = kubeconfig(tmp_path / "far", server, user=user, **{"proxy-url": address})
        assert Cluster(proxy, server, config).read(names(PODS)) == ["one"]
