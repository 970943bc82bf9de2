"""The way to one API server: kr8s finds the credentials, httpx carries the questions.

This module imports the client library and is itself imported only when a cluster is to be read.
Why both libraries: docs/decisions/0005-kubernetes-client.md.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote, urlencode

import httpx
import yaml
from kr8s._auth import KubeAuth

from replant.cluster.answers import Answer, Request, TryLater, said
from replant.errors import Final, InputError, printable

_BROKEN = (
    OSError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    RuntimeError,
    yaml.YAMLError,
    httpx.InvalidURL,
)
"""What kr8s lets out when a kubeconfig, a file that it names or an exec plugin is at fault."""

_JUST_BACK = 10.0
"""So many seconds after the first answer of a server that was away, its 'you may not' is doubted:
one that starts answers before it has read the rules by which it allows anything."""

_HEADERS = {"Accept": "application/json", "User-Agent": "replant"}


class _Lanes:
    """Clients of one connection each, as many as are needed at once, all with the same credentials.

    A client that has many connections looks at each of them for every request.
    """

    def __init__(self, make: Callable[[], httpx.AsyncClient]) -> None:
        self._make = make
        self._all = [make()]
        self._free = list(self._all)

    @contextmanager
    def one(self) -> Iterator[httpx.AsyncClient]:
        """A client that nobody else uses meanwhile: the one used last, which is still connected."""
        if not self._free:
            self._all.append(self._make())
            self._free.append(self._all[-1])
        client = self._free.pop()
        try:
            yield client
        finally:
            self._free.append(client)

    async def aclose(self) -> None:
        for client in self._all:
            await client.aclose()


@dataclass(frozen=True, slots=True)
class Credentials:
    """A server, and who one is there; of what is given as data there is no file."""

    server: str
    token: str | None = field(repr=False)
    insecure: bool
    ca_path: str | None
    ca_data: str | None
    certificate_path: str | None
    certificate_data: str | None
    private_key_path: str | None
    private_key_data: str | None = field(repr=False)
    proxy_url: str | None


class Connection:
    """One cluster's address, credentials and connections. Use ``open``; then ``aclose``."""

    def __init__(
        self, kubeconfig: str | dict[str, Any] | None, context: str | None, timeout: float
    ) -> None:
        self._source = "given" if isinstance(kubeconfig, dict) else _named(kubeconfig)
        self._context = context
        self._timeout = timeout
        self._renewing = asyncio.Lock()
        self._lanes: list[_Lanes] = []
        """The last have the credentials that are good now."""
        self._away = False
        self._doubtful_until = 0.0
        if (
            isinstance(kubeconfig, str)
            and kubeconfig
            and not Path(kubeconfig).expanduser().is_file()
        ):
            # kr8s would pass over it, and go to whatever cluster it may run in.
            raise InputError("there is no such file", source=f"kubeconfig {self._source}")
        # A namespace is given so that kr8s does not look for one in a current-context that a
        # kubeconfig used with --context need not have.
        # kr8s takes what a file would say as well as its path, but does not say so. Where that
        # names no cluster, it must not go for the one that we run in.
        self._auth = KubeAuth(
            kubeconfig=cast("str | None", kubeconfig),
            context=context,
            namespace="default",
            serviceaccount="" if isinstance(kubeconfig, dict) else None,
        )

    @property
    def server(self) -> str:
        """The address, as the kubeconfig has it."""
        return printable(self._auth.server)

    def credentials(self) -> Credentials:
        """What another client takes to reach the same server as the same user."""
        auth = self._auth
        user, cluster = auth._user, auth._cluster  # noqa: SLF001

        def file(path: object, entry: Mapping[str, Any], name: str) -> str | None:
            return str(path) if path and not entry.get(f"{name}-data") else None

        return Credentials(
            server=auth.server,
            token=(auth.token or "").strip() or None,
            insecure=bool(cluster.get("insecure-skip-tls-verify")),
            ca_path=file(auth.server_ca_file, cluster, "certificate-authority"),
            ca_data=cluster.get("certificate-authority-data"),
            certificate_path=file(auth.client_cert_file, user, "client-certificate"),
            certificate_data=user.get("client-certificate-data"),
            private_key_path=file(auth.client_key_file, user, "client-key"),
            private_key_data=user.get("client-key-data"),
            proxy_url=auth.proxy,
        )

    async def open(self) -> None:
        """Read the credentials, running an exec plugin if need be. Asks the cluster nothing."""
        source = f"kubeconfig {self._source}"
        try:
            await self._auth.reauthenticate()
            if self._context and self._auth.active_context != self._context:
                # kr8s found no kubeconfig, and went for the service account of the pod it is in.
                raise InputError(f"no such file has a context {self._context}", source=source)
            self._lanes.append(_Lanes(await self._maker()))
        except _BROKEN as error:
            raise InputError(_fault(error), source=source) from error
        finally:
            _forget_inline_files(self._auth)

    async def aclose(self) -> None:
        """Close all connections."""
        for lanes in self._lanes:
            await lanes.aclose()

    async def get(self, path: str, params: Mapping[str, str]) -> Answer:
        """Read something."""
        return await self.ask(Request("GET", path, params))

    async def ask(self, request: Request) -> Answer:
        """Ask once, and once more with new credentials if the present ones have expired."""
        lanes = self._lanes[-1]
        answer = await self._send(lanes, request)
        if answer.status == HTTPStatus.UNAUTHORIZED:
            await self._renew(lanes)
            answer = await self._send(self._lanes[-1], request)
        self._doubt(answer)
        return answer

    @asynccontextmanager
    async def lines(
        self, path: str, params: Mapping[str, str]
    ) -> AsyncIterator[tuple[Answer, AsyncIterator[bytes]]]:
        """An answer that goes on for as long as the server likes, line by line.

        One that is not 200 is read as a whole, and has no lines.
        """
        request = Request("GET", path, params)
        lanes = self._lanes[-1]
        async with self._opened(lanes, request) as response:
            if response.status_code != HTTPStatus.UNAUTHORIZED:
                yield await self._begun(response)
                return
        # They have expired, as those of clouds do every few minutes: once more with new ones.
        await self._renew(lanes)
        async with self._opened(self._lanes[-1], request) as response:
            yield await self._begun(response)

    async def _begun(self, response: httpx.Response) -> tuple[Answer, AsyncIterator[bytes]]:
        if response.status_code == HTTPStatus.OK:
            answer = Answer(self.server, HTTPStatus.OK, response.headers, b"")
            return answer, _lines_of(response)
        body = b"".join([piece async for piece in response.aiter_bytes()])
        answer = Answer(self.server, response.status_code, response.headers, body)
        self._doubt(answer)
        return answer, _no_lines()

    def _doubt(self, answer: Answer) -> None:
        """Raise TryLater for a refusal by a server that may not know its rules yet."""
        now = time.monotonic()
        if self._away:
            self._away, self._doubtful_until = False, now + _JUST_BACK
        if answer.status == HTTPStatus.FORBIDDEN and now < self._doubtful_until:
            raise TryLater(f"the answer was {said(answer)}, but it has only just come back")

    async def _renew(self, lanes: _Lanes) -> None:
        async with self._renewing:
            if lanes is self._lanes[-1]:  # else another request has been here meanwhile
                await self.open()

    async def _maker(self) -> Callable[[], httpx.AsyncClient]:
        token = (self._auth.token or "").strip()
        # One for all of them: each of its own would read all certificates that are trusted.
        trust = httpx.create_ssl_context(await self._auth.ssl_context())  # type: ignore[no-untyped-call]
        return partial(
            httpx.AsyncClient,
            base_url=self._auth.server,
            headers={**_HEADERS, "Authorization": f"Bearer {token}"} if token else _HEADERS,
            verify=trust,
            proxy=self._auth.proxy,
            timeout=self._timeout,
        )

    async def _send(self, lanes: _Lanes, request: Request) -> Answer:
        async with self._opened(lanes, request) as response:
            body = b"".join([piece async for piece in response.aiter_bytes()])
        return Answer(self.server, response.status_code, response.headers, body)

    @asynccontextmanager
    async def _opened(self, lanes: _Lanes, request: Request) -> AsyncIterator[httpx.Response]:
        """An answer whose body is still to be read; what breaks it is told in our words.

        An httpx response that holds its body is part of a reference cycle, so bodies would pile up
        while a bulk reader has the garbage collector off. A streamed one does not.
        """
        name = self._auth.tls_server_name
        # Left to httpx, what is asked for would be taken apart and put together three times.
        query = f"?{urlencode(request.params, quote_via=quote)}" if request.params else ""
        try:
            with lanes.one() as client:
                async with client.stream(
                    request.method,
                    f"{self._auth.server.rstrip('/')}{request.path}{query}",
                    content=request.body or None,
                    headers={"Content-Type": request.content_type} if request.body else {},
                    extensions={"sni_hostname": name} if name else {},
                ) as response:
                    yield response
        except (httpx.UnsupportedProtocol, httpx.LocalProtocolError, httpx.InvalidURL) as error:
            raise Final(f"{self.server}: cannot be asked: {printable(str(error))}") from error
        except httpx.TimeoutException as error:
            self._away = True
            raise TryLater(f"there was no answer within {self._timeout:g} s") from error
        except httpx.RequestError as error:
            self._away = True
            raise self._failure(error) from error

    def _failure(self, error: httpx.RequestError) -> Exception:
        root = _system_error(error)
        if isinstance(root, ssl.SSLCertVerificationError):
            return Final(
                f"{self.server}: its certificate cannot be trusted: {root.verify_message}; "
                f"check server and certificate-authority in the kubeconfig {self._source}"
            )
        why = _words(root) if root else str(error)
        return TryLater(
            f"the connection failed: {printable(why or type(error).__name__)}",
            hint=f"check the network, and the server in the kubeconfig {self._source}",
        )


