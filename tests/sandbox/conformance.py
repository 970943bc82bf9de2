"""Requests to any API server, and their answers without what differs from run to run.

Real Kubernetes and the sandbox are asked the same; what real Kubernetes said is on record, so the
sandbox can be held to it where there is no real one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from replant.sandbox.resources import BUILT_IN

Json = Any

JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"

VOLATILE = {
    "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "time", "continue",
    "lastTransitionTime", "lastPhaseTransitionTime", "generation", "serverAddress", "clusterIP",
    "clusterIPs", "storageVersionHash", "singularName",
}  # fmt: skip
UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


@dataclass(frozen=True)
class Ask:
    """One request. NS in a path stands for the story's own namespace.

    ``$name.a.b`` in a path or a body stands for what an earlier answer had there.
    """

    method: str
    path: str
    body: Json = None
    media: str = "application/json"
    accept: str = ""
    save: str = ""
    compare: str = "all"
    """all; words (of a refusal all but the message); code (nothing else); nothing."""
    only: tuple[str, ...] = ()
    """The top-level parts of an object that are compared, or all."""
    served: bool = False
    """Whether it asks what is served, of which the sandbox has but a part."""
    any_order: bool = False
    """Old servers answer from a cache that keeps no order."""


@dataclass(frozen=True)
class Story:
    """Requests in their order, in a namespace of their own."""

    name: str
    asks: Sequence[Ask]


def tell(http: httpx.Client, story: Story) -> list[Json]:
    """What a server answers to a story."""
    namespace = f"story-{story.name}"
    http.post("/api/v1/namespaces", json={"metadata": {"name": namespace}})
    # Without an account of this name real Kubernetes takes no pods.
    account = {"metadata": {"name": "default"}}
    http.post(f"/api/v1/namespaces/{namespace}/serviceaccounts", json=account)
    saved: dict[str, Json] = {}
    answers = []
    for ask in story.asks:
        answer = _asked(http, ask, namespace, saved)
        if ask.save:
            saved[ask.save] = answer.json()
        answers.append(
            {"asked": f"{ask.method} {ask.path}", "answer": seen(answer, ask, namespace)}
        )
    return answers


def _asked(http: httpx.Client, ask: Ask, namespace: str, saved: dict[str, Json]) -> httpx.Response:
    def filled(text: str) -> str:
        text = re.sub(r"\bNS\b", namespace, text)
        return re.sub(r"\$(\w+)((?:\.\w+)+)", lambda it: _looked_up(it, saved), text)

    headers = {"Accept": ask.accept} if ask.accept else {}
    content = None
    if ask.body is not None:
        text = ask.body if isinstance(ask.body, str) else json.dumps(ask.body)
        content = filled(text)
        headers["Content-Type"] = ask.media
    return http.request(ask.method, filled(ask.path), content=content, headers=headers)


def _looked_up(found: re.Match[str], saved: dict[str, Json]) -> str:
    value = saved[found[1]]
    for name in found[2].split(".")[1:]:
        value = value[name]
    return str(value)


def seen(answer: httpx.Response, ask: Ask, namespace: str) -> Json:
    """What of an answer must be the same everywhere."""
    if ask.compare == "nothing":
        return "whatever it was"
    if ask.compare == "code":
        return {"code": answer.status_code}
    media = answer.headers.get("content-type", "").partition(";")[0]
    if media != "application/json":
        return {"code": answer.status_code, "media": media, "text": answer.text.strip()}
    if "watch=" in ask.path:
        lines = [json.loads(line) for line in answer.text.splitlines()]
        return {"code": answer.status_code, "events": [steady(it, namespace) for it in lines]}
    body = steady(answer.json(), namespace)
    if ask.served:
        body["resources"] = _served(body["resources"])
    if ask.any_order:
        body["items"].sort(key=lambda it: it["metadata"]["name"])
    if body.get("kind") == "Status" and ask.compare == "words":
        body.pop("message", None)
        for cause in (body.get("details") or {}).get("causes", ()):
            cause.pop("message", None)
    if ask.only and body.get("kind") != "Status":
        body = {name: body.get(name) for name in ask.only}
    return {"code": answer.status_code, "body": body}


SERVED = {it.plural for it in BUILT_IN} | {
    f"{it.plural}/{below}" for it in BUILT_IN for below in it.subresources
}


def _served(resources: Json) -> Json:
    """What the sandbox has of what is served; its verbs in any order."""
    found = [{**it, "verbs": sorted(it["verbs"])} for it in resources if it["name"] in SERVED]
    return sorted(found, key=lambda it: str(it["name"]))


def steady(value: Json, namespace: str) -> Json:
    """A value without what differs from run to run."""
    if isinstance(value, dict):
        if value.get("kind") == "Table":
            return _steady_table(value, namespace)
        kept = {name: it for name, it in value.items() if name not in VOLATILE}
        if "managedFields" in kept:
            kept["managedFields"] = sorted(map(_owner, kept["managedFields"]))
        if "causes" in kept:
            # What is looked at twice is also told twice, and in no order.
            told = {json.dumps(it, sort_keys=True): it for it in kept["causes"]}
            kept["causes"] = [told[it] for it in sorted(told)]
        return {name: steady(it, namespace) for name, it in kept.items()}
    if isinstance(value, list):
        return [steady(it, namespace) for it in value]
    if isinstance(value, str):
        return UID.sub("UID", value).replace(namespace, "NS")
    return value


def _owner(entry: Json) -> str:
    through = entry.get("subresource", "")
    return f"{entry['manager']} {entry['operation']} {through}".strip()


AGES = {"Age", "Created At"}


def _steady_table(table: Json, namespace: str) -> Json:
    columns = [it["name"] for it in table["columnDefinitions"]]
    rows = [
        [it for name, it in zip(columns, row["cells"], strict=True) if name not in AGES]
        for row in table["rows"]
    ]
    wide = [it["priority"] for it in table["columnDefinitions"]]
    return {"columns": columns, "wide": wide, "rows": steady(rows, namespace)}


# What is asked


def config_map(name: str, data: Json = None, **metadata: Json) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, **metadata},
        "data": data or {"a": "1"},
    }


CMS = "/api/v1/namespaces/NS/configmaps"
PODS = "/api/v1/namespaces/NS/pods"
PVCS = "/api/v1/namespaces/NS/persistentvolumeclaims"
PVS = "/api/v1/persistentvolumes"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
DEPLOYMENTS = "/apis/apps/v1/namespaces/NS/deployments"
BUDGETS = "/apis/policy/v1/namespaces/NS/poddisruptionbudgets"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def pod(name: str, **spec: Json) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "a"}},
        "spec": {
            "containers": [{"name": "c", "image": "x"}],
            "automountServiceAccountToken": False,
            **spec,
        },
    }


def volume(name: str, **spec: Json) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "csi": {"driver": "d.example.com", "volumeHandle": "h"},
            **spec,
        },
    }


def claim(name: str) -> Json:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {**spec, "storageClassName": "none"},
    }


def deployment(name: str, **spec: Json) -> Json:
    containers = [{"name": "c", "image": "x:1"}]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": containers}},
            **spec,
        },
    }


CREATING = Story(
    "creating",
    [
        Ask("POST", CMS, config_map("one", labels={"x": "y"}, annotations={"n": "o"})),
        Ask("POST", CMS, config_map("one")),
        Ask("POST", CMS, config_map("Bad_Name")),
        Ask("POST", CMS, config_map("a" * 254)),
        Ask("POST", CMS, config_map("a", labels={"x y": "z z"})),
        Ask("POST", CMS, config_map("a", labels={"x/y/z": "z" * 64}), compare="words"),
        Ask("POST", CMS, config_map("a", annotations={"x y": "z z"})),
        Ask("POST", CMS, config_map("a", finalizers=["no slash"]), compare="words"),
        Ask("POST", CMS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}),
        Ask("POST", CMS, {"apiVersion": "v1", "kind": "Secret"}, compare="words"),
        Ask("POST", CMS, {"apiVersion": "v2", "kind": "ConfigMap"}, compare="words"),
        Ask("POST", CMS, "{nonsense", compare="words"),
        Ask("POST", CMS, config_map("x", namespace="other")),
        Ask("POST", "/api/v1/namespaces/nowhere/configmaps", config_map("x")),
        Ask("POST", CMS, config_map("x", resourceVersion="5")),
        Ask("POST", CMS, json.dumps(config_map("x")), "text/plain", compare="words"),
        Ask("POST", f"{CMS}?dryRun=All", config_map("dry")),
        Ask("POST", f"{CMS}?dryRun=Some", config_map("dry"), compare="words"),
        Ask("GET", f"{CMS}/dry"),
        Ask(
            "POST", CMS, 'kind: ConfigMap\napiVersion: v1\nmetadata: {name: "y"}\n',
            "application/yaml",
        ),
        Ask("POST", f"{CMS}?fieldManager=me", config_map("managed")),
        Ask("POST", "/api/v1/namespaces", {"metadata": {"name": "Not.Good"}}),
        Ask("POST", "/api/v1/configmaps", config_map("x")),
    ],
)  # fmt: skip

READING = Story(
    "reading",
    [
        *(Ask("POST", CMS, config_map(name, labels={"n": name})) for name in "abcde"),
        Ask("GET", f"{CMS}/a"),
        Ask("GET", f"{CMS}/none"),
        Ask("GET", CMS),
        Ask("GET", f"{CMS}?labelSelector=n%3Da"),
        Ask("GET", f"{CMS}?labelSelector=n+in+(a,b),n!%3Da"),
        Ask("GET", f"{CMS}?labelSelector=!n"),
        Ask("GET", f"{CMS}?labelSelector=a+b", compare="words"),
        Ask("GET", f"{CMS}?fieldSelector=metadata.name%3Da"),
        Ask("GET", f"{CMS}?fieldSelector=metadata.name!%3Da,metadata.name!%3Db"),
        Ask("GET", f"{CMS}?fieldSelector=spec.x%3D1"),
        Ask("GET", f"{CMS}?fieldSelector=x"),
        Ask("GET", f"{CMS}?limit=2", save="first"),
        Ask("POST", CMS, config_map("bb")),
        Ask("DELETE", f"{CMS}/d"),
        # The list is as it was when its first page was asked for.
        Ask("GET", f"{CMS}?limit=2&continue=$first.metadata.continue", save="second"),
        Ask("GET", f"{CMS}?limit=2&continue=$second.metadata.continue"),
        Ask("GET", f"{CMS}?limit=2&labelSelector=n"),
        Ask("GET", f"{CMS}?limit=1&continue=nonsense", compare="words"),
        Ask("GET", f"{CMS}?limit=abc"),
        Ask("GET", f"{CMS}?resourceVersion=99999999", compare="words"),
        Ask("GET", f"{CMS}?resourceVersion=0", any_order=True),
        Ask("GET", f"{CMS}?resourceVersionMatch=Exact"),
        Ask("GET", f"{CMS}?resourceVersionMatch=Wrong&resourceVersion=1"),
        Ask("GET", f"{CMS}?resourceVersion=$first.metadata.resourceVersion"
            "&resourceVersionMatch=NotOlderThan", any_order=True),
        Ask("GET", f"{CMS}/a", accept="text/html", compare="code"),
        Ask("GET", f"{CMS}/a", accept=TABLE),
        Ask("GET", CMS, accept=f"{TABLE},application/json"),
        Ask("GET", f"{CMS}/a", accept="application/json;as=PartialObjectMetadata;v=v1;"
            "g=meta.k8s.io"),
        Ask("GET", CMS, accept="application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"),
        Ask("GET", "/api/v1/namespaces/NS/nonsense"),
        Ask("GET", "/apis/nope/v1/x"),
        Ask("GET", "/nope"),
        Ask("GET", f"{CMS}/a/status"),
        Ask("GET", "/api/v1/namespaces/nowhere/configmaps"),
        Ask("GET", f"{PODS}?fieldSelector=spec.nope%3Dx", compare="words"),
    ],
)  # fmt: skip

UPDATING = Story(
    "updating",
    [
        Ask("POST", CMS, config_map("one"), save="one"),
        Ask("PUT", CMS, config_map("x")),
        Ask("PUT", f"{CMS}/none", config_map("none")),
        Ask("PUT", f"{CMS}/one", config_map("two")),
        Ask("PUT", f"{CMS}/one", config_map("one", resourceVersion="1")),
        Ask("PUT", f"{CMS}/one", config_map("one", uid="abc"), compare="words"),
        Ask("PUT", f"{CMS}/one", config_map("one", {"b": "2"})),
        Ask("PUT", f"{CMS}/one",
            config_map("one", resourceVersion="$one.metadata.resourceVersion")),
        Ask("PUT", f"{CMS}/one", config_map("one", {"b": "2"}), save="same"),
        Ask("PUT", f"{CMS}/one",
            config_map("one", {"c": "3"}, resourceVersion="$same.metadata.resourceVersion",
                       uid="$same.metadata.uid", labels={"l": "m"})),
        Ask("PUT", f"{CMS}/one", config_map("one", labels={"l": "?"})),
        Ask("PUT", f"{CMS}/one?dryRun=All", config_map("one", {"dry": "run"})),
        Ask("GET", f"{CMS}/one"),
        Ask("PUT", f"{CMS}/one", config_map("one", namespace="other")),
    ],
)  # fmt: skip

PATCHING = Story(
    "patching",
    [
        Ask("POST", CMS, config_map("one")),
        Ask("PATCH", f"{CMS}/one", {"data": {"b": "2"}}, compare="words"),
        Ask("PATCH", f"{CMS}/one", {"data": {"b": "2", "a": None}}, MERGE),
        Ask("PATCH", f"{CMS}/one", {"metadata": {"resourceVersion": "1"}, "data": {}}, MERGE),
        Ask("PATCH", f"{CMS}/one", {"metadata": {"name": "two"}}, MERGE),
        Ask("PATCH", f"{CMS}/one", {"metadata": {"labels": {"x": "y"}}}, STRATEGIC),
        Ask("PATCH", f"{CMS}/one", {"data": {"$patch": "replace", "z": "9"}}, STRATEGIC),
        Ask("PATCH", f"{CMS}/one", [{"op": "test", "path": "/data/z", "value": "8"}], JSON_PATCH,
            compare="words"),
        Ask("PATCH", f"{CMS}/one", [{"op": "remove", "path": "/data/none"}], JSON_PATCH,
            compare="words"),
        Ask("PATCH", f"{CMS}/one", [{"op": "add", "path": "/data/y", "value": "8"}], JSON_PATCH),
        Ask("PATCH", f"{CMS}/one", [{"op": "replace", "path": "/metadata/labels", "value": None}],
            JSON_PATCH),
        Ask("PATCH", f"{CMS}/one", "nonsense", MERGE, compare="words"),
        Ask("PATCH", f"{CMS}/none", {"data": {"b": "2"}}, MERGE),
        Ask("PATCH", f"{CMS}/one?dryRun=All", {"data": {"b": "2"}}, MERGE),
        Ask("GET", f"{CMS}/one"),
        Ask("PATCH", f"{CMS}/one", {"metadata": {"finalizers": ["a.b/c"]}}, STRATEGIC),
        Ask("PATCH", f"{CMS}/one", {"metadata": {"finalizers": ["d.e/f"]}}, STRATEGIC),
        Ask("PATCH", f"{CMS}/one",
            {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a.b/c"]}}, STRATEGIC),
        Ask("PATCH", f"{CMS}/one", {"metadata": {"finalizers": None}}, MERGE),
        Ask("POST", DEPLOYMENTS, deployment("d")),
        Ask("PATCH", f"{DEPLOYMENTS}/d", {"spec": {"template": {"spec": {"containers": [
            {"name": "c", "image": "x:2"}, {"name": "new", "image": "y:1"}]}}}}, STRATEGIC),
        Ask("PATCH", f"{DEPLOYMENTS}/d", {"spec": {"template": {"spec": {
            "$setElementOrder/containers": [{"name": "new"}, {"name": "c"}],
            "containers": [{"name": "c", "env": [{"name": "E", "value": "1"}]}]}}}}, STRATEGIC),
        Ask("PATCH", f"{DEPLOYMENTS}/d", {"spec": {"template": {"spec": {"containers": [
            {"name": "new", "$patch": "delete"}]}}}}, STRATEGIC),
        Ask("PATCH", f"{DEPLOYMENTS}/d", {"spec": {"strategy": {
            "$retainKeys": ["type"], "type": "Recreate"}}}, STRATEGIC),
        Ask("PATCH", f"{DEPLOYMENTS}/d", {"spec": {"template": {"spec": {"volumes": [
            {"name": "v", "emptyDir": {}}]}}}}, STRATEGIC, only=("metadata",)),
        Ask("PATCH", f"{DEPLOYMENTS}/d", {"spec": {"template": {"spec": {"containers": [
            {"image": "unnamed"}]}}}}, STRATEGIC, compare="code"),
    ],
)  # fmt: skip

DELETING = Story(
    "deleting",
    [
        Ask("POST", CMS, config_map("one"), save="one"),
        Ask("DELETE", f"{CMS}/one", {"preconditions": {"uid": "abc"}}, compare="words"),
        Ask("DELETE", f"{CMS}/one", {"preconditions": {"resourceVersion": "1"}}, compare="words"),
        Ask("DELETE", f"{CMS}/one?dryRun=All"),
        Ask("DELETE", f"{CMS}/one", {"preconditions": {"uid": "$one.metadata.uid"}}),
        Ask("DELETE", f"{CMS}/one"),
        Ask("POST", CMS, config_map("fin", finalizers=["a.b/c"])),
        Ask("DELETE", f"{CMS}/fin"),
        Ask("DELETE", f"{CMS}/fin"),
        Ask("PATCH", f"{CMS}/fin", {"metadata": {"finalizers": ["a.b/c", "d.e/f"]}}, MERGE,
            compare="code"),
        Ask("PATCH", f"{CMS}/fin", {"data": {"still": "here"}}, MERGE),
        Ask("PATCH", f"{CMS}/fin", {"metadata": {"finalizers": None}}, MERGE),
        Ask("GET", f"{CMS}/fin"),
        Ask("POST", CMS, config_map("two", labels={"go": "yes"})),
        Ask("POST", CMS, config_map("three", labels={"go": "yes"})),
        Ask("POST", CMS, config_map("four")),
        Ask("DELETE", f"{CMS}?labelSelector=go%3Dyes"),
        Ask("GET", f"{CMS}?fieldSelector=metadata.name!%3Dkube-root-ca.crt"),
        Ask("DELETE", f"{CMS}/four", {"propagationPolicy": "Orphan"}),
        Ask("DELETE", "/api/v1/namespaces/kube-system"),
        Ask("DELETE", f"{PVS}/none"),
    ],
)  # fmt: skip

_OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"}
_CONTROLLERS = "/api/v1/namespaces/NS/replicationcontrollers"
_JOBS = "/apis/batch/v1/namespaces/NS/jobs"
_LONE: Json = {"template": {"metadata": {"labels": {"a": "b"}}, "spec": {
    "containers": [{"name": "c", "image": "x:1"}]}}}  # fmt: skip
_ONCE = {"template": {"spec": {**_LONE["template"]["spec"], "restartPolicy": "Never"}}}
CASCADING = Story(
    "cascading",
    [
        Ask("POST", CMS, config_map("one")),
        Ask("DELETE", f"{CMS}/one", {"propagationPolicy": "Nonsense"}),
        Ask("DELETE", f"{CMS}/one", {"propagationPolicy": "Orphan", "orphanDependents": True},
            compare="words"),
        Ask("DELETE", f"{CMS}/one", {"propagationPolicy": "Nonsense", "orphanDependents": False},
            compare="words"),
        Ask("DELETE", f"{CMS}/one?propagationPolicy=Nonsense", compare="words"),
        Ask("DELETE", f"{CMS}?propagationPolicy=Nonsense", compare="words"),
        Ask("DELETE", f"{CMS}/one?orphanDependents=perhaps", compare="code"),
        Ask("DELETE", f"{CMS}/one", {"propagationPolicy": "Foreground", "dryRun": ["All"]}),
        Ask("DELETE", f"{CMS}/one", {"propagationPolicy": "Foreground"}),
        Ask("DELETE", f"{CMS}/one"),
        Ask("DELETE", f"{CMS}/one", {"propagationPolicy": "Orphan"}),
        Ask("PATCH", f"{CMS}/one", {"metadata": {"finalizers": ["foregroundDeletion"]}}, MERGE,
            compare="words"),
        Ask("DELETE", f"{CMS}/one", {"propagationPolicy": "Background"}),
        Ask("GET", f"{CMS}/one"),
        # What a body says, a query cannot say otherwise.
        Ask("POST", CMS, config_map("two")),
        Ask("DELETE", f"{CMS}/two?propagationPolicy=Orphan", {"propagationPolicy": "Foreground"}),
        Ask("DELETE", f"{CMS}/two?propagationPolicy=Background", {}),
        Ask("DELETE", f"{CMS}/two?propagationPolicy=Background"),
        Ask("POST", CMS, config_map("three", finalizers=["a.b/c"])),
        Ask("DELETE", f"{CMS}/three", {"orphanDependents": False}),
        Ask("DELETE", f"{CMS}/three", {"orphanDependents": True}),
        Ask("DELETE", f"{CMS}/three", {"propagationPolicy": "Foreground"}),
        Ask("DELETE", f"{CMS}/three?orphanDependents=false"),
        Ask("PATCH", f"{CMS}/three", {"metadata": {"finalizers": None}}, MERGE),
        Ask("POST", CMS, config_map("four", finalizers=["foregroundDeletion"])),
        Ask("DELETE", f"{CMS}/four"),
        Ask("PATCH", f"{CMS}/four", {"metadata": {"finalizers": None}}, MERGE),
        Ask("POST", CMS, config_map("five", finalizers=["orphan", "foregroundDeletion"]),
            compare="words"),
        Ask("POST", CMS, config_map("five", ownerReferences=[
            {**_OWNER, "controller": True}, {**_OWNER, "uid": "v", "controller": True}]),
            compare="words"),
        Ask("POST", CMS, config_map("five", ownerReferences=[{"kind": "ConfigMap"}]),
            compare="words"),
        Ask("POST", CMS, config_map("five", ownerReferences=[
            {**_OWNER, "apiVersion": "v1", "kind": "Event"}]), compare="words"),
        Ask("POST", CMS, config_map("five", ownerReferences=[
            {**_OWNER, "blockOwnerDeletion": True, "controller": True}])),
        Ask("PATCH", f"{CMS}/five", {"metadata": {"ownerReferences": [
            {**_OWNER, "uid": "w", "name": "p"}]}}, STRATEGIC),
        Ask("PATCH", f"{CMS}/five", {"metadata": {"ownerReferences": [
            {"$patch": "delete", "uid": "u"}]}}, STRATEGIC),
        Ask("DELETE", f"{CMS}?propagationPolicy=Foreground"
            "&fieldSelector=metadata.name%3Dfive"),
        Ask("GET", f"{CMS}/five"),
        Ask("POST", _CONTROLLERS, {"metadata": {"name": "rc"}, "spec": _LONE}, compare="code"),
        Ask("DELETE", f"{_CONTROLLERS}/rc", only=("metadata",)),
        Ask("DELETE", f"{_CONTROLLERS}/rc", {"propagationPolicy": "Background"}),
        Ask("POST", _JOBS, {"metadata": {"name": "j"}, "spec": _ONCE}, compare="code"),
        Ask("DELETE", f"{_JOBS}/j", only=("kind",)),
        Ask("GET", f"{_JOBS}/j", compare="code"),
        Ask("POST", DEPLOYMENTS, deployment("d"), compare="code"),
        Ask("DELETE", f"{DEPLOYMENTS}/d"),
        Ask("POST", "/api/v1/namespaces/NS/events", {
            "metadata": {"name": "e"}, "involvedObject": {"namespace": "NS"}}, compare="code"),
        Ask("DELETE", "/api/v1/namespaces/NS/events/e", {"propagationPolicy": "Foreground"}),
        Ask("POST", PODS, pod("p", nodeName="n1"), compare="code"),
        Ask("DELETE", f"{PODS}/p", {"propagationPolicy": "Orphan"}, only=("metadata",)),
        Ask("DELETE", f"{PODS}/p", {"propagationPolicy": "Foreground"}, only=("metadata",)),
        Ask("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 0}, only=("metadata",)),
        Ask("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 0, "propagationPolicy": "Foreground"},
            only=("metadata",)),
        Ask("DELETE", f"{PODS}/p", {"propagationPolicy": "Orphan"}, only=("metadata",)),
        Ask("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 0, "propagationPolicy": "Background"},
            only=("metadata",)),
        Ask("GET", f"{PODS}/p", compare="code"),
        Ask("POST", PODS, pod("q", nodeName="n1"), compare="code"),
        Ask("DELETE", f"{PODS}/q", {"orphanDependents": False}, only=("metadata",)),
        Ask("DELETE", f"{PODS}/q", {"gracePeriodSeconds": 0}, compare="code"),
        Ask("POST", "/api/v1/namespaces", {"metadata": {"name": "NS-more"}}, compare="code"),
        Ask("DELETE", "/api/v1/namespaces/NS-more", {"propagationPolicy": "Orphan"},
            compare="code"),
    ],
)  # fmt: skip

PODS_STORY = Story(
    "pods",
    [
        Ask("POST", PODS, pod("p1", nodeName="n1")),
        Ask("POST", PODS, pod("p2")),
        Ask("POST", PODS, {"metadata": {"name": "x"}, "spec": {}}, compare="code"),
        Ask("PATCH", f"{PODS}/p1", {"spec": {"containers": [{"name": "c", "image": "y"}]}},
            STRATEGIC),
        Ask("PATCH", f"{PODS}/p1", {"spec": {"containers": [{"name": "c", "command": ["y"]}]}},
            STRATEGIC, compare="words"),
        Ask("PATCH", f"{PODS}/p1", {"status": {"phase": "Failed"}}, MERGE),
        Ask("PATCH", f"{PODS}/p1/status", {"status": {"phase": "Running"}}, MERGE),
        Ask("GET", f"{PODS}?fieldSelector=spec.nodeName%3Dn1", only=("kind",)),
        Ask("GET", f"{PODS}?fieldSelector=spec.nodeName%3Dn1", accept=TABLE),
        Ask("GET", f"{PODS}?fieldSelector=status.phase%3DPending", accept=TABLE),
        Ask("GET", f"{PODS}?fieldSelector=status.phase!%3DPending", accept=TABLE),
        Ask("POST", f"{PODS}/p2/binding", {"apiVersion": "v1", "kind": "Binding",
            "metadata": {"name": "p2"}, "target": {"kind": "Node", "name": "n2"}}),
        Ask("GET", f"{PODS}/p2", only=("spec", "status")),
        Ask("DELETE", f"{PODS}/p2", {"gracePeriodSeconds": 0}, only=("spec",)),
        Ask("GET", f"{PODS}/p2"),
        Ask("DELETE", f"{PODS}/p1"),
        Ask("GET", PODS, accept=TABLE),
        Ask("DELETE", f"{PODS}/p1?gracePeriodSeconds=0", only=("spec",)),
        Ask("GET", f"{PODS}/p1"),
    ],
)  # fmt: skip

_EVICTION = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p1"}}
_READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
_BUDGET = {
    "metadata": {"name": "b"},
    "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}},
}
EVICTING = Story(
    "evicting",
    [
        Ask("POST", f"{PODS}/p1/eviction", _EVICTION),
        Ask("POST", PODS, pod("p1", nodeName="n1"), compare="code"),
        Ask("POST", PODS, pod("p2", nodeName="n1"), compare="code"),
        Ask("PATCH", f"{PODS}/p1/status", {"status": _READY}, MERGE, compare="code"),
        Ask("POST", BUDGETS, _BUDGET),
        Ask("POST", f"{PODS}/p1/eviction", _EVICTION, compare="words"),
        Ask("PATCH", f"{BUDGETS}/b/status", {"status": {
            "observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 1,
            "desiredHealthy": 1, "expectedPods": 1}}, MERGE),
        Ask("POST", f"{PODS}/p1/eviction", _EVICTION),
        Ask("GET", BUDGETS, accept=TABLE),
        Ask("POST", f"{PODS}/p2/eviction", {**_EVICTION, "metadata": {"name": "p2"}}),
        Ask("PATCH", f"{BUDGETS}/b/status", {"status": {"disruptionsAllowed": 1}}, MERGE,
            compare="code"),
        Ask("POST", f"{PODS}/p1/eviction?dryRun=All", _EVICTION),
        Ask("POST", f"{PODS}/p1/eviction", _EVICTION),
        Ask("GET", f"{PODS}/p1", only=("spec",)),
        Ask("GET", BUDGETS, accept=TABLE),
    ],
)  # fmt: skip

STORAGE = Story(
    "storage",
    [
        Ask("POST", PVS, volume("story-v")),
        Ask("POST", PVS, {"metadata": {"name": "story-empty"}, "spec": {}}, compare="code"),
        Ask("PATCH", f"{PVS}/story-v", {"spec": {"csi": {"volumeHandle": "other"}}}, MERGE,
            compare="words"),
        Ask("PATCH", f"{PVS}/story-v", {"spec": {"persistentVolumeReclaimPolicy": "Delete"}},
            MERGE),
        Ask("PATCH", f"{PVS}/story-v/status", {"status": {"phase": "Available"}}, MERGE),
        Ask("PATCH", f"{PVS}/story-v", {"spec": {"claimRef": {
            "namespace": "NS", "name": "c", "kind": "PersistentVolumeClaim"}}}, STRATEGIC),
        Ask("DELETE", f"{PVS}/story-v"),
        Ask("PATCH", f"{PVS}/story-v", {"metadata": {"finalizers": []}}, MERGE),
        Ask("GET", f"{PVS}/story-v"),
        Ask("POST", PVCS, claim("c")),
        Ask("PATCH", f"{PVCS}/c", {"spec": {"storageClassName": "y"}}, MERGE, compare="words"),
        Ask("PATCH", f"{PVCS}/c", {"spec": {"volumeName": "story-v"}}, MERGE),
        Ask("PATCH", f"{PVCS}/c", {"spec": {"volumeName": "other"}}, MERGE, compare="words"),
        Ask("PATCH", f"{PVCS}/c/status", {"status": {"phase": "Bound", "capacity": {
            "storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}}, MERGE),
        Ask("GET", PVCS, accept=TABLE),
        Ask("PATCH", f"{PVCS}/c", {"metadata": {"finalizers": None}}, MERGE),
        Ask("DELETE", f"{PVCS}/c"),
        Ask("POST", CLASSES, {"metadata": {"name": "story-s"}, "provisioner": "a/b"}),
        Ask("PATCH", f"{CLASSES}/story-s", {"provisioner": "c"}, MERGE, compare="words"),
        Ask("GET", f"{CLASSES}/story-s", accept=TABLE),
        Ask("DELETE", f"{CLASSES}/story-s"),
        Ask("POST", "/apis/storage.k8s.io/v1/volumeattachments", {
            "metadata": {"name": "story-a"}, "spec": {"attacher": "d.example.com",
            "nodeName": "n1", "source": {"persistentVolumeName": "story-v"}}}),
        Ask("GET", "/apis/storage.k8s.io/v1/volumeattachments/story-a", accept=TABLE),
        Ask("PATCH", "/apis/storage.k8s.io/v1/volumeattachments/story-a",
            {"spec": {"nodeName": "n2"}}, MERGE, compare="code"),
        Ask("DELETE", "/apis/storage.k8s.io/v1/volumeattachments/story-a"),
        Ask("POST", "/apis/storage.k8s.io/v1/csidrivers", {
            "metadata": {"name": "story.example.com"}, "spec": {}}, compare="code"),
        Ask("GET", "/apis/storage.k8s.io/v1/csidrivers/story.example.com", accept=TABLE),
        Ask("DELETE", "/apis/storage.k8s.io/v1/csidrivers/story.example.com", compare="code"),
        Ask("POST", "/apis/storage.k8s.io/v1/csinodes", {"metadata": {"name": "story-n"}, "spec": {
            "drivers": [{"name": "d.example.com", "nodeID": "i", "topologyKeys": ["t"]}]}}),
        Ask("PATCH", "/apis/storage.k8s.io/v1/csinodes/story-n", {"spec": {"drivers": [
            {"name": "e.example.com", "nodeID": "i", "topologyKeys": ["t"]}]}}, STRATEGIC),
        Ask("GET", "/apis/storage.k8s.io/v1/csinodes/story-n", accept=TABLE),
        Ask("DELETE", "/apis/storage.k8s.io/v1/csinodes/story-n"),
    ],
)  # fmt: skip

_NODE = "/api/v1/nodes/story-node"
NODES = Story(
    "nodes",
    [
        Ask("POST", "/api/v1/nodes", {"metadata": {"name": "story-node"}, "status": {
            "capacity": {"cpu": "1"}}}, only=("kind", "apiVersion")),
        Ask("PATCH", _NODE, {"spec": {"unschedulable": True}}, STRATEGIC, compare="code"),
        Ask("GET", "/api/v1/nodes?fieldSelector=metadata.name%3Dstory-node,"
            "spec.unschedulable%3Dtrue", accept=TABLE),
        Ask("PATCH", _NODE, {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}},
            MERGE, only=("spec",)),
        Ask("PATCH", f"{_NODE}/status", {"status": {"conditions": [
            {"type": "Ready", "status": "True"}], "addresses": [
            {"type": "InternalIP", "address": "10.0.0.1"}]}}, STRATEGIC, compare="code"),
        Ask("PATCH", f"{_NODE}/status", {"status": {"conditions": [
            {"type": "Other", "status": "True"}]}}, STRATEGIC, compare="code"),
        Ask("GET", _NODE, accept=TABLE),
        Ask("DELETE", _NODE, compare="code"),
    ],
)  # fmt: skip

WORKLOADS = Story(
    "workloads",
    [
        Ask("POST", DEPLOYMENTS, deployment("d", replicas=2)),
        Ask("GET", f"{DEPLOYMENTS}/d", accept=TABLE),
        Ask("GET", f"{DEPLOYMENTS}/d/scale"),
        Ask("PATCH", f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": 5}}, MERGE),
        Ask("PUT", f"{DEPLOYMENTS}/d/scale", {"apiVersion": "autoscaling/v1", "kind": "Scale",
            "metadata": {"name": "d", "namespace": "NS"}, "spec": {"replicas": 6}}),
        Ask("PATCH", f"{DEPLOYMENTS}/d/status?fieldManager=x", {"status": {"replicas": 2}}, MERGE),
        Ask("PATCH", f"{DEPLOYMENTS}/d", {"spec": {"selector": {"matchLabels": {"z": "b"}}}},
            MERGE, compare="code"),
        Ask("GET", f"{DEPLOYMENTS}/d", save="d"),
        Ask("DELETE", f"{DEPLOYMENTS}/d", {"propagationPolicy": "Foreground"}),
        Ask("PATCH", f"{DEPLOYMENTS}/d", {"metadata": {"finalizers": None}}, MERGE,
            only=("spec",)),
        Ask("GET", f"{DEPLOYMENTS}/d"),
        Ask("POST", "/apis/apps/v1/namespaces/NS/statefulsets", {
            "metadata": {"name": "s"}, "spec": {**deployment("s")["spec"], "serviceName": "s"}},
            only=("spec",)),
        Ask("GET", "/apis/apps/v1/namespaces/NS/statefulsets/s", accept=TABLE),
        Ask("POST", "/apis/apps/v1/namespaces/NS/daemonsets", {
            **deployment("ds"), "kind": "DaemonSet"}, only=("spec", "status")),
        Ask("GET", "/apis/apps/v1/namespaces/NS/daemonsets/ds", accept=TABLE),
        Ask("POST", "/apis/apps/v1/namespaces/NS/replicasets", {
            **deployment("rs"), "kind": "ReplicaSet"}),
        Ask("GET", "/apis/apps/v1/namespaces/NS/replicasets/rs", accept=TABLE),
        Ask("POST", "/apis/apps/v1/namespaces/NS/controllerrevisions", {
            "metadata": {"name": "r"}, "revision": 3, "data": {"a": 1}}),
        Ask("POST", "/apis/apps/v1/namespaces/NS/controllerrevisions", {
            "metadata": {"name": "s", "ownerReferences": [{**_OWNER, "apiVersion": "apps/v1",
                "kind": "StatefulSet", "controller": True}]}, "revision": 4, "data": {}}),
        Ask("GET", "/apis/apps/v1/namespaces/NS/controllerrevisions", accept=TABLE),
        Ask("PATCH", "/apis/apps/v1/namespaces/NS/controllerrevisions/r", {"data": {"a": 2}},
            MERGE, compare="words"),
        Ask("DELETE", "/apis/apps/v1/namespaces/NS/controllerrevisions/r"),
        Ask("POST", DEPLOYMENTS, deployment("bad", strategy={"type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}), compare="words"),
        Ask("POST", DEPLOYMENTS, deployment("bad", strategy={"type": "Nonsense"}),
            compare="words"),
        Ask("POST", DEPLOYMENTS, deployment("bad", strategy={"type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": "many"}}), compare="words"),
        *(
            Ask("POST", f"/apis/apps/v1/namespaces/NS/{plural}", {"metadata": {"name": "bad"},
                "spec": {**deployment("s")["spec"], "updateStrategy": strategy}}, compare="code")
            for plural in ("statefulsets", "daemonsets")
            for strategy in (
                {"type": "Nonsense"},
                {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "many"}},
                {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0}},
            )
            if plural != "statefulsets" or "maxUnavailable" not in str(strategy)
        ),
    ],
)  # fmt: skip

_D = f"{DEPLOYMENTS}/d"
APPLYING = Story(
    "applying",
    [
        Ask("PATCH", f"{_D}?fieldManager=one", deployment("d", replicas=3), APPLY),
        Ask("PATCH", f"{_D}?fieldManager=one", deployment("d", replicas=3), APPLY),
        Ask("PATCH", f"{_D}?fieldManager=two", deployment("d", replicas=4), APPLY),
        Ask("PATCH", _D, deployment("d"), APPLY),
        Ask("PATCH", f"{_D}?fieldManager=two&force=true", deployment("d", replicas=4), APPLY),
        Ask("PATCH", f"{_D}/scale?fieldManager=hand", {"spec": {"replicas": 9}}, MERGE),
        Ask("GET", _D),
        Ask("PATCH", f"{_D}?fieldManager=one", deployment("d", replicas=1), APPLY),
        Ask("PATCH", f"{_D}?fieldManager=two&force=true", deployment("d", replicas=4), APPLY),
        # What it no longer says is still said by the other.
        Ask("PATCH", f"{_D}?fieldManager=one", deployment("d"), APPLY),
        Ask("PATCH", f"{_D}?fieldManager=two", deployment("d"), APPLY),
        Ask("PATCH", f"{_D}?fieldManager=one",
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}}, APPLY),
        Ask("PATCH", f"{CMS}/c?fieldManager=one", config_map("c", {"a": "1", "b": "2"}), APPLY),
        Ask("PATCH", f"{CMS}/c?fieldManager=two", config_map("c", {"c": "3"}), APPLY),
        Ask("PATCH", f"{CMS}/c?fieldManager=one", config_map("c", {"b": "2"}), APPLY),
        Ask("PATCH", f"{CMS}/c?fieldManager=hand", {"data": {"b": "4"}}, MERGE),
        Ask("PATCH", f"{CMS}/c?fieldManager=one", config_map("c", {"b": "2", "c": "9"}), APPLY),
        Ask("PATCH", f"{CMS}/c?fieldManager=one&dryRun=All&force=true",
            config_map("c", {"b": "2"}), APPLY),
        Ask("GET", f"{CMS}/c"),
    ],
)  # fmt: skip

WATCHING = Story(
    "watching",
    [
        Ask("POST", CMS, config_map("one", labels={"in": "yes"}), save="one"),
        Ask("GET", f"{CMS}?watch=1&timeoutSeconds=1"
            "&fieldSelector=metadata.name!%3Dkube-root-ca.crt"),
        Ask("PATCH", f"{CMS}/one", {"data": {"b": "2"}}, MERGE),
        Ask("POST", CMS, config_map("two")),
        Ask("PATCH", f"{CMS}/one", {"metadata": {"labels": {"in": "no"}}}, MERGE),
        Ask("DELETE", f"{CMS}/two"),
        Ask("GET", f"{CMS}?watch=1&timeoutSeconds=1&resourceVersion="
            "$one.metadata.resourceVersion"),
        Ask("GET", f"{CMS}?watch=true&timeoutSeconds=1&labelSelector=in%3Dyes&resourceVersion="
            "$one.metadata.resourceVersion"),
        Ask("GET", f"{CMS}?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Dtwo"
            "&resourceVersion=$one.metadata.resourceVersion"),
    ],
)  # fmt: skip

_CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.story.example.com"},
    "spec": {
        "group": "story.example.com",
        "scope": "Namespaced",
        "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                    {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
                ],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}
_WIDGETS = "/apis/story.example.com/v1/namespaces/NS/widgets"
_WIDGET = {
    "apiVersion": "story.example.com/v1",
    "kind": "Widget",
    "metadata": {"name": "w"},
    "spec": {"size": 1},
}
GADGET_SPEC = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 10},
        "mode": {"type": "string", "enum": ["fast", "slow"], "default": "fast"},
        "name": {"type": "string", "pattern": "^[a-z]+$", "minLength": 2, "maxLength": 5},
        "even": {"type": "integer", "multipleOf": 2, "minimum": 0, "exclusiveMinimum": True},
        "most": {"type": "number", "maximum": 9, "exclusiveMaximum": True},
        "flags": {
            "type": "array", "items": {"type": "string"}, "maxItems": 2, "minItems": 1,
        },
        "when": {"type": "string", "format": "date-time"},
        "nested": {
            "type": "object",
            "required": ["c"],
            "properties": {
                "a": {"type": "string", "default": "x"},
                "b": {"type": "boolean", "nullable": True, "default": True},
                "c": {"type": "string"},
            },
        },
        "labels": {
            "type": "object", "additionalProperties": {"type": "string"}, "maxProperties": 2,
            "minProperties": 1,
        },
        "amount": {"x-kubernetes-int-or-string": True},
        "any": {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {"known": {"type": "object", "properties": {"k": {"type": "string"}}}},
        },
        "anything": {"x-kubernetes-preserve-unknown-fields": True},
        "template": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
        "either": {
            "type": "object",
            "properties": {"l": {"type": "string"}, "r": {"type": "string"}},
            "oneOf": [{"required": ["l"]}, {"required": ["r"]}],
        },
        "some": {
            "type": "object",
            "properties": {"l": {"type": "string"}, "r": {"type": "string"}},
            "anyOf": [{"required": ["l"]}, {"required": ["r"]}],
            "not": {"required": ["l", "r"]},
        },
        "both": {"type": "string", "allOf": [{"minLength": 2}, {"pattern": "^a"}]},
        "ports": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port"],
            "items": {
                "type": "object", "required": ["port"], "properties": {"port": {"type": "integer"}},
            },
        },
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "code": {"type": "integer", "enum": [1, 2]},
        "ip": {"type": "string", "format": "ipv4"},
    },
}  # fmt: skip
_STATUS = {"phase": {"type": "string"}, "n": {"type": "integer"}}
_GADGET_CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gadgets.schema.example.com"},
    "spec": {
        "group": "schema.example.com",
        "scope": "Namespaced",
        "names": {"kind": "Gadget", "plural": "gadgets", "singular": "gadget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "required": ["spec"],
                        "properties": {
                            "spec": GADGET_SPEC,
                            "status": {"type": "object", "properties": _STATUS},
                        },
                    }
                },
            }
        ],
    },
}
_GADGETS = "/apis/schema.example.com/v1/namespaces/NS/gadgets"


def gadget(spec: Json = None, **more: Json) -> Json:
    kind = {"apiVersion": "schema.example.com/v1", "kind": "Gadget", "metadata": {"name": "g"}}
    return {**kind, **({} if spec is None else {"spec": spec}), **more}


_POD = {"apiVersion": "v1", "kind": "Pod"}
_GOOD: tuple[Json, ...] = (
    {"size": 1}, {"size": 2.0}, {"size": 1, "mode": None}, {"size": 1, "nested": None},
    {"size": 1, "nested": {"c": "y", "b": None, "d": "unknown"}},
    {"size": 1, "nested": {"c": "y", "a": None}}, {"size": 1, "when": "2024-01-01T00:00:00Z"},
    {"size": 1, "amount": "5"}, {"size": 1, "amount": 5}, {"size": 1, "anything": [1, "x"]},
    {"size": 1, "any": {"x": [1, {"y": None}], "known": {"k": "v", "z": 1}}},
    {"size": 1, "template": {**_POD, "metadata": {"name": "x", "nonsense": 1}, "spec": {}}},
    {"size": 1, "unknown": 1}, {"size": 1, "labels": {"a": "b"}}, {"size": 1, "ip": "10.0.0.1"},
    {"size": 1, "either": {"l": "a"}, "some": {"r": "b"}, "both": "ab", "set": ["a", "b"]},
)  # fmt: skip
_WRONG: tuple[Json, ...] = (
    {"size": "x"}, {"size": 0}, {"size": 11}, {}, {"size": None}, {"size": True}, {"size": {}},
    {"size": [1]}, {"size": 1, "mode": "other"}, {"size": 1, "name": "A"},
    {"size": 1, "name": "AB"}, {"size": 1, "even": 3}, {"size": 1, "even": 0},
    {"size": 1, "most": 9}, {"size": 1, "flags": []}, {"size": 1, "flags": ["a", "b", "c"]},
    {"size": 1, "flags": ["a", 1]}, {"size": 1, "flags": [None]}, {"size": 1, "flags": "x"},
    {"size": 1, "when": "soon"}, {"size": 1, "nested": {}}, {"size": 1, "nested": []},
    {"size": 1, "nested": "s"}, {"size": 1, "labels": {}}, {"size": 1, "labels": {"a": 1}},
    {"size": 1, "labels": {"a": "1", "b": "2", "c": "3"}}, {"size": 1, "amount": True},
    {"size": 1, "amount": 1.5}, {"size": 1, "either": {"l": "a", "r": "b"}},
    {"size": 1, "some": {"l": "a", "r": "b"}}, {"size": 1, "ports": [{}]},
    {"size": 1, "set": ["a", "a"]}, {"size": 1, "code": 3}, {"size": 1, "ip": "nope"},
    {"size": 1, "template": {**_POD, "kind": "p d"}},
)  # fmt: skip
_SEVERAL: tuple[Json, ...] = (
    {"size": 1, "mode": 5}, {"size": 1, "even": -1}, {"size": 1, "name": "abcdef"},
    {"size": 1, "template": {}}, {"size": 1, "either": {}}, {"size": 1, "some": {}},
    {"size": 1, "both": "b"}, {"size": 1, "both": "x!"},
    {"size": 1, "ports": [{"port": 1}, {"port": 1}]},
    {"size": "a", "mode": "z", "name": 5, "flags": {"x": 1}},
)  # fmt: skip
"""With messages in any order, or in words that have changed since."""
SCHEMAS = Story(
    "schemas",
    [
        *(Ask("POST", f"{_GADGETS}?dryRun=All", gadget(it)) for it in (*_GOOD, *_WRONG)),
        *(Ask("POST", f"{_GADGETS}?dryRun=All", gadget(it), compare="words") for it in _SEVERAL),
        Ask("POST", f"{_GADGETS}?dryRun=All", gadget()),
        Ask("POST", f"{_GADGETS}?dryRun=All", gadget(5)),
        Ask("POST", f"{_GADGETS}?dryRun=All&fieldValidation=Nonsense", gadget({"size": 1})),
        Ask("POST", f"{_GADGETS}?dryRun=All", gadget({"size": 1}, extra=1,
            status={"n": "not looked at"}, metadata={"name": "g", "nonsense": 1}),
            only=("spec", "extra", "status")),
        Ask("POST", _GADGETS, gadget({"size": 1}), save="g"),
        Ask("PUT", f"{_GADGETS}/g", gadget({"size": 99}, metadata={
            "name": "g", "resourceVersion": "$g.metadata.resourceVersion"})),
        Ask("PUT", f"{_GADGETS}/g", gadget({"size": 3, "zz": 1}, metadata={
            "name": "g", "resourceVersion": "$g.metadata.resourceVersion"})),
        Ask("PATCH", f"{_GADGETS}/g", {"spec": {"size": 99}}, MERGE),
        Ask("PATCH", f"{_GADGETS}/g", {"spec": {"zz": 99}}, MERGE),
        Ask("PATCH", f"{_GADGETS}/g", {"spec": {"mode": None}}, MERGE),
        Ask("PATCH", f"{_GADGETS}/g", [{"op": "replace", "path": "/spec/size", "value": "s"}],
            JSON_PATCH),
        Ask("PATCH", f"{_GADGETS}/g?fieldManager=me&force=true", gadget({"size": 77}), APPLY),
        Ask("PATCH", f"{_GADGETS}/g?fieldManager=me&force=true", gadget({"size": "x"}), APPLY,
            compare="code"),
        Ask("PATCH", f"{_GADGETS}/g?fieldManager=me&force=true", gadget({"zz": 5}), APPLY,
            compare="code"),
        Ask("PATCH", f"{_GADGETS}/g?fieldManager=me&force=true", gadget({"size": 7}), APPLY),
        Ask("PATCH", f"{_GADGETS}/g/status", {"status": {"n": "x"}}, MERGE, compare="words"),
        Ask("PATCH", f"{_GADGETS}/g/status", {"status": {"n": 1, "u": 1}}, MERGE),
        Ask("GET", f"{_GADGETS}/g"),
        Ask("DELETE", f"{CRDS}/gadgets.schema.example.com", compare="code"),
    ],
)  # fmt: skip
DEFINITIONS = Story(
    "definitions",
    [
        Ask("POST", CRDS, _CRD, compare="code"),
        Ask("POST", CRDS, _GADGET_CRD, compare="code"),
    ],
)
CUSTOM = Story(
    "custom",
    [
        Ask("GET", "/apis/story.example.com/v1"),
        Ask("POST", _WIDGETS, {**_WIDGET, "status": {"phase": "ignored"}}),
        Ask("GET", _WIDGETS),
        Ask("GET", _WIDGETS, accept=TABLE),
        Ask("PUT", f"{_WIDGETS}/w", _WIDGET, compare="words"),
        Ask("PATCH", f"{_WIDGETS}/w", {"spec": {"size": 2}}, STRATEGIC, compare="words"),
        Ask("PATCH", f"{_WIDGETS}/w", {"spec": {"size": 2}, "status": {"phase": "no"}}, MERGE),
        Ask("PATCH", f"{_WIDGETS}/w/status", {"spec": {"size": 3}, "status": {"phase": "yes"},
            "metadata": {"labels": {"not": "taken"}}}, MERGE),
        Ask("GET", f"{_WIDGETS}/w", accept=TABLE),
        Ask("PATCH", f"{_WIDGETS}/w?fieldManager=me", {**_WIDGET, "spec": {"color": "red"}}, APPLY),
        Ask("GET", f"{_WIDGETS}/none"),
        Ask("DELETE", f"{_WIDGETS}/w"),
        Ask("DELETE", f"{CRDS}/widgets.story.example.com", compare="code"),
    ],
)  # fmt: skip

REVIEWS = Story(
    "reviews",
    [
        Ask("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}},
            only=("kind", "apiVersion", "spec", "status")),
        Ask("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
        Ask("GET", "/api"),
        Ask("GET", "/readyz"),
        Ask("GET", "/livez"),
        Ask("GET", "/healthz"),
    ],
)  # fmt: skip

_TEMPLATE = deployment("t")["spec"]["template"]
_JOB = {"template": {"spec": {**_TEMPLATE["spec"], "restartPolicy": "Never"}}}
_OF = {"kind": "Pod", "namespace": "NS", "name": "p"}
_RULES = {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}
_ROLE = {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}}
_OBJECTS: dict[str, Json] = {
    "/api/v1/namespaces/NS/secrets": {"stringData": {"a": "1"}},
    "/api/v1/namespaces/NS/services": {"spec": {"ports": [{"port": 80}], "clusterIP": "None"}},
    "/api/v1/namespaces/NS/events": {"involvedObject": _OF, "reason": "r", "type": "Normal"},
    "/api/v1/namespaces/NS/serviceaccounts": {},
    "/api/v1/namespaces/NS/replicationcontrollers": {"spec": {"template": _TEMPLATE}},
    "/apis/batch/v1/namespaces/NS/jobs": {"spec": _JOB},
    "/apis/batch/v1/namespaces/NS/cronjobs": {
        "spec": {"schedule": "1 2 * * *", "jobTemplate": {"spec": _JOB}}
    },
    "/apis/coordination.k8s.io/v1/namespaces/NS/leases": {"spec": {"holderIdentity": "me"}},
    "/apis/rbac.authorization.k8s.io/v1/namespaces/NS/roles": _RULES,
    "/apis/rbac.authorization.k8s.io/v1/namespaces/NS/rolebindings": _ROLE,
}
KINDS = Story(
    "kinds",
    [
        *(
            Ask("POST", path, {"metadata": {"name": "k"}, **obj}, compare="code")
            for path, obj in _OBJECTS.items()
        ),
        # A job's selector, and in newer ones its status, are made up by the server.
        *(
            Ask("GET", f"{path}/k", accept=TABLE, only=("columns", "wide"))
            if path.endswith("/jobs")
            else Ask("GET", f"{path}/k", accept=TABLE)
            for path in _OBJECTS
        ),
        Ask("GET", "/api/v1/namespaces/NS", accept=TABLE),
        Ask("GET", "/api/v1/namespaces/NS", only=("spec", "status")),
        Ask("GET", "/api/v1/namespaces/NS/secrets/k"),
        Ask("GET", "/apis/batch/v1/namespaces/NS/cronjobs/k", only=("status",)),
        Ask("DELETE", "/api/v1/namespaces"),
        Ask("GET", "/apis/coordination.k8s.io/v1/namespaces/NS/leases/k"),
        Ask("GET", "/apis/rbac.authorization.k8s.io/v1/namespaces/NS/roles/k"),
        *(
            Ask("GET", path, served=True)
            for path in (
                "/api/v1",
                "/apis/apps/v1",
                "/apis/batch/v1",
                "/apis/storage.k8s.io/v1",
                "/apis/policy/v1",
                "/apis/coordination.k8s.io/v1",
                "/apis/rbac.authorization.k8s.io/v1",
                "/apis/apiextensions.k8s.io/v1",
                "/apis/authorization.k8s.io/v1",
            )
        ),
    ],
)

LIMIT_RANGES, QUOTAS = "/api/v1/namespaces/NS/limitranges", "/api/v1/namespaces/NS/resourcequotas"


def _asking(name: str, **resources: Json) -> Json:
    asked = pod(name)
    asked["spec"]["containers"][0]["resources"] = resources
    return asked


def _claim_of(size: str) -> Json:
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
    return {
        "metadata": {"name": f"claim-of-{size.lower()}"},
        "spec": {**spec, "resources": {"requests": {"storage": size}}},
    }


LIMITS = Story(
    "limits",
    [
        Ask(
            "POST",
            LIMIT_RANGES,
            {
                "metadata": {"name": "a-range"},
                "spec": {
                    "limits": [
                        {"type": "Container", "min": {"memory": "64Mi"}, "max": {"cpu": "2"}},
                        {"type": "Pod", "max": {"cpu": "3"}},
                        {
                            "type": "PersistentVolumeClaim",
                            "min": {"storage": "1Gi"},
                            "max": {"storage": "10Gi"},
                        },
                    ]
                },
            },
        ),
        Ask("POST", PODS, _asking("says-nothing")),
        Ask("POST", PODS, _asking("says-all", requests={"cpu": "1", "memory": "1Gi"})),
        Ask("POST", PODS, _asking("too-much", limits={"cpu": "2500m"})),
        Ask("POST", PODS, _asking("too-little", requests={"memory": "1Mi"})),
        Ask("POST", PVCS, _claim_of("512Mi")),
        Ask("POST", PVCS, _claim_of("1Gi")),
        Ask("POST", PVCS, _claim_of("11Gi")),
        Ask("GET", LIMIT_RANGES, accept=TABLE),
        Ask(
            "POST",
            QUOTAS,
            {"metadata": {"name": "a-quota"}, "spec": {"hard": {"pods": "4"}}},
            only=("spec",),
        ),
        Ask("GET", f"{QUOTAS}/a-quota", only=("spec",)),
    ],
)

STORIES: Iterable[Story] = (
    CREATING, READING, UPDATING, PATCHING, DELETING, CASCADING, PODS_STORY, EVICTING, STORAGE,
    NODES, WORKLOADS, APPLYING, WATCHING, DEFINITIONS, SCHEMAS, CUSTOM, KINDS, REVIEWS,
    LIMITS,
)  # fmt: skip
"""In this order: what is defined in one may be used in the next."""
