"""Reads a live cluster. Of all of Replant, only this package knows Kubernetes' URLs; ``writing``
has those that change something.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from replant.cluster import answers
from replant.cluster.answers import Answer, Question
from replant.cluster.ports import EVERYTHING, PODS, Change, Page, Resource, Selected
from replant.errors import Expired, Missing, NotServed, Unreachable

if TYPE_CHECKING:
    from replant.cluster.connection import Connection

PAGE_SIZE = 500
TRIES = 6
"""With the waits between them a quarter of a minute: as long as a failover commonly takes."""

PATIENT = sys.maxsize
"""For those who have begun something, and go on whenever the cluster is there again."""

NODE_TRIES = 2
"""A node that does not answer is no reason to wait: there may be thousands."""

LOG_TRIES = 4
"""It comes from a node, too; but there is one, and somebody waits for what it says."""

RESTARTS = 3
"""A continue token lives five minutes or more; a list that outlives several will not end."""

TIMEOUT = 70.0
"""Longer than the minute after which an API server itself gives a request up, and says so."""

WATCHED = 60
"""Seconds after which a server is asked to end a watch, to be asked anew. Of a kind of which
nothing has changed since it started it tells nothing, not even a bookmark: without an end, that
could not be told from a connection that is dead."""

Sleep = Callable[[float], Awaitable[None]]
Notice = Callable[[str], None]

_SCAN_ROLE = "the role in deploy/rbac/scan.yaml may"
_ROLES = "the role in deploy/rbac/apply.yaml may"
_EVERYONE = "normally system:discovery lets every user do so"
_AGENT_ROLE = "the role in deploy/rbac/kubeadm.yaml may"
_VERSION = re.compile(r"v?(\d+\.\d+\.\d+)")


class _Told(msgspec.Struct):
    """A line of a watch."""

    type: str
    object: msgspec.Raw


_TOLD = msgspec.json.Decoder(_Told)


class _Code(msgspec.Struct):
    code: int = 0
    message: str = ""


class _Version(msgspec.Struct):
    git_version: str = msgspec.field(name="gitVersion")


class _Named(msgspec.Struct):
    name: str = ""


class _Groups(msgspec.Struct):
    groups: list[_Named] | None = None


class _Kinds(msgspec.Struct):
    resources: list[_Named] | None = None


@asynccontextmanager
async def connect(
    kubeconfig: str | dict[str, Any] | None = None,
    context: str | None = None,
    *,
    timeout: float = TIMEOUT,
    tries: int = TRIES,
    sleep: Sleep = asyncio.sleep,
    notice: Notice = lambda _: None,
    role: str = "",
) -> AsyncIterator[LiveReader]:
    """A reader of the cluster that kubectl would talk to; its connections close with the context.

    A kubeconfig is a file's path, or what such a file would say. Reads credentials and asks the
    cluster nothing yet. ``notice`` is told of every wait, so that a person is not left in silence;
    ``role`` says who may do what this user may not. Errors: InputError, for a kubeconfig that
    cannot be used.
    """
    # The client library takes a third of a second to import: --help must not wait for it.
    from replant.cluster.connection import Connection

    connection = Connection(kubeconfig, context, timeout)
    await connection.open()
    try:
        yield LiveReader(connection, sleep, notice, tries, role)
    finally:
        await connection.aclose()


class LiveReader:
    """A Reader of a live cluster. Several lists may be read at once; they share connections."""

    def __init__(
        self,
        connection: Connection,
        sleep: Sleep,
        notice: Notice,
        tries: int = TRIES,
        role: str = "",
    ) -> None:
        self.connection = connection
        self.role = role or _ROLES
        self._lists = role or _SCAN_ROLE
        self._sleep = sleep
        self._notice = notice
        self._tries = tries

    async def get(self, resource: Resource, name: str, *, namespace: str = "") -> bytes:
        """One object as the server sent it; see Reader."""
        path = f"{collection(resource, namespace)}/{quote(name, safe='')}"
        question = Question(path, "get", _called(resource), self.role)
        answer = await self._ask(question)
        if answers.says_missing(answer, name):
            raise Missing(f"{answer.server}: there is no {resource.kind} {name}")
        if answer.status == HTTPStatus.NOT_FOUND:
            raise _not_served(answer, question)
        answers.raise_if_refused(answer, question)
        return answer.body

    async def watch(self, resource: Resource, version: str) -> AsyncIterator[Change]:
        """What changes behind a version; see Reader."""
        question = Question(collection(resource), "watch", _called(resource), self.role)
        params = {
            "watch": "true",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(WATCHED),
        }
        try:
            async with self.connection.lines(question.path, params) as (answer, lines):
                if answer.status == HTTPStatus.GONE:
                    raise Expired(f"{question.what}: version {version} lies too far back")
                answers.raise_if_busy(answer)
                answers.raise_if_refused(answer, question)
                async for line in lines:
                    yield _change(line, question)
        except answers.TryLater as error:
            raise Unreachable(f"{self.connection.server}: {error.reason}") from error

    async def list_pages(
        self, resource: Resource, *, namespace: str = "", selected: Selected = EVERYTHING
    ) -> AsyncIterator[Page]:
        """The pages of one list; see Reader."""
        question = _listing(resource, namespace, self._lists)
        wanted = _wanted(selected)
        token = ""
        restarts = 0
        while True:
            answer = await self._ask(question, {**wanted, **_page_of(token)})
            if token and answer.status == HTTPStatus.GONE:
                restarts += 1
                if restarts > RESTARTS:
                    raise Unreachable(
                        f"{answer.server}: the list of {question.what} expired {restarts} times "
                        "before its last page could be read; try when the cluster is less busy"
                    )
                token = ""
                continue
            if answer.status == HTTPStatus.NOT_FOUND and resource.older:
                resource = replace(resource, version=resource.older, older="")
                question, token = _listing(resource, namespace, self._lists), ""
                continue
            if answer.status == HTTPStatus.NOT_FOUND:
                raise _not_served(answer, question)
            answers.raise_if_refused(answer, question)
            following = answers.continue_token(answer, question)
            if following and following == token:
                raise answers.unusable(answer, question, "continues with itself, for ever")
            yield Page(answer.body, first=not token)
            token = following
            if not token:
                return

    async def server_version(self) -> str:
        """The server's version without prefix or vendor's suffix, such as 1.24.17."""
        everyone = "normally system:public-info-viewer lets every user do so"
        question = Question("/version", "get", "/version", everyone)
        answer = await self._ask(question)
        answers.raise_if_refused(answer, question)
        try:
            version = msgspec.json.decode(answer.body, type=_Version).git_version
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise answers.unusable(answer, question, f"has no version: {error}") from error
        match = _VERSION.match(version)
        if not match:
            raise answers.unusable(answer, question, f"has no version but {version!r}")
        return match[1]

    async def groups(self) -> frozenset[str]:
        """The groups of APIs that the cluster has, which everybody may ask."""
        question = Question("/apis", "get", "/apis", _EVERYONE)
        answer = await self._ask(question)
        answers.raise_if_refused(answer, question)
        try:
            found = msgspec.json.decode(answer.body, type=_Groups).groups or ()
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise answers.unusable(answer, question, f"names no groups: {error}") from error
        return frozenset(it.name for it in found)

    async def plurals(self, api_version: str) -> frozenset[str]:
        """What a group has in one version, such as ``apps/v1``; nothing where it has not that."""
        path = f"/apis/{api_version}"
        question = Question(path, "get", path, _EVERYONE)
        answer = await self._ask(question)
        if answer.status == HTTPStatus.NOT_FOUND:
            return frozenset()
        answers.raise_if_refused(answer, question)
        try:
            found = msgspec.json.decode(answer.body, type=_Kinds).resources or ()
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise answers.unusable(answer, question, f"names no kinds: {error}") from error
        return frozenset(it.name for it in found)

    async def node_config(self, node: str) -> bytes:
        """A kubelet's configz, through the API server."""
        path = f"/api/v1/nodes/{quote(node, safe='')}/proxy/configz"
        without = "the scan role has no nodes/proxy; grant it, or leave --probe-nodes out"
        question = Question(path, "get", "nodes/proxy", without)
        answer = await self._ask(question, tries=NODE_TRIES)
        answers.raise_if_refused(answer, question)
        return answer.body

    async def log(self, pod: str, *, namespace: str) -> bytes:
        """What a pod's container has written; see LogReader."""
        path = f"{collection(PODS, namespace)}/{quote(pod, safe='')}/log"
        question = Question(path, "get", "pods/log", _AGENT_ROLE)
        answer = await self._ask(question, tries=LOG_TRIES)
        if answer.status == HTTPStatus.NOT_FOUND:
            raise Missing(f"{answer.server}: there is no log of Pod {pod}")
        answers.raise_if_refused(answer, question)
        return answer.body

    async def _ask(
        self, question: Question, params: dict[str, str] | None = None, tries: int = 0
    ) -> Answer:
        """Ask until there is an answer that is not 'later'; Unreachable when patience ends."""
        from replant.cluster import retries

        async def ask() -> Answer:
            answer = await self.connection.get(question.path, params or {})
            answers.raise_if_busy(answer)
            return answer

        return await retries.until_answered(
            ask,
            where=f"{self.connection.server}: GET {question.path}",
            tries=tries or self._tries,
            sleep=self._sleep,
            notice=self._notice,
        )


