"""StatefulSets: pods with names and claims of their own, in order."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from replant.objects import Object
from replant.sandbox.controllers.workloads import pods, retention, revisions
from replant.sandbox.controllers.workloads.family import Family
from replant.sandbox.controllers.workloads.revisions import HASH, Revision
from replant.sandbox.resources import PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS
from replant.sandbox.shelves import Entry

_STALE = 1.0
"""So many seconds until it is looked again whether a claim of an earlier pod has gone."""


class _Pod(NamedTuple):
    """One of its pods, looked at once: a set asks the same of each several times."""

    entry: Entry
    ending: bool
    ready: bool
    available: bool

    @classmethod
    def of(cls, entry: Entry, min_ready: int, now: datetime) -> _Pod:
        """As it is now."""
        ready = pods.is_ready(entry)
        available = ready and (not min_ready or pods.is_available(entry, min_ready, now))
        return cls(entry, pods.is_ending(entry), ready, available)

    @property
    def healthy(self) -> bool:
        return self.available and not self.ending

    @property
    def revision(self) -> str:
        return self.entry.labels.get(HASH, "")


@dataclass
class _Set:
    """A StatefulSet at one moment."""

    obj: Object
    current: Revision
    update: Revision
    now: datetime
    pods: dict[int, _Pod]
    """By their ordinals: those that were there, and those that were made since. What goes counts
    until it is seen to be gone, or a set of which one is missing would pass for a whole one."""

    @property
    def name(self) -> str:
        return str(self.obj["metadata"]["name"])

    @property
    def replicas(self) -> int:
        return int(self.obj["spec"].get("replicas", 1))

    @property
    def in_order(self) -> bool:
        return bool(self.obj["spec"].get("podManagementPolicy") != "Parallel")

    @property
    def min_ready(self) -> int:
        return int(self.obj["spec"].get("minReadySeconds", 0))

    @property
    def rolls(self) -> bool:
        """Whether pods of an old template are replaced by themselves."""
        strategy = self.obj["spec"].get("updateStrategy") or {}
        return bool(strategy.get("type", "RollingUpdate") == "RollingUpdate")

    @property
    def partition(self) -> int:
        """Pods below that ordinal stay as they are."""
        strategy = self.obj["spec"].get("updateStrategy") or {}
        return int((strategy.get("rollingUpdate") or {}).get("partition", 0))

    def revision_of(self, ordinal: int) -> Revision:
        """The template of a pod that is to be made."""
        return self.current if self.rolls and ordinal < self.partition else self.update


class StatefulSets:
    """Keeps pods by their ordinals, and replaces those of an old template from the highest down."""

    def __init__(self, family: Family) -> None:
        self._family = family
        self.retains = True
        """Whether claims stay, whatever a set's retention policy says."""

    def sync(self, obj: Object) -> None:
        """Take the next step, and say how far it is."""
        name, status = obj["metadata"]["name"], obj.get("status") or {}
        known = revisions.history(self._family, STATEFUL_SETS, obj)
        first = status.get("updateRevision", "")
        update = revisions.current(self._family, STATEFUL_SETS, obj, known, first)
        if update is None:
            return
        running = status.get("currentRevision")
        current = next((it for it in known if it.name == running), update)
        it = _Set(obj, current, update, self._family.store.now(), {})
        for entry in self._family.made(
            STATEFUL_SETS, obj, PODS, lambda it: _ordinal(it, name) >= 0
        ):
            it.pods[_ordinal(entry, name)] = _Pod.of(entry, it.min_ready, it.now)
        if not self.retains:
            for ordinal, pod in it.pods.items():
                condemned = ordinal >= it.replicas
                retention.write_owners(self._family, obj, pod.entry, condemned=condemned)
        self._step(it)
        self._count(it)
        used = {current.name, update.name, *(pod.revision for pod in it.pods.values())}
        revisions.forget(self._family, obj, known, used)

    def _step(self, it: _Set) -> None:
        if self._fill(it) and self._shrink(it) and it.rolls:
            self._roll(it)

    def _fill(self, it: _Set) -> bool:
        """Make what is missing; tells whether one may go on."""
        for ordinal in range(it.replicas):
            pod = it.pods.get(ordinal)
            if pod is None:
                self._make(it, ordinal)
            elif pods.is_over(pod.entry):
                self._family.remove(pod.entry)
            elif pod.healthy:
                continue
            if it.in_order:
                return False
        return True

    def _shrink(self, it: _Set) -> bool:
        """Delete what is too much, from the highest down; tells whether one may go on."""
        condemned = sorted((ordinal for ordinal in it.pods if ordinal >= it.replicas), reverse=True)
        for ordinal in condemned:
            if not it.pods[ordinal].ending:
                self._family.remove(it.pods[ordinal].entry)
            if it.in_order:
                return False
        return True

    def _roll(self, it: _Set) -> None:
        """Delete the highest pod of an old template, unless a higher one is still on its way."""
        for ordinal in range(it.replicas - 1, it.partition - 1, -1):
            pod = it.pods.get(ordinal)
            if pod is None:
                return
            if pod.revision != it.update.name and not pod.ending:
                self._family.remove(pod.entry)
                return
            if not pod.healthy:
                return

    def _make(self, it: _Set, ordinal: int) -> None:
        namespace, revision = it.obj["metadata"]["namespace"], it.revision_of(ordinal)
        name = f"{it.name}-{ordinal}"
        if not self.retains and retention.has_stale_claim(self._family, it.obj, name):
            self._family.again(STATEFUL_SETS, (namespace, it.name), _STALE)
            return
        spec = {**it.obj["spec"], "template": revision.template}
        pod = pods.pod_of(STATEFUL_SETS, {**it.obj, "spec": spec}, name)
        pod["metadata"]["labels"] |= {
            "statefulset.kubernetes.io/pod-name": name,
            HASH: revision.name,
        }
        pod["spec"]["hostname"] = name
        volumes = pod["spec"]["volumes"] = list(pod["spec"].get("volumes") or ())
        for template in it.obj["spec"].get("volumeClaimTemplates") or ():
            short = template["metadata"]["name"]
            claim = f"{short}-{name}"
            volumes[:] = [volume for volume in volumes if volume["name"] != short]
            volumes.append({"name": short, "persistentVolumeClaim": {"claimName": claim}})
            if not self._family.store.find(PERSISTENT_VOLUME_CLAIMS, claim, namespace):
                labels = dict(it.obj["spec"]["selector"].get("matchLabels") or {})
                made = {"metadata": {"name": claim, "labels": labels}}
                made["spec"] = dict(template["spec"])
                self._family.create(PERSISTENT_VOLUME_CLAIMS, made, namespace)
        if entry := self._family.create(PODS, pod, namespace):
            it.pods[ordinal] = _Pod.of(entry, it.min_ready, it.now)

    def _count(self, it: _Set) -> None:
        there = it.pods.values()
        staying = [pod.revision for pod in there if not pod.ending]
        status = {
            "replicas": len(there),
            "readyReplicas": sum(pod.ready for pod in there),
            "availableReplicas": sum(pod.available for pod in there),
            "currentReplicas": staying.count(it.current.name),
            "updatedReplicas": staying.count(it.update.name),
            "currentRevision": it.current.name,
            "updateRevision": it.update.name,
            "collisionCount": 0,
        }
        everything = (status["updatedReplicas"], status["readyReplicas"])
        if it.rolls and everything == (status["replicas"], status["replicas"]):
            status["currentReplicas"] = status["updatedReplicas"]
            status["currentRevision"] = it.update.name
        always = ("replicas", "availableReplicas", "collisionCount")
        self._family.say(STATEFUL_SETS, it.obj, pods.said(status, *always))
        if pause := pods.next_available((pod.entry for pod in there), it.min_ready, it.now):
            metadata = it.obj["metadata"]
            self._family.again(STATEFUL_SETS, (metadata["namespace"], metadata["name"]), pause)


def _ordinal(entry: Entry, name: str) -> int:
    """The place of a pod in the set of that name, or -1 if it cannot be one of its pods."""
    parent, _dash, number = entry.name.rpartition("-")
    return int(number) if parent == name and number.isdecimal() else -1
