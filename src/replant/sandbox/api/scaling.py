"""The scale of a workload: how many there are to be."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from replant.objects import Object
from replant.sandbox.api import answers, asking
from replant.sandbox.api.asking import Target
from replant.sandbox.api.columns.cells import selector_text
from replant.sandbox.api.writing import patched, read_patch
from replant.sandbox.refusals import MODIFIED, conflict, invalid, unreadable_patch
from replant.sandbox.resources import Resource
from replant.sandbox.shelves import Entry
from replant.sandbox.store import Store
from replant.sandbox.validation.reading import at, negative_causes

SCALE = Resource("Scale", "scale", "autoscaling")


async def scale(store: Store, request: Request, target: Target) -> Response:
    """Show it, or change it."""
    entry = store.entry(target.resource, target.name, target.namespace)
    shown = _scale_of(entry)
    if request.method != "GET":
        said = await _wanted(request, shown)
        version = said["metadata"].get("resourceVersion")
        if version and version != str(entry.version):
            raise conflict(target.resource, target.name, MODIFIED)
        replicas = at(said, ("spec", "replicas")) or 0
        if causes := list(negative_causes("spec", {"replicas": replicas}, "replicas")):
            raise invalid(SCALE, target.name, causes)
        obj = entry.value()
        obj["spec"]["replicas"] = replicas
        who = asking.manager(request, target.resource.api_version, "scale")
        dry_run = asking.dry_run(request, "UpdateOptions")
        entry = store.update(target.resource, obj, "scale", manager=who, dry_run=dry_run)
    return answers.value(_scale_of(entry), asking.wanted_format(request, store.now()))


async def _wanted(request: Request, shown: Object) -> Object:
    if request.method == "PUT":
        return asking.checked_object(await asking.content(request), SCALE)
    media = request.headers.get("content-type", "").partition(";")[0].strip()
    change = read_patch(media, await request.body())
    changed = patched(shown, change, media, SCALE)
    return asking.checked_object(changed, SCALE, refusal=unreadable_patch)


def _scale_of(entry: Entry) -> Object:
    obj = entry.value()
    metadata = {
        name: obj["metadata"][name]
        for name in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
        if name in obj["metadata"]
    }
    status = {
        "replicas": at(obj, ("status", "replicas")) or 0,
        "selector": selector_text(at(obj, ("spec", "selector"))),
    }
    return {
        "kind": SCALE.kind,
        "apiVersion": SCALE.api_version,
        "metadata": metadata,
        "spec": {"replicas": at(obj, ("spec", "replicas")) or 0},
        "status": status,
    }
