"""The way to one API server: kr8s finds the credentials, aiohttp carries the questions.

This module imports the client library and is itself imported only when a cluster is to be read.
Why both libraries: docs/decisions/0005-kubernetes-client.md.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any, cast

import aiohttp
import yaml
from kr8s._auth import KubeAuth

from replant.cluster.answers import Answer, Request, TryLater, said
from replant.cluster.transport import Line
from replant.errors import Final, InputError, printable

_BROKEN = (
    OSError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    RuntimeError,
    yaml.YAMLError,
)
"""What kr8s lets out when a kubeconfig, a file that it names or an exec plugin is at fault."""

_JUST_BACK = 10.0
"""So many seconds after the first answer of a server that was away, its 'you may not' is doubted:
one that starts answers before it has read the rules by which it allows anything."""


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
        self._lines: list[Line] = []
        """The last has the credentials that are good now."""
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
        return printable(self._lines[-1].server if self._lines else self._auth.server)

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
            self._lines.append(await self._line())
        except _BROKEN as error:
            raise InputError(_fault(error), source=source) from error
        finally:
            _forget_inline_files(self._auth)

    async def aclose(self) -> None:
        """Close all connections."""
        for line in self._lines:
            await line.session.close()

    async def get(self, path: str, params: Mapping[str, str]) -> Answer:
        """Read something."""
        return await self.ask(Request("GET", path, params))

    async def ask(self, request: Request) -> Answer:
        """Ask once, and once more with new credentials if the present ones have expired."""
        line = self._lines[-1]
        answer = await self._send(line, request)
        if answer.status == HTTPStatus.UNAUTHORIZED:
            await self._renew(line)
            answer = await self._send(self._lines[-1], request)
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
        line = self._lines[-1]
        async with await self._opened(line, request) as response:
            if response.status != HTTPStatus.UNAUTHORIZED:
                yield await self._begun(response)
                return
        # They have expired, as those of clouds do every few minutes: once more with new ones.
        await self._renew(line)
        async with await self._opened(self._lines[-1], request) as response:
            yield await self._begun(response)

    async def _begun(self, response: aiohttp.ClientResponse) -> tuple[Answer, AsyncIterator[bytes]]:
        if response.status == HTTPStatus.OK:
            answer = Answer(self.server, HTTPStatus.OK, response.headers, b"")
            return answer, _lines_of(self._pieces(response))
        answer = await self._whole(response)
        self._doubt(answer)
        return answer, _no_lines()

    def _doubt(self, answer: Answer) -> None:
        """Raise TryLater for a refusal by a server that may not know its rules yet."""
        now = time.monotonic()
        if self._away:
            self._away, self._doubtful_until = False, now + _JUST_BACK
        if answer.status == HTTPStatus.FORBIDDEN and now < self._doubtful_until:
            raise TryLater(f"the answer was {said(answer)}, but it has only just come back")

    async def _renew(self, line: Line) -> None:
        async with self._renewing:
            if line is self._lines[-1]:  # else another request has been here meanwhile
                await self.open()

    async def _line(self) -> Line:
        auth = self._auth
        trust = await auth.ssl_context()  # type: ignore[no-untyped-call]
        return Line.to(
            auth.server,
            token=(auth.token or "").strip(),
            trust=None if trust is True else trust,
            proxy=auth.proxy,
            server_name=auth.tls_server_name,
            timeout=self._timeout,
        )

    async def _send(self, line: Line, request: Request) -> Answer:
        async with await self._opened(line, request) as response:
            return await self._whole(response)

    async def _opened(self, line: Line, request: Request) -> aiohttp.ClientResponse:
        with self._in_our_words():
            return await line.send(request)

    async def _whole(self, response: aiohttp.ClientResponse) -> Answer:
        body = b"".join([piece async for piece in self._pieces(response)])
        return Answer(self.server, response.status, response.headers, body)

    async def _pieces(self, response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        with self._in_our_words():
            async for piece in response.content.iter_any():
                yield piece

    @contextmanager
    def _in_our_words(self) -> Iterator[None]:
        """What breaks an answer, as what it means for whoever asked."""
        try:
            yield
        except TimeoutError as error:
            self._away = True
            raise TryLater(f"there was no answer within {self._timeout:g} s") from error
        except (aiohttp.ClientError, OSError) as error:
            self._away = True
            raise self._failure(error) from error
        except ValueError as error:  # a token that is none
            raise Final(f"{self.server}: cannot be asked: {printable(str(error))}") from error

    def _failure(self, error: Exception) -> Exception:
        root = _system_error(error)
        if isinstance(root, ssl.SSLCertVerificationError):
            return Final(
                f"{self.server}: its certificate cannot be trusted: {root.verify_message}; "
                f"check server and certificate-authority in the kubeconfig {self._source}"
            )
        why = _words(root) if root else _said(error)
        return TryLater(
            f"the connection failed: {printable(why or type(error).__name__)}",
            hint=f"check the network, and the server in the kubeconfig {self._source}",
        )


def _named(kubeconfig: str | None) -> str:
    return printable(kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config")


async def _lines_of(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The lines as bytes: in a text there are other ends of lines, which JSON may well hold."""
    rest = b""
    async for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        for line in filter(None, whole):
            yield line
    if rest:
        yield rest


async def _no_lines() -> AsyncIterator[bytes]:
    return
    yield


def _system_error(error: BaseException | None) -> OSError | None:
    """What the operating system or TLS said, below the words of aiohttp."""
    found = None
    while error:
        if isinstance(error, OSError) and error.errno:
            found = error
        if isinstance(error, BaseExceptionGroup):  # one for each address of the server's name
            error = error.exceptions[0]
        else:
            error = error.__cause__ or error.__context__
    return found


def _said(error: Exception) -> str:
    """What aiohttp says, without the addresses that it has asked: a proxy's may hold a password."""
    match error:
        case aiohttp.ClientPayloadError():
            return "the answer broke off"
        case aiohttp.ClientResponseError():
            return f"{error.status} {error.message}"
        case aiohttp.ServerDisconnectedError():
            return str(error)
    return type(error).__name__


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