def collection(resource: Resource, namespace: str = "") -> str:
    """The path of a kind's collection, in one namespace or in all."""
    base = f"/apis/{resource.group}" if resource.group else "/api"
    within = f"/namespaces/{quote(namespace, safe='')}" if namespace and resource.namespaced else ""
    return f"{base}/{resource.version}{within}/{resource.plural}"


def _called(resource: Resource) -> str:
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural


def _listing(resource: Resource, namespace: str, role: str) -> Question:
    return Question(collection(resource, namespace), "list", _called(resource), role)


def _not_served(answer: Answer, question: Question) -> NotServed:
    return NotServed(f"{answer.server} does not serve {question.what} at {question.path}")


def _wanted(selected: Selected) -> dict[str, str]:
    wanted = {"fieldSelector": selected.fields, "labelSelector": selected.labels}
    return {name: value for name, value in wanted.items() if value}


def _change(line: bytes, question: Question) -> Change:
    try:
        told = _TOLD.decode(line)
        if told.type != "ERROR":
            return Change(told.type, bytes(told.object))
        error = msgspec.json.decode(told.object, type=_Code)
    except msgspec.DecodeError:
        # The connection ended within a line, or somebody between us and the server spoke.
        raise Unreachable(f"{question.what}: a watch has broken off") from None
    if error.code == HTTPStatus.GONE:
        raise Expired(f"{question.what}: {error.message}")
    raise Unreachable(f"{question.what}: a watch has ended: {error.message}")


def _page_of(token: str) -> dict[str, str]:
    size = {"limit": str(PAGE_SIZE)}
    return {**size, "continue": token} if token else size
