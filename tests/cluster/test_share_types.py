"""The share types of an OpenStack that is played: who is asked, with what, and what goes wrong."""

from __future__ import annotations

import asyncio
import base64
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn
import yaml
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from replant.cluster.share_types import share_types
from replant.errors import Final, Forbidden, InputError, ReplantError, Unreachable
from replant.sandbox.server import open_port

PASSWORD = "the-secret-of-manila"  # noqa: S105


class OpenStack:
    """Keystone and Manila, as far as they are asked."""

    def __init__(self) -> None:
        self.types = ["fast", "default"]
        self.service = "sharev2"
        self.status = 200
        self.asked: list[Any] = []
        self.address = ""

    async def tokens(self, request: Request) -> Response:
        body = await request.json()
        self.asked.append(body)
        if PASSWORD not in str(body):
            return JSONResponse({}, 401)
        endpoints = [
            {"interface": "internal", "region": "r", "url": "http://127.0.0.1:9"},
            {"interface": "public", "region": "other", "url": "http://127.0.0.1:9"},
            {"interface": "public", "region": "r", "url": f"{self.address}/v2/p"},
        ]
        catalog = [{"type": "compute"}, {"type": self.service, "endpoints": endpoints}]
        return JSONResponse(
            {"token": {"catalog": catalog}}, 201, headers={"X-Subject-Token": "token"}
        )

    async def list_types(self, request: Request) -> Response:
        assert request.headers["X-Auth-Token"] == "token"
        return JSONResponse({"share_types": [{"name": it} for it in self.types]}, self.status)

    @contextmanager
    def up(self) -> Iterator[None]:
        routes = [
            Route("/v3/auth/tokens", self.tokens, methods=["POST"]),
            Route("/v2/p/types", self.list_types),
        ]
        config = uvicorn.Config(Starlette(routes=routes), log_config=None, log_level="critical")
        server = uvicorn.Server(config)
        with open_port(0) as listening:
            self.address = f"http://127.0.0.1:{listening.getsockname()[1]}"
            thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
            thread.start()
            yield
            server.should_exit = True
            thread.join(10)


@pytest.fixture
def cloud() -> Iterator[OpenStack]:
    cloud = OpenStack()
    with cloud.up():
        yield cloud


def secret(url: str, **auth: Any) -> dict[str, Any]:
    said = {"auth_url": url, "username": "u", "password": PASSWORD, "project_name": "p", **auth}
    text = yaml.safe_dump({"clouds": {"openstack": {"auth": said, "region_name": "r"}}})
    return raw(base64.b64encode(text.encode()).decode())


def raw(data: str) -> dict[str, Any]:
    metadata = {"name": "manila-cloud-credentials", "namespace": "n"}
    return {"kind": "Secret", "metadata": metadata, "data": {"clouds.yaml": data}}


def asked(obj: dict[str, Any]) -> tuple[str, ...]:
    return asyncio.run(share_types(obj))


@pytest.mark.parametrize("suffix", ["", "/", "/v3", "/v3/"])
def test_types_are_told_by_name(cloud: OpenStack, suffix: str) -> None:
    assert asked(secret(cloud.address + suffix)) == ("default", "fast")
    scope = cloud.asked[0]["auth"]["scope"]["project"]
    assert scope == {"name": "p", "domain": {"name": "Default"}}


def test_an_application_credential_will_do(cloud: OpenStack) -> None:
    credential = {"application_credential_id": "i", "application_credential_secret": PASSWORD}
    assert asked(secret(cloud.address, **credential)) == ("default", "fast")
    assert cloud.asked[0]["auth"]["identity"]["methods"] == ["application_credential"]


def test_a_cloud_without_the_service_has_none(cloud: OpenStack) -> None:
    cloud.service = "object-store"
    assert asked(secret(cloud.address)) == ()


@pytest.mark.parametrize(
    ("status", "error"), [(500, Unreachable), (403, Forbidden), (404, Final), (200, None)]
)
def test_what_goes_wrong_is_said_without_what_is_secret(
    cloud: OpenStack, status: int, error: type[ReplantError] | None
) -> None:
    cloud.status = status
    if error is None:
        assert asked(secret(cloud.address))
        return
    with pytest.raises(error) as told:
        asked(secret(cloud.address))
    assert str(status) in str(told.value)
    assert PASSWORD not in repr((told.value, told.value.__cause__))


def test_credentials_that_are_not_taken(cloud: OpenStack) -> None:
    with pytest.raises(Forbidden, match=r"401.*spec\.shareTypes"):
        asked(secret(cloud.address, password="other"))  # noqa: S106


@pytest.mark.parametrize(
    "data",
    [
        "",
        "%%",
        *(base64.b64encode(it).decode() for it in (b"\xff\xfe", b"a: b: c", b"[]", b"x: 1")),
    ],
)
def test_a_secret_that_says_nothing(data: str) -> None:
    with pytest.raises(InputError, match=r"has no clouds.yaml with clouds.openstack.auth"):
        asked(raw(data))


def test_a_cloud_that_is_away() -> None:
    with pytest.raises(Unreachable, match="the connection failed"):
        asked(secret("http://127.0.0.1:9"))
