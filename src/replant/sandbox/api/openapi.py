"""A small OpenAPI document: which operations take which parameters, and the schemas of definitions.

Built-in kinds are left open on purpose. kubectl merges a kind without a schema by its own
knowledge of it, and checks one with a schema against that.
"""

from __future__ import annotations

import hashlib

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from replant.objects import Object
from replant.sandbox.api import answers, discovery
from replant.sandbox.resources import Registry, Resource

_PROTOBUF = "application/com.github.proto-openapi.spec.v2"
_GVK = "x-kubernetes-group-version-kind"
_INFO = {"title": "Kubernetes", "version": "unversioned"}
_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation", "force")


def v2(registry: Registry, request: Request) -> Response:
    """``/openapi/v2``, as JSON or protobuf."""
    accepted = request.headers.get("accept", "")
    if _PROTOBUF in accepted:
        return Response(_document(registry), media_type=f"{_PROTOBUF}.v1.0+protobuf")
    paths = {
        path: {"patch": _operation(it, {"type": "string"})}
        for it in registry
        if (path := _path(it))
    }
    return answers.value({"swagger": "2.0", "info": _INFO, "paths": paths, "definitions": {}})


def v3_index(registry: Registry) -> Response:
    """``/openapi/v3``: where the document of each version is."""
    paths = {}
    for place in dict.fromkeys(_place(it) for it in registry):
        body = msgspec.json.encode(_v3(registry, place))
        digest = hashlib.sha256(body).hexdigest().upper()
        paths[place] = {"serverRelativeURL": f"/openapi/v3/{place}?hash={digest}"}
    return answers.value({"paths": paths})


def v3(registry: Registry, place: str) -> Response:
    """``/openapi/v3/apis/GROUP/VERSION``."""
    if place not in {_place(it) for it in registry}:
        return discovery.not_there()
    return answers.value(_v3(registry, place))


def _place(resource: Resource) -> str:
    return f"apis/{resource.api_version}" if resource.group else f"api/{resource.version}"


def _path(resource: Resource) -> str:
    if not resource.stored:
        return ""
    scope = "namespaces/{namespace}/" if resource.namespaced else ""
    return f"/{_place(resource)}/{scope}{resource.plural}/{{name}}"


def _kind(resource: Resource) -> Object:
    return {"group": resource.group, "kind": resource.kind, "version": resource.version}


def _operation(resource: Resource, schema: Object) -> Object:
    parameters = [{"in": "query", "name": name, **schema} for name in _PARAMETERS]
    return {
        "parameters": parameters,
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": "patch",
        _GVK: _kind(resource),
    }


def _v3(registry: Registry, place: str) -> Object:
    served = [it for it in registry if _place(it) == place]
    typed = {"schema": {"type": "string", "uniqueItems": True}}
    schemas = {}
    for resource in served:
        if resource.schema is not None:
            reversed_group = ".".join(reversed(resource.group.split(".")))
            name = f"{reversed_group}.{resource.version}.{resource.kind}"
            schemas[name] = {**resource.schema, _GVK: [_kind(resource)]}
    return {
        "openapi": "3.0.0",
        "info": _INFO,
        "paths": {path: {"patch": _operation(it, typed)} for it in served if (path := _path(it))},
        "components": {"schemas": schemas},
    }


# Protobuf, of which the old kubectl knows nothing else: only what is said above is written.


def _document(registry: Registry) -> bytes:
    paths = b"".join(
        _field(2, _field(1, path.encode()) + _field(2, _patch(it)))
        for it in registry
        if (path := _path(it))
    )
    info = _field(1, _INFO["title"].encode()) + _field(2, _INFO["version"].encode())
    return _field(1, b"2.0") + _field(2, info) + _field(8, paths)


def _patch(resource: Resource) -> bytes:
    """A path's item with one operation, its parameters and what it is an operation on."""
    parameters = b"".join(_field(8, _parameter(name)) for name in _PARAMETERS)
    answer = _field(1, _field(1, b"OK"))
    responses = _field(9, _field(1, _field(1, b"200") + _field(2, answer)))
    said = "".join(f"{name}: {value}\n" for name, value in _kind(resource).items() if value)
    if not resource.group:
        said = f'group: ""\n{said}'
    extension = _field(13, _field(1, _GVK.encode()) + _field(2, _field(2, said.encode())))
    return _field(8, parameters + responses + extension)


def _parameter(name: str) -> bytes:
    query = _field(2, b"query") + _field(4, name.encode()) + _field(6, b"string")
    return _field(1, _field(2, _field(3, query)))


def _field(number: int, content: bytes) -> bytes:
    """A field whose content has a length."""
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)
