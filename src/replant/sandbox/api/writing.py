"""POST, PUT, PATCH and DELETE of objects, and of their status."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from replant.objects import Object
from replant.sandbox import ownership, patches, shapes
from replant.sandbox.api import answers, asking
from replant.sandbox.api.asking import Target, wanted_format
from replant.sandbox.api.selection import wanted
from replant.sandbox.changes import Deletion
from replant.sandbox.refusals import (
    ApiError,
    bad_request,
    invalid_kind,
    invalid_value,
    required_value,
    unreadable_patch,
    unsupported_custom_patch,
    unsupported_patch,
    unsupported_value,
)
from replant.sandbox.resources import BACKGROUND, FOREGROUND, ORPHAN, Resource
from replant.sandbox.schemas import check as schemas
from replant.sandbox.store import Store
from replant.sandbox.structure import structure_of

_RETURNED = {
    "Pod", "PersistentVolume", "PersistentVolumeClaim", "Service", "ServiceAccount",
    "StorageClass", "CSINode", "CSIDriver", "VolumeAttachment",
}  # fmt: skip
"""Of these, what was deleted is shown; of others, that it was."""
_POLICIES = (FOREGROUND, BACKGROUND, ORPHAN)
_VERSION_NEEDED = {"PodDisruptionBudget", "CustomResourceDefinition"}


async def create(store: Store, request: Request, target: Target) -> Response:
    """A new object."""
    asking.check_field_validation(request, "CreateOptions")
    how = wanted_format(request, store.now())
    resource = target.resource
    obj = asking.checked_object(await asking.content(request), resource)
    _check_namespace(obj, target)
    if obj["metadata"].get("resourceVersion"):
        raise ApiError(500, "", "resourceVersion should not be set on objects to be created")
    entry = store.create(
        resource,
        obj,
        namespace=target.namespace,
        manager=asking.manager(request, resource.api_version),
        dry_run=asking.dry_run(request, "CreateOptions"),
    )
    return answers.one(entry, resource, how, 201)


async def replace_object(store: Store, request: Request, target: Target) -> Response:
    """An object anew."""
    asking.check_field_validation(request, "UpdateOptions")
    how = wanted_format(request, store.now())
    resource = target.resource
    obj = asking.checked_object(await asking.content(request), resource)
    _check_name(obj, target)
    store.entry(resource, target.name, target.namespace)
    if not obj["metadata"].get("resourceVersion") and (
        resource.custom or resource.kind in _VERSION_NEEDED
    ):
        cause = invalid_value("metadata.resourceVersion", 0, "must be specified for an update")
        raise invalid_kind(resource.plural, resource.group, target.name, [cause])
    entry = store.update(
        resource,
        obj,
        target.subresource,
        manager=asking.manager(request, resource.api_version, target.subresource),
        dry_run=asking.dry_run(request, "UpdateOptions"),
    )
    return answers.one(entry, resource, how)


async def patch(store: Store, request: Request, target: Target) -> Response:
    """An object changed."""
    asking.check_field_validation(request, "PatchOptions")
    how = wanted_format(request, store.now())
    media = request.headers.get("content-type", "").partition(";")[0].strip()
    dry_run = asking.dry_run(request, "PatchOptions")
    body = await request.body()
    if media == patches.APPLY:
        return _apply(store, request, target, asking.read(body, "yaml"))
    resource = target.resource
    if media == patches.STRATEGIC and resource.custom:
        raise unsupported_custom_patch()
    live = store.get(resource, target.name, target.namespace)
    change = read_patch(media, body)
    live["apiVersion"] = resource.api_version
    obj = asking.checked_object(
        patched(live, change, media, resource), resource, refusal=unreadable_patch
    )
    _check_name(obj, target)
    entry = store.update(
        resource,
        obj,
        target.subresource,
        manager=asking.manager(request, resource.api_version, target.subresource),
        dry_run=dry_run,
    )
    return answers.one(entry, resource, how)


def read_patch(media: str, body: bytes) -> Any:
    """What a patch says; ApiError if it is of no known kind."""
    if media not in {patches.JSON, patches.MERGE, patches.STRATEGIC}:
        raise unsupported_patch()
    try:
        return asking.read(body, "json")
    except ApiError as error:
        raise bad_request(f"error decoding patch: {error.message}") from None


def patched(live: Object, change: Any, media: str, resource: Resource) -> Any:
    """What a patch makes of an object."""
    if media == patches.JSON:
        return patches.json_patch(live, change)
    if media == patches.MERGE:
        return patches.merge_patch(live, change)
    return patches.strategic_patch(live, change, structure_of(resource))


def _apply(store: Store, request: Request, target: Target, body: Any) -> Response:
    resource = target.resource
    if not request.query_params.get("fieldManager"):
        cause = required_value("fieldManager", "is required for apply patch")
        raise invalid_kind("PatchOptions", "meta.k8s.io", "", [cause])
    wants = asking.checked_object(body, resource)
    wants["metadata"].setdefault("name", target.name)
    _check_name(wants, target)
    if wants["metadata"].pop("managedFields", None):
        raise bad_request("metadata.managedFields must be nil")
    if resource.status and target.subresource != "status":
        wants.pop("status", None)
    if resource.schema is not None and (why := schemas.untyped(resource.schema, wants)):
        about = f"({target.namespace}/{target.name}; {resource.api_version}, Kind={resource.kind})"
        raise ApiError(500, "", f"failed to create typed patch object {about}: {why}")
    who = replace(
        asking.manager(request, resource.api_version, target.subresource),
        operation=ownership.APPLY,
    )
    dry_run = asking.dry_run(request, "PatchOptions")
    # To apply what is below an object does not make the object.
    find = store.entry if target.subresource else store.find
    found = find(resource, target.name, target.namespace)
    live = found.value() if found else {"metadata": {}}
    time = store.time()
    merged = ownership.apply(
        live, wants, who, time, structure_of(resource), force=asking.truth(request, "force")
    )
    if found:
        entry = store.update(resource, merged, target.subresource, manager=who, dry_run=dry_run)
    else:
        entry = store.create(
            resource, merged, namespace=target.namespace, manager=who, dry_run=dry_run
        )
    return answers.one(entry, resource, wanted_format(request, store.now()), 200 if found else 201)


async def delete(store: Store, request: Request, target: Target) -> Response:
    """One object away, or on its way."""
    how = wanted_format(request, store.now())
    resource = target.resource
    deletion = deletion_of(await _delete_options(request))
    entry, gone = store.delete(resource, target.name, target.namespace, deletion)
    if not gone or resource.kind in _RETURNED:
        # Only those who say it the old way are told that it is yet to happen.
        return answers.one(
            entry, resource, how, 202 if not gone and deletion.orphan is False else 200
        )
    details: Object = {"name": entry.name}
    if resource.group:
        details["group"] = resource.group
    details |= {"kind": resource.plural, "uid": entry.uid}
    said = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    return answers.value({**said, "details": details}, how)


async def delete_collection(store: Store, request: Request, target: Target) -> Response:
    """All that is selected away, or on its way."""
    how = wanted_format(request, store.now())
    deletion = deletion_of(await _delete_options(request))
    selected = store.entries(target.resource, target.namespace, wanted(request, target.resource))
    version = str(store.version)
    for entry in selected:
        store.delete(target.resource, entry.name, entry.namespace, deletion)
    return answers.many(target.resource, selected, {"resourceVersion": version}, how)


async def _delete_options(request: Request) -> Object:
    """What is said about a deletion: in the body or, if there is none, in the query."""
    if not await request.body():
        return {
            "dryRun": request.query_params.getlist("dryRun"),
            "gracePeriodSeconds": asking.number(request, "gracePeriodSeconds"),
            "propagationPolicy": request.query_params.get("propagationPolicy"),
            "orphanDependents": asking.said_truth(request, "orphanDependents"),
        }
    said = await asking.content(request)
    if not isinstance(said, dict):
        raise bad_request("the object provided is unrecognized (must be of type DeleteOptions)")
    return said


def deletion_of(options: Object) -> Deletion:
    """How something is to be deleted; ApiError if that makes no sense."""
    if why := shapes.wrong(options, "DeleteOptions"):
        raise bad_request(why)
    policy, orphan = options.get("propagationPolicy"), options.get("orphanDependents")
    causes = []
    if policy and orphan is not None:
        why = "orphanDependents and deletionPropagation cannot be both set"
        causes.append(invalid_value("propagationPolicy", policy, why))
    if policy and policy not in _POLICIES:
        causes.append(unsupported_value("propagationPolicy", policy, [*_POLICIES, "nil"]))
    if causes:
        raise invalid_kind("DeleteOptions", "meta.k8s.io", "", causes)
    preconditions = options.get("preconditions") or {}
    return Deletion(
        options.get("gracePeriodSeconds"),
        preconditions.get("uid") or "",
        preconditions.get("resourceVersion") or "",
        policy or "",
        orphan,
        asking.checked_dry_run(options.get("dryRun") or [], "DeleteOptions"),
    )


def _check_namespace(obj: Object, target: Target) -> None:
    said = obj["metadata"].get("namespace")
    if target.resource.namespaced and said and said != target.namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def _check_name(obj: Object, target: Target) -> None:
    metadata = obj["metadata"]
    name = metadata.setdefault("name", target.name)
    if name != target.name:
        raise bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({target.name})"
        )
    _check_namespace(obj, target)
    if target.resource.namespaced:
        metadata["namespace"] = target.namespace
