"""Whether an object is as it is wanted: nothing is written that is there already."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

import msgspec

from replant.objects import Object

HASH = "replant.dev/spec-hash"
"""On all that is applied: a digest of what was wanted when it was."""
MANAGER = "replant-drivers"
"""The field manager of every write."""


def digest(value: object) -> str:
    """A short digest of plain data, whatever the order of its keys."""
    return sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()[:32]


BY = "app.kubernetes.io/managed-by"
"""The label by which tools say that something is theirs."""


def marked(wanted: Object) -> Object:
    """What is wanted, with the marks by which it is known again."""
    metadata = wanted["metadata"]
    labels = {**metadata.get("labels", {}), BY: "replant"}
    labelled = {**wanted, "metadata": {**metadata, "labels": labels}}
    annotations = {**metadata.get("annotations", {}), HASH: digest(labelled)}
    return {**wanted, "metadata": {**metadata, "labels": labels, "annotations": annotations}}


def annotations_of(obj: Object) -> Mapping[str, str]:
    """An object's annotations, none where it has none."""
    found = obj.get("metadata", {}).get("annotations")
    return found if isinstance(found, dict) else {}


def is_ours(obj: Object) -> bool:
    """Whether we have applied an object, and nobody has claimed it since."""
    labels = obj.get("metadata", {}).get("labels") or {}
    return HASH in annotations_of(obj) and labels.get(BY) == "replant"


def leaving(obj: Object) -> bool:
    """Whether an object is being deleted."""
    return bool(obj.get("metadata", {}).get("deletionTimestamp"))


def is_as_wanted(found: Object, wanted: Object) -> bool:
    """Whether an object need not be applied: it was, and nobody has changed what is ours of it."""
    return was_applied(found, wanted) and covers(found, wanted)


def was_applied(found: Object, wanted: Object) -> bool:
    """Whether just this was applied, whatever became of it since."""
    return annotations_of(found).get(HASH) == annotations_of(wanted)[HASH]


def must_be_made_anew(found: Object, wanted: Object) -> bool:
    """Whether an object differs in what the API lets nobody change."""
    return any(
        not covers(_at(found, path), _at(wanted, path)) for path in _FIXED.get(wanted["kind"], ())
    )


_FIXED: dict[str, tuple[tuple[str, ...], ...]] = {
    # Releases differ in which of these they let be changed; none minds that it is made anew.
    "CSIDriver": (
        ("spec", "attachRequired"),
        ("spec", "podInfoOnMount"),
        ("spec", "fsGroupPolicy"),
    ),
    "ClusterRoleBinding": (("roleRef",),),
    "RoleBinding": (("roleRef",),),
}


def _at(obj: object, path: tuple[str, ...]) -> object:
    for step in path:
        obj = obj.get(step) if isinstance(obj, dict) else None
    return obj


def has_strangers(found: Object, wanted: Object) -> bool:
    """Whether a workload has containers that are not wanted, which applying would leave there."""
    path = ("spec", "template", "spec", "containers")
    have, want = _at(found, path), _at(wanted, path)
    if not isinstance(have, list) or not isinstance(want, list):
        return False
    return bool({it.get("name") for it in have} - {it.get("name") for it in want})


_MERGED = {
    "containers": "name",
    "env": "name",
    "volumes": "name",
    "ports": "containerPort",
    "volumeMounts": "mountPath",
}
"""Lists that the API merges, and by which field: others may have added theirs."""


def covers(found: object, wanted: object, field: str = "") -> bool:
    """Whether all that is wanted is there; what others have added, and defaults, do not count."""
    if isinstance(wanted, dict):
        have = found if isinstance(found, dict) else {}
        return all(covers(have.get(key), it, key) for key, it in wanted.items())
    if isinstance(wanted, list):
        return _covers_list(found if isinstance(found, list) else [], wanted, field)
    # The API drops the difference between a zero and nothing.
    return found == wanted or (found is None and not wanted)


def _covers_list(found: list[object], wanted: list[object], field: str) -> bool:
    if key := _MERGED.get(field):
        there = {it.get(key): it for it in found if isinstance(it, dict)}
        return all(covers(there.get(it[key]), it) for it in wanted if isinstance(it, dict))
    return len(found) == len(wanted) and all(
        covers(have, want) for have, want in zip(found, wanted, strict=True)
    )
