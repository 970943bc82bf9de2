from __future__ import annotations

import asyncio
import base64
import datetime as dt
import ipaddress
import json
import ssl
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from replant.cluster import live
from replant.cluster.ports import PODS, SCANNED, Reader
from replant.errors import Final, Forbidden, InputError
from tests.cluster.api_server import World, serving
from tests.cluster.conftest import Cluster, kubeconfig
from tests.cluster.reading import names

PATH = "/api/v1/pods"


@pytest.fixture(autouse=True)
def _one_pod(cluster: Cluster) -> None:
    cluster.world.serve(PATH, "PodList", ["one"])


async def never(seconds: float) -> None:
    raise AssertionError(f"there was no reason to sleep {seconds} s")


def read(config: str | None = None, context: str | None = None) -> list[str]:
    async def main() -> list[str]:
        async with live.connect(config, context, sleep=never) as reader:
            return await names(PODS)(reader)

    return asyncio.run(main())


# Which cluster


def test_a_file_that_is_named(cluster: Cluster) -> None:
    assert read(str(cluster.config)) == ["one"]
    assert cluster.world.asked[0].authorization == "Bearer secret"


def test_connecting_asks_nothing(cluster: Cluster) -> None:
    async def nothing(_: Reader) -> None:
        pass

    cluster.read(nothing)
    assert not cluster.world.asked


