"""Pods: every one that was ready is, or another that stands for it, and none waits for a volume."""

from __future__ import annotations

import re
from collections import Counter, defaultdict

from replant.execute.census_model import Pod, Trouble
from replant.execute.verifying.comparison import Comparison, Outcome, Problem, Problems

_COUNTED = ("StatefulSet", "ReplicaSet", "ReplicationController", "DaemonSet")
"""The kinds that say how many pods they are to have: a person may have scaled them since."""
_REPLICA_SET_HASH = re.compile(r"-[a-z0-9]{5,10}\Z")

_Family = tuple[str, str]
"""A namespace, and what makes pods there that stand for each other."""


def pods(it: Comparison) -> Problems:
    """Pods that were ready and are not, compared by what makes them."""
    families: dict[_Family, list[Pod]] = defaultdict(list)
    for pod in it.before.census.pods:
        if pod.ready:
            families[_family(pod.namespace, pod.owner)].append(pod)
    now: dict[_Family, list[Pod]] = defaultdict(list)
    for pod in it.now.census.pods:
        now[_family(pod.namespace, pod.owner)].append(pod)
    wanted: Counter[_Family] = Counter()
    for key, number in it.now.census.wanted.items():
        namespace, _, owner = key.partition("/")
        wanted[_family(namespace, owner)] += number
    for family, were in families.items():
        kind = family[1].partition("/")[0]
        if kind in ("", "Node"):
            yield from _singly(it, were)
        elif kind != "Job":  # a job ends, and may have ended
            needed = min(len(were), wanted[family]) if kind in _COUNTED else len(were)
            yield from _together(it, family, were, now[family], needed)


def _family(namespace: str, owner: str) -> _Family:
    """Whose pods stand for each other: of a Deployment's ReplicaSets one follows the other."""
    kind, _, name = owner.partition("/")
    if kind == "ReplicaSet":
        return namespace, f"{kind}/{_REPLICA_SET_HASH.sub('', name)}"
    return namespace, owner


def _singly(it: Comparison, were: list[Pod]) -> Problems:
    """Pods for which no other stands: static ones, and those that nobody made."""
    for pod in were:
        now = it.now.pods.get(pod.key)
        if (now and now.ready) or pod.key in it.now.census.ended:
            continue
        node = pod.owner.removeprefix("Node/")
        if node in it.before.nodes and node not in it.now.nodes:
            continue  # a static pod goes with its node
        if now or pod.owner:
            yield Problem(f"Pod {pod.key}", _why_not_ready(it, pod.key, now))
        elif pod.key in it.let_go:
            yield Problem(f"Pod {pod.key}", "Deleted, as allowed", Outcome.PASSED)
        else:
            message = (
                f"Pod {pod.key} was ready before and is gone, and nobody makes it again: make it "
                "from its manifest."
            )
            yield Problem(f"Pod {pod.key}", message, Outcome.WRONG)


def _together(
    it: Comparison, family: _Family, were: list[Pod], now: list[Pod], needed: int
) -> Problems:
    missing = needed - sum(pod.ready for pod in now)
    if missing <= 0:
        return
    namespace, owner = family
    kind, _, name = owner.partition("/")
    if kind == "StatefulSet":
        # The names of its pods stay.
        for pod in were:
            there = it.now.pods.get(pod.key)
            if there is None or not there.ready:
                yield Problem(f"Pod {pod.key}", _why_not_ready(it, pod.key, there))
        return
    waiting = next((pod for pod in now if not pod.ready), None)
    why = f"There are not enough of them: look at the events of the {kind}."
    if waiting:
        why = _why_not_ready(it, waiting.key, waiting)
    message = f"{missing} of {len(were)} pods of {namespace}/{name} that were ready are not. {why}"
    yield Problem(f"{kind} {namespace}/{name}", message)


def _why_not_ready(it: Comparison, key: str, now: Pod | None) -> str:
    if now is None:
        return f"Pod {key} was ready before and is gone: look at the events of what makes it."
    if not now.node:
        return f"Pod {key} has no node yet: look at its events and at the log of kube-scheduler."
    told = it.troubles.get(key)
    why = f": {told.message}" if told else ""
    return f"Pod {key} on {now.node} is not ready{why}. {it.node_logs(now.node, _plugin(it, now))}"


def _plugin(it: Comparison, pod: Pod) -> str:
    plugins = (disk.plugin for disk in it.now.disks_of(pod))
    return next((plugin for plugin in plugins if plugin in it.plan.plugins), "")


def mounts(it: Comparison) -> Problems:
    """Pods with a volume of the plan that do not get it, and were not without it before.

    Events fade within an hour, so that their number alone says nothing: a pod that is ready has
    its volume whatever was told about it on the way, and it is told of the others again and again.
    """
    known: Counter[str] = Counter()
    for trouble in it.before.census.troubles:
        known[trouble.uid] += trouble.count
    in_trouble = {trouble.pod for trouble in it.before.census.troubles} - {
        pod.key for pod in it.before.census.pods if pod.ready
    }
    told: dict[str, list[Trouble]] = defaultdict(list)
    for trouble in it.now.census.troubles:
        told[trouble.pod].append(trouble)
    for key, troubles in told.items():
        pod = it.now.pods.get(key)
        plugin = _plugin(it, pod) if pod else ""
        if pod is None or pod.ready or not plugin or key in in_trouble:
            continue
        count = sum(trouble.count for trouble in troubles)
        if count > known[troubles[-1].uid]:
            message = (
                f"Pod {key} on {pod.node or 'no node'} was refused its volume {count} times: "
                f"{troubles[-1].message}. {it.node_logs(pod.node, plugin)}"
            )
            yield Problem(f"Pod {key}", message)
