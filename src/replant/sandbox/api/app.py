"""The door: which path and method lead where."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from replant.sandbox.api import (
    answers,
    asking,
    controls,
    discovery,
    openapi,
    pods,
    reading,
    scaling,
    watching,
    writing,
)
from replant.sandbox.api.asking import Target
from replant.sandbox.controls import Controls
from replant.sandbox.refusals import ApiError, method_not_allowed, nothing_there
from replant.sandbox.resources import ACCESS_REVIEWS, NAMESPACES, Registry
from replant.sandbox.store import Store

METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
_EVERYTHING = ["*"]


class _Trimmed:
    """A slash at the end of a path means nothing."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        if path.endswith("/") and path != "/":
            scope = {**scope, "path": path.rstrip("/")}
        await self._app(scope, receive, send)


class Api:
    """The API of one store."""

    def __init__(self, store: Store, registry: Registry, version: str) -> None:
        self._store = store
        self._registry = registry
        self._first_version = version
        self.bell = watching.Bell(store)
        self.controls: Controls | None = None
        """Of the cluster behind it, once there is one."""

    @property
    def version(self) -> str:
        """Which Kubernetes it passes for by now."""
        return self.controls.version if self.controls else self._first_version

    def app(self) -> Starlette:
        """What a server runs."""
        return Starlette(
            middleware=[Middleware(_Trimmed)],
            exception_handlers={HTTPException: _not_allowed, Exception: _internal_error},
            routes=[
                Route("/api", self._answered(self._core), methods=["GET"]),
                Route("/apis", self._answered(self._groups), methods=["GET"]),
                Route("/apis/{group}", self._answered(self._group), methods=["GET"]),
                Route("/api/{version}", self._answered(self._resources), methods=["GET"]),
                Route("/apis/{group}/{version}", self._answered(self._resources), methods=["GET"]),
                Route("/api/{version}/{path:path}", self._answered(self._objects), methods=METHODS),
                Route(
                    "/apis/{group}/{version}/{path:path}",
                    self._answered(self._objects),
                    methods=METHODS,
                ),
                Route("/openapi/v2", self._answered(self._openapi), methods=["GET"]),
                Route("/openapi/v3", self._answered(self._openapi_index), methods=["GET"]),
                Route("/openapi/v3/{path:path}", self._answered(self._openapi3), methods=["GET"]),
                Route("/version", self._answered(self._versions), methods=["GET"]),
                *(
                    Route(path, self._answered(self._health), methods=["GET"])
                    for path in ("/readyz", "/livez", "/healthz")
                ),
                *(
                    Route(path, self._answered(partial(self._control, path)), methods=METHODS)
                    for path in controls.HANDLERS
                ),
                Route("/sandbox/{path:path}", self._answered(self._no_control), methods=METHODS),
                Route("/{path:path}", self._answered(self._nothing), methods=METHODS),
            ],
        )

    @staticmethod
    def _answered(
        handler: Callable[[Request], Awaitable[Response]],
    ) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            try:
                return await handler(request)
            except ApiError as error:
                return answers.refusal(error)

        return endpoint

    async def _core(self, request: Request) -> Response:
        return discovery.core_versions(self._registry, request)

    async def _groups(self, request: Request) -> Response:
        return discovery.groups(self._registry, request)

    async def _group(self, request: Request) -> Response:
        return discovery.group(self._registry, request.path_params["group"])

    async def _resources(self, request: Request) -> Response:
        group = request.path_params.get("group", "")
        return discovery.resources(self._registry, group, request.path_params["version"])

    async def _openapi(self, request: Request) -> Response:
        return openapi.v2(self._registry, request)

    async def _openapi_index(self, _request: Request) -> Response:
        return openapi.v3_index(self._registry)

    async def _openapi3(self, request: Request) -> Response:
        return openapi.v3(self._registry, request.path_params["path"])

    async def _versions(self, _request: Request) -> Response:
        return discovery.version(self.version)

    async def _health(self, _request: Request) -> Response:
        return discovery.health()

    async def _control(self, path: str, request: Request) -> Response:
        return await controls.answer(self.controls, request, controls.HANDLERS[path])

    async def _no_control(self, _request: Request) -> Response:
        raise nothing_there()

    async def _nothing(self, _request: Request) -> Response:
        return discovery.not_there()

    async def _objects(self, request: Request) -> Response:
        group, version = request.path_params.get("group", ""), request.path_params["version"]
        if version not in self._registry.versions(group):
            return discovery.not_there()
        target = asking.target(self._registry, group, version, request.path_params["path"])
        if not target.resource.stored:
            return await self._review(request, target)
        if target.subresource:
            return await self._below(request, target)
        if target.name:
            return await self._one(request, target)
        return await self._many(request, target)

    async def _many(self, request: Request, target: Target) -> Response:
        match request.method:
            case "GET" | "HEAD" if asking.truth(request, "watch"):
                return watching.watch(self._store, self.bell, request, target)
            case "GET" | "HEAD":
                return reading.list_page(self._store, request, target)
            case "POST" if target.namespace or not target.resource.namespaced:
                return await writing.create(self._store, request, target)
            case "DELETE" if _is_collection(target):
                return await writing.delete_collection(self._store, request, target)
        raise method_not_allowed()

    async def _one(self, request: Request, target: Target) -> Response:
        match request.method:
            case "GET" | "HEAD" if asking.truth(request, "watch"):
                return watching.watch(self._store, self.bell, request, target)
            case "GET" | "HEAD":
                return reading.get(self._store, request, target)
            case "PUT":
                return await writing.replace_object(self._store, request, target)
            case "PATCH":
                return await writing.patch(self._store, request, target)
            case "DELETE":
                return await writing.delete(self._store, request, target)
        raise method_not_allowed()

    async def _below(self, request: Request, target: Target) -> Response:
        match request.method, target.subresource:
            case "POST", "eviction":
                return await pods.evict(self._store, request, target)
            case "POST", "binding":
                return await pods.bind(self._store, request, target)
            case (("GET" | "PUT" | "PATCH"), "scale"):
                return await scaling.scale(self._store, request, target)
            case "GET", "status":
                return reading.get(self._store, request, target)
            case "PUT", ("status" | "finalize"):
                return await writing.replace_object(self._store, request, target)
            case "PATCH", "status":
                return await writing.patch(self._store, request, target)
        raise method_not_allowed()

    async def _review(self, request: Request, target: Target) -> Response:
        """Everybody may do everything here."""
        if request.method != "POST":
            raise method_not_allowed()
        obj = asking.checked_object(await asking.content(request), target.resource)
        everything = {"verbs": _EVERYTHING}
        obj["status"] = {"allowed": True}
        if target.resource is not ACCESS_REVIEWS:
            obj["status"] = {
                "resourceRules": [
                    {**everything, "apiGroups": _EVERYTHING, "resources": _EVERYTHING}
                ],
                "nonResourceRules": [{**everything, "nonResourceURLs": _EVERYTHING}],
                "incomplete": False,
            }
        return answers.value(obj, code=201)


def _is_collection(target: Target) -> bool:
    """Whether all of it may be deleted at once: not all namespaces, nor what is in all of them."""
    if target.resource is NAMESPACES:
        return False
    return bool(target.namespace) or not target.resource.namespaced


async def _not_allowed(_request: Request, _error: Exception) -> Response:
    """A method that no path takes."""
    return answers.refusal(method_not_allowed())


async def _internal_error(_request: Request, error: Exception) -> Response:
    """A mistake of ours, told in a way that clients understand; the server logs it too."""
    said = f"Internal error occurred: {type(error).__name__}: {error}"
    return answers.refusal(ApiError(500, "InternalError", said, {}))
