"""What is sent, and to whom: once, to the server that was named, through whatever leads there."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trustme

from replant.cluster import transport
from replant.cluster.connection import Connection
from replant.cluster.live import LiveReader
from replant.cluster.ports import PERSISTENT_VOLUMES, PODS
from replant.cluster.writing import LiveWriter
from replant.errors import Final, InputError, Uncertain, Unreachable
from tests.cluster.api_server import World, hang_up, plain, serving
from tests.cluster.conftest import Cluster, kubeconfig
from tests.cluster.proxies import Proxy, tunnelling
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


def test_neither_a_token_nor_a_password_is_in_the_representation_of_a_line() -> None:
    """Tracebacks and logs show it."""

    async def represented() -> str:
        line = transport.Line.to(
            "https://127.0.0.1:1",
            token="the-token",  # noqa: S106
            trust=None,
            proxy="http://person:the-password@127.0.0.1:2",
            server_name=None,
            timeout=1,
        )
        await line.session.close()
        return repr(line)

    shown = asyncio.run(represented())
    assert "127.0.0.1:1" in shown
    assert "the-token" not in shown
    assert "the-password" not in shown


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


@dataclass
class Secure:
    """A cluster with TLS, and an authority that it has not."""

    world: World
    server: str
    authority: Path
    others: trustme.CA
    folder: Path

    def cluster(self, proxy: str) -> Cluster:
        known = {"certificate-authority": str(self.authority), "proxy-url": proxy}
        user = {"token": "sekrit"}
        config = kubeconfig(self.folder / "secure", self.server, user=user, **known)
        return Cluster(self.world, self.server, config)


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[Secure]:
    authority, others = trustme.CA(), trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.crt")
    world = World(token="sekrit")  # noqa: S106
    world.serve(PATH, "PodList", ["one"])
    with serving(world, tls_of(authority)) as server:
        yield Secure(world, server, tmp_path / "ca.crt", others, tmp_path)


def tls_of(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


def test_a_proxy_is_shown_no_token(secure: Secure) -> None:
    with tunnelling(Proxy()) as proxy:
        assert secure.cluster(f"127.0.0.1:{proxy.port}").read(names(PODS)) == ["one"]
    (told,) = proxy.told
    assert told.startswith(b"CONNECT ")
    assert b"sekrit" not in told
    assert b"authorization" not in told.lower()


def test_a_proxy_has_certificates_of_its_own(
    secure: Secure, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = ssl.create_default_context()
    secure.others.configure_trust(known)
    monkeypatch.setattr(transport, "everybody", lambda: known)
    with tunnelling(Proxy(), tls_of(secure.others)) as proxy:
        assert secure.cluster(f"https://127.0.0.1:{proxy.port}").read(names(PODS)) == ["one"]


@pytest.mark.parametrize(
    ("says", "why"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n", "407 Proxy"),
        (b"", r"there was no answer within 0\.3 s"),
    ],
    ids=["it refuses", "it is silent"],
)
def test_what_a_proxy_says_is_told_without_its_password(
    secure: Secure, says: bytes, why: str
) -> None:
    with tunnelling(Proxy(says=says)) as proxy:
        cluster = secure.cluster(f"http://user:sekritpw@127.0.0.1:{proxy.port}")
        with pytest.raises(Unreachable, match=why) as caught:
            cluster.read(lambda it: it.node_config("n"), timeout=0.3)
    assert "sekritpw" not in f"{caught.value} {cluster.noticed}"


@pytest.mark.parametrize(
    "proxy", ["http://user:sekritpw@127.0.0.1:xx", "socks5://user:sekritpw@h:1", "http://"]
)
def test_a_proxy_that_is_none_is_refused_at_once(secure: Secure, proxy: str) -> None:
    with pytest.raises(InputError, match="the proxy that it or the environment names") as caught:
        secure.cluster(proxy).read(names(PODS))
    assert "sekritpw" not in str(caught.value)


def test_a_port_says_more_exactly_what_goes_without_a_proxy(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.world.serve(PATH, "PodList", ["one"])
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", cluster.server.removeprefix("http://"))
    assert cluster.read(names(PODS)) == ["one"]


def test_headers_may_be_long(cluster: Cluster) -> None:
    body = b'{"kind":"PodList","items":[]}'
    cluster.world.always = plain(200, body, **{"Set-Cookie": "c" * 30_000})
    assert cluster.read(names(PODS)) == []


def test_credentials_that_could_not_be_renewed_once_are_tried_again(cluster: Cluster) -> None:
    cluster.world.serve(PATH, "PodList", ["one"])
    text = cluster.config.read_text()

    async def main() -> list[Any]:
        connection = Connection(str(cluster.config), None, 5)
        await connection.open()
        try:
            cluster.world.token = "another"  # noqa: S105
            cluster.config.write_text("")
            outcomes: list[Any] = []
            with pytest.raises(InputError):
                await connection.get(PATH, {"limit": "1"})
            cluster.config.write_text(text.replace("secret", "another"))
            outcomes.append((await connection.get(PATH, {"limit": "1"})).status)
            return [*outcomes, connection.server]
        finally:
            await connection.aclose()

    assert asyncio.run(main()) == [200, cluster.server]
