"""Workloads that are changed, and how their pods are replaced, step by step.

No kubelet runs there: whoever plays it lets the controllers come to rest, writes down what there
is, and then has every pod become ready. The same is done to a cluster with real controllers and to
a sandbox's; what was seen on the real one is on record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

Json = Any

MERGE = {"Content-Type": "application/merge-patch+json"}
PATHS = {
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "StatefulSet": "/apis/apps/v1/namespaces/{}/statefulsets",
    "DaemonSet": "/apis/apps/v1/namespaces/{}/daemonsets",
}
NODES = ("rollout-a", "rollout-b", "rollout-c")
COUNTED = {
    "Deployment": (
        "replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas",
    ),
    "StatefulSet": (
        "replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "currentReplicas",
    ),
    "DaemonSet": (
        "currentNumberScheduled", "desiredNumberScheduled", "numberReady", "numberAvailable",
        "numberUnavailable", "updatedNumberScheduled", "numberMisscheduled",
    ),
}  # fmt: skip
BROKEN = "broken"
"""A pod of that image never becomes ready."""
STEPS = 12
"""Whatever has not come to an end after so many never will."""


@dataclass(frozen=True)
class Rollout:
    """A workload, and how it is changed: patches, or the names of pods that are deleted."""

    name: str
    kind: str
    spec: Mapping[str, Json]
    changes: Sequence[Json] = field(default=())


def image(name: str) -> Json:
    return {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": name}]}}}}


def rolling(kind: str, **limits: Json) -> Json:
    field = "strategy" if kind == "Deployment" else "updateStrategy"
    return {field: {"type": "RollingUpdate", "rollingUpdate": limits}}


NEXT = [image("two")]
ROLLOUTS = (
    Rollout("quarters", "Deployment", {"replicas": 4}, NEXT),
    Rollout(
        "surge",
        "Deployment",
        {"replicas": 3, **rolling("Deployment", maxSurge=1, maxUnavailable=0)},
        NEXT,
    ),
    Rollout(
        "no-surge",
        "Deployment",
        {"replicas": 3, **rolling("Deployment", maxSurge=0, maxUnavailable=1)},
        NEXT,
    ),
    Rollout(
        "much",
        "Deployment",
        {"replicas": 5, **rolling("Deployment", maxSurge="50%", maxUnavailable="50%")},
        NEXT,
    ),
    Rollout("recreate", "Deployment", {"replicas": 3, "strategy": {"type": "Recreate"}}, NEXT),
    Rollout(
        "broken-and-mended",
        "Deployment",
        {"replicas": 4},
        [image(BROKEN), image("three")],
    ),
    Rollout("there-and-back", "Deployment", {"replicas": 2}, [image("two"), image("one")]),
    Rollout(
        "paused",
        "Deployment",
        {"replicas": 2},
        [
            {"spec": {"paused": True, **image("two")["spec"]}},
            {"spec": {"replicas": 3}},
            {"spec": {"paused": False}},
        ],
    ),
    Rollout(
        "scaled",
        "Deployment",
        {"replicas": 2},
        [{"spec": {"replicas": 5}}, {"spec": {"replicas": 1}}],
    ),
    Rollout("in-order", "StatefulSet", {"replicas": 3}, NEXT),
    Rollout("in-parallel", "StatefulSet", {"replicas": 3, "podManagementPolicy": "Parallel"}, NEXT),
    Rollout(
        "partition",
        "StatefulSet",
        {"replicas": 3, **rolling("StatefulSet", partition=2)},
        [
            *NEXT,
            # One below and one above are made again: each by the template that is its own.
            "partition-0",
            "partition-2",
            {"spec": rolling("StatefulSet", partition=0)},
        ],
    ),
    Rollout(
        "by-hand",
        "StatefulSet",
        {"replicas": 3, "updateStrategy": {"type": "OnDelete"}},
        [*NEXT, "by-hand-1"],
    ),
    Rollout(
        "up-and-down",
        "StatefulSet",
        {"replicas": 2},
        [{"spec": {"replicas": 4}}, {"spec": {"replicas": 1}}],
    ),
    Rollout("set-broken", "StatefulSet", {"replicas": 3}, [image(BROKEN)]),
    Rollout("set-back", "StatefulSet", {"replicas": 2}, [image("two"), image("one")]),
    Rollout("daemons", "DaemonSet", {}, NEXT),
    Rollout("two-daemons", "DaemonSet", rolling("DaemonSet", maxUnavailable="50%"), NEXT),
    Rollout("daemons-by-hand", "DaemonSet", {"updateStrategy": {"type": "OnDelete"}}, NEXT),
    Rollout("daemons-surge", "DaemonSet", rolling("DaemonSet", maxSurge=1, maxUnavailable=0), NEXT),
    Rollout("daemons-broken", "DaemonSet", {}, [image(BROKEN), image("three")]),
)


def told(http: httpx.Client, rollouts: Sequence[Rollout], pause: Callable[[], None]) -> Json:
    """What was seen of each rollout: a list of steps for its beginning, and for each change.

    The controllers are at rest once nothing has changed during a pause.
    """
    for node in NODES:
        http.post("/api/v1/nodes", json={"metadata": {"name": node}}).raise_for_status()
    for it in rollouts:
        _begin(http, it)
    seen: dict[str, Json] = {it.name: [] for it in rollouts}
    for number in range(max(len(it.changes) for it in rollouts) + 1):
        going = [it for it in rollouts if number <= len(it.changes)]
        for it in going:
            seen[it.name].append([])
            if number:
                _change(http, it, it.changes[number - 1])
        for _step in range(STEPS):
            looks = _rest(http, going, pause)
            for it in going:
                steps = seen[it.name][-1]
                if not steps or steps[-1] != looks[it.name]:
                    steps.append(looks[it.name])
            acted = [_play_kubelet(http, it) for it in going]
            if not any(acted):
                break
    return seen


def _begin(http: httpx.Client, rollout: Rollout) -> None:
    namespace = f"rollout-{rollout.name}"
    http.post("/api/v1/namespaces", json={"metadata": {"name": namespace}}).raise_for_status()
    # Without an account of this name real Kubernetes takes no pods.
    account = {"metadata": {"name": "default"}}
    http.post(f"/api/v1/namespaces/{namespace}/serviceaccounts", json=account)
    labels = {"app": rollout.name}
    template = {"metadata": {"labels": labels}, **image("one")["spec"]["template"]}
    spec = {"selector": {"matchLabels": labels}, "template": template, **rollout.spec}
    if rollout.kind == "StatefulSet":
        spec["serviceName"] = rollout.name
    obj = {"metadata": {"name": rollout.name}, "spec": spec}
    http.post(PATHS[rollout.kind].format(namespace), json=obj).raise_for_status()


def _change(http: httpx.Client, rollout: Rollout, change: Json) -> None:
    namespace = f"rollout-{rollout.name}"
    if isinstance(change, str):
        http.delete(f"/api/v1/namespaces/{namespace}/pods/{change}").raise_for_status()
    else:
        path = f"{PATHS[rollout.kind].format(namespace)}/{rollout.name}"
        http.patch(path, json=change, headers=MERGE).raise_for_status()


def _rest(http: httpx.Client, rollouts: Iterable[Rollout], pause: Callable[[], None]) -> Json:
    """What there is once the controllers have come to rest."""
    looks = None
    while looks != (looks := {it.name: _look(http, it) for it in rollouts}):
        pause()
    return looks


def _pods(http: httpx.Client, rollout: Rollout) -> list[Json]:
    answer = http.get(f"/api/v1/namespaces/rollout-{rollout.name}/pods").raise_for_status()
    found: list[Json] = answer.json()["items"]
    return found


def _is_ready(pod: Json) -> bool:
    conditions = pod["status"].get("conditions", ())
    return any((it["type"], it["status"]) == ("Ready", "True") for it in conditions)


def _play_kubelet(http: httpx.Client, rollout: Rollout) -> bool:
    """Have every pod become ready that can; tells whether there was any."""
    ready = {
        "phase": "Running",
        "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": "2024-01-01T00:00:00Z"}
        ],
    }
    acted = False
    for pod in _pods(http, rollout):
        if not _is_ready(pod) and _image(pod) != BROKEN:
            path = f"/api/v1/namespaces/rollout-{rollout.name}/pods/{pod['metadata']['name']}"
            http.patch(f"{path}/status", json={"status": ready}, headers=MERGE).raise_for_status()
            acted = True
    return acted


def _image(pod: Json) -> str:
    return str(pod["spec"]["containers"][0]["image"])


def _place(rollout: Rollout, pod: Json) -> str:
    """What tells a pod from its like; of daemons any may be the first."""
    return str(pod["metadata"]["name"]) if rollout.kind == "StatefulSet" else "pod"


def _look(http: httpx.Client, rollout: Rollout) -> Json:
    path = f"{PATHS[rollout.kind].format(f'rollout-{rollout.name}')}/{rollout.name}"
    obj = http.get(path).raise_for_status().json()
    status = obj["status"]
    pods = sorted(
        f"{_place(rollout, it)} {_image(it)} {'ready' if _is_ready(it) else 'waiting'}"
        for it in _pods(http, rollout)
    )
    seen = {"pods": pods, "status": {it: status.get(it, 0) for it in COUNTED[rollout.kind]}}
    seen["observed"] = status.get("observedGeneration") == obj["metadata"]["generation"]
    if rollout.kind == "Deployment":
        annotations = obj["metadata"].get("annotations", {})
        seen["revision"] = annotations.get("deployment.kubernetes.io/revision")
        seen["conditions"] = sorted(
            f"{it['type']} {it['status']}" for it in status.get("conditions", ())
        )
    if rollout.kind == "StatefulSet":
        seen["rolled"] = status.get("currentRevision") == status.get("updateRevision")
    return seen