def test_files_of_the_environment_are_merged(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = kubeconfig(tmp_path / "other", "http://127.0.0.1:1", user={})
    other.write_text(other.read_text().replace("here", "there").replace("name: c", "name: d"))
    monkeypatch.setenv("KUBECONFIG", f"{other}:{cluster.config}:{tmp_path / 'missing'}")
    assert read(context="here") == ["one"]


def test_the_default_file(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    cluster.config.rename(tmp_path / ".kube" / "config")
    assert read() == ["one"]


def test_a_context_that_is_named_needs_no_current_one(cluster: Cluster) -> None:
    config = yaml.safe_load(cluster.config.read_text())
    del config["current-context"]
    cluster.config.write_text(yaml.safe_dump(config))
    assert read(str(cluster.config), "here") == ["one"]


def test_a_server_below_a_path(cluster: Cluster, tmp_path: Path) -> None:
    cluster.world.serve(f"/k8s/clusters/c1{PATH}", "PodList", ["below"])
    server = f"{cluster.server}/k8s/clusters/c1"
    config = kubeconfig(tmp_path / "below", server, user={"token": "secret"})
    assert read(str(config)) == ["below"]


def test_a_user_without_credentials(cluster: Cluster) -> None:
    cluster.world.token = ""
    kubeconfig(cluster.config, cluster.server, user={})
    assert read(str(cluster.config)) == ["one"]
    assert cluster.world.asked[0].authorization == ""


# What is wrong with it


def test_a_missing_file() -> None:
    with pytest.raises(InputError, match=r"kubeconfig /no/such: there is no such file"):
        read("/no/such")


def test_nothing_to_go_by() -> None:
    with pytest.raises(InputError, match=r"kubeconfig ~/\.kube/config: .*"):
        read()


def test_an_unknown_context(cluster: Cluster) -> None:
    with pytest.raises(InputError, match="No such context elsewhere"):
        read(str(cluster.config), "elsewhere")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot be used"),
        ("[]", "cannot be used"),
        ("a: [", "is not YAML"),
        ("current-context: x", "Context x not found"),
        ("contexts: []", "'current-context' is missing"),
        ("\x00", "is not YAML"),
    ],
)
def test_a_file_that_is_no_kubeconfig(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "odd"
    file.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        read(str(file))
    assert caught.value.__cause__ is not None


@pytest.mark.parametrize(
    ("server", "message"),
    [
        ("ftp://x", "cannot be used: its server ftp://x does not begin with https:// and a name"),
        (
            "example.org",
            "cannot be used: its server example.org does not begin with https:// and a name",
        ),
        ("http://127.0.0.1:x", "cannot be used: .*port"),
    ],
)
def test_a_server_that_is_no_address(tmp_path: Path, server: str, message: str) -> None:
    config = kubeconfig(tmp_path / "odd", server, user={"token": "t"})
    with pytest.raises(Final, match=message):
        read(str(config))


# Exec plugins


def plugin(file: Path, script: str) -> dict[str, Any]:
    file.write_text(script)
    version = "client.authentication.k8s.io/v1"
    return {"exec": {"apiVersion": version, "command": sys.executable, "args": [str(file)]}}


def tokens(tmp_path: Path) -> dict[str, Any]:
    """A plugin whose tokens are run-1, run-2 and so on."""
    runs = tmp_path / "runs"
    return plugin(
        tmp_path / "plugin.py",
        "import json, pathlib\n"
        f"runs = pathlib.Path({str(runs)!r})\n"
        "count = int(runs.read_text()) + 1 if runs.exists() else 1\n"
        "runs.write_text(str(count))\n"
        "print(json.dumps({'status': {'token': f'run-{count}'}}))\n",
    )


def test_a_plugin_runs_once_and_again_when_its_token_has_expired(
    cluster: Cluster, tmp_path: Path
) -> None:
    kubeconfig(cluster.config, cluster.server, user=tokens(tmp_path))
    cluster.world.token = "run-1"  # noqa: S105
    for resource in SCANNED:
        cluster.world.serve(live.collection(resource), f"{resource.kind}List", ["one"])

    async def twice(reader: Reader) -> None:
        for token in ("run-1", "run-2"):
            cluster.world.token = token
            await asyncio.gather(*(names(resource)(reader) for resource in SCANNED))

    cluster.read(twice)
    assert (tmp_path / "runs").read_text() == "2"


def test_new_credentials_that_are_no_better_are_refused(cluster: Cluster, tmp_path: Path) -> None:
    kubeconfig(cluster.config, cluster.server, user=tokens(tmp_path))
    cluster.world.token = "never"  # noqa: S105
    with pytest.raises(Forbidden, match="credentials were not accepted"):
        read(str(cluster.config))
    assert [asked.authorization for asked in cluster.world.asked] == [
        "Bearer run-1", "Bearer run-2",
    ]  # fmt: skip


def test_a_watch_goes_on_with_new_credentials_when_the_old_have_expired(
    cluster: Cluster, tmp_path: Path
) -> None:
    kubeconfig(cluster.config, cluster.server, user=tokens(tmp_path))
    cluster.world.documents[PATH] = b'{"type": "BOOKMARK", "object": {}}\n'
    cluster.world.token = "run-2"  # noqa: S105

    async def watch(reader: Reader) -> list[str]:
        return [change.type async for change in reader.watch(PODS, "7")]

    assert cluster.read(watch) == ["BOOKMARK"]
    cluster.world.token = "never"  # noqa: S105
    with pytest.raises(Forbidden, match="credentials were not accepted"):
        cluster.read(watch)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("import sys; sys.exit('please\\nlog in')", "credentials failed: .*please log in"),
        ("print('hello')", "cannot be used"),
        ("print('{}')", "'status' is missing"),
        ("print('{\"status\": {}}')", "Did not find credentials"),
    ],
)
def test_a_plugin_that_fails(tmp_path: Path, script: str, message: str) -> None:
    user = plugin(tmp_path / "plugin.py", script)
    config = kubeconfig(tmp_path / "exec", "http://127.0.0.1:1", user=user)
    with pytest.raises(InputError, match=message):
        read(str(config))


def test_a_plugin_that_is_not_there(tmp_path: Path) -> None:
    user = plugin(tmp_path / "plugin.py", "")
    user["exec"]["command"] = "replant-no-such-plugin"
    config = kubeconfig(tmp_path / "exec", "http://127.0.0.1:1", user=user)
    with pytest.raises(InputError, match=r"replant-no-such-plugin .*No such file or directory"):
        read(str(config))


