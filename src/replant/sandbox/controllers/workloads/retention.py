"""What becomes of a StatefulSet's claims: its persistentVolumeClaimRetentionPolicy.

The controller writes owners into claims, and the garbage collector deletes what has lost them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from replant.gates.versions import Version
from replant.objects import Object
from replant.sandbox.controllers.base import key_of
from replant.sandbox.controllers.workloads.family import Family
from replant.sandbox.resources import PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS
from replant.sandbox.shelves import Entry
from replant.sandbox.sides import Process

_GATE: Final = "StatefulSetAutoDeletePVC"
_ON_SINCE: Final = Version(1, 27)


def is_heeded(process: Process) -> bool:
    """Whether a controller of that version and with these gates looks at the policy at all."""
    return process.gates.get(_GATE, process.version >= _ON_SINCE)


def write_owners(family: Family, obj: Object, pod: Entry, *, condemned: bool) -> None:
    """Have a pod's claims belong to the set, to the pod or to nobody, as the policy has it."""
    scaled, deleted = _policy(obj)
    if (scaled, deleted) == ("Retain", "Retain") and not _claims(family, obj, pod.name, owned=True):
        return
    owner: Object | None = None
    if scaled == "Delete" and condemned:
        owner = _reference("v1", PODS.kind, pod.name, pod.uid)
    elif deleted == "Delete":
        name, uid = obj["metadata"]["name"], obj["metadata"]["uid"]
        owner = _reference(STATEFUL_SETS.api_version, STATEFUL_SETS.kind, name, uid)
    ours = {obj["metadata"]["uid"], pod.uid}

    def write(claim: Object) -> None:
        references = claim["metadata"].get("ownerReferences") or []
        kept = [it for it in references if it["uid"] not in ours]
        claim["metadata"]["ownerReferences"] = kept + ([owner] if owner else [])

    for claim in _claims(family, obj, pod.name):
        references = claim.value()["metadata"].get("ownerReferences") or []
        found = [it["uid"] for it in references if it["uid"] in ours]
        if found != ([owner["uid"]] if owner else []):
            family.world.change(PERSISTENT_VOLUME_CLAIMS, key_of(claim), write)


def has_stale_claim(family: Family, obj: Object, pod: str) -> bool:
    """Whether a claim of a pod that is to be made goes with an earlier pod of its name."""
    if _policy(obj)[0] == "Retain":
        return False
    return any(
        reference["kind"] == PODS.kind and reference["name"] == pod
        for claim in _claims(family, obj, pod, owned=True)
        for reference in claim.value()["metadata"]["ownerReferences"]
    )


def _policy(obj: Object) -> tuple[str, str]:
    policy = obj["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    return policy.get("whenScaled", "Retain"), policy.get("whenDeleted", "Retain")


def _claims(family: Family, obj: Object, pod: str, *, owned: bool = False) -> list[Entry]:
    return [it for it in _found(family, obj, pod) if not owned or b'"ownerReferences"' in it.text]


def _found(family: Family, obj: Object, pod: str) -> Iterator[Entry]:
    for template in obj["spec"].get("volumeClaimTemplates") or ():
        name = f"{template['metadata']['name']}-{pod}"
        if entry := family.store.find(PERSISTENT_VOLUME_CLAIMS, name, obj["metadata"]["namespace"]):
            yield entry


def _reference(api_version: str, kind: str, name: str, uid: str) -> Object:
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid}
