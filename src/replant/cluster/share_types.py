"""The share types of an OpenStack, asked of its Manila with the credentials of the driver.

A cloud without that service has none, and no use for the driver.
"""

from __future__ import annotations

import base64
import binascii
from http import HTTPStatus
from typing import Any

import aiohttp
import yaml

from replant.cluster.transport import LONG_HEADER, everybody
from replant.errors import Final, Forbidden, InputError, Unreachable
from replant.objects import Object, name_of

CLOUDS = "clouds.yaml"
CLOUD = "openstack"
"""What OpenShift calls the cloud in the Secrets that it makes."""
SERVICES = ("sharev2", "shared-file-system")
TIMEOUT = 20.0
_REFUSED = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


async def share_types(secret: Object) -> tuple[str, ...]:
    """The names of all share types, in order; errors name no credentials."""
    cloud = _cloud(secret)
    url = str(cloud["auth"].get("auth_url") or "").rstrip("/").removesuffix("/v3")
    if not url.startswith(("http://", "https://")):
        raise InputError("auth_url is no URL", source=name_of(secret))
    verify = cloud.get("verify", True) is not False
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=verify and everybody()),
        timeout=aiohttp.ClientTimeout(TIMEOUT),
        max_line_size=LONG_HEADER,
        max_field_size=LONG_HEADER,
    ) as http:
        token, catalog = await _log_in(http, url, cloud["auth"], name_of(secret))
        endpoint = _endpoint(catalog, str(cloud.get("region_name") or ""))
        if not endpoint:
            return ()
        headers = {"X-Auth-Token": token, "X-OpenStack-Manila-API-Version": "2.7"}
        answer = await _asked(http, "GET", f"{endpoint.rstrip('/')}/types", headers=headers)
        types = (await _json(answer, f"{endpoint}/types")).get("share_types") or ()
        return tuple(sorted(str(it["name"]) for it in types if isinstance(it, dict)))


def _cloud(secret: Object) -> dict[str, Any]:
    """What a Secret says of the cloud; its text is not in any error."""
    try:
        text = base64.b64decode((secret.get("data") or {}).get(CLOUDS) or "", validate=True)
        clouds = yaml.safe_load(text)
    except (binascii.Error, yaml.YAMLError, UnicodeDecodeError):
        clouds = None
    found: Any = clouds
    for name in ("clouds", CLOUD):
        found = found.get(name) if isinstance(found, dict) else None
    if not isinstance(found, dict) or not isinstance(found.get("auth"), dict):
        reason = f"has no {CLOUDS} with clouds.{CLOUD}.auth in it"
        raise InputError(reason, source=name_of(secret))
    return found


async def _log_in(
    http: aiohttp.ClientSession, url: str, auth: dict[str, Any], source: str
) -> tuple[str, list[Any]]:
    if auth.get("application_credential_id"):
        identity: Object = {
            "methods": ["application_credential"],
            "application_credential": {
                "id": auth["application_credential_id"],
                "secret": auth.get("application_credential_secret"),
            },
        }
        body: Object = {"auth": {"identity": identity}}
    else:
        user = {"name": auth.get("username"), "password": auth.get("password")}
        user["domain"] = _domain(auth, "user")
        project = {"name": auth.get("project_name"), "domain": _domain(auth, "project")}
        if auth.get("project_id"):
            project = {"id": auth["project_id"]}
        identity = {"methods": ["password"], "password": {"user": user}}
        body = {"auth": {"identity": identity, "scope": {"project": project}}}
    answer = await _asked(http, "POST", f"{url}/v3/auth/tokens", json=body)
    token = answer.headers.get("X-Subject-Token", "")
    if not token:
        raise Final(f"{source}: {url} has let it in without giving a token")
    return token, ((await _json(answer, url)).get("token") or {}).get("catalog") or []


def _domain(auth: dict[str, Any], whose: str) -> Object:
    if found := auth.get(f"{whose}_domain_id"):
        return {"id": found}
    return {"name": auth.get(f"{whose}_domain_name") or "Default"}


def _endpoint(catalog: list[Any], region: str) -> str:
    for wanted in SERVICES:
        for service in catalog:
            if service.get("type") != wanted:
                continue
            for it in service.get("endpoints") or ():
                if it.get("interface") == "public" and region in ("", it.get("region")):
                    return str(it.get("url") or "")
    return ""


async def _asked(
    http: aiohttp.ClientSession, method: str, url: str, **more: Any
) -> aiohttp.ClientResponse:
    """An answer that was read to its end."""
    try:
        async with http.request(method, url, allow_redirects=False, **more) as answer:
            await answer.read()
    except TimeoutError:
        raise Unreachable(f"{method} {url}: there was no answer within {TIMEOUT:g} s") from None
    except (aiohttp.ClientError, OSError, ValueError):
        raise Unreachable(f"{method} {url}: the connection failed") from None
    if answer.status in _REFUSED:
        raise Forbidden(
            f"{method} {url}: the answer was {answer.status}; give the driver's Secret "
            "credentials that may list share types, or name them in spec.shareTypes"
        )
    if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise Unreachable(f"{method} {url}: the answer was {answer.status}")
    if not answer.ok:
        raise Final(f"{method} {url}: the answer was {answer.status}")
    return answer


async def _json(answer: aiohttp.ClientResponse, url: str) -> dict[str, Any]:
    try:
        found = await answer.json(content_type=None)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Final(f"{url}: the answer is not JSON")
    return found
