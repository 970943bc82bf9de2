"""What can be done to a pod besides writing it: evicting it, and binding it to a node."""

from __future__ import annotations

from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response

from replant.sandbox import changes, evicting
from replant.sandbox.api import answers, asking
from replant.sandbox.api.asking import Target
from replant.sandbox.api.writing import deletion_of
from replant.sandbox.refusals import bad_request, conflict
from replant.sandbox.resources import PODS
from replant.sandbox.store import Store
from replant.sandbox.validation import at

_DONE = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


async def evict(store: Store, request: Request, target: Target) -> Response:
    """Delete a pod if its disruption budget has room for that."""
    body = asking.checked_object(
        await asking.content(request), PODS, kind="Eviction", api_version=_version(request)
    )
    name = body["metadata"].get("name") or target.name
    if name != target.name:
        raise bad_request(f"name in URL does not match name in Eviction object: {target.name}")
    deletion = deletion_of(body.get("deleteOptions") or {})
    if asking.dry_run(request, "CreateOptions"):
        deletion = replace(deletion, dry_run=True)
    evicting.evict(store, target.name, target.namespace, deletion)
    return answers.value(_DONE, code=201)


def _version(_request: Request) -> str:
    return "policy/v1"


async def bind(store: Store, request: Request, target: Target) -> Response:
    """Give a pod its node, as a scheduler does."""
    body = asking.checked_object(await asking.content(request), PODS, kind="Binding")
    pod = store.get(PODS, target.name, target.namespace)
    node = at(body, ("target", "name"))
    if not node:
        raise bad_request("target.name: Required value")
    bound = at(pod, ("spec", "nodeName"))
    if bound:
        why = f'pod {target.name} is already assigned to node "{bound}"'
        raise conflict(PODS, target.name, why)
    changes.bind(pod, str(node), store.time())
    if not asking.dry_run(request, "CreateOptions"):
        store.update(PODS, pod, "binding")
    return answers.value(_DONE, code=201)
