"""``/sandbox``: what is no part of Kubernetes' API, but of having a cluster in one's hands."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta, Struct, field
from starlette.requests import Request
from starlette.responses import Response

from replant.sandbox.api import answers
from replant.sandbox.controls import Controls
from replant.sandbox.refusals import ApiError, bad_request, method_not_allowed

LONGEST = 86_400.0
"""So many seconds may be lived through in one request: others wait meanwhile."""

_Body = TypeVar("_Body")
_Gates = dict[str, bool | None]


class _Change(Struct, forbid_unknown_fields=True, rename="camel"):
    """What a request asks for; a field that is not known is a mistake."""


class _NodeChange(_Change):
    gates: _Gates = field(default_factory=dict)


class _ComponentChange(_Change):
    gates: _Gates = field(default_factory=dict)
    add_flags: dict[str, str] = field(default_factory=dict)
    remove_flags: dict[str, str] = field(default_factory=dict)


class _ClockChange(_Change):
    run_for: Annotated[float, Meta(ge=0, le=LONGEST)] | None = None
    speed: float | None = None


Handler = Callable[[Controls, Request], Awaitable[Response]]


async def answer(
    controls: Controls | None, request: Request, handlers: dict[str, Handler]
) -> Response:
    """Answer by method; ApiError if it is not known there, or no cluster is."""
    handler = handlers.get("GET" if request.method == "HEAD" else request.method)
    if handler is None:
        raise method_not_allowed()
    if controls is None:
        said = "there is no cluster behind this API: it was brought up without a scenario"
        raise ApiError(409, "Conflict", said)
    return await handler(controls, request)


async def _overview(controls: Controls, _request: Request) -> Response:
    return answers.value(controls.overview())


async def _component(controls: Controls, request: Request) -> Response:
    return answers.value(controls.component(request.path_params["component"]))


async def _switch_component(controls: Controls, request: Request) -> Response:
    asked = await _asked(request, _ComponentChange)
    name = request.path_params["component"]
    done = controls.switch_component(name, asked.gates, asked.add_flags, asked.remove_flags)
    return _begun(done)


async def _node(controls: Controls, request: Request) -> Response:
    return answers.value(controls.node(request.path_params["node"]))


async def _switch_node(controls: Controls, request: Request) -> Response:
    asked = await _asked(request, _NodeChange)
    return _begun(controls.switch_node(request.path_params["node"], asked.gates))


async def _kill(controls: Controls, request: Request) -> Response:
    return _begun(controls.kill(request.path_params["node"]))


async def _revive(controls: Controls, request: Request) -> Response:
    return _begun(controls.revive(request.path_params["node"]))


async def _replace(controls: Controls, request: Request) -> Response:
    asked = await _asked(request, _NodeChange) if await request.body() else _NodeChange()
    return _begun(controls.replace(request.path_params["node"], asked.gates))


async def _copy(controls: Controls, request: Request) -> Response:
    asked = await _asked(request, _NodeChange) if await request.body() else _NodeChange()
    return _begun(controls.copy(request.path_params["node"], asked.gates))


async def _disks(controls: Controls, _request: Request) -> Response:
    return answers.value(controls.disks())


async def _writes(controls: Controls, _request: Request) -> Response:
    return answers.value(controls.writes())


async def _clock(controls: Controls, request: Request) -> Response:
    asked = await _asked(request, _ClockChange)
    if asked.run_for is not None and asked.speed is None:
        return answers.value(controls.run_for(asked.run_for))
    if asked.speed is not None and asked.run_for is None:
        return answers.value(controls.go_at(asked.speed))
    raise bad_request("the body must have either runFor or speed")


async def _asked(request: Request, kind: type[_Body]) -> _Body:
    try:
        return msgspec.json.decode(await request.body(), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise bad_request(f"the body is not what belongs here: {error}") from None


def _begun(done: object) -> Response:
    """What takes its time has begun."""
    return answers.value(done, code=202)


HANDLERS: dict[str, dict[str, Handler]] = {
    "/sandbox": {"GET": _overview},
    "/sandbox/components/{component}": {"GET": _component, "PUT": _switch_component},
    "/sandbox/nodes/{node}": {"GET": _node, "PUT": _switch_node},
    "/sandbox/nodes/{node}/kill": {"POST": _kill},
    "/sandbox/nodes/{node}/revive": {"POST": _revive},
    "/sandbox/nodes/{node}/replace": {"POST": _replace},
    "/sandbox/nodes/{node}/copy": {"POST": _copy},
    "/sandbox/disks": {"GET": _disks},
    "/sandbox/writes": {"GET": _writes},
    "/sandbox/clock": {"POST": _clock},
}
"""Which path and method lead where."""