# TLS


@dataclass(frozen=True)
class Pair:
    certificate: bytes
    key: bytes

    def inline(self, which: bytes) -> str:
        return base64.b64encode(which).decode()


def self_signed() -> Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "replant")])
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    plain = serialization.NoEncryption()
    traditional = serialization.PrivateFormat.PKCS8
    return Pair(certificate.public_bytes(pem), key.private_bytes(pem, traditional, plain))


@dataclass(frozen=True)
class Secure:
    server: str
    pair: Pair
    temporary: Path


@pytest.fixture
def secure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Secure]:
    """A server that wants a client's certificate; the same self-signed pair does for both."""
    pair = self_signed()
    file = tmp_path / "pair.pem"
    file.write_bytes(pair.certificate + pair.key)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(file)
    tls.load_verify_locations(file)
    tls.verify_mode = ssl.CERT_REQUIRED
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    world = World()
    world.serve(PATH, "PodList", ["behind TLS"])
    with serving(world, tls) as server:
        yield Secure(server, pair, temporary)


def test_inline_keys_are_used_and_not_left_behind(secure: Secure, tmp_path: Path) -> None:
    pair = secure.pair
    user = {
        "client-certificate-data": pair.inline(pair.certificate),
        "client-key-data": pair.inline(pair.key),
    }
    authority = {"certificate-authority-data": pair.inline(pair.certificate)}
    config = kubeconfig(tmp_path / "tls", secure.server, user=user, **authority)
    assert read(str(config)) == ["behind TLS"]
    assert not list(secure.temporary.iterdir())


def test_a_plugin_s_keys_are_used_and_not_left_behind(secure: Secure, tmp_path: Path) -> None:
    pair = secure.pair
    given = {
        "clientCertificateData": pair.certificate.decode(),
        "clientKeyData": pair.key.decode(),
    }
    user = plugin(tmp_path / "plugin.py", f"print({json.dumps({'status': given})!r})")
    authority = {"certificate-authority-data": pair.inline(pair.certificate)}
    config = kubeconfig(tmp_path / "tls", secure.server, user=user, **authority)
    assert read(str(config)) == ["behind TLS"]
    assert not list(secure.temporary.iterdir())


def test_keys_in_files_are_used_and_stay(secure: Secure, tmp_path: Path) -> None:
    (tmp_path / "client.crt").write_bytes(secure.pair.certificate)
    (tmp_path / "client.key").write_bytes(secure.pair.key)
    user = {"client-certificate": "client.crt", "client-key": "client.key"}
    authority = {"certificate-authority": "client.crt"}
    config = kubeconfig(tmp_path / "tls", secure.server, user=user, **authority)
    assert read(str(config)) == ["behind TLS"]
    assert (tmp_path / "client.key").exists()


def test_a_broken_certificate_leaves_no_key_behind(secure: Secure, tmp_path: Path) -> None:
    user = {
        "client-certificate-data": base64.b64encode(b"broken").decode(),
        "client-key-data": secure.pair.inline(secure.pair.key),
    }
    config = kubeconfig(tmp_path / "tls", secure.server, user=user)
    with pytest.raises(InputError, match="cannot be used"):
        read(str(config))
    assert not list(secure.temporary.iterdir())


def test_a_server_that_cannot_be_trusted_is_asked_once(secure: Secure, tmp_path: Path) -> None:
    config = kubeconfig(tmp_path / "tls", secure.server, user={"token": "t"})
    with pytest.raises(Final, match="certificate cannot be trusted: self-signed certificate"):
        read(str(config))


def test_a_missing_authority_file(secure: Secure, tmp_path: Path) -> None:
    authority = {"certificate-authority": "/no/such/ca.crt"}
    config = kubeconfig(tmp_path / "tls", secure.server, user={"token": "t"}, **authority)
    with pytest.raises(InputError, match="No such file or directory"):
        read(str(config))
