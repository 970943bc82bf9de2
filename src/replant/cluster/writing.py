"""Writes to a live cluster, each time once: an answer that is lost is not asked for again here."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import quote

import msgspec

from replant.cluster import answers
from replant.cluster.answers import Answer, Request, TryLater
from replant.cluster.live import LiveReader, collection
from replant.cluster.ports import PODS, Resource
from replant.errors import Conflict, EvictionBlocked, Final, Forbidden, Missing, Uncertain
from replant.objects import Object

if TYPE_CHECKING:
    from replant.cluster.connection import Connection

FIELD_MANAGER = "replant"
_MERGE = "application/merge-patch+json"
_STRATEGIC_MERGE = "application/strategic-merge-patch+json"
_APPLY = "application/apply-patch+yaml"
"""JSON is YAML, and the older servers know no other name for it."""
_DONE = (HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.ACCEPTED)


class _Cause(msgspec.Struct):
    reason: str = ""
    message: str = ""


class _Details(msgspec.Struct):
    causes: list[_Cause] = []


class _Status(msgspec.Struct):
    details: _Details = msgspec.field(default_factory=_Details)


class LiveWriter:
    """A Writer to the cluster that a LiveReader reads, over the same connections."""

    def __init__(self, reader: LiveReader, manager: str = FIELD_MANAGER) -> None:
        self._connection: Connection = reader.connection
        self._role = reader.role
        self._managed = {"fieldManager": manager}

    async def create(self, resource: Resource, obj: Object, *, namespace: str = "") -> Object:
        """Make an object; see Writer."""
        path = collection(resource, namespace)
        return await self._write(Request("POST", path, self._managed, msgspec.json.encode(obj)))

    async def rehearse(self, resource: Resource, obj: Object) -> None:
        """See whether an object could be made; see Writer."""
        path, query = collection(resource, ""), {**self._managed, "dryRun": "All"}
        # That there is one of its name is said last, by whoever has nothing else against it.
        with suppress(Conflict):
            await self._write(Request("POST", path, query, msgspec.json.encode(obj)))

    async def patch(
        self, resource: Resource, name: str, patch: Mapping[str, object], *, namespace: str = ""
    ) -> Object:
        """Merge a patch; see Writer."""
        path = _path(resource, name, namespace)
        return await self._write(
            Request("PATCH", path, self._managed, msgspec.json.encode(patch), _MERGE)
        )

    async def apply(
        self, resource: Resource, obj: Object, *, namespace: str = "", rehearsed: bool = False
    ) -> Object:
        """Have an object say what this one says; see Applier."""
        path = _path(resource, str(obj["metadata"]["name"]), namespace)
        query = {**self._managed, "force": "true"}
        query |= {"dryRun": "All", "fieldValidation": "Strict"} if rehearsed else {}
        return await self._write(Request("PATCH", path, query, msgspec.json.encode(obj), _APPLY))

    async def replace(self, resource: Resource, obj: Object, *, namespace: str = "") -> Object:
        """Put an object in the place of the one that was seen; see Applier."""
        path = _path(resource, str(obj["metadata"]["name"]), namespace)
        return await self._write(Request("PUT", path, self._managed, msgspec.json.encode(obj)))

    async def put_status(
        self,
        resource: Resource,
        name: str,
        status: Mapping[str, object],
        *,
        version: str,
        namespace: str = "",
    ) -> Object:
        """Say how an object is; see Applier."""
        path = f"{_path(resource, name, namespace)}/status"
        patch = {"metadata": {"resourceVersion": version}, "status": status}
        body = msgspec.json.encode(patch)
        return await self._write(Request("PATCH", path, self._managed, body, _MERGE))

    async def nudge(self, resource: Resource, name: str, *, namespace: str) -> Object:
        """Send an object an empty patch; see Nudger."""
        path = _path(resource, name, namespace)
        return await self._write(Request("PATCH", path, self._managed, b"{}", _STRATEGIC_MERGE))

    async def delete(
        self, resource: Resource, name: str, *, uid: str, version: str, namespace: str = ""
    ) -> Object:
        """Delete this very object; see Writer."""
        body = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": uid, "resourceVersion": version},
        }
        path = _path(resource, name, namespace)
        return await self._write(Request("DELETE", path, {}, msgspec.json.encode(body)))

    async def evict(self, pod: str, *, namespace: str, uid: str) -> None:
        """Have this very pod leave its node; see Writer."""
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": namespace},
            "deleteOptions": {"preconditions": {"uid": uid}},
        }
        path = f"{_path(PODS, pod, namespace)}/eviction"
        await self._write(Request("POST", path, {}, msgspec.json.encode(body)))

    async def _write(self, request: Request) -> Object:
        try:
            answer = await self._connection.ask(request)
        except TryLater as error:
            raise Uncertain(f"{self._where(request)}: {error.reason}") from error
        if answer.status in _DONE:
            return _object(answer, request)
        raise self._refusal(answer, request)

    def _where(self, request: Request) -> str:
        return f"{self._connection.server}: {request.method} {request.path}"

    def _refusal(self, answer: Answer, request: Request) -> Exception:
        said = f"{self._where(request)}: the answer was {answers.said(answer)}"
        match answer.status:
            case HTTPStatus.NOT_FOUND:
                return Missing(said)
            case HTTPStatus.CONFLICT:
                return Conflict(said)
            case HTTPStatus.TOO_MANY_REQUESTS if budgets := _budgets(answer):
                return EvictionBlocked("; ".join(budgets))
            case HTTPStatus.UNAUTHORIZED | HTTPStatus.FORBIDDEN:
                return Forbidden(f"{said}; {self._role}")
        if answer.status == HTTPStatus.TOO_MANY_REQUESTS or answer.status >= _SERVER_ERRORS:
            return Uncertain(said)
        return Final(said)


_SERVER_ERRORS = HTTPStatus.INTERNAL_SERVER_ERROR


def _path(resource: Resource, name: str, namespace: str) -> str:
    return f"{collection(resource, namespace)}/{quote(name, safe='')}"


def _object(answer: Answer, request: Request) -> Object:
    try:
        return msgspec.json.decode(answer.body, type=dict)
    except msgspec.DecodeError as error:
        # It was done, as its status says, but what has come of it is not known.
        raise Uncertain(f"{answer.server}: {request.method} {request.path}: {error}") from error


def _budgets(answer: Answer) -> list[str]:
    """Which budgets do not let a pod go, in the server's words."""
    try:
        causes = msgspec.json.decode(answer.body, type=_Status).details.causes
    except msgspec.DecodeError:
        return []
    return [it.message for it in causes if it.reason == "DisruptionBudget"]