def _named(kubeconfig: str | None) -> str:
    return printable(kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config")


async def _lines_of(response: httpx.Response) -> AsyncIterator[bytes]:
    """The lines as bytes: in a text there are other ends of lines, which JSON may well hold."""
    rest = b""
    async for piece in response.aiter_bytes():
        *whole, rest = (rest + piece).split(b"\n")
        for line in filter(None, whole):
            yield line
    if rest:
        yield rest


async def _no_lines() -> AsyncIterator[bytes]:
    return
    yield


def _system_error(error: BaseException | None) -> OSError | None:
    """What the operating system or TLS said, below the vaguer words of anyio and httpx.

    httpcore takes the cause off its errors on their way; the context is still there.
    """
    while error:
        if isinstance(error, OSError) and error.errno:
            return error
        if isinstance(error, BaseExceptionGroup):  # one for each address of the server's name
            error = error.exceptions[0]
        else:
            error = error.__cause__ or error.__context__
    return None


def _words(error: OSError) -> str | None:
    if isinstance(error, ssl.SSLError | socket.gaierror) or error.errno is None:
        return error.strerror  # their numbers are their own
    return os.strerror(error.errno)  # asyncio's says 'Connect call failed' whatever the reason


def _fault(error: Exception) -> str:
    """What is wrong with a kubeconfig, in words."""
    if isinstance(error, yaml.YAMLError):
        return f"is not YAML: {' '.join(str(error).split())}"
    if isinstance(error, KeyError):
        return f"is incomplete: {error} is missing"
    if isinstance(error, OSError) and error.filename:
        return f"the file or command {error.filename} that it needs: {error.strerror}"
    if isinstance(error, RuntimeError):
        return f"the command that it names for credentials failed: {' '.join(str(error).split())}"
    if isinstance(error, ValueError) and str(error) == "Unable to find valid credentials":
        return "names no cluster, and there is no service account; name one with --kubeconfig"
    return f"cannot be used: {error}"


def _forget_inline_files(auth: KubeAuth) -> None:
    """Remove the temporary files, of a private key above all, that kr8s would leave behind.

    It writes them when a kubeconfig or an exec plugin has keys and certificates inline, and they
    are needed no longer once a client has been made. A file that the kubeconfig names stays.
    """
    user, cluster = auth._user, auth._cluster  # noqa: SLF001
    for name, entry, file in (
        ("client-key", user, auth.client_key_file),
        ("client-certificate", user, auth.client_cert_file),
        ("certificate-authority", cluster, auth.server_ca_file),
    ):
        if file and f"{name}-data" in entry and name not in entry:
            Path(str(file)).unlink(missing_ok=True)
