"""Objects that belong to each other, and what is left of them once one is deleted.

The same is done to a cluster with real controllers and to a sandbox's; what was left on the real
one is on record, so that the sandbox can be held to it where there is no real one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

Json = Any

NOBODY = "00000000-0000-4000-8000-000000000000"
"""A uid that no object has."""
GROUP = "family.example.com"
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"kins.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"kind": "Kin", "plural": "kins", "singular": "kin"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }
        ],
    },
}
KINDS = {
    "": ("v1", "ConfigMap", "/api/v1/namespaces/{}/configmaps"),
    "kin": (f"{GROUP}/v1", "Kin", f"/apis/{GROUP}/v1/namespaces/{{}}/kins"),
    "role": (
        "rbac.authorization.k8s.io/v1",
        "ClusterRole",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    ),
    "unserved": (f"{GROUP}/v2", "Stranger", ""),
}
"""What a member is, by what its name begins with."""


@dataclass(frozen=True)
class Family:
    """Who belongs to whom (``!`` if it keeps its owner), and who is deleted in which way."""

    name: str
    members: Mapping[str, Iterable[str]]
    deleted: Iterable[tuple[str, str]] = ()
    finalizers: Mapping[str, list[str]] = field(default_factory=dict)
    absent: Iterable[str] = ()
    """Members that others take for an owner, and that are not there, or are others by now."""


FAMILIES = (
    Family("background", {"a": (), "b": ["a!"], "c": ["b!"]}, [("a", "Background")]),
    Family("foreground", {"a": (), "b": ["a!"], "c": ["b!"]}, [("a", "Foreground")]),
    Family("orphan", {"a": (), "b": ["a!"], "c": ["b!"]}, [("a", "Orphan")]),
    Family(
        "foreground-waits",
        {"a": (), "b": ["a!"], "c": ["b!"]},
        [("a", "Foreground")],
        {"c": ["a.b/c"]},
    ),
    Family(
        "foreground-does-not-wait",
        {"a": (), "b": ["a"]},
        [("a", "Foreground")],
        {"b": ["a.b/c"]},
    ),
    Family(
        "background-does-not-wait",
        {"a": (), "b": ["a!"]},
        [("a", "Background")],
        {"b": ["a.b/c"]},
    ),
    Family("other-owner", {"a": (), "o": (), "b": ["a!", "o!"]}, [("a", "Background")]),
    Family("other-owner-foreground", {"a": (), "o": (), "b": ["a!", "o!"]}, [("a", "Foreground")]),
    Family("other-owner-orphan", {"a": (), "o": (), "b": ["a!", "o!"]}, [("a", "Orphan")]),
    Family(
        "both-owners",
        {"a": (), "o": (), "b": ["a!", "o!"]},
        [("a", "Background"), ("o", "Foreground")],
    ),
    Family("circle", {"a": ["c!"], "b": ["a!"], "c": ["b!"]}, [("a", "Foreground")]),
    Family(
        "dependent-says-otherwise",
        {"a": (), "b": ["a"], "c": ["b"]},
        [("a", "Background")],
        {"b": ["orphan"]},
    ),
    Family("absent", {"b": ["a"], "c": ["b"]}, absent=["a"]),
    Family("absent-and-present", {"o": (), "b": ["a!", "o"]}, absent=["a"]),
    Family("another-by-that-name", {"a": (), "b": ["a"]}, absent=["a"]),
    Family("unserved", {"b": ["unserved-a"]}, absent=["unserved-a"]),
    Family("of-ones-own", {"kin-a": (), "b": ["kin-a!"]}, [("kin-a", "Background")]),
    Family("of-ones-own-below", {"a": (), "kin-b": ["a!"]}, [("a", "Foreground")]),
    Family("of-ones-own-left", {"a": (), "kin-b": ["a!"]}, [("a", "Orphan")]),
    Family("owner-of-all", {"role-a": (), "b": ["role-a!"]}, [("role-a", "Foreground")]),
    # A namespace's object cannot own what is in none.
    Family("owner-in-a-namespace", {"a": (), "role-b": ["a"]}, [("a", "Background")]),
)


def left(http: httpx.Client, families: Iterable[Family], pause: Callable[[], None]) -> Json:
    """What is left of families once nothing has changed during a pause."""
    for family in families:
        found(http, family)
    # What is not yet known to belong to something is not seen to when that goes.
    pause()
    for family in families:
        for member, policy in family.deleted:
            http.request("DELETE", _path(family, member), json={"propagationPolicy": policy})
    seen = None
    while seen != (seen := {it.name: look(http, it) for it in families}):
        pause()
    return seen


def _kind(member: str) -> tuple[str, str, str]:
    return KINDS[member.rpartition("-")[0]]


def _name(family: Family, member: str) -> str:
    return f"{family.name}-{member}" if member.startswith("role") else member


def _path(family: Family, member: str) -> str:
    return f"{_kind(member)[2].format(f'family-{family.name}')}/{_name(family, member)}"


def found(http: httpx.Client, family: Family) -> None:
    """Make a family's members, then tell them whose they are."""
    namespace = {"metadata": {"name": f"family-{family.name}"}}
    http.post("/api/v1/namespaces", json=namespace).raise_for_status()
    uids: dict[str, str] = {}
    for member in family.members:
        api_version, kind, _path_of_all = _kind(member)
        metadata = {"name": _name(family, member), "finalizers": family.finalizers.get(member, [])}
        obj = {"apiVersion": api_version, "kind": kind, "metadata": metadata}
        made = http.post(_path(family, member).rpartition("/")[0], json=obj).raise_for_status()
        uids[member] = made.json()["metadata"]["uid"]
    for member in family.absent:
        uids[member] = NOBODY
    for member, owners in family.members.items():
        if owners:
            references = [_reference(family, it, uids) for it in owners]
            patch = {"metadata": {"ownerReferences": references}}
            headers = {"Content-Type": "application/merge-patch+json"}
            http.patch(_path(family, member), json=patch, headers=headers).raise_for_status()


def _reference(family: Family, said: str, uids: Mapping[str, str]) -> Json:
    owner = said.rstrip("!")
    api_version, kind, _path_of_all = _kind(owner)
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": _name(family, owner),
        "uid": uids[owner],
        "blockOwnerDeletion": said.endswith("!"),
    }


def look(http: httpx.Client, family: Family) -> Json:
    """The members that are there: whose they are, and what keeps those that are to go."""
    seen = {}
    for member in family.members:
        answer = http.get(_path(family, member))
        if answer.status_code == 404:
            continue
        metadata = answer.raise_for_status().json()["metadata"]
        owners = [
            it["name"].removeprefix(f"{family.name}-") + ("!" if it["blockOwnerDeletion"] else "")
            for it in metadata.get("ownerReferences", ())
        ]
        seen[member] = {
            "owners": owners,
            "finalizers": metadata.get("finalizers", []),
            "going": "deletionTimestamp" in metadata,
        }
    return seen
