"""What the webhooks answer: AdmissionReviews in, AdmissionReviews out.

Where it cannot be told what a component should be told, the answer is no: the Deployment then
stays as it is, which is better than a control plane that has lost its flags.
"""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

import jsonpatch
import msgspec

from replant.cluster.ports import CLUSTERS, Reader
from replant.errors import InputError, Missing, ReplantError, printable
from replant.gardener.components import CLOUD_CONFIG_PATH, told_deployment
from replant.gardener.decisions import DEPLOYMENTS
from replant.gardener.providers import Provider
from replant.gardener.shoots import part, provider_type, shoot_of, stage_of_cluster
from replant.gardener.validation import Problem, problems
from replant.objects import Object

API_VERSION = "admission.k8s.io/v1"
CHANGES = ("CREATE", "UPDATE")

Answer = dict[str, Any]
Judge = Callable[["Request"], Awaitable[Answer]]
"""Given what is asked, gives the response without its uid."""


class Request(msgspec.Struct):
    """What is asked for."""

    uid: str
    operation: str = ""
    name: str = ""
    namespace: str = ""
    object: dict[str, Any] | None = None
    old: dict[str, Any] | None = msgspec.field(default=None, name="oldObject")


class _Review(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    request: Request


ALLOWED: Answer = {"allowed": True}


async def answer(body: bytes, judge: Judge) -> dict[str, Any]:
    """The AdmissionReview that answers another; InputError for what is none."""
    try:
        review = msgspec.json.decode(body, type=_Review)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"is no AdmissionReview: {error}", source="the request") from None
    if (review.api_version, review.kind) != (API_VERSION, "AdmissionReview"):
        said = f"{review.api_version} {review.kind}"
        raise InputError(f"is {said}, not {API_VERSION} AdmissionReview", source="the request")
    try:
        response = await judge(review.request)
    except InputError as error:
        response = _no(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", str(error))
    except ReplantError as error:
        response = _no(HTTPStatus.INTERNAL_SERVER_ERROR, "InternalError", str(error))
    return {
        "apiVersion": API_VERSION,
        "kind": "AdmissionReview",
        "response": {"uid": review.request.uid, **response},
    }


def control_plane(
    reader: Reader, provider: Provider, cloud_config: str = CLOUD_CONFIG_PATH
) -> Judge:
    """Gives the Deployments of a shoot's control plane the flags of its stage."""

    async def judge(request: Request) -> Answer:
        deployment = request.object
        if deployment is None or request.operation not in CHANGES:
            return ALLOWED
        name = request.name or part(deployment, "metadata", "name")
        if name not in DEPLOYMENTS:
            return ALLOWED
        if _leaves(deployment):
            return ALLOWED  # else its finalizers would never come off
        cluster = await _cluster(reader, request.namespace)
        if cluster is None:
            return ALLOWED  # it is not in the namespace of a shoot
        shoot = shoot_of(cluster)
        if shoot is not None and provider_type(shoot) != provider.type:
            return ALLOWED
        stage, version = stage_of_cluster(cluster, provider)
        told = told_deployment(deployment, provider, stage, version, cloud_config)
        if told is deployment:
            return ALLOWED
        patch = jsonpatch.make_patch(deployment, told).patch
        encoded = base64.b64encode(msgspec.json.encode(patch)).decode()
        return {**ALLOWED, "patchType": "JSONPatch", "patch": encoded}

    return judge


def shoots(provider: Provider) -> Judge:
    """Refuses Shoots with a pool that would miss the migration's rolling update.

    What was wrong before and is not changed now is let be, and so is a Shoot that is being
    deleted: it must be possible to confirm that, and its finalizers must come off.
    """

    async def judge(request: Request) -> Answer:
        shoot = request.object
        if shoot is None or request.operation not in CHANGES:
            return ALLOWED
        found = [] if _leaves(shoot) else problems(shoot, provider, request.old)
        if not found:
            return ALLOWED
        message = "; ".join(map(str, found))
        causes = [_cause(it) for it in found]
        return _no(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", message, causes)

    return judge


def _leaves(obj: Object) -> bool:
    """Whether an object is being deleted: then only what holds it is still taken off."""
    return part(obj, "metadata", "deletionTimestamp") is not None


async def _cluster(reader: Reader, name: str) -> Object | None:
    try:
        body = await reader.get(CLUSTERS, name)
    except Missing:
        return None
    return msgspec.json.decode(body, type=dict)


def _cause(problem: Problem) -> dict[str, str]:
    return {
        "reason": f"FieldValue{problem.sort}",
        "field": problem.field,
        "message": f"{problem.sort}: {problem.detail}",
    }


def _no(
    code: HTTPStatus, reason: str, message: str, causes: list[dict[str, str]] | None = None
) -> Answer:
    status: dict[str, Any] = {"code": int(code), "reason": reason, "message": printable(message)}
    if causes:
        status["details"] = {"causes": causes}
    return {"allowed": False, "status": status}
