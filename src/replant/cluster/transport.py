"""One line to a server: all that a question needs, as it was when the line was made.

Credentials are read anew while other questions are under way, so none of them may look at what is
being read.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import certifi
from yarl import URL

from replant.cluster.answers import Request

SCHEMES = ("https", "http")
_BUFFER = 2**20
"""Bytes of an answer that may wait to be read: a page of a list has several million."""
LONG_HEADER = 2**16
"""Bytes: gateways give longer headers than aiohttp takes by itself, and Keystone longer tokens."""
_HEADERS = {"Accept": "application/json", "User-Agent": "replant"}


@cache
def everybody() -> ssl.SSLContext:
    """Trust in whom this machine trusts, and in whom most do: a bare one trusts nobody."""
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context


class _Connector(aiohttp.TCPConnector):
    """Knows a proxy by other certificates than the server behind it, and shows it none."""

    def __init__(self, trust: ssl.SSLContext, *, proxied: bool) -> None:
        # As many connections as there are questions: those who ask limit themselves.
        super().__init__(limit=0, ssl=trust)
        self._proxied = proxied

    def _get_ssl_context(self, req: aiohttp.ClientRequest) -> ssl.SSLContext | None:
        to_the_proxy = self._proxied and req.proxy is None
        return everybody() if to_the_proxy and req.is_ssl() else super()._get_ssl_context(req)


@dataclass(frozen=True, slots=True)
class Line:
    """A server, who one is there, and connections to it."""

    server: str
    session: aiohttp.ClientSession
    timeout: float
    proxy: URL | None = field(repr=False)  # which may hold a password
    server_name: str | None
    """By which its certificate is known, if that is another than in its address."""
    headers: Mapping[str, str] = field(repr=False)

    @classmethod
    def to(
        cls,
        server: str,
        *,
        token: str,
        trust: ssl.SSLContext | None,
        proxy: str | None,
        server_name: str | None,
        timeout: float,
    ) -> Line:
        """A line to a server; ValueError says what is wrong with an address."""
        if urlsplit(server).scheme not in SCHEMES or not URL(server).host:
            raise ValueError(f"its server {server} does not begin with https:// and a name")
        through = _proxy(proxy or _proxy_for(server))
        session = aiohttp.ClientSession(
            connector=_Connector(trust or everybody(), proxied=through is not None),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(
                total=None, connect=timeout, sock_connect=timeout, sock_read=timeout
            ),
            read_bufsize=_BUFFER,
            max_line_size=LONG_HEADER,
            max_field_size=LONG_HEADER,
        )
        # It would send a DELETE once more over another connection; whoever asked decides that.
        session._retry_connection = False  # noqa: SLF001
        # Not the session's own: those it shows to proxies as well.
        headers = {**_HEADERS, "Authorization": f"Bearer {token}"} if token else _HEADERS
        return cls(server.rstrip("/"), session, timeout, through, server_name, headers)

    async def send(self, request: Request) -> aiohttp.ClientResponse:
        """The head of the answer; its body is still to be read."""
        query = f"?{urlencode(request.params, quote_via=quote)}" if request.params else ""
        kind = {"Content-Type": request.content_type} if request.body else {}
        # Whoever takes nothing more is not waited for longer than whoever says nothing more.
        async with asyncio.timeout(2 * self.timeout):
            return await self.session.request(
                request.method,
                URL(f"{self.server}{request.path}{query}", encoded=True),
                data=request.body or None,
                headers={**self.headers, **kind},
                proxy=self.proxy,
                server_hostname=self.server_name,
                allow_redirects=False,
            )


def _proxy_for(server: str) -> str | None:
    """The proxy that the environment names, as for most other programs."""
    parts = urlsplit(server)
    if proxy_bypass(parts.hostname or "") or proxy_bypass(parts.netloc):
        return None
    proxies = getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")


def _proxy(named: str | None) -> URL | None:
    """A proxy's address; what is wrong with it is said without it, for it may hold a password."""
    if not named:
        return None
    try:
        found = URL(named if "://" in named else f"http://{named}")
    except ValueError:
        found = URL()
    if found.scheme not in SCHEMES or not found.host:
        raise ValueError(
            "the proxy that it or the environment names is no address with http:// or https://"
        )
    return found
