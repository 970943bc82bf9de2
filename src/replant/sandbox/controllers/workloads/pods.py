"""Pods as workloads make and count them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from math import ceil

import msgspec

from replant.objects import Object
from replant.sandbox.controllers import parts
from replant.sandbox.resources import Resource
from replant.sandbox.shelves import Entry


def owner_reference(resource: Resource, obj: Object) -> Object:
    """How what a workload has made names it."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": obj["metadata"]["name"],
        "uid": obj["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def pod_of(resource: Resource, obj: Object, name: str = "") -> Object:
    """A pod by its workload's template."""
    template = obj["spec"]["template"]
    said = template.get("metadata") or {}
    metadata: Object = {
        "labels": dict(said.get("labels") or {}),
        "annotations": dict(said.get("annotations") or {}),
        "ownerReferences": [owner_reference(resource, obj)],
    }
    metadata |= {"name": name} if name else {"generateName": f"{obj['metadata']['name']}-"}
    return {"metadata": metadata, "spec": dict(template["spec"])}


def digest(template: Object) -> str:
    """What tells one template from another, in a name."""
    return sha256(msgspec.json.encode(template, order="sorted")).hexdigest()[:10]


def is_over(entry: Entry) -> bool:
    """Whether a pod has come to its end."""
    return entry.fields["status.phase"] in parts.OVER


def is_ending(entry: Entry) -> bool:
    """Whether it is being deleted."""
    return b'"deletionTimestamp"' in entry.text


@lru_cache(maxsize=1024)
def _ready(text: bytes) -> tuple[bool, str]:
    """Whether a pod says that it is ready, and since when.

    A workload looks at the same few pods several times, one after the other.
    """
    status = parts.read_pod_state(text).status
    return status.ready, status.ready_since


def is_ready(entry: Entry) -> bool:
    """Whether it runs, and says that it is ready."""
    return entry.fields["status.phase"] == "Running" and _ready(entry.text)[0]


def unavailable_for(entry: Entry, min_ready: int, now: datetime) -> float | None:
    """How many seconds a pod still has to be ready until it counts; None if it is not ready."""
    if not is_ready(entry):
        return None
    since = _ready(entry.text)[1] if min_ready else ""
    if not since:
        return 0
    return max(min_ready - (now - datetime.fromisoformat(since)).total_seconds(), 0)


def is_available(entry: Entry, min_ready: int, now: datetime) -> bool:
    """Whether it has been ready for long enough."""
    return unavailable_for(entry, min_ready, now) == 0


def next_available(pods: Iterable[Entry], min_ready: int, now: datetime) -> float:
    """In how many seconds the next pod will count; 0 if none is about to."""
    if not min_ready:
        return 0
    waits = (unavailable_for(it, min_ready, now) for it in pods)
    return min((it for it in waits if it), default=0)


def share(said: object, total: int, *, up: bool) -> int:
    """A number of pods, said as such or as a part of all in percent."""
    text = str(said)
    if not text.endswith("%"):
        return int(text)
    exact = int(text.removesuffix("%")) * total / 100
    return ceil(exact) if up else int(exact)


def said(status: Object, *always: str) -> Object:
    """A status without the numbers that are nought, but for some."""
    return {name: it for name, it in status.items() if it or name in always}
