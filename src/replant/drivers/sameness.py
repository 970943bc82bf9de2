"""Whether an object is as it is wanted: nothing is written that is there already."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

import msgspec

from replant.objects import Object

HASH = "replant.dev/spec-hash"
"""On all that is applied: a digest of what was wanted when it was."""
MANAGED = "csi.openshift.io/managed"
"""On all that is ours, as OpenShift's own operators mark what is theirs."""
MANAGER = "replant-drivers"
"""The field manager of every write."""


def digest(value: object) -> str:
    """A short digest of plain data, whatever the order of its keys."""
    return sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()[:32]


def marked(wanted: Object) -> Object:
    """What is wanted, with the marks by which it is known again."""
    metadata = wanted["metadata"]
    marks = {**metadata.get("annotations", {}), MANAGED: "true"}
    unhashed = {**wanted, "metadata": {**metadata, "annotations": marks}}
    return {
        **wanted,
        "metadata": {**metadata, "annotations": {**marks, HASH: digest(unhashed)}},
    }


def annotations_of(obj: Object) -> Mapping[str, str]:
    """An object's annotations, none where it has none."""
    found = obj.get("metadata", {}).get("annotations")
    return found if isinstance(found, dict) else {}


def is_ours(obj: Object) -> bool:
    """Whether an object bears our mark, and nobody else's."""
    labels = obj.get("metadata", {}).get("labels") or {}
    by_helm = labels.get("app.kubernetes.io/managed-by") == "Helm"
    return annotations_of(obj).get(MANAGED) == "true" and not by_helm


def covers(found: object, wanted: object) -> bool:
    """Whether all that is wanted is there; what others have added, and defaults, do not count."""
    if isinstance(wanted, dict):
        if not isinstance(found, dict):
            return found is None and all(_nothing(it) for it in wanted.values())
        return all(covers(found.get(key), it) for key, it in wanted.items())
    if isinstance(wanted, list):
        return _covers_list(found, wanted)
    return found == wanted or (found is None and _nothing(wanted))


def _covers_list(found: object, wanted: list[object]) -> bool:
    if not isinstance(found, list):
        return found is None and not wanted
    if wanted and all(isinstance(it, dict) and "name" in it for it in wanted):
        # Lists of named things are merged by name, so others may have added theirs.
        named = {it.get("name"): it for it in found if isinstance(it, dict)}
        return all(covers(named.get(it["name"]), it) for it in wanted if isinstance(it, dict))
    return len(found) == len(wanted) and all(
        covers(have, want) for have, want in zip(found, wanted, strict=True)
    )


def _nothing(value: object) -> bool:
    # The API drops the difference between a zero and nothing.
    return not value
